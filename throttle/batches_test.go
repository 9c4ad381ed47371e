package throttle

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/headway-go/headway/lua"
)

// A count must be there as long as its window, and not much longer.
func TestCountsOutliveTheirWindow(t *testing.T) {
	t.Parallel()
	for _, limit := range []Limit{PerMinute(Requests, 10), PerDay(Requests, 10), {Unit: Requests, Amount: 10, Window: 24 * time.Hour, Shape: Fixed}} {
		onRedis(t, models(limit), func(t *testing.T, p *pair) {
			for i := range 3 {
				reserve(t, p.each(i), call())
				longest := time.Duration(0)
				for _, key := range p.keys(t) {
					longest = max(longest, p.redis.PTTL(t.Context(), key).Val())
				}
				if longest < limit.Window || longest > 2*limit.Window+11*time.Second {
					t.Errorf("%v: the count expires in %v", limit, longest)
				}
			}
		})
	}
}

// What one batch shares (scopes, tapes, the line as it grows) both stores share
// alike: random batches of calls of three models under one key's limit.
func TestBatchesAgree(t *testing.T) {
	rdb := server.Client()
	t.Cleanup(func() { _ = rdb.Close() })
	for seed := range uint64(env("HISTORIES", 100)) {
		var (
			r       = rand.New(rand.NewPCG(seed, 71))
			names   = lua.NewNames("batches", fmt.Sprintf("%d-%d", seed, r.Uint64()^uint64(time.Now().UnixNano())))
			memory  = NewMemory()
			now     = int64(1_764_000_000) * second
			row     = func(tape string) lua.Row { return lua.Row{Tape: tape, Tag: lua.Tag(tape)} }
			key     = row(names.Tape(names.Key(), "u", 60*second, false, ""))
			waiting []lua.Op
		)
		key.Window, key.Amount = 60*second, 2+r.Int64N(6)
		key.Ceiling, key.Cost = key.Amount, 1
		var takes []lua.Op
		for i, model := range []string{"a", "b", "c"} {
			scope := names.Model(model)
			own := row(names.Tape(scope, "u", 60*second, false, ""))
			own.Window, own.Amount = []int64{second, 60 * second}[r.IntN(2)], 1+r.Int64N(4)
			own.Ceiling, own.Cost = own.Amount, 1
			takes = append(takes, lua.Op{Kind: lua.Take, Key: names.Key(), Model: scope, Line: names.Line(names.Key()),
				ModelTag: int64(i + 1), KeyRows: 1, Rows: []lua.Row{key, own}})
		}
		for range 100 {
			now += []int64{0, r.Int64N(second), r.Int64N(8 * second)}[r.IntN(3)]
			b := lua.Batch{Now: now, Lead: testLead, Lease: testLease}
			for range 1 + r.IntN(6) {
				if n := len(waiting); n > 0 && r.IntN(2) == 0 {
					i := r.IntN(n)
					op := waiting[i]
					waiting = append(waiting[:i:i], waiting[i+1:]...)
					if r.IntN(8) == 0 {
						op = lua.Op{Kind: lua.Leave, Key: op.Key, Model: op.Model, Line: op.Line, ID: op.ID}
					}
					b.Ops = append(b.Ops, op)
					continue
				}
				op := takes[r.IntN(len(takes))]
				op.Share, op.Patience = []float64{1, 0.6}[r.IntN(2)], r.Int64N(200*second)
				b.Ops = append(b.Ops, op)
			}
			got, err := redisStore{rdb}.decide(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			want, _ := memory.decide(context.Background(), b)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d at %d:\n%+v\nredis  %+v\nmemory %+v", seed, now, b.Ops, got, want)
			}
			for i, a := range got {
				if op := b.Ops[i]; a.Status == lua.InLine {
					op.Kind, op.ID = lua.Ask, a.At
					waiting = append(waiting, op)
				}
			}
		}
	}
}
