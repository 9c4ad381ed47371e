package headway_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
)

// plenty limits every model, far above what a test sends.
func plenty() throttle.Config {
	return throttle.Config{Default: []throttle.Limit{throttle.PerSecond(throttle.Requests, 10_000)}}
}

// left is what remains of the pause of a model, as the other host sees it.
func (w *wire) left(t *testing.T, a ask) time.Duration {
	t.Helper()
	_, m := w.b.status(t, w.call(t, a).Key, w.call(t, a).Model)
	return m.State.Left
}

// Promise 13: a vendor's "later", however it is spelled, holds the model on every
// host before the next call, for as long as the vendor said.
func TestPromise13_LaterHoldsEveryHost(t *testing.T) {
	t.Parallel()
	c := plenty()
	c.Policy = pause.Policy{Unnamed: 450 * ms}
	w := newWire(t, c, vendorsim.Config{})
	for _, tc := range []struct {
		name    string
		dialect vendorsim.Dialect
		named   time.Duration
		most    time.Duration // where the spelling rounds up
	}{
		{"seconds", vendorsim.DialectSeconds, time.Second, time.Second},
		{"a fraction of a second", vendorsim.DialectFraction, 400 * ms, 400 * ms}, // S01
		{"a date", vendorsim.DialectDate, 600 * ms, 3 * time.Second},              // S02
		{"milliseconds", vendorsim.DialectMillis, 350 * ms, 350 * ms},
		{"words", vendorsim.DialectText, 700 * ms, 700 * ms},
		{"headers of a limit", vendorsim.DialectHeaders, 800 * ms, 800 * ms},
		{"RetryInfo", vendorsim.DialectRetryInfo, 500 * ms, 500 * ms},
		{"nothing named", vendorsim.DialectUnnamed, 450 * ms, 450 * ms},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a := ask{model: tc.name}
			w.vendor.Script(tc.name, vendorsim.RateLimited(tc.named, tc.dialect))
			w.status(t, 429, a)
			a.host = 1
			deferred := a
			deferred.lane = lanes.Background
			e := refusal(t, w.send(t, deferred).err)
			if e.Reason != throttle.ModelPaused || e.RetryAfter <= 0 || e.RetryAfter > tc.most+tc.most/10+100*ms {
				t.Errorf("refusal %+v, want the pause of at most %v", e, tc.most)
			}
			w.status(t, 200, a) // live: held, then served
			seen := w.vendor.Arrivals()
			var at []time.Time
			for _, s := range seen {
				if s.Model == tc.name {
					at = append(at, s.Received)
				}
			}
			if len(at) != 2 {
				t.Fatalf("the vendor saw %d calls, want the one it sent away and the one that waited", len(at))
			}
			if d := at[1].Sub(at[0]); d < tc.named || d > tc.most+time.Second*slack {
				t.Errorf("the next call came after %v, want %v to %v", d, tc.named, tc.most)
			}
		})
	}
}

