package throttle

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// counter is a hook that counts the calls of take.lua, and how many are out at
// once. The announcements of a process every few seconds do not count.
type counter struct {
	mu        sync.Mutex
	n         int
	out, most int
}

func (c *counter) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !strings.HasPrefix(cmd.Name(), "eval") || cmd.Args()[2] == 2 { // no script, or fleet.lua with its two keys
			return next(ctx, cmd)
		}
		c.mu.Lock()
		c.n++
		c.out++
		c.most = max(c.most, c.out)
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			c.out--
			c.mu.Unlock()
		}()
		return next(ctx, cmd)
	}
}

// since returns the commands since the last call of since.
func (c *counter) since() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, c.n = c.n, 0
	return n
}

func (c *counter) peak() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most
}

// counted returns a limiter whose commands are counted; the script is loaded.
func counted(t *testing.T, s *redistest.Server, c Config) (*Limiter, *counter) {
	t.Helper()
	n := &counter{}
	client := s.Client()
	client.AddHook(n)
	t.Cleanup(func() { client.Close() })
	c.Redis, c.Prefix = client, prefix(t)
	if c.StoreTimeout == 0 {
		c.StoreTimeout = 5 * time.Second
	}
	l := newLimiter(t, c)
	reserve(t, l, Call{Key: "warm", Model: "other", Cost: Cost{Requests: 1}})
	n.since()
	return l, n
}

// Promise 12: a lone admission or refusal is one command, settling is one, and
// nothing to settle is none.
func TestCommandsOfALoneCall(t *testing.T) {
	t.Parallel()
	c := models(Per(Requests, 2, time.Hour), Per(Tokens, 100, time.Hour))
	c.Key = []Limit{Per(Requests, 100, time.Hour)}
	l, n := counted(t, server, c)
	want := func(what string, commands int) {
		t.Helper()
		if got := n.since(); got != commands {
			t.Errorf("%s took %d commands, want %d", what, got, commands)
		}
	}
	k := call()
	k.Cost = Cost{Requests: 1, Tokens: 50}
	first := reserve(t, l, k)
	want("an admission", 1)
	second, err := l.Wait(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	want("an admission by Wait", 1)
	refuse(t, l, k)
	want("a refusal", 1)
	if err := first.Settle(t.Context(), Cost{Tokens: 20}); err != nil {
		t.Fatal(err)
	}
	want("settling", 1)
	if err := first.Settle(t.Context(), Cost{Tokens: 20}); err != nil {
		t.Fatal(err)
	}
	want("settling twice", 0)
	report(t, second, overloaded)
	want("a report", 1)
	if err := second.Settle(t.Context(), Cost{Requests: 1, Tokens: 50}); err != nil {
		t.Fatal(err)
	}
	want("settling as estimated", 0)
	k.Cost[Tokens] = 101
	refuse(t, l, k)
	want("too large", 0)
}

// Promise 12: a call that waits takes two commands, whatever limits it has.
func TestCommandsOfAWait(t *testing.T) {
	t.Parallel()
	fixed := Per("segments", 1000, time.Hour)
	fixed.Shape = Fixed
	short := Per("images", 1, 300*time.Millisecond)
	short.Shape = Fixed
	bucket := Per(Requests, 5, time.Second)
	bucket.Shape, bucket.Burst = Bucket, 1
	for _, tc := range []struct {
		name   string
		limits []Limit
		cost   Cost
	}{
		{"sliding", []Limit{Per(Requests, 1, 300*ms)}, Cost{Requests: 1}},
		{"bucket", []Limit{bucket}, Cost{Requests: 1}},
		{"fixed", []Limit{short}, Cost{"images": 1}},
		{"sliding beside fixed", []Limit{Per(Requests, 1, 300*ms), fixed}, Cost{Requests: 1, "segments": 1}},
		{"bucket beside fixed", []Limit{bucket, fixed}, Cost{Requests: 1, "segments": 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l, n := counted(t, server, models(tc.limits...))
			k := call()
			k.Cost = tc.cost
			for range 4 {
				if _, err := l.Wait(t.Context(), k); err != nil {
					t.Fatal(err)
				}
			}
			if got := n.since(); got > 1+3*2 {
				t.Errorf("one call at once and three that waited took %d commands, want at most 7", got)
			}
		})
	}
}

// Promise 12: a call that waits for the end of a pause takes two commands, one
// that must move three.
func TestCommandsOfAPausedWait(t *testing.T) {
	t.Parallel()
	l, n := counted(t, server, models(Per(Requests, 100, time.Second)))
	if err := l.Pause(t.Context(), "key", "m", 300*ms); err != nil {
		t.Fatal(err)
	}
	n.since()
	if _, err := l.Wait(t.Context(), call()); err != nil {
		t.Fatal(err)
	}
	if got := n.since(); got > 2 {
		t.Errorf("a call that waited for the end of a pause took %d commands, want 2", got)
	}
}

// Promise 12: many calls of one process that wait share commands.
func TestCommandsOfManyWaits(t *testing.T) {
	t.Parallel()
	l, n := counted(t, server, models(Per(Requests, 100, 500*time.Millisecond)))
	k := call()
	k.Cost = Cost{Requests: 100}
	reserve(t, l, k)
	n.since()
	const calls = 300
	ends := make(chan ended, calls)
	for i := range calls {
		start(t.Context(), l, call(), i, ends)
	}
	for range calls {
		if e := <-ends; e.err != nil {
			t.Error(e.err)
		}
	}
	if got := n.since(); got > 2*calls {
		t.Errorf("%d waits took %d commands, want at most two each", calls, got)
	} else {
		t.Logf("%d waits took %d commands", calls, got)
	}
}

// Promise 8 and group commit: calls that arrive while a script is out ride
// together, so that one command carries many decisions.
func TestCommandsOfManyCalls(t *testing.T) {
	t.Parallel()
	l, n := counted(t, server, models(Per(Requests, MaxAmount, time.Hour)))
	const calls = 4000
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range calls / 64 {
				if _, err := l.Reserve(t.Context(), call()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := n.since(); got > calls/4 {
		t.Errorf("%d calls of 64 goroutines took %d commands, want them to share", calls, got)
	}
	if got := n.peak(); got != 1 {
		t.Errorf("%d commands of one key were out at once, want one", got)
	}
}
