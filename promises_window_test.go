package headway_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/throttle"
)

// charge is one admission by the store's clock.
type charge struct {
	at    time.Time
	units int64
}

// patient is a live lane for calls that wait as long as the test runs.
var patient = lanes.Lane{Name: "live", Share: 1, MaxWait: time.Minute}

// saturate calls from both hosts, eight at a time each, for d, and returns what
// was admitted in order. Every fourth call does not wait.
func (f *fleet) saturate(t *testing.T, d time.Duration, unit string, cost func(i int) int64) (out []charge) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := g; ctx.Err() == nil; i += 16 {
				n := cost(i)
				c := by(throttle.Call{Key: "key", Model: "m", Cost: throttle.Cost{unit: n}}, patient, 0)
				ask := f.each(g).Wait
				if i/16%4 == 3 {
					ask = f.each(g).Reserve
				}
				r, err := ask(ctx, c)
				switch {
				case err == nil:
					if early := r.At().Sub(time.Now().Round(0)); early > 0 { // Redis has this machine's clock
						t.Errorf("a call went %v before it was charged", early)
					}
					mu.Lock()
					out = append(out, charge{r.At(), n})
					mu.Unlock()
				case !errors.Is(err, throttle.ErrRefused) && ctx.Err() == nil:
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	slices.SortFunc(out, func(a, b charge) int { return cmp.Compare(a.at.UnixMicro(), b.at.UnixMicro()) })
	return out
}

// most is the most units in any half-open interval of length w.
func most(charges []charge, w time.Duration) (most int64) {
	sum, first := int64(0), 0
	for _, c := range charges {
		for sum += c.units; c.at.Sub(charges[first].at) >= w; first++ {
			sum -= charges[first].units
		}
		most = max(most, sum)
	}
	return most
}

func total(charges []charge) (n int64) {
	for _, c := range charges {
		n += c.units
	}
	return n
}

// Promise 1: never more than the limit in any window, by the store's clock; and
// each shape's worst case as its doc comment states it.
func TestPromise01_NeverMoreThanTheLimitInAnyWindow(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		n    int64
		cost func(i int) int64
	}{
		{"one at a time", 20, func(int) int64 { return 1 }},
		{"mixed costs", 100, func(i int) int64 { return int64(i%7 + 1) }},
	} {
		t.Run("sliding, "+tc.name, func(t *testing.T) {
			t.Parallel()
			const w = 300 * ms
			f := newFleet(t, models(throttle.Per("units", tc.n, w)))
			out := f.saturate(t, 6*w, "units", tc.cost)
			if got := most(out, w); got > tc.n || got < tc.n*9/10 {
				t.Errorf("%d units in one window, want at most %d, and nearly that", got, tc.n)
			}
		})
	}
	t.Run("bucket", func(t *testing.T) {
		t.Parallel()
		const n, burst, w = 40, 4, time.Second
		l := throttle.Per("units", n, w)
		l.Shape, l.Burst = throttle.Bucket, burst
		f := newFleet(t, models(l))
		out := f.saturate(t, 2*w, "units", func(int) int64 { return 1 })
		if got := most(out, w); got > n {
			t.Errorf("%d units in one window, want at most %d", got, n)
		}
		if got := most(out, 20*ms); got < burst {
			t.Errorf("%d units at once, want the burst of %d", got, burst)
		}
		for i := range out {
			for j := i; j < len(out); j++ { // at most Burst + Amount*d/Window in any d, a microsecond of rounding aside
				d, units := out[j].at.Sub(out[i].at)+time.Microsecond, int64(j-i+1)
				if (units-burst)*int64(w) > n*int64(d) {
					t.Fatalf("%d units within %v, want at most %d and %v for each further one", units, d, burst, w/n)
				}
			}
		}
	})
	t.Run("fixed", func(t *testing.T) {
		t.Parallel()
		const n, w = 30, time.Second
		l := throttle.Per("units", n, w)
		l.Shape = throttle.Fixed
		f := newFleet(t, models(l))
		left := f.now(t).Truncate(w).Add(w).Sub(f.now(t))
		if left < 200*ms {
			left += w
		}
		pass(left - 150*ms) // just before a boundary: what comes now and what comes after it is 2N within one window
		out := f.saturate(t, 400*ms, "units", func(int) int64 { return 1 })
		aligned := map[int64]int64{}
		for _, c := range out {
			aligned[c.at.UnixMicro()/w.Microseconds()] += c.units
		}
		for window, units := range aligned {
			if units > n {
				t.Errorf("%d units in the aligned window %d, want at most %d", units, window, n)
			}
		}
		if got := most(out, w); got != 2*n {
			t.Errorf("%d units across the boundary, want the worst case %d", got, 2*n)
		}
	})
	t.Run("on the wire, with a margin", func(t *testing.T) {
		t.Parallel()
		const n, w = 20, 500 * ms
		l := throttle.Per(throttle.Requests, n, w)
		l.Margin = 100 * ms * slack
		wire := newWire(t, models(l), vendorsim.Config{Models: map[string][]vendorsim.Limit{"m": {{Amount: n, Window: w}}}})
		out := wire.many(t, 3*n+5, func(int) ask { return ask{lane: patient} })
		if got := count(t, out, 200); got != 3*n+5 || wire.vendor.Refused() != 0 {
			t.Errorf("%d served and %d refused by the vendor, want %d and none", got, wire.vendor.Refused(), 3*n+5)
		}
		if got := wire.vendor.MaxInWindow(w, vendorsim.Requests, vendorsim.Filter{}); got != n {
			t.Errorf("the vendor saw %d calls in one window, want %d", got, n)
		}
	})
}

