package throttle

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/headway-go/headway/pause"
)

// left is what remains of the pause of a model, as each host sees it.
func left(t *testing.T, l *Limiter, name string) time.Duration {
	t.Helper()
	return model(t, l, name).State.Left
}

// S04: a pause only ever grows, in whatever order the answers arrive.
func TestS04PauseOnlyGrows(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		first  time.Duration
		second time.Duration
		grew   int
	}{{"long then short", time.Minute, time.Second, 0}, {"short then long", time.Second, time.Minute, 1}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, models(Per(Requests, 10, time.Minute)), func(t *testing.T, p *pair) {
				x, y := reserve(t, p.a, call()), reserve(t, p.b, call())
				report(t, x, later(tc.first))
				report(t, y, later(tc.second))
				for i := range 2 {
					if d := left(t, p.each(i), "m"); d < 59*time.Second || d > time.Minute {
						t.Errorf("host %d sees %v left, want the longer pause", i, d)
					}
					if e := refuse(t, p.each(i), call()); e.Reason != ModelPaused || e.RetryAfter < 59*time.Second {
						t.Errorf("refusal = %+v, want the longer pause", e)
					}
				}
				if b, g := p.events.count(PauseBegan), p.events.count(PauseGrew); b != 1 || g != tc.grew {
					t.Errorf("%d pauses began and %d grew, want 1 and %d: once for the fleet", b, g, tc.grew)
				}
				reserve(t, p.a, Call{Key: "key", Model: "other"})                          // promise 17: one model
				reserve(t, p.b, Call{Key: "another", Model: "m", Cost: Cost{Requests: 1}}) // of one key
			})
		})
	}
}

// Promise 13: named, unnamed, "now" and above the cap.
func TestPauseLengths(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		v    pause.Verdict
		want time.Duration
		key  bool
	}{
		{"named", later(7 * time.Second), 7 * time.Second, false},
		{"unnamed", pause.Verdict{Class: pause.RateLimited, Scope: pause.Model}, 30 * time.Second, false},
		{"now", later(0), time.Second, false},
		{"above the cap", later(time.Hour), 5 * time.Minute, false}, // S03
		{"of the account", pause.Verdict{Class: pause.RateLimited, Scope: pause.Key}, 30 * time.Second, true},
		{"overloaded", overloaded, 2 * time.Second, false},
		{"refused", keyRefused, 5 * time.Minute, true},
		{"quota of the account", pause.Verdict{Class: pause.QuotaExhausted, Scope: pause.Key, Hint: pause.Hint{Wait: 2, Named: true}}, 5 * time.Minute, true},
		{"quota of the model", pause.Verdict{Class: pause.QuotaExhausted, Scope: pause.Model}, 5 * time.Minute, false},
		{"client error", pause.Verdict{Class: pause.ClientError}, 0, false},
		{"server error", serverError, 0, false},
		{"ok", pause.Verdict{}, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, models(Per(Requests, 10, time.Hour)), func(t *testing.T, p *pair) {
				report(t, reserve(t, p.a, call()), tc.v)
				s, err := p.b.Status(t.Context(), "key", "m")
				if err != nil {
					t.Fatal(err)
				}
				got, other := s.Models[0].State.Left, s.State.Left
				if tc.key {
					got, other = other, got
				}
				if got > tc.want || got < tc.want-time.Second || other != 0 {
					t.Errorf("left = %v and %v, want %v and 0", got, other, tc.want)
				}
				if tc.want == 0 {
					reserve(t, p.b, call())
					return
				}
				e := refuse(t, p.b, call())
				if want := map[bool]Reason{true: KeyPaused, false: ModelPaused}[tc.key]; e.Reason != want {
					t.Errorf("reason = %v, want %v", e.Reason, want)
				}
			})
		})
	}
}

// A pause that lands while calls wait: nobody goes into it, and the order is
// kept behind it.
func TestPauseLandsOnWaitingCalls(t *testing.T) {
	t.Parallel()
	onBoth(t, models(Per(Requests, 3, 600*time.Millisecond)), func(t *testing.T, p *pair) {
		var first *Reservation
		for range 3 {
			first = reserve(t, p.a, call())
		}
		ends := make(chan ended, 6)
		for i := range 6 {
			start(t.Context(), p.each(i), call(), i, ends)
			eventually(t, "the call is in line", func() bool { return p.waiting(t) == i+1 })
		}
		pause := 1200 * ms
		report(t, first, later(pause))
		until := time.Now().Add(pause)
		var order []int
		for range 6 {
			e := <-ends
			if e.err != nil {
				t.Fatal(e.err)
			}
			if e.at.Before(until.Add(-20 * ms)) {
				t.Errorf("call %d went %v before the end of the pause", e.i, until.Sub(e.at))
			}
			order = append(order, e.i)
		}
		if !slices.IsSorted(order) {
			t.Errorf("calls went in order %v, want that of their coming", order)
		}
	})
}

// Resume frees those who wait within about a second, on every host.
func TestResumeFreesWaitingCalls(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{"m", ""} {
		t.Run("scope "+scope, func(t *testing.T) {
			t.Parallel()
			onBoth(t, models(Per(Requests, 1000, time.Second)), func(t *testing.T, p *pair) {
				if err := p.a.Pause(t.Context(), "key", scope, time.Minute); err != nil {
					t.Fatal(err)
				}
				ends := make(chan ended, 10)
				for i := range 10 {
					c := call()
					c.MaxWait = 2 * time.Minute
					start(t.Context(), p.each(i), c, i, ends)
				}
				eventually(t, "all wait", func() bool { return p.waiting(t) == 10 })
				if err := p.a.Resume(t.Context(), "key", scope); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				for range 10 {
					if e := <-ends; e.err != nil || e.at.Sub(began) > 1300*ms*slack {
						t.Errorf("a waiting call ended with %v, %v after Resume", e.err, e.at.Sub(began))
					}
				}
			})
		})
	}
}

