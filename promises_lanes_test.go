package headway_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/throttle"
)

// Promise 9: live work may use the whole budget and waits for room; background
// work stops at its ceiling and is deferred at once; lanes are the user's.
func TestPromise09_LanesShareTheBudget(t *testing.T) {
	t.Parallel()
	const n, window = 10, 1500 * ms
	w := newWire(t, models(throttle.Per(throttle.Requests, n, window)), vendorsim.Config{})
	jobs := w.many(t, 20, func(int) ask { return ask{lane: lanes.Background} })
	if got := count(t, jobs, 200); got != 6 || w.vendor.Count(vendorsim.Filter{Lane: "background"}) != 6 {
		t.Errorf("%d background calls went, want 60%% of %d", got, n)
	}
	for _, j := range jobs {
		if j.err != nil && (!errors.Is(j.err, throttle.ErrDeferred) || j.took > 200*ms*slack) {
			t.Errorf("background: %v after %v, want deferred at once", j.err, j.took)
		}
	}
	third := lanes.Lane{Name: "batch", Share: 0.7, MaxWait: 20 * time.Second}
	first := w.vendor.Arrivals()[0].Received
	batch := make(chan answer, 2)
	for i := range 2 { // one fits under 70%, one waits: a lane of one's own
		go func() { batch <- w.send(t, ask{host: i, lane: third}) }()
	}
	if got := <-batch; got.status != 200 || got.took > 500*ms*slack {
		t.Errorf("batch: answer %d, %v after %v, want one at once", got.status, got.err, got.took)
	}
	live := w.many(t, 3, func(int) ask { return ask{}.now() })
	if got := count(t, live, 200); got != 3 {
		t.Errorf("%d live calls went, want the rest of the budget", got)
	}
	waited := w.send(t, ask{})
	all := w.vendor.Arrivals()
	last := all[len(all)-1].Received
	if waited.status != 200 || last.Sub(first) < window-50*ms*slack { // the first was charged a little before it arrived
		t.Errorf("live: answer %d, %v, %v after the first call, want it to wait for room", waited.status, waited.err, last.Sub(first))
	}
	if got := <-batch; got.status != 200 {
		t.Errorf("batch: answer %d, %v, want it to wait for room", got.status, got.err)
	}

	// Five seconds is the longest wait of live work, and its deadline when that is shorter.
	f := newFleet(t, models(throttle.Per(throttle.Requests, 1, 6*time.Second)))
	r := reserve(t, f.a, call())
	began := time.Now()
	if _, err := f.b.Wait(t.Context(), call()); !errors.Is(err, throttle.ErrRefused) || time.Since(began) > 200*ms*slack {
		t.Errorf("live: %v after %v, want refused at once: room comes in 6s", err, time.Since(began))
	}
	eventually(t, "room comes in 4.8s", func() bool { return f.now(t).Sub(r.At()) > 1200*ms })
	ctx, cancel := context.WithCancel(t.Context())
	ends := make(chan ended, 1)
	begin(ctx, f.b, call(), 0, ends)
	eventually(t, "live waits", func() bool { return f.a.waiting(t) == 1 })
	cancel()
	if e := <-ends; !errors.Is(e.err, context.Canceled) {
		t.Errorf("live: %v, want it to wait", e.err)
	}
}

// Promise 10: a call that cannot be in time is refused now, not at its deadline.
func TestPromise10_FailNowIfItCannotBeInTime(t *testing.T) {
	t.Parallel()
	c := models(throttle.PerMinute(throttle.Requests, 100))
	w := newWire(t, c, vendorsim.Config{})
	w.vendor.Script("m", vendorsim.RateLimited(time.Minute, vendorsim.DialectSeconds))
	w.status(t, 429, ask{})
	_, before := w.b.status(t, w.call(t, ask{}).Key, "m")

	short, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for _, tc := range []struct {
		name    string
		ask     ask
		timeout time.Duration
	}{
		{"longest wait of the lane", ask{}, 0},
		{"deadline", ask{ctx: short, wait: time.Hour}, 0},
		{"timeout of the client", ask{wait: time.Hour}, 5 * time.Second},
		{"longest wait of the call", ask{wait: time.Second}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			began := time.Now()
			_, err := (&http.Client{Transport: w.transports[1], Timeout: tc.timeout}).Do(w.request(t, tc.ask))
			if d := time.Since(began); d > 100*ms*slack {
				t.Errorf("refused after %v, want at once", d)
			}
			e := refusal(t, err)
			if e.RetryAfter < 50*time.Second || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("refusal %+v, want the time to come back and no deadline", e)
			}
			var timeout interface{ Timeout() bool }
			if errors.As(err, &timeout) && timeout.Timeout() {
				t.Error("the refusal calls itself a timeout")
			}
		})
	}
	if _, after := w.b.status(t, w.call(t, ask{}).Key, "m"); after.Limits[0].Used != before.Limits[0].Used || after.Waiting != 0 {
		t.Errorf("used %d, %d waiting, want %d and none", after.Limits[0].Used, after.Waiting, before.Limits[0].Used)
	}

	// A part of the deadline is kept for the call itself: a tenth, a second at most, or what is set.
	for _, tc := range []struct {
		name          string
		reserve, left time.Duration // of the deadline, after room comes
		goes          bool
	}{
		{"no tenth left", 0, 100 * ms, false},
		{"a tenth left", 0, 600 * ms, true},
		{"reserve set", 900 * ms, 600 * ms, false},
		{"no reserve", -1, 190 * ms, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := models(throttle.Per(throttle.Requests, 1, 2*time.Second))
			c.DeadlineReserve = tc.reserve
			f := newFleet(t, c)
			room := reserve(t, f.a, call()).At().Add(2 * time.Second)
			ctx, cancel := context.WithDeadline(t.Context(), room.Add(tc.left))
			defer cancel()
			began := time.Now()
			r, err := f.b.Wait(ctx, call())
			switch {
			case !tc.goes && (!errors.Is(err, throttle.ErrRefused) || time.Since(began) > 200*ms*slack):
				t.Errorf("%v after %v, want refused at once", err, time.Since(began))
			case tc.goes && err != nil:
				t.Error(err)
			case tc.goes && r.At().Before(room):
				t.Errorf("went %v early", room.Sub(r.At()))
			}
		})
	}
}

