package throttle

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/headway-go/headway/lanes"
)

// ms is a margin for a busy machine.
const ms = time.Millisecond

// S11 b: a cancelled wait gives its place back within 50 ms and leaks nothing.
func TestS11CancelledWaits(t *testing.T) {
	onBothInTurn(t, models(Per(Requests, 10, 3*time.Second)), func(t *testing.T, p *pair) {
		c := call()
		c.Cost[Requests] = 10
		full := reserve(t, p.a, c)
		reserve(t, p.b, Call{Key: "key", Model: "other"}) // both are connected and announced
		base := runtime.NumGoroutine()
		ctx, cancel := context.WithCancel(t.Context())
		ends := make(chan ended, 100)
		for i := range 100 {
			c := call()
			c.MaxWait = time.Minute
			start(ctx, p.each(i), c, i, ends)
		}
		eventually(t, "100 calls wait", func() bool { return p.waiting(t) == 100 })
		cancelled := time.Now()
		cancel()
		for range 100 {
			if e := <-ends; !errors.Is(e.err, context.Canceled) || e.at.Sub(cancelled) > 50*ms*slack {
				t.Errorf("a wait ended with %v, %v after the cancel", e.err, e.at.Sub(cancelled))
			}
		}
		eventually(t, "nobody waits", func() bool { return p.waiting(t) == 0 })
		if d := time.Since(cancelled); d > 50*ms*slack {
			t.Errorf("the places were given back after %v, want 50ms", d)
		}
		if got := used(t, p.a, "m")[Requests]; got != 10 {
			t.Errorf("used = %d, want 10", got)
		}
		if err := full.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		reserve(t, p.b, call()) // the next call is not delayed
		eventually(t, "goroutines are back to base", func() bool { return runtime.NumGoroutine() <= base })
	})
}

// onBothInTurn is onBoth for tests that count goroutines.
func onBothInTurn(t *testing.T, c Config, test func(t *testing.T, p *pair)) {
	t.Run("memory", func(t *testing.T) {
		c := c
		c.Memory, c.StoreTimeout = NewMemory(), 5*time.Second
		test(t, newPair(t, c, c))
	})
	t.Run("redis", func(t *testing.T) { onRedis(t, c, test) })
}

// S12: a wait that cannot be in time is refused now, and the error says when to come back.
func TestS12FailNow(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		deadline time.Duration // 0: none
		maxWait  time.Duration // of the call; 0: its lane's
		lane     lanes.Lane
		reserve  time.Duration
		pause    time.Duration
		waits    bool
	}{
		{"deadline", 5 * time.Second, 0, lanes.Lane{}, 0, time.Minute, false},
		{"the lane's longest wait", 0, 0, lanes.Lane{}, 0, time.Minute, false},
		{"the lane does not wait", 0, 0, lanes.Background, 0, 300 * ms, false},
		{"the call does not wait", 0, -1, lanes.Lane{}, 0, 300 * ms, false},
		{"the call's longest wait", 0, 100 * ms, lanes.Lane{}, 0, 300 * ms, false},
		{"a tenth is kept for the call", 320 * ms, 0, lanes.Lane{}, 0, 310 * ms, false},
		{"the reserve is settable", time.Second, 0, lanes.Lane{}, 900 * ms, 300 * ms, false},
		{"in time", 0, 0, lanes.Lane{}, 0, 300 * ms, true},
		{"background that may wait", 0, 2 * time.Second, lanes.Background, 0, 300 * ms, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := models(Per(Requests, 100, time.Minute))
			c.DeadlineReserve = tc.reserve
			onBoth(t, c, func(t *testing.T, p *pair) {
				if err := p.b.Pause(t.Context(), "key", "m", tc.pause); err != nil {
					t.Fatal(err)
				}
				ctx := t.Context()
				if tc.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.deadline)
					defer cancel()
				}
				c := call()
				c.MaxWait, c.Lane = tc.maxWait, tc.lane
				began := time.Now()
				_, err := p.a.Wait(ctx, c)
				took := time.Since(began)
				if tc.waits {
					if err != nil || took < tc.pause-50*ms {
						t.Errorf("Wait() = %v after %v, want to go after %v", err, took, tc.pause)
					}
					return
				}
				e := refusal(t, err)
				if took > 100*ms*slack {
					t.Errorf("refused after %v, want at once", took)
				}
				if errors.Is(err, context.DeadlineExceeded) || e.RetryAfter <= tc.pause-took-20*ms || e.Reason != ModelPaused {
					t.Errorf("refusal = %+v, want the end of the pause and no DeadlineExceeded", e)
				}
				if got := used(t, p.b, "m")[Requests]; got != 0 {
					t.Errorf("used = %d, want 0", got)
				}
			})
		})
	}
}

// Promise 11: first come, first served over both hosts, within a lane.
func TestFirstComeFirstServed(t *testing.T) {
	t.Parallel()
	bucket := Per(Requests, 20, time.Second)
	bucket.Shape, bucket.Burst = Bucket, 1
	for _, tc := range []struct {
		name  string
		limit Limit
	}{{"sliding", Per(Requests, 2, 200*time.Millisecond)}, {"bucket", bucket}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, models(tc.limit), func(t *testing.T, p *pair) {
				const n = 12
				ends := make(chan ended, n)
				for range 2 {
					p.a.Reserve(t.Context(), call())
				}
				for i := range n {
					start(t.Context(), p.each(i), call(), i, ends)
					eventually(t, "the call is in line", func() bool { return p.waiting(t)+len(ends) >= i+1 })
				}
				var at [n]int64
				for range n {
					e := <-ends
					if e.err != nil {
						t.Fatalf("call %d: %v", e.i, e.err)
					}
					at[e.i] = e.r.answer.At
				}
				for i := 1; i < n; i++ {
					if at[i] < at[i-1]-50_000 { // two for whom there is room may ask in any order
						t.Errorf("call %d went %d us before call %d, which came first", i, at[i-1]-at[i], i-1)
					}
				}
			})
		})
	}
}