// S05: after a pause the fleet resumes at the budget's pace with a burst of
// max(1, 10%), also where the budget is free.
func TestS05RampAfterAPause(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name          string
		amount, burst int64 // of a window of 5 s
	}{{"of 50", 50, 5}, {"of 5", 5, 1}, {"of 200", 200, 20}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, models(Per(Requests, tc.amount, 5*time.Second)), func(t *testing.T, p *pair) {
				report(t, reserve(t, p.a, call()), later(300*ms))
				pass(310 * ms)
				for _, when := range []string{"when the pause was over", "when the burst was full again"} {
					began := time.Now()
					got := flood(t, p, 200, call())
					paced := int64(time.Since(began)/(5*time.Second/time.Duration(tc.amount))) + 1
					if got < tc.burst || got > tc.burst+paced {
						t.Errorf("%d went %s, want %d", got, when, tc.burst)
					}
					pass(1100*ms - time.Since(began))
				}
			})
		})
	}
}

// S05: live calls that wait for the end of a pause do not come as a herd.
func TestS05NoHerd(t *testing.T) {
	t.Parallel()
	onBoth(t, models(Per(Requests, 10, time.Second)), func(t *testing.T, p *pair) {
		report(t, reserve(t, p.a, call()), later(500*ms))
		until := time.Now().Add(500 * ms)
		ends := make(chan ended, 30)
		for i := range 30 {
			start(t.Context(), p.each(i), call(), i, ends)
		}
		var at []int64 // by the store's clock
		for range 30 {
			if e := <-ends; e.err == nil {
				at = append(at, e.r.answer.At)
				if d := until.Sub(e.at); d > 20*ms {
					t.Errorf("a call went %v before the end of the pause", d)
				}
			} else if !errors.Is(e.err, ErrRefused) {
				t.Error(e.err)
			}
		}
		slices.Sort(at)
		if len(at) < 25 {
			t.Errorf("%d of 30 went within 5 s, want nearly all", len(at))
		}
		for i := range max(0, len(at)-5) {
			if d := at[i+5] - at[i]; d < 300_000 { // who wakes late goes late, the next is in time
				t.Errorf("calls %d to %d went within %d us of a budget of one each 100 ms", i, i+5, d)
			}
		}
	})
}

// Promise 13: an "overloaded" that repeats climbs a ladder; a calm time forgets it.
func TestOverloadLadder(t *testing.T) {
	t.Parallel()
	c := models(Per(Requests, 1000, time.Second))
	c.Policy = pause.Policy{Overload: 100 * ms, OverloadMax: 350 * ms, OverloadCalm: 600 * ms}
	onBoth(t, c, func(t *testing.T, p *pair) {
		next := func(i int) *Reservation {
			t.Helper()
			r, err := p.each(i).Wait(t.Context(), call())
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		for i, want := range []time.Duration{100 * ms, 200 * ms, 350 * ms, 350 * ms} {
			r, late := next(i), next(i+1)
			report(t, r, overloaded)
			if d := left(t, p.a, "m"); d > want || d < want-60*ms {
				t.Errorf("pause %d: %v left, want %v", i+1, d, want)
			}
			report(t, late, overloaded) // of the same time: it is the same overload
			if d := left(t, p.a, "m"); d > want {
				t.Errorf("pause %d: %v left after a second answer, want %v", i+1, d, want)
			}
		}
		pass(left(t, p.a, "m") + 650*ms)
		report(t, next(0), overloaded)
		if d := left(t, p.a, "m"); d > 100*ms {
			t.Errorf("%v left after a calm time, want the first rung", d)
		}
	})
}

// An operator's Pause and Resume reach the whole fleet.
func TestOperator(t *testing.T) {
	t.Parallel()
	onBoth(t, models(Per(Requests, 10, time.Minute)), func(t *testing.T, p *pair) {
		ctx := t.Context()
		for _, d := range []time.Duration{0, -1, maxWindow + 1} {
			if err := p.a.Pause(ctx, "key", "m", d); err == nil {
				t.Errorf("Pause(%v) = nil, want an error", d)
			}
		}
		if err := p.a.Resume(ctx, "", "m"); err == nil {
			t.Error("Resume(no key) = nil, want an error")
		}
		if err := p.a.Pause(ctx, "key", "m", time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := p.b.Pause(ctx, "key", "m", time.Minute); err != nil { // the longer stays
			t.Fatal(err)
		}
		if s := model(t, p.b, "m").State; s.Why != "operator" || s.Left < 59*time.Minute {
			t.Errorf("state = %+v, want an operator's hour", s)
		}
		refuse(t, p.b, call())
		if err := p.b.Resume(ctx, "key", "m"); err != nil {
			t.Fatal(err)
		}
		if s := model(t, p.a, "m").State; s != (ScopeStatus{}) {
			t.Errorf("state = %+v after Resume, want none", s)
		}
		reserve(t, p.a, call())
		if err := p.b.Pause(ctx, "key", "", time.Hour); err != nil {
			t.Fatal(err)
		}
		if e := refuse(t, p.a, call()); e.Reason != KeyPaused {
			t.Errorf("reason = %v, want the key's", e.Reason)
		}
		refuse(t, p.b, Call{Key: "key", Model: "other"})
		if err := p.a.Resume(ctx, "key", ""); err != nil {
			t.Fatal(err)
		}
		reserve(t, p.b, Call{Key: "key", Model: "other"})
	})
}
