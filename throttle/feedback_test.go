package throttle

import (
	"testing"
	"time"

	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/pause"
)

// heed tells a call what the vendor said and waits until the fleet knows.
func heed(t *testing.T, p *pair, r *Reservation, left ...Left) []LimitStatus {
	t.Helper()
	r.Heed(left...)
	var limits []LimitStatus
	for range 50 { // Heed does not block
		s, err := p.b.Status(t.Context(), "key", "m")
		if err != nil {
			t.Fatal(err)
		}
		if limits = append(s.Limits, s.Models[0].Limits...); limits[len(limits)-1].Others > 0 {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	return limits
}

// A vendor that has less left than the fleet is believed at once, for the whole
// fleet; one that has more is not. It shows in the status.
func TestHeed(t *testing.T) {
	t.Parallel()
	minute := PerMinute(Requests, 100)
	for _, tc := range []struct {
		name         string
		limit        Limit
		left         Left
		used, others int64
	}{
		{"less", minute, Left{Units: 20}, 1, 80},
		{"nothing", minute, Left{}, 1, 100},
		{"as much", minute, Left{Units: 99}, 1, 0},
		{"more", minute, Left{Units: 5000}, 1, 0},
		{"nonsense", minute, Left{Units: -1}, 1, 0},
		{"of another window", minute, Left{Window: time.Second}, 1, 0},
		{"of another unit", minute, Left{Unit: Tokens}, 1, 0},
		{"of the whole key", minute, Left{Scope: pause.Key}, 1, 0},
		{"a reset beyond the window is of another limit", minute, Left{Units: 20, Reset: time.Hour}, 1, 0},
		{"fixed", Limit{Unit: Requests, Amount: 100, Window: 9600 * time.Hour, Shape: Fixed}, Left{Window: 9600 * time.Hour, Units: 20}, 1, 80},
		{"bucket", Limit{Unit: Requests, Amount: 100, Window: time.Minute, Shape: Bucket, Burst: 10}, Left{Units: 20}, 1, 80},
		{"of a lane", Limit{Unit: Requests, Amount: 100, Window: time.Minute, Lane: "live"}, Left{Units: 20}, 1, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, models(tc.limit), func(t *testing.T, p *pair) {
				said := Left{Unit: Requests, Window: time.Minute, Scope: pause.Model}
				said.Units, said.Reset = tc.left.Units, tc.left.Reset
				if tc.left.Unit != "" {
					said.Unit = tc.left.Unit
				}
				if tc.left.Window != 0 {
					said.Window = tc.left.Window
				}
				if tc.left.Scope != pause.None {
					said.Scope = tc.left.Scope
				}
				r := reserve(t, p.a, call())
				for range 3 { // hearing it again changes nothing
					heed(t, p, r, said)
				}
				if got := heed(t, p, r, said)[0]; got.Used != tc.used || got.Others != tc.others {
					t.Errorf("used %d, %d by others, want %d and %d", got.Used, got.Others, tc.used, tc.others)
				}
			})
		})
	}
}

// What others used keeps the fleet out, lanes by their shares, until the vendor's reset.
func TestHeedKeepsOut(t *testing.T) {
	t.Parallel()
	c := models(Per(Requests, 100, 5*time.Second))
	c.Key = []Limit{Per(Requests, 1000, 5*time.Second)}
	onBoth(t, c, func(t *testing.T, p *pair) {
		r := reserve(t, p.a, call())
		limits := heed(t, p, r, Left{Unit: Requests, Window: 5 * time.Second, Scope: pause.Model, Units: 1, Reset: time.Second})
		if key, model := limits[0], limits[1]; key.Others != 0 || model.Used != 1 || model.Others != 99 {
			t.Errorf("others used %d of the key's limit and %d of the model's, beside %d; want 0, 99, 1", key.Others, model.Others, model.Used)
		}
		background := call()
		background.Lane = lanes.Background
		refuse(t, p.b, background)
		e := refuse(t, p.b, call())
		if e.RetryAfter < 500*time.Millisecond || e.RetryAfter > 1500*time.Millisecond {
			t.Errorf("RetryAfter = %v, want about the vendor's reset of a second", e.RetryAfter)
		}
		time.Sleep(1200 * time.Millisecond)
		if got := reserve(t, p.a, call()).Cost(); got[Requests] != 1 {
			t.Errorf("Cost() = %v", got)
		}
		s := model(t, p.b, "m").Limits[0]
		if s.Used != 2 || s.Others != 0 {
			t.Errorf("used %d, %d by others after the reset, want the fleet's own 2", s.Used, s.Others)
		}
	})
}

