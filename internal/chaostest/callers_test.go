package chaostest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http/httptrace"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/redistest"
	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/throttle"
)

// A request whose body fails half-way: the caller gets its own error, the body is
// closed, and the call is charged, since the vendor may have seen it. A body
// that fails before the call has a connection costs nothing.
func TestRequestBodyFails(t *testing.T) {
	a, b := newPair(t, throttle.Config{Default: []throttle.Limit{throttle.Per(throttle.Requests, 10, time.Hour)}})
	vendor := vendorsim.Run(t, vendorsim.Config{})
	key := errandKey(t, vendor.URL())
	client := caller(t, a)
	reserve(t, a, one(key, "warm"))
	broken := errors.New("the disk is gone")
	leaks := noLeaks(t)
	for _, size := range []int{20, 4 << 10, 300 << 10, 2 << 20} {
		read, write := io.Pipe()
		go func() {
			_, _ = io.WriteString(write, `{"model":"m","messages":"`+strings.Repeat("x", size))
			write.CloseWithError(broken)
		}()
		req := request(t, t.Context(), vendor.URL()+"/v1/chat/completions", "m")
		req.Body, req.GetBody, req.ContentLength = read, nil, -1
		before := used(t, b, key, "m", throttle.Requests) + used(t, b, key, throttle.NoModel, throttle.Requests)
		resp, err := client.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		if !errors.Is(err, broken) {
			t.Errorf("%d bytes: error %v, want the body's own", size, err)
		}
		if _, err := write.Write([]byte("x")); err == nil {
			t.Errorf("%d bytes: the body is not closed", size)
		}
		after := used(t, b, key, "m", throttle.Requests) + used(t, b, key, throttle.NoModel, throttle.Requests)
		if after-before != 1 {
			t.Errorf("%d bytes: charged %d requests, want 1: a part of it went out", size, after-before)
		}
	}
	if n := vendor.Count(vendorsim.Filter{Status: 200}); n != 0 {
		t.Errorf("the vendor answered %d half calls", n)
	}
	client.CloseIdleConnections()
	leaks()
}

// Answers that nobody reads, closes or cancels hold up no other call.
func TestAnswersNobodyReads(t *testing.T) {
	t.Parallel()
	const n = 50
	a, b := newPair(t, throttle.Config{Default: []throttle.Limit{throttle.Per(throttle.Requests, 2*n, time.Hour)}})
	vendor := vendorsim.Run(t, vendorsim.Config{Chunks: 1000})
	client := caller(t, a)
	for i := range n {
		req := request(t, t.Context(), vendor.URL()+"/v1/chat/completions", "m")
		if i%2 == 0 {
			vendor.Script("m", vendorsim.ServerError500())
		}
		if _, err := client.Do(req); err != nil {
			t.Fatal(err)
		}
	}
	key := errandKey(t, vendor.URL())
	for range n {
		reserve(t, b, one(key, "m"))
	}
	refuse(t, b, one(key, "m"))
}

// Contexts that end at every moment of a call: whatever had a connection is
// charged, whatever had none is not, and the vendor saw nothing else.
func TestCancelledAtEveryStep(t *testing.T) {
	const calls = 400
	a, b := newPair(t, throttle.Config{Default: []throttle.Limit{throttle.Per(throttle.Requests, calls, time.Hour)}})
	vendor := vendorsim.Run(t, vendorsim.Config{Delay: 5 * ms, Gap: 2 * ms})
	key := errandKey(t, vendor.URL())
	client := caller(t, a)
	reserve(t, b, one(key, "warm"))
	leaks := noLeaks(t)
	var connected atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range calls / 8 {
				// From 10 us to 100 ms, as many for each factor of ten, whatever the machine's speed.
				after := time.Duration(math.Pow(10, 1+4*rand.Float64()) * float64(time.Microsecond))
				ctx, cancel := context.WithTimeout(t.Context(), after)
				ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Add(1) }})
				resp, err := client.Do(request(t, ctx, vendor.URL()+"/v1/chat/completions", "m"))
				if err == nil {
					if i%3 != 0 {
						_, _ = io.Copy(io.Discard, resp.Body)
					}
					resp.Body.Close()
				}
				cancel()
			}
		})
	}
	wg.Wait()
	got := connected.Load()
	eventually(t, "what had no connection is given back", func() bool { return used(t, b, key, "m", throttle.Requests) <= got })
	if n := used(t, b, key, "m", throttle.Requests); n != got {
		t.Errorf("%d calls are charged, %d had a connection", n, got)
	}
	if n := int64(vendor.Count(vendorsim.Filter{})); n > got {
		t.Errorf("the vendor saw %d calls, %d are charged", n, got)
	}
	if got < calls/10 || got > calls*95/100 {
		t.Errorf("%d of %d calls had a connection: the contexts do not end at every step", got, calls)
	}
	if n := modelStatus(t, b, key, "m").Waiting; n != 0 {
		t.Errorf("%d calls wait", n)
	}
	client.CloseIdleConnections()
	leaks()
}

