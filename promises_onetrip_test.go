package headway_test

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
)

// Promise 3: all limits of a call, its lane's share and both pauses are decided
// in one round trip; a refused call leaves no trace.
func TestPromise03_AllLimitsOrNone(t *testing.T) {
	t.Parallel()
	ofBackground := throttle.Per(throttle.Requests, 50, 10*time.Minute)
	ofBackground.Lane = lanes.Background.Name
	base := func() throttle.Config {
		return throttle.Config{
			Key: []throttle.Limit{throttle.PerMinute(throttle.Requests, 1000)},
			Models: map[string][]throttle.Limit{"m": {
				throttle.PerSecond(throttle.Requests, 900), throttle.PerMinute(throttle.Tokens, 9000),
				throttle.PerDay(throttle.Requests, 10_000), ofBackground,
			}},
		}
	}
	fill := func(cost throttle.Cost) func(*testing.T, *fleet) {
		return func(t *testing.T, f *fleet) {
			c := throttle.Call{Key: "key", Model: "m", Cost: throttle.Cost{throttle.Requests: 1, throttle.Tokens: 1}}
			maps.Copy(c.Cost, cost)
			reserve(t, f.a, c)
		}
	}
	background := func(t *testing.T, f *fleet, n int64) {
		t.Helper()
		reserve(t, f.a, by(throttle.Call{Key: "key", Model: "m", Cost: throttle.Cost{throttle.Requests: n, throttle.Tokens: 1}}, lanes.Background, 0))
	}
	told := func(v pause.Verdict) func(*testing.T, *fleet) {
		return func(t *testing.T, f *fleet) {
			c := throttle.Call{Key: "key", Model: "m", Cost: throttle.Cost{throttle.Requests: 1, throttle.Tokens: 1}}
			report(t, reserve(t, f.a, c), v)
		}
	}
	for _, tc := range []struct {
		name   string
		narrow func(*throttle.Config) // the limit that refuses
		first  func(*testing.T, *fleet)
		reason throttle.Reason
		limit  throttle.Limit
	}{
		{"of a second", func(c *throttle.Config) { c.Models["m"][0].Amount, c.Models["m"][0].Window = 10, time.Minute/2 },
			fill(throttle.Cost{throttle.Requests: 9}), throttle.NoRoom, throttle.Per(throttle.Requests, 10, time.Minute/2)},
		{"of a minute", func(*throttle.Config) {},
			fill(throttle.Cost{throttle.Tokens: 8999}), throttle.NoRoom, throttle.PerMinute(throttle.Tokens, 9000)},
		{"of a day", func(c *throttle.Config) { c.Models["m"][2].Amount = 12 },
			fill(throttle.Cost{throttle.Requests: 11}), throttle.NoRoom, throttle.PerDay(throttle.Requests, 12)},
		{"of the key", func(c *throttle.Config) { c.Key[0].Amount = 11 },
			fill(throttle.Cost{throttle.Requests: 10}), throttle.NoRoom, throttle.PerMinute(throttle.Requests, 11)},
		{"of a lane", func(*throttle.Config) {},
			func(t *testing.T, f *fleet) { background(t, f, 49) }, throttle.NoRoom, ofBackground},
		{"share of a lane", func(*throttle.Config) {},
			fill(throttle.Cost{throttle.Tokens: 5399}), throttle.NoRoom, throttle.PerMinute(throttle.Tokens, 9000)},
		{"pause of the model", func(*throttle.Config) {}, told(later(time.Minute)), throttle.ModelPaused, throttle.Limit{}},
		{"pause of the key", func(*throttle.Config) {}, told(pause.Verdict{Class: pause.KeyRefused}), throttle.KeyPaused, throttle.Limit{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := base()
			tc.narrow(&c)
			f := newFleet(t, c)
			reserve(t, f.b, throttle.Call{Key: "key", Model: "other", Cost: throttle.Cost{throttle.Requests: 1}}) // loads the script
			tc.first(t, f)
			before := f.image(t)
			f.b.tap.commands()
			refused := by(throttle.Call{Key: "key", Model: "m", Cost: throttle.Cost{throttle.Requests: 2, throttle.Tokens: 2}}, lanes.Background, 0)
			e := refuse(t, f.b, refused)
			if n := f.b.tap.commands(); n != 1 {
				t.Errorf("the decision took %d commands, want 1", n)
			}
			if e.Reason != tc.reason || e.Reason == throttle.NoRoom && e.Limit != tc.limit.String() {
				t.Errorf("refused by %v %q, want %v %v", e.Reason, e.Limit, tc.reason, tc.limit)
			}
			for i := range 20 {
				refuse(t, f.each(i), refused)
			}
			if after := f.image(t); !maps.Equal(before, after) { // S14: refusals are free
				t.Errorf("refusals changed Redis:\n%q\n%q", before, after)
			}
		})
	}

	// S13: what is reserved counts before anybody answers.
	t.Run("before any answer", func(t *testing.T) {
		t.Parallel()
		w := newWire(t, models(throttle.PerMinute(throttle.Tokens, 1000)), vendorsim.Config{})
		w.vendor.Hold()
		w.transports[0].Cost = throttle.Cost{throttle.Tokens: 400}
		w.transports[1].Cost = throttle.Cost{throttle.Tokens: 400}
		done := make(chan []answer)
		go func() { done <- w.many(t, 20, func(int) ask { return ask{}.now() }) }()
		w.await(t, 2)
		eventually(t, "18 are refused", func() bool { return w.told(throttle.RefusedCall) == 18 })
		w.vendor.Release()
		if out := <-done; count(t, out, 200) != 2 || w.vendor.Count(vendorsim.Filter{}) != 2 {
			t.Errorf("the vendor saw %d calls of 400 of 1,000 tokens, want 2", w.vendor.Count(vendorsim.Filter{}))
		}
	})
}

