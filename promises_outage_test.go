package headway_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/redistest"
	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
	"github.com/redis/go-redis/v9"
)

// Promise 18: lanes that are closed during an outage: every call is answered in
// time, by an error that is no limit's; nothing goes out; it ends by itself (S24).
func TestPromise18_ClosedLanesSendNothing(t *testing.T) {
	t.Parallel()
	do := func(t *testing.T, s *redistest.Server, args ...any) {
		t.Helper()
		c := s.Client()
		defer c.Close()
		if err := c.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name     string
		out, end func(*testing.T, *redistest.Server)
	}{
		{"gone", func(_ *testing.T, s *redistest.Server) { s.Kill() }, func(t *testing.T, s *redistest.Server) {
			if err := s.Restart(); err != nil {
				t.Fatal(err)
			}
		}},
		{"silent", func(_ *testing.T, s *redistest.Server) { s.Freeze() }, func(_ *testing.T, s *redistest.Server) { s.Thaw() }},
		{"read-only", func(t *testing.T, s *redistest.Server) {
			do(t, s, "config", "set", "replica-serve-stale-data", "yes")
			do(t, s, "replicaof", "127.0.0.1", "1")
		}, func(t *testing.T, s *redistest.Server) { do(t, s, "replicaof", "no", "one") }},
		{"out of memory", func(t *testing.T, s *redistest.Server) { do(t, s, "config", "set", "maxmemory", "1") },
			func(t *testing.T, s *redistest.Server) { do(t, s, "config", "set", "maxmemory", "0") }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, err := redistest.Start()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Stop)
			vendor := vendorsim.Run(t, vendorsim.Config{})
			w := &wire{fleet: &fleet{prefix: "p"}, vendor: vendor}
			c := models(throttle.PerMinute(throttle.Requests, 1000))
			c.StoreTimeout = 250 * ms
			w.a, w.b = newHost(t, s.Client(), c), newHost(t, s.Client(), c)
			for i := range w.transports {
				w.transports[i] = &transport.Transport{Limiter: w.each(i).Limiter}
			}
			eventually(t, "both hosts work", func() bool {
				return w.send(t, ask{}).status == 200 && w.send(t, ask{host: 1}).status == 200
			})
			before, lanesOf := vendor.Count(vendorsim.Filter{}), []lanes.Lane{shut, lanes.Background}

			tc.out(t, s)
			w.outage(t, "the first calls", 20, lanesOf)
			w.outage(t, "100 calls", 100, lanesOf)
			if n := vendor.Count(vendorsim.Filter{}) - before; n != 0 {
				t.Errorf("the vendor saw %d calls without a budget, want none", n)
			}
			if lost := w.told(throttle.StoreLost); lost != 2 {
				t.Errorf("the outage was told %d times, want once a host", lost)
			}

			tc.end(t, s)
			back := time.Now()
			eventually(t, "both hosts go on", func() bool {
				return w.send(t, ask{}).status == 200 && w.send(t, ask{host: 1}).status == 200
			})
			if d := time.Since(back); d > 1500*ms*slack {
				t.Errorf("the hosts went on %v after the store was back, want a second", d)
			}
			if got := w.told(throttle.StoreBack); got < 2 {
				t.Errorf("the end was told %d times, want once a host", got)
			}
		})
	}
}

// Promise 18: live work goes on with its host's part of the budget: at most twice
// the limit in the first window after the loss, the limit in every other.
func TestPromise18_LiveGoesOnWithItsPart(t *testing.T) {
	t.Parallel()
	const n, window = 20, time.Second
	s, err := redistest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	w := &wire{fleet: &fleet{prefix: "p"}, vendor: vendorsim.Run(t, vendorsim.Config{})}
	c := models(throttle.Per(throttle.Requests, n, window))
	c.StoreTimeout, c.Members = 250*ms, 2
	w.a, w.b = newHost(t, s.Client(), c), newHost(t, s.Client(), c)
	for i := range w.transports {
		base := &http.Transport{MaxIdleConnsPerHost: 32}
		t.Cleanup(base.CloseIdleConnections)
		w.transports[i] = &transport.Transport{Limiter: w.each(i).Limiter, Base: base}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for i := range 20 { // far more than the budget, all the while
		wg.Go(func() {
			for ctx.Err() == nil {
				if got := w.send(t, ask{host: i, ctx: ctx, lane: patient}); got.err != nil && ctx.Err() == nil && !errors.Is(got.err, throttle.ErrStoreUnavailable) {
					t.Errorf("answer %d, %v", got.status, got.err)
				}
			}
		})
	}
	w.await(t, n)
	s.Kill()
	lost := time.Now()
	pass(4 * window)
	if err := s.Restart(); err != nil {
		t.Error(err)
	}
	eventually(t, "both hosts go on", func() bool { return w.told(throttle.StoreBack) == 2 })
	cancel()
	wg.Wait()

	in := func(from, to time.Duration) (n int) {
		return w.vendor.Count(vendorsim.Filter{Match: func(a vendorsim.Arrival) bool {
			d := a.Received.Sub(lost)
			return d >= from && d < to
		}})
	}
	if got := in(0, window); got > 2*n {
		t.Errorf("the vendor saw %d calls in the first window after the loss, want at most %d", got, 2*n)
	}
	jitter := 100 * ms // of the network
	for from := window + jitter; from+window < 4*window; from += window / 4 {
		if got := in(from, from+window-jitter); got > n {
			t.Errorf("the vendor saw %d calls in the window from %v after the loss, want at most %d", got, from, n)
		}
	}
	if got := in(window, 4*window); got < 2*n {
		t.Errorf("the vendor saw %d calls in three windows without a store, want live work to go on", got)
	}
}

// outage sends n calls at once to a store that is out.
func (w *wire) outage(t *testing.T, what string, n int, lanesOf []lanes.Lane) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			got := w.send(t, ask{host: i, lane: lanesOf[i/2%2]})
			if !errors.Is(got.err, throttle.ErrStoreUnavailable) || errors.Is(got.err, throttle.ErrRefused) {
				t.Errorf("%s: answer %d, %v, want the store unavailable", what, got.status, got.err)
			}
			if got.took > 250*ms+150*ms*slack {
				t.Errorf("%s: answered after %v, want 250ms", what, got.took)
			}
		})
	}
	wg.Wait()
}

// Promise 18: a store that accepts and says nothing does not pile up goroutines.
// It counts them, so nothing runs beside it.
func TestPromise18_ASilentStorePilesNothingUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base := runtime.NumGoroutine()
	c := plenty()
	c.StoreTimeout = 100 * ms
	client := redis.NewClient(&redis.Options{Addr: l.Addr().String(), DialTimeout: time.Second, ReadTimeout: time.Second})
	h := newHost(t, client, c)
	most := 0
	for range 5 {
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if _, err := h.Wait(t.Context(), call()); !errors.Is(err, throttle.ErrStoreUnavailable) {
					t.Errorf("%v, want the store unavailable", err)
				}
			})
		}
		wg.Wait()
		most = max(most, runtime.NumGoroutine()-base)
	}
	if most > 20 {
		t.Errorf("%d goroutines are left after 500 calls, want a few", most)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(h.Close(t.Context()), client.Close()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "goroutines are back to base", func() bool { return runtime.NumGoroutine() <= base })
}

// deadRedis is a client of a port where nobody listens.
func deadRedis() *redis.Client { return redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) }
