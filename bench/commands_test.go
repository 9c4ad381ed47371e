package main

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headway-go/headway/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// counter counts the commands that a client sends, without the heartbeats of
// the fleet, which are as many whatever is decided.
type counter struct{ n atomic.Int64 }

func (c *counter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		args := cmd.Args()
		key, _ := args[min(3, len(args)-1)].(string)
		if strings.HasPrefix(cmd.Name(), "eval") && !strings.HasSuffix(key, "}:f") {
			c.n.Add(1)
		}
		return next(ctx, cmd)
	}
}

// A lone admission is one command of the store, and settling it one more.
func TestCommands(t *testing.T) {
	server, err := redistest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	rdb := server.Client()
	defer rdb.Close()
	var sent counter
	rdb.AddHook(&sent)
	rows, err := newRows(t.Context(), rdb)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{ // of each row
		"empty EVALSHA": 1, "redis_rate": 1, "Reserve, one limit": 1, "Reserve, two limits": 1,
		"Reserve, refused": 1, "Reserve + Settle": 2, "Reserve, memory store": 0,
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			const calls = 50
			once(t.Context(), t, r) // loads the script
			before := sent.n.Load()
			for range calls {
				once(t.Context(), t, r)
			}
			if got := float64(sent.n.Load()-before) / calls; got != want[r.name] {
				t.Errorf("%v commands a decision, want %v", got, want[r.name])
			}
		})
	}
}

func once(ctx context.Context, t *testing.T, r row) {
	t.Helper()
	if err := r.decide(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestMedian(t *testing.T) {
	r := []result{{p50: 9}, {p50: 1}, {p50: 4}}
	if got := median(r, func(m result) float64 { return m.p50 }); got != 4 {
		t.Errorf("median = %v, want 4", got)
	}
}