// Promise 2: at least 98% of the limit is admitted in each window under
// saturating load of costs up to 1%.
func TestPromise02_NearlyAllOfItIsUsable(t *testing.T) {
	t.Parallel()
	const n, w, windows = 10_000, time.Second, 4
	f := newFleet(t, models(throttle.Per("units", n, w)))
	out := f.saturate(t, (windows+1)*w, "units", func(i int) int64 { return int64(50 + i%51) })
	first := out[0].at
	for i := range windows {
		from := first.Add(time.Duration(i) * w)
		in := slices.DeleteFunc(slices.Clone(out), func(c charge) bool { return c.at.Before(from) || !c.at.Before(from.Add(w)) })
		if got := total(in); got < n-n*2/100*slack {
			t.Errorf("%d of %d units in window %d, want 98%%", got, n, i+1)
		}
	}
	if got := most(out, w); got > n {
		t.Errorf("%d units in one window, want at most %d", got, n)
	}
}

// Promise 4: a refusal names the limit and the earliest useful time, rounded up.
func TestPromise04_RefusalsAreExact(t *testing.T) {
	t.Parallel()
	const w = 1200 * ms
	long := throttle.Per(throttle.Requests, 4, w)
	f := newFleet(t, models(throttle.Per(throttle.Requests, 100, time.Second), long, throttle.Per(throttle.Tokens, 1000, time.Hour)))
	c := by(call(), lanes.Background, 0) // may fill 2 of the 4
	c.Cost[throttle.Tokens] = 1
	first := reserve(t, f.a, c).At()
	pass(200 * ms)
	reserve(t, f.b, c)

	var waits []time.Duration
	for i := range 40 {
		before := f.now(t)
		e := refuse(t, f.each(i), c)
		after := f.now(t)
		if e.Reason != throttle.NoRoom || e.Limit != long.String() || e.Unit != throttle.Requests || !e.Deferred || !errors.Is(e, throttle.ErrDeferred) {
			t.Fatalf("refusal %+v, want a deferral by %v", e, long)
		}
		useful := first.Add(w) // when the first call has left the window
		if e.RetryAfter < useful.Sub(after) {
			t.Errorf("come back after %v, which is %v too early", e.RetryAfter, useful.Sub(after)-e.RetryAfter)
		}
		if most := useful.Sub(before) + w/10; e.RetryAfter > most {
			t.Errorf("come back after %v, want at most %v", e.RetryAfter, most)
		}
		waits = append(waits, e.RetryAfter)
	}
	slices.Sort(waits)
	if apart := waits[len(waits)-1] - waits[0]; apart < 50*ms {
		t.Errorf("40 times to come back lie within %v, want them spread", apart)
	}
	last := refuse(t, f.a, c)
	pass(last.RetryAfter)
	reserve(t, f.b, c) // the time was useful

	both := by(call(), lanes.Live, 0)
	both.Cost = throttle.Cost{throttle.Requests: 1, throttle.Tokens: 998}
	e := refuse(t, f.a, both) // of two limits without room, the one that decides
	if e.Unit != throttle.Tokens || e.RetryAfter < 59*time.Minute {
		t.Errorf("refusal %+v, want the limit of an hour", e)
	}
}