// 20,000 junk names of models, from two hosts: the keys in Redis are bounded in
// number and length, the memory of the hosts too, and a real model has its
// budget all the while. It measures memory, so nothing runs beside it.
func TestJunkNames(t *testing.T) {
	const names = 20_000
	prefix := prefixOf(t)
	a, b := newPair(t, throttle.Config{Prefix: prefix, Default: []throttle.Limit{throttle.PerMinute(throttle.Requests, 1_000_000)},
		Models: map[string][]throttle.Limit{"real": {throttle.PerMinute(throttle.Requests, 10)}}})
	junk := func(i int) string {
		switch i % 6 {
		case 0:
			return strings.Repeat("x", 100<<10) + fmt.Sprint(i)
		case 1:
			return fmt.Sprintf("\x00\r\n\x1b[31m%d", i)
		case 2:
			return fmt.Sprintf("}{%d{", i)
		case 3:
			return fmt.Sprintf("REAL%d", i)
		case 4:
			return fmt.Sprintf("real:%d:line", i)
		}
		return fmt.Sprintf("%d*?[a-z]", i)
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	reserve(t, a, one("key", ""))
	before := heap()
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := worker; i < names; i += 8 {
				l := []*throttle.Limiter{a, b}[worker%2]
				if _, err := l.Reserve(t.Context(), one("key", junk(i))); err != nil {
					t.Errorf("%d: %.200v", i, err)
				}
			}
		})
	}
	wg.Wait()
	keys := keysUnder(t, prefix)
	if len(keys) > 2*1000+10 { // a thousand names of each host have a tape
		t.Errorf("%d keys in Redis", len(keys))
	}
	for _, k := range keys {
		if len(k) > len(prefix)+150 || strings.Count(k, "{") != 1 {
			t.Errorf("key %.300q", k)
		}
	}
	// A host remembers 4,096 names for speed: of the long ones, a sixth.
	if grown := int64(heap()) - int64(before); grown > 2*(4096/6)*(100<<10)*3/2 {
		t.Errorf("the hosts keep %d MiB", grown>>20)
	} else {
		t.Logf("%d keys in Redis, the hosts keep %d MiB", len(keys), grown>>20)
	}
	for i := range 10 {
		reserve(t, []*throttle.Limiter{a, b}[i%2], one("key", "real"))
	}
	refuse(t, a, one("key", "real"))
}

// A cost of nothing goes when there is no room, but not into a pause; a cost
// above everything is an answer of its own and leaves no trace.
func TestExtremeCosts(t *testing.T) {
	t.Parallel()
	prefix := prefixOf(t)
	a, b := newPair(t, throttle.Config{Prefix: prefix, Default: []throttle.Limit{throttle.PerMinute(throttle.Requests, 1), throttle.PerMinute(throttle.Tokens, 100)}})
	c := func(requests, tokens int64) throttle.Call {
		return throttle.Call{Key: "key", Model: "m", Cost: throttle.Cost{throttle.Requests: requests, throttle.Tokens: tokens}}
	}
	for _, large := range []throttle.Call{c(2, 0), c(1, 101), c(0, throttle.MaxAmount), c(throttle.MaxAmount, throttle.MaxAmount)} {
		if e := refuse(t, a, large); e.Reason != throttle.TooLarge || !errors.Is(e, throttle.ErrTooLarge) {
			t.Errorf("cost %v: %+v, want too large", large.Cost, e)
		}
	}
	if keys := contents(t, prefix, "key", "m"); len(keys) != 0 {
		t.Errorf("calls that are too large left %d keys", len(keys))
	}
	reserve(t, a, c(1, 100))
	for i := range 100 {
		free := c(0, 0)
		if i%2 == 0 {
			free.Lane = lanes.Background
		}
		reserve(t, b, free)
	}
	if n := used(t, a, "key", "m", throttle.Tokens); n != 100 {
		t.Errorf("%d tokens are used, want 100", n)
	}
	if err := a.Pause(t.Context(), "key", "m", time.Minute); err != nil {
		t.Fatal(err)
	}
	if e := refuse(t, b, c(0, 0)); e.Reason != throttle.ModelPaused {
		t.Errorf("a call for nothing into a pause: %+v", e)
	}
}