// Promise 13: the lengths of a pause: named, unnamed, "now", capped.
func TestPromise13_LengthsOfAPause(t *testing.T) {
	t.Parallel()
	w := newWire(t, plenty(), vendorsim.Config{})
	past := time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)
	for _, tc := range []struct {
		name  string
		value []string
		want  time.Duration
	}{
		{"unnamed", nil, 30 * time.Second},
		{"named", []string{"42"}, 42 * time.Second},
		{"longest of two", []string{"3", "42"}, 42 * time.Second},
		{"zero", []string{"0"}, time.Second},
		{"past", []string{past}, time.Second},
		{"negative", []string{"-1"}, 30 * time.Second},
		{"junk", []string{"soon"}, 30 * time.Second},
		{"a day", []string{"86400"}, 5 * time.Minute}, // S03
		{"an overflow", []string{"9999999999"}, 5 * time.Minute},
		{"a longer one", []string{"99999999999999999999"}, 5 * time.Minute},
		{"the year 9999", []string{"Fri, 31 Dec 9999 23:59:59 GMT"}, 5 * time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := ask{model: tc.name}
			w.vendor.Script(tc.name, vendorsim.Answer{Status: 429, Header: http.Header{"Retry-After": tc.value}, Body: `{"error":{"message":"slow down"}}`})
			w.status(t, 429, a)
			if left := w.left(t, a); left > tc.want || left < tc.want-600*ms*slack || left <= 0 {
				t.Errorf("the pause has %v left, want %v", left, tc.want)
			}
		})
	}

	// A pause only grows, whoever reports it and in whatever order (S04).
	for _, order := range [][2]string{{"60", "1"}, {"1", "60"}} {
		t.Run(strings.Join(order[:], " and "), func(t *testing.T) {
			w := lateWire(t, pause.Policy{})
			var answers []func() answer
			for _, value := range order { // both are out before either is answered
				answers = append(answers, w.late(t, vendorsim.Answer{Status: 429, Header: http.Header{"Retry-After": {value}}, Body: "{}"}))
			}
			for _, answer := range answers {
				if got := answer(); got.status != 429 {
					t.Fatalf("answer %d, %v, want 429", got.status, got.err)
				}
			}
			if left := w.left(t, ask{}); left < 58*time.Second || left > time.Minute {
				t.Errorf("the pause has %v left, want 60s", left)
			}
		})
	}

	// The cap is the vendor's: a budget's own time is told as it is.
	day := newFleet(t, models(throttle.PerDay(throttle.Requests, 1)))
	reserve(t, day.a, call())
	if e := refuse(t, day.b, call()); e.RetryAfter < 23*time.Hour {
		t.Errorf("a spent day says %v, want a day", e.RetryAfter)
	}
}

// Promise 13: calls that already wait are held too.
func TestPromise13_WaitingCallsAreHeldToo(t *testing.T) {
	t.Parallel()
	f := newFleet(t, models(throttle.Per(throttle.Requests, 4, 400*ms)))
	var first *throttle.Reservation
	for range 4 {
		first = reserve(t, f.a, call())
	}
	ends := make(chan ended, 4)
	for i := range 4 {
		begin(t.Context(), f.each(i), by(call(), patient, 0), i, ends)
	}
	eventually(t, "4 calls wait for room", func() bool { return f.a.waiting(t) == 4 })
	before := f.now(t)
	report(t, first, later(1200*ms))
	for range 4 {
		e := <-ends
		if e.err != nil {
			t.Fatal(e.err)
		}
		if e.r.At().Before(before.Add(1200 * ms)) {
			t.Errorf("call %d went %v before the end of the pause", e.i, before.Add(1200*ms).Sub(e.r.At()))
		}
	}
}

