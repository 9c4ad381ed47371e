package throttle

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway/pause"
)

// shortPauses are for tests of a refused key.
func shortPauses() Config {
	c := models(Per(Requests, 1000, time.Second))
	c.Default = []Limit{Per(Requests, 1000, time.Second)}
	c.Policy = pause.Policy{Refused: 500 * ms, Lease: 800 * ms, Cap: 500 * ms}
	return c
}

// probe makes 100 calls at once, to two models, over both hosts and returns the
// one that goes; it fails when that is not exactly one, and a probe.
func (p *pair) probe(t *testing.T) *Reservation {
	t.Helper()
	var one atomic.Pointer[Reservation]
	var went atomic.Int64
	var wg sync.WaitGroup
	for i := range 100 {
		c := call()
		c.Model = []string{"m", "n"}[i/2%2]
		wg.Go(func() {
			r, err := p.each(i).Reserve(t.Context(), c)
			if err == nil {
				went.Add(1)
				one.Store(r)
			} else if e := refusal(t, err); e.Reason != KeyPaused || e.RetryAfter <= 0 {
				t.Errorf("refusal = %+v, want the key's pause and a time to come back", e)
			}
		})
	}
	wg.Wait()
	if went.Load() != 1 {
		t.Fatalf("%d calls went, want exactly the probe", went.Load())
	}
	if r := one.Load(); !r.Probe() {
		t.Fatal("the call that went is not the probe")
	}
	return one.Load()
}

// refused takes both hosts to the end of the pause of a refused key.
func (p *pair) refused(t *testing.T) {
	t.Helper()
	report(t, reserve(t, p.a, call()), keyRefused)
	p.over(t)
}

// over waits for the end of the key's pause, in which nobody goes.
func (p *pair) over(t *testing.T) {
	t.Helper()
	for _, name := range []string{"m", "n"} { // promise 15: every model is held, of this key only
		c := call()
		c.Model = name
		if e := refuse(t, p.b, c); e.Reason != KeyPaused {
			t.Fatalf("reason = %v, want the key's pause", e.Reason)
		}
		c.Key = "another"
		reserve(t, p.b, c)
	}
	p.keyIs(t, pause.Held)
	eventually(t, "the pause is over", func() bool { return p.state(t).Left == 0 })
}

func (p *pair) state(t *testing.T) ScopeStatus {
	t.Helper()
	s, err := p.b.Status(t.Context(), "key", "m")
	if err != nil {
		t.Fatal(err)
	}
	return s.State
}

func (p *pair) keyIs(t *testing.T, want pause.Phase) {
	t.Helper()
	if got := p.state(t).Phase; got != want {
		t.Fatalf("the key is %v, want %v", got, want)
	}
}

// S29: exactly one probe, and what its answer does.
func TestS29OneProbe(t *testing.T) {
	t.Parallel()
	account := later(150 * ms)
	account.Scope = pause.Key
	busy := overloaded
	busy.Scope = pause.Key
	for _, tc := range []struct {
		name string
		v    pause.Verdict
		want pause.Phase
		held bool // by a new pause
	}{
		{"ok", pause.Verdict{}, pause.Running, false},
		{"client error", pause.Verdict{Class: pause.ClientError}, pause.Running, false},
		{"rate limited", later(time.Minute), pause.Running, false},
		{"rate limited by account", account, pause.Running, true},
		{"quota of the model", pause.Verdict{Class: pause.QuotaExhausted, Scope: pause.Model}, pause.Running, false},
		{"refused again", keyRefused, pause.Held, true},
		{"quota of the account", pause.Verdict{Class: pause.QuotaExhausted, Scope: pause.Key}, pause.Held, true},
		{"server error", serverError, pause.Held, false},
		{"overloaded", overloaded, pause.Held, false},
		{"account overloaded", busy, pause.Held, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, shortPauses(), func(t *testing.T, p *pair) {
				p.refused(t)
				r := p.probe(t)
				p.keyIs(t, pause.Probing)
				report(t, r, tc.v)
				s := p.state(t)
				if s.Phase != tc.want || (s.Left > 0) != tc.held {
					t.Fatalf("the key is %+v, want %v, held %v", s, tc.want, tc.held)
				}
				other := call()
				other.Model = map[string]string{"m": "n", "n": "m"}[r.plan.model] // not the one that was paused
				switch {
				case tc.want == pause.Running && !tc.held:
					reserve(t, p.a, other)
					reserve(t, p.b, other)
				case tc.want == pause.Held:
					eventually(t, "the pause is over", func() bool { return p.state(t).Left == 0 })
					for { // the next call of a model that is open probes
						if next, err := p.b.Reserve(t.Context(), other); err == nil {
							if !next.Probe() {
								t.Error("the next call is not the probe")
							}
							break
						}
					}
				}
				report(t, r, keyRefused) // a second report of the same call does no harm
			})
		})
	}
}