// Promise 5: what can never fit is told apart from "later".
func TestPromise05_TooLargeIsItsOwnAnswer(t *testing.T) {
	t.Parallel()
	w := newWire(t, models(throttle.PerMinute(throttle.Tokens, 1000)), vendorsim.Config{})
	tooLarge := func(t *testing.T, err error) {
		t.Helper()
		e := refusal(t, err)
		_, again := throttle.RetryAfter(err)
		if e.Reason != throttle.TooLarge || !errors.Is(err, throttle.ErrTooLarge) || errors.Is(err, throttle.ErrDeferred) || again || e.RetryAfter != 0 {
			t.Errorf("refusal %+v (come back: %v), want one that no wait cures", e, again)
		}
	}
	for _, tc := range []struct {
		lane lanes.Lane
		most int64
	}{{lanes.Live, 1000}, {lanes.Background, 600}, {lanes.Lane{Name: "batch", Share: 0.29}, 290}, {lanes.Lane{Name: "sliver", Share: 1e-9}, 1}} {
		t.Run(tc.lane.Name, func(t *testing.T) {
			c := by(costing(tc.most+1), tc.lane, time.Minute)
			c.Key = tc.lane.Name // each has a budget of its own
			began := time.Now()
			_, err := w.a.Wait(t.Context(), c)
			tooLarge(t, err)
			if d := time.Since(began); d > 100*ms*slack {
				t.Errorf("refused after %v, want at once", d)
			}
			c.Cost[throttle.Tokens] = tc.most
			reserve(t, w.b, c)
			if got := w.a.used(t, c, throttle.Tokens); got != tc.most {
				t.Errorf("used = %d, want %d", got, tc.most)
			}
		})
	}
	w.transports[0].Cost = throttle.Cost{throttle.Tokens: 1001}
	got := w.send(t, ask{})
	tooLarge(t, got.err)
	if n := w.vendor.Count(vendorsim.Filter{}); n != 0 {
		t.Errorf("the vendor saw %d calls, want none", n)
	}
	_, err := w.a.Wait(t.Context(), call()) // of requests, under a limit of tokens
	if !errors.Is(err, throttle.ErrInvalid) || errors.Is(err, throttle.ErrRefused) || !contains(err, `"tokens"`) {
		t.Errorf("a cost without the limited unit: %v, want an error naming it", err)
	}
	if _, err := throttle.New(models(throttle.PerMinute(throttle.Tokens, 0))); err == nil || !contains(err, "Amount") {
		t.Errorf("a limit of 0: %v, want an error naming Amount", err)
	}
	if _, err := w.a.Wait(t.Context(), by(costing(1), lanes.Lane{Name: "none"}, 0)); !errors.Is(err, throttle.ErrInvalid) || !contains(err, "Share") {
		t.Errorf("a share of 0: %v, want an error naming Share", err)
	}
}

func contains(err error, part string) bool {
	return err != nil && len(part) > 0 && slices.Contains(parts(err.Error(), len(part)), part)
}

// parts are all pieces of n bytes of a text.
func parts(s string, n int) (out []string) {
	for i := 0; i+n <= len(s); i++ {
		out = append(out, s[i:i+n])
	}
	return out
}