// A callback for events that panics harms nobody, and is logged without what it
// panicked with.
func TestEventCallbackPanics(t *testing.T) {
	t.Parallel()
	var l log
	seen := map[throttle.EventKind]bool{}
	var mu sync.Mutex
	h := newHost(t, throttle.Config{Prefix: prefixOf(t), Default: []throttle.Limit{throttle.PerMinute(throttle.Requests, 2)},
		Logger: slog.New(slog.NewTextHandler(&l, nil)), OnEvent: func(e throttle.Event) {
			mu.Lock()
			seen[e.Kind] = true
			mu.Unlock()
			panic("a secret of the caller's")
		}})
	reserve(t, h, one("key", "m"))
	reserve(t, h, one("key", "m"))
	refuse(t, h, one("key", "m"))
	if err := h.Pause(t.Context(), "key", "m", time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := h.Resume(t.Context(), "key", "m"); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, k := range []throttle.EventKind{throttle.Admitted, throttle.RefusedCall, throttle.PauseBegan, throttle.Resumed} {
		if !seen[k] {
			t.Errorf("no event %q", k)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if text := l.text.String(); strings.Count(text, "OnEvent panicked") != 5 || strings.Contains(text, "secret") {
		t.Errorf("the log says %q", text)
	}
}

// A callback for events must not block. One that does, on any event of one key,
// holds up that one call: calls of another key, and of the same, go on.
func TestEventCallbackBlocks(t *testing.T) {
	t.Parallel()
	for _, kind := range []throttle.EventKind{throttle.Admitted, throttle.RefusedCall, throttle.PauseBegan, throttle.Resumed, throttle.UnlimitedModel} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			blocked, release := make(chan struct{}), make(chan struct{})
			var first atomic.Bool
			h := newHost(t, throttle.Config{Prefix: prefixOf(t), Models: map[string][]throttle.Limit{"m": {throttle.PerMinute(throttle.Requests, 5)}},
				OnEvent: func(e throttle.Event) {
					if e.Kind == kind && first.CompareAndSwap(false, true) {
						close(blocked)
						<-release
					}
				}})
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = h.Reserve(t.Context(), one("key", "unknown"))
				for range 6 {
					_, _ = h.Reserve(t.Context(), one("key", "m"))
				}
				_ = h.Pause(t.Context(), "key", "m", time.Minute)
				_ = h.Resume(t.Context(), "key", "m")
			}()
			<-blocked
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if _, err := h.Reserve(ctx, one("other", "m")); err != nil {
				t.Errorf("a call of another key: %v", err)
			}
			if _, err := h.Reserve(ctx, one("key", "n")); err != nil {
				t.Errorf("a call of the same key: %v", err)
			}
			close(release)
			<-ended
		})
	}
}

// A callback that blocks on the news of an outage does not keep the limiter from
// deciding alone, nor from coming back.
func TestEventCallbackBlocksInAnOutage(t *testing.T) {
	t.Parallel()
	for _, kind := range []throttle.EventKind{throttle.StoreLost, throttle.StoreBack} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			s, err := redistest.Start()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Stop)
			blocked, release := make(chan struct{}), make(chan struct{})
			var once sync.Once
			client := s.Client()
			defer client.Close()
			l, err := throttle.New(throttle.Config{Redis: client, Members: 1, Default: []throttle.Limit{throttle.PerMinute(throttle.Requests, 1000)},
				OnEvent: func(e throttle.Event) {
					if e.Kind == kind {
						once.Do(func() { close(blocked); <-release })
					}
				}})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close(context.Background())
			defer close(release)
			reserve(t, l, one("key", "m"))
			s.Kill()
			go l.Reserve(t.Context(), one("key", "m")) // finds the outage
			eventually(t, "the outage is known", func() bool {
				s, err := l.Status(t.Context(), "key", "m")
				return err == nil && s.Outage != nil
			})
			reserve(t, l, one("other", "m")) // alone
			if err := s.Restart(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the limiter has come back", func() bool {
				s, err := l.Status(t.Context(), "key", "m")
				return err == nil && s.Outage == nil
			})
			<-blocked
			reserve(t, l, one("other", "m"))
			eventually(t, "what was spent alone is told", func() bool { return used(t, l, "other", "m", throttle.Requests) == 2 })
		})
	}
}