// Promise 25: Headway never retries; every retry of the caller's spends budget.
func TestPromise25_NeverRetries(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		answer vendorsim.Answer
		status int // 0: none
	}{
		{"500", vendorsim.ServerError500(), 500},
		{"503", vendorsim.Answer{Status: 503}, 503},
		{"529", vendorsim.Overloaded529(), 529},
		{"429", vendorsim.RateLimited(time.Second, vendorsim.DialectSeconds), 429},
		{"401", vendorsim.KeyRefused401(), 401},
		{"408", vendorsim.Answer{Status: 408}, 408},
		{"cut", vendorsim.Answer{Cut: vendorsim.CutBefore}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWire(t, models(throttle.PerMinute(throttle.Requests, 100)), vendorsim.Config{})
			w.vendor.Script("m", tc.answer)
			got := w.send(t, ask{})
			if got.status != tc.status || (got.err == nil) != (tc.status > 0) || errors.Is(got.err, throttle.ErrRefused) {
				t.Errorf("answer %d, %v, want the vendor's %d", got.status, got.err, tc.status)
			}
			w.status(t, 200, ask{host: 1, model: "other", key: "another"}) // time for a second try
			if n := w.vendor.Count(vendorsim.Filter{Model: "m"}); n != 1 {
				t.Errorf("the vendor saw %d calls, want 1", n)
			}
			if n := w.b.used(t, w.call(t, ask{}), throttle.Requests); n != 1 {
				t.Errorf("used = %d, want 1", n)
			}
		})
	}
	t.Run("a retry of the caller", func(t *testing.T) {
		t.Parallel()
		w := newWire(t, models(throttle.PerMinute(throttle.Requests, 2)), vendorsim.Config{})
		w.vendor.Script("m", vendorsim.ServerError500(), vendorsim.ServerError500())
		w.status(t, 500, ask{})
		w.status(t, 500, ask{host: 1})
		if e := w.refused(t, ask{}.now()); e.Reason != throttle.NoRoom {
			t.Errorf("the third try: %v, want no room", e)
		}
	})
}