// Promise 11: a newcomer does not overtake a waiter, though there is room for it alone.
func TestNewcomerDoesNotOvertake(t *testing.T) {
	t.Parallel()
	onBoth(t, models(Per(Tokens, 100, time.Hour)), func(t *testing.T, p *pair) {
		c := call()
		c.Cost = Cost{Tokens: 50}
		reserve(t, p.a, c)
		ctx, cancel := context.WithCancel(t.Context())
		c.Cost, c.MaxWait = Cost{Tokens: 80}, 2*time.Hour
		ends := make(chan ended, 1)
		start(ctx, p.a, c, 0, ends)
		eventually(t, "the large call waits", func() bool { return p.waiting(t) == 1 })
		small := call()
		small.Cost = Cost{Tokens: 5}
		for i := range 2 {
			if e := refuse(t, p.each(i), small); e.Reason != NoRoom {
				t.Errorf("refusal = %+v, want no room: a large call came first", e)
			}
		}
		cancel()
		<-ends
		eventually(t, "nobody waits", func() bool { return p.waiting(t) == 0 })
		reserve(t, p.b, small)
	})
}

// Promise 11: a large call is not starved by small ones that come back at once.
func TestLargeCallIsNotStarved(t *testing.T) {
	t.Parallel()
	onBoth(t, models(Per(Tokens, 100, 300*time.Millisecond)), func(t *testing.T, p *pair) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		small := call()
		small.Cost = Cost{Tokens: 5}
		reserve(t, p.a, small)
		for i := range 16 { // each comes back as soon as it went
			go func() {
				for ctx.Err() == nil {
					p.each(i).Wait(ctx, small)
				}
			}()
		}
		large := call()
		large.Cost = Cost{Tokens: 80}
		for range 3 {
			began := time.Now()
			if _, err := p.b.Wait(t.Context(), large); err != nil {
				t.Fatal(err)
			}
			if d := time.Since(began); d > 1200*ms {
				t.Errorf("a large call waited %v, want at most about two windows", d)
			}
		}
	})
}

// Promise 11: a lower lane that waits never delays a higher one, and goes when it is alone.
func TestLowerLaneNeverDelaysAHigherOne(t *testing.T) {
	t.Parallel()
	low := lanes.Lane{Name: "low", Share: 0.8, MaxWait: 3 * time.Second}
	onBoth(t, models(Per(Requests, 10, 500*time.Millisecond)), func(t *testing.T, p *pair) {
		c := call()
		c.Lane = low
		ends := make(chan ended, 30)
		for i := range 30 {
			start(t.Context(), p.each(i), c, i, ends)
		}
		eventually(t, "8 went and the others wait", func() bool { return p.waiting(t) == 22 })
		began := time.Now()
		reserve(t, p.a, call()) // the 2 above the lane's ceiling are free for live work, at once
		reserve(t, p.b, call())
		if e := refuse(t, p.a, call()); e.RetryAfter > 700*ms {
			t.Errorf("live work is told %v, want the end of this window: those who wait in a lower lane do not count", e.RetryAfter)
		}
		live := call()
		for i := range 3 {
			if _, err := p.each(i).Wait(t.Context(), live); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(began); d > 600*ms+100*ms*slack {
			t.Errorf("live calls took %v behind a waiting lower lane, want one window", d)
		}
		for range 30 {
			if e := <-ends; e.err != nil {
				t.Errorf("low call: %v", e.err)
			}
		}
	})
}

// Promise 9: background work is deferred at once and never waits.
func TestBackgroundIsDeferred(t *testing.T) {
	t.Parallel()
	onBoth(t, models(Per(Requests, 10, time.Hour)), func(t *testing.T, p *pair) {
		c := call()
		c.Lane = lanes.Background
		for i := range 6 {
			reserve(t, p.each(i), c)
		}
		_, err := p.a.Wait(t.Context(), c)
		if !errors.Is(err, ErrDeferred) || !errors.Is(err, ErrRefused) {
			t.Errorf("Wait() = %v, want a deferral", err)
		}
		for i := range 4 {
			reserve(t, p.each(i), call())
		}
		if n := p.waiting(t); n != 0 {
			t.Errorf("%d wait, want none", n)
		}
	})
}

// S31: deferred calls return at once, each with a time, and the times are spread.
func TestS31DeferralsAreSpread(t *testing.T) {
	t.Parallel()
	onBoth(t, models(Per(Requests, 10, time.Minute)), func(t *testing.T, p *pair) {
		c := call()
		c.Lane = lanes.Background
		for range 6 {
			reserve(t, p.a, c)
		}
		seen, slow := map[time.Duration]bool{}, 0
		for i := range 1000 {
			began := time.Now()
			_, err := p.each(i).Wait(t.Context(), c)
			if time.Since(began) > 50*ms*slack {
				slow++
			}
			d, ok := RetryAfter(err)
			if !ok || d <= 55*time.Second || d > 67*time.Second {
				t.Fatalf("RetryAfter = %v, %v, want the window's end and up to a tenth", d, ok)
			}
			seen[d.Round(100*ms)] = true
		}
		if slow > 10 { // the machine may stop for a moment
			t.Errorf("%d of 1000 were deferred after more than 50ms", slow)
		}
		if len(seen) < 30 {
			t.Errorf("1000 deferrals come back in %d different tenths of a second, want them spread", len(seen))
		}
		if got := used(t, p.b, "m")[Requests]; got != 6 {
			t.Errorf("used = %d, want 6", got)
		}
	})
}