// What this fleet used is counted as the vendor does, without the margin: what
// only we still count is missing from what the vendor says is left, too.
func TestHeedCountsAsTheVendor(t *testing.T) {
	t.Parallel()
	for _, shape := range []Limit{{Shape: Sliding}, {Shape: Bucket, Burst: 10}} {
		limit := shape
		limit.Unit, limit.Amount, limit.Window, limit.Margin = Requests, 10, 3*time.Second, 3*time.Second
		onBoth(t, models(limit), func(t *testing.T, p *pair) {
			for range 5 {
				reserve(t, p.a, call())
			}
			time.Sleep(3100 * time.Millisecond)
			r := reserve(t, p.a, call())
			got := heed(t, p, r, Left{Unit: Requests, Window: 3 * time.Second, Scope: pause.Model, Units: 6})[0]
			if got.Used != 6 || got.Others != 4 {
				t.Errorf("%v: used %d, others %d; want 6 of ours, of which the vendor counts one, and 3 with one under way", limit.Shape, got.Used, got.Others)
			}
		})
	}
}

// S20: what a vendor says of a call that the store has forgotten is forgotten,
// too, and leaves no key.
func TestHeedAfterTheStoreForgot(t *testing.T) {
	t.Parallel()
	for _, shape := range []Shape{Sliding, Fixed} {
		onRedis(t, models(Limit{Unit: Requests, Amount: 100, Window: 9600 * time.Hour, Shape: shape}), func(t *testing.T, p *pair) {
			r := reserve(t, p.a, call())
			if err := p.redis.Del(t.Context(), p.keys(t)...).Err(); err != nil {
				t.Fatal(err)
			}
			got := heed(t, p, r, Left{Unit: Requests, Window: 9600 * time.Hour, Scope: pause.Model, Units: 20})[0]
			if got.Used != 0 || got.Others != 0 {
				t.Errorf("%v: used %d, others %d, want none", shape, got.Used, got.Others)
			}
			p.checkExpiry(t)
		})
	}
}

// When little is left every answer is told, known or not: others are taken to
// have done since then what the fleet did.
func TestHeedWhenLittleIsLeft(t *testing.T) {
	t.Parallel()
	onBoth(t, models(PerMinute(Requests, 100)), func(t *testing.T, p *pair) {
		said := Left{Unit: Requests, Window: time.Minute, Scope: pause.Model, Units: 10}
		if got := heed(t, p, reserve(t, p.a, call()), said)[0].Others; got != 90 {
			t.Fatalf("others %d, want 89 and one under way", got)
		}
		said.Units = 9
		heed(t, p, reserve(t, p.a, call()), said) // as much: one of the few such that are told anyway
		r := reserve(t, p.a, call())
		reserve(t, p.a, call())
		said.Units = 8
		r.Heed(said)
		eventually(t, "others have 89, and as many as we since, which are 2", func() bool {
			return model(t, p.b, "m").Limits[0].Others == 91
		})
	})
}

// A lone fleet whose vendor counts as it does never asks the store for it.
func TestHeedIsFree(t *testing.T) {
	t.Parallel()
	l, n := counted(t, server, models(PerMinute(Requests, 100), PerMinute(Tokens, 1000)))
	n.since()
	for i := range 20 {
		ask := call()
		ask.Cost = Cost{Requests: 1, Tokens: 10}
		reserve(t, l, ask).Heed(
			Left{Unit: Requests, Window: time.Minute, Scope: pause.Model, Units: int64(99 - i)},
			Left{Unit: Tokens, Window: time.Minute, Scope: pause.Model, Units: int64(990 - 10*i)})
	}
	if got := n.since(); got != 20 {
		t.Errorf("%d commands for 20 calls, want one each", got)
	}
}