// S29: a prober that dies holds its place for a lease, no longer; its late
// answer, and those of calls before the pause, do no harm (promise 16).
func TestS29LostProbeAndLateAnswers(t *testing.T) {
	t.Parallel()
	onBoth(t, shortPauses(), func(t *testing.T, p *pair) {
		var old []*Reservation
		for i := range 6 {
			old = append(old, reserve(t, p.each(i), call()))
		}
		p.refused(t)
		sent := time.Now()
		lost := p.probe(t)
		for time.Since(sent) < 600*ms {
			if r, err := p.a.Reserve(t.Context(), call()); err == nil {
				t.Fatalf("a call (probe: %v) went during the lease", r.Probe())
			}
		}
		eventually(t, "the lease is over", func() bool { return p.state(t).Left == 0 })
		second := p.probe(t)
		for i, v := range []pause.Verdict{keyRefused, {}, serverError} {
			report(t, old[i], v) // from before the pause
		}
		report(t, lost, pause.Verdict{})
		p.keyIs(t, pause.Probing) // nobody lifted it, repeated it or took the place of the probe
		if err := old[3].Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := lost.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.keyIs(t, pause.Probing)
		report(t, second, pause.Verdict{})
		p.keyIs(t, pause.Running)
		report(t, old[4], keyRefused) // it was refused before the key worked again
		report(t, lost, keyRefused)
		account := later(time.Minute)
		account.Scope = pause.Key
		report(t, old[5], account) // a late "later" starts no pause
		if s := p.state(t); s != (ScopeStatus{}) {
			t.Errorf("late answers made the key %+v, want it open", s)
		}
		if n := p.events.count(ProbeSent); n != 2 {
			t.Errorf("%d probes were told, want 2", n)
		}
	})
}

// S29: a probe that never went out gives its place to the next call at once.
func TestS29CancelledProbe(t *testing.T) {
	t.Parallel()
	onBoth(t, shortPauses(), func(t *testing.T, p *pair) {
		p.refused(t)
		if err := p.probe(t).Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		report(t, p.probe(t), pause.Verdict{})
		p.keyIs(t, pause.Running)
	})
}

// S29: those who wait for the probe's answer go when it is there, not when the lease ends.
func TestS29AnswerFreesWaitingCalls(t *testing.T) {
	t.Parallel()
	c := shortPauses()
	c.Policy.Lease = time.Minute
	onBoth(t, c, func(t *testing.T, p *pair) {
		p.refused(t)
		r := p.probe(t)
		ends := make(chan ended, 20)
		for i := range 20 {
			c := call()
			c.MaxWait = 2 * time.Minute
			start(t.Context(), p.each(i), c, i, ends)
		}
		eventually(t, "all wait", func() bool { return p.waiting(t) == 20 })
		report(t, r, pause.Verdict{})
		began := time.Now()
		for range 20 {
			if e := <-ends; e.err != nil || e.r.Probe() || e.at.Sub(began) > 1300*ms*slack {
				t.Errorf("a waiting call ended with %v, %v after the answer", e.err, e.at.Sub(began))
			}
		}
	})
}

// Promise 15: one event when a pause begins and one when it repeats, once for the fleet.
func TestOneEventForTheFleet(t *testing.T) {
	t.Parallel()
	onBoth(t, shortPauses(), func(t *testing.T, p *pair) {
		var inFlight []*Reservation
		for i := range 50 {
			inFlight = append(inFlight, reserve(t, p.each(i), call()))
		}
		var wg sync.WaitGroup
		for _, r := range inFlight {
			wg.Go(func() { report(t, r, keyRefused) })
		}
		wg.Wait()
		if n := p.events.count(PauseBegan); n != 1 {
			t.Errorf("%d pauses were told, want 1", n)
		}
		p.over(t)
		report(t, p.probe(t), keyRefused)
		if n := p.events.count(PauseBegan); n != 2 {
			t.Errorf("%d pauses were told after the probe, want 2", n)
		}
	})
}

// Promise 14: a vendor that named a time above the cap gets one call first.
func TestOneCallFirstAboveTheCap(t *testing.T) {
	t.Parallel()
	onBoth(t, shortPauses(), func(t *testing.T, p *pair) {
		report(t, reserve(t, p.a, call()), later(time.Hour))
		if d := left(t, p.b, "m"); d == 0 || d > 500*ms {
			t.Fatalf("%v left, want the cap", d)
		}
		first := func() *Reservation {
			t.Helper()
			eventually(t, "the pause is over", func() bool { return left(t, p.a, "m") == 0 })
			var one *Reservation
			for i := range 50 {
				if r, err := p.each(i).Reserve(t.Context(), call()); err == nil {
					if one != nil || !r.Probe() {
						t.Fatal("more than one call went first")
					}
					one = r
				}
			}
			if one == nil {
				t.Fatal("no call went first")
			}
			return one
		}
		report(t, first(), later(time.Hour)) // still: another pause, and one call again
		report(t, first(), serverError)
		report(t, first(), overloadedBriefly) // inconclusive: the next call goes first too
		report(t, first(), pause.Verdict{})
		reserve(t, p.a, call())
		reserve(t, p.b, call())
	})
}

var overloadedBriefly = pause.Verdict{Class: pause.Overloaded, Scope: pause.Model, Hint: pause.Hint{Wait: 100 * ms, Named: true}}

// Promise 16: a late "later" may lengthen a pause that is running, never start one that has ended.
func TestLateLater(t *testing.T) {
	t.Parallel()
	onBoth(t, shortPauses(), func(t *testing.T, p *pair) {
		x, y, z := reserve(t, p.a, call()), reserve(t, p.b, call()), reserve(t, p.b, call())
		report(t, x, later(200*ms))
		report(t, y, later(450*ms))
		if d := left(t, p.a, "m"); d < 250*ms {
			t.Errorf("%v left, want the longer time of the late answer", d)
		}
		eventually(t, "the pause is over", func() bool { return left(t, p.a, "m") == 0 })
		report(t, z, later(150*ms))
		if d := left(t, p.a, "m"); d != 0 {
			t.Errorf("a late answer started a pause of %v", d)
		}
		report(t, reserve(t, p.a, call()), later(150*ms))
		if left(t, p.b, "m") == 0 {
			t.Error("the answer of a new call starts no pause")
		}
	})
}