// Promise 14: when a pause ends the fleet resumes at the budget's pace, with a
// burst of a tenth (S05).
func TestPromise14_NoHerdAfterAPause(t *testing.T) {
	t.Parallel()
	t.Run("50 live calls", func(t *testing.T) {
		t.Parallel()
		const n, window, named = 40, 2 * time.Second, 500 * ms
		w := newWire(t, models(throttle.Per(throttle.Requests, n, window)), vendorsim.Config{})
		w.vendor.Script("m", vendorsim.RateLimited(named, vendorsim.DialectMillis))
		w.status(t, 429, ask{})
		out := w.many(t, 50, func(int) ask { return ask{wait: 2 * time.Second} })
		served := w.vendor.Arrivals()
		told, after := served[0].Received, served[1:]
		if got := count(t, out, 200); got != len(after) || got+count(t, out, 0) != 50 || got < 10 {
			t.Fatalf("%d served and %d refused, the vendor saw %d", got, count(t, out, 0), len(after))
		}
		if d := after[0].Received.Sub(told); d < named {
			t.Errorf("the first came %v before the end of the pause", named-d)
		}
		if got := w.vendor.MaxInWindow(window, vendorsim.Requests, vendorsim.Filter{}); got > n {
			t.Errorf("the vendor saw %d calls in one window, want at most %d", got, n)
		}
		same := 0
		for i := range after[1:] {
			if after[i+1].Received.Sub(after[i].Received) < 100*time.Microsecond {
				same++
			}
		}
		if same > len(after)/2 {
			t.Errorf("%d of %d calls came in the same moment as the one before", same, len(after))
		}
	})
	t.Run("a burst of a tenth", func(t *testing.T) {
		t.Parallel()
		const n, burst, window, held = 40, 4, 2 * time.Second, 300 * ms
		f := newFleet(t, models(throttle.Per("units", n, window)))
		c := throttle.Call{Key: "key", Model: "m", Cost: throttle.Cost{"units": 1}}
		spent := reserve(t, f.a, throttle.Call{Key: "key", Model: "m", Cost: throttle.Cost{"units": 30}})
		report(t, reserve(t, f.a, c), later(held))
		until := f.now(t).Add(held)
		out := f.saturate(t, held+1200*ms, "units", func(int) int64 { return 1 })
		if len(out) < burst {
			t.Fatalf("%d calls went, want at least the burst of %d", len(out), burst)
		}
		if out[0].at.Before(until.Add(-20 * ms * slack)) { // until was read a little after the pause began
			t.Errorf("the first went %v early", until.Sub(out[0].at))
		}
		for i := range out {
			for j := i; j < len(out); j++ {
				d, units := out[j].at.Sub(out[i].at)+time.Microsecond, int64(j-i+1)
				if (units-burst)*int64(window) > n*int64(d) {
					t.Fatalf("%d calls within %v of each other, want the burst of %d and one each %v", units, d, burst, window/n)
				}
			}
		}
		in := int64(0)
		for _, o := range out {
			if o.at.Before(spent.At().Add(window)) {
				in += o.units
			}
		}
		if in > n-31 {
			t.Errorf("%d units went on top of the 31 spent before the pause, want at most %d", in, n-31)
		}
	})
	t.Run("deferred work is spread", func(t *testing.T) {
		t.Parallel()
		w := newWire(t, plenty(), vendorsim.Config{})
		w.vendor.Script("m", vendorsim.RateLimited(20*time.Second, vendorsim.DialectSeconds))
		w.status(t, 429, ask{})
		seen := map[time.Duration]int{}
		least, most := time.Hour, time.Duration(0)
		for _, a := range w.many(t, 50, func(int) ask { return ask{lane: lanes.Background} }) {
			left := w.left(t, ask{}) // later than the refusal, so less
			e := refusal(t, a.err)
			if e.RetryAfter < left {
				t.Errorf("come back after %v of a pause of %v", e.RetryAfter, left)
			}
			least, most = min(least, e.RetryAfter), max(most, e.RetryAfter)
			seen[e.RetryAfter.Truncate(time.Millisecond)]++
		}
		if most-least < time.Second || len(seen) < 40 {
			t.Errorf("50 times to come back are %d different ones between %v and %v, want them spread over 2s", len(seen), least, most)
		}
	})
	t.Run("one call first above the cap", func(t *testing.T) {
		t.Parallel()
		c := plenty()
		c.Policy = pause.Policy{Cap: 400 * ms, Lease: 10 * time.Second} // a lease that fits into the longest wait
		w := newWire(t, c, vendorsim.Config{})
		w.vendor.Script("m", vendorsim.RateLimited(time.Hour, vendorsim.DialectSeconds))
		w.status(t, 429, ask{})
		w.vendor.Hold()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ends := make(chan answer, 30)
		for i := range 30 {
			go func() { ends <- w.send(t, ask{host: i, ctx: ctx, wait: 20 * time.Second}) }()
		}
		w.await(t, 2)
		for i := range 10 {
			if e := w.refused(t, ask{host: i}.now()); !errors.Is(e, throttle.ErrRefused) {
				t.Error(e)
			}
		}
		if n := w.vendor.Count(vendorsim.Filter{}); n != 2 {
			t.Errorf("the vendor saw %d calls, want one first", n-1)
		}
		w.vendor.Release()
		released := time.Now()
		for range 30 {
			if a := <-ends; a.status != 200 {
				t.Errorf("answer %d, %v, want everyone to go on when the first was served", a.status, a.err)
			}
		}
		if d := time.Since(released); d > 2*time.Second*slack {
			t.Errorf("everyone went on within %v, want at once on the probe's host and a second on the other", d)
		}
	})
}