// Promise 11: first come, first served across the fleet, within a lane; a large
// call is not starved; a lower lane never delays a higher one.
func TestPromise11_FirstComeFirstServed(t *testing.T) {
	t.Parallel()
	t.Run("two hosts", func(t *testing.T) {
		t.Parallel()
		const n = 10
		f := newFleet(t, models(throttle.Per(throttle.Requests, 1, 150*ms)))
		c := by(call(), patient, 0)
		last := reserve(t, f.a, c).At()
		ends := make(chan ended, n)
		for i := range n {
			begin(t.Context(), f.each(i), c, i, ends)
			eventually(t, "the call stands in line", func() bool { return f.a.waiting(t) > 0 && f.told(throttle.Admitted)+f.a.waiting(t) >= i+2 })
		}
		for i := range n { // newcomers all the while
			if _, err := f.each(i).Reserve(t.Context(), c); err == nil {
				t.Error("a newcomer overtook those in line")
			}
		}
		at := make([]time.Time, n)
		for range n {
			e := <-ends
			if e.err != nil {
				t.Fatal(e.err)
			}
			at[e.i] = e.r.At()
		}
		for i := range n {
			if at[i].Sub(last) < 150*ms {
				t.Errorf("call %d was charged %v after the one before it, want in order and 150ms apart", i, at[i].Sub(last))
			}
			last = at[i]
		}
	})
	t.Run("a large call", func(t *testing.T) {
		t.Parallel()
		const n, window = 10, 500 * ms
		f := newFleet(t, models(throttle.Per(throttle.Tokens, n, window)))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		small := make(chan ended, 1)
		for i := range 8 { // always somebody who wants one token
			go func() {
				for ctx.Err() == nil {
					r, err := f.each(i).Wait(ctx, by(costing(1), patient, 0))
					select {
					case small <- ended{i, r, err, time.Now()}:
					default:
					}
				}
			}()
		}
		eventually(t, "the budget is contended", func() bool { return f.a.waiting(t) >= 4 })
		began := f.now(t)
		r, err := f.b.Wait(t.Context(), by(costing(9), patient, 0))
		if err != nil {
			t.Fatal(err)
		}
		if d := r.At().Sub(began); d > 3*window {
			t.Errorf("a call of 9 of 10 tokens waited %v behind calls of 1, want about a window", d)
		}
	})
	t.Run("a lower lane", func(t *testing.T) {
		t.Parallel()
		f := newFleet(t, models(throttle.Per(throttle.Requests, 10, time.Second)))
		low := lanes.Lane{Name: "batch", Share: 0.5, MaxWait: time.Minute}
		big := by(call(), low, 0)
		big.Cost = throttle.Cost{throttle.Requests: 5}
		reserve(t, f.a, call())
		ends := make(chan ended, 4)
		for i := range 2 {
			begin(t.Context(), f.each(i), big, i, ends)
		}
		eventually(t, "the lower lane waits", func() bool { return f.a.waiting(t) == 2 })
		for i := range 9 {
			if _, err := f.each(i).Reserve(t.Context(), call()); err != nil {
				t.Fatalf("live call %d of 9: %v, want it before those of the lower lane", i+1, err)
			}
		}
		begin(t.Context(), f.b, by(call(), patient, 0), 2, ends)
		if first := <-ends; first.i != 2 || first.err != nil {
			t.Errorf("call %d went first (%v), want the live one that came last", first.i, first.err)
		}
		for range 2 {
			if e := <-ends; e.err != nil {
				t.Error(e.err)
			}
		}
	})
}
