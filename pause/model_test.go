package pause

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// world is what the promises say of one scope, in plain words: who may go when,
// and whose word counts. It knows no generations: a call remembers the regime in
// which it went, and is late once there is another.
type world struct {
	regime *regime
	step   int64 // of the ladder, 0 for none
}

// regime is a time in which nothing changes but that a pause grows.
type regime struct {
	closed int64 // nobody goes before
	trial  bool  // the next call is the probe
	probe  *gone // the probe that is out; another may go when it is closed no more
}

// gone is a call that went.
type gone struct {
	regime *regime
	gen    int64 // what the state under test gave it
}

func (w *world) held(now int64) bool { return now < w.regime.closed && w.regime.probe == nil }

// call lets a call go that may go.
func (w *world) call(at, lease int64) (c *gone, probe bool) {
	c = &gone{regime: w.regime}
	if w.regime.trial || w.regime.probe != nil {
		c.regime = &regime{closed: at + lease, probe: c}
		w.regime = c.regime
		return c, true
	}
	return c, false
}

// hold is a call's, or with c nil an operator's, wish to close the scope.
func (w *world) hold(c *gone, h Hold, now int64) Outcome {
	late := c != nil && c.regime != w.regime
	if late && (h.Rule == Refusal || !w.held(now)) {
		return Ignored // late answers do no harm
	}
	length := h.Length
	if h.Longest > 0 && !late {
		if w.step > 0 && now < w.regime.closed+h.Calm {
			length = min(2*w.step, h.Longest)
		}
		w.step = length
	}
	if w.held(now) { // a pause only ever grows
		grows := now+length > w.regime.closed || h.First && !w.regime.trial
		w.regime.closed = max(w.regime.closed, now+length)
		w.regime.trial = w.regime.trial || h.First
		if grows {
			return Grew
		}
		return Ignored
	}
	trial := h.First || c == nil && (w.regime.trial || w.regime.probe != nil)
	w.regime = &regime{closed: now + length, trial: trial}
	return Began
}

// probed is the outcome of a call that may be the probe: it works, or it said nothing.
func (w *world) probed(c *gone, works bool, now int64) bool {
	if w.regime.probe != c {
		return false
	}
	w.regime = &regime{closed: now, trial: !works}
	return true
}

func (w *world) resume(now int64) bool {
	if now >= w.regime.closed && !w.regime.trial && w.regime.probe == nil {
		return false
	}
	w.regime, w.step = &regime{closed: now}, 0
	return true
}

// TestModel plays random histories to the state and to the plain model: calls,
// their answers however late and of whatever kind, operators, dead probes, and a
// clock that stands still, jumps, and now and then goes back.
func TestModel(t *testing.T) {
	const lease = 50
	outcomes := []string{Ignored: "ignored", Began: "began", Grew: "grew"}
	seen := map[string]int{}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 7))
		s, w := State{}, &world{regime: &regime{}}
		var calls []*gone
		var trace []string
		now := int64(1000)
		for range 60 {
			now += []int64{0, 0, 1, 3, 10, 60, 200}[r.IntN(7)]
			if r.IntN(40) == 0 {
				now -= r.Int64N(30)
			}
			c := &gone{regime: new(regime), gen: -1} // of a life of the store that is over
			if len(calls) > 0 && r.IntN(30) > 0 {
				c = calls[len(calls)-1-r.IntN(min(len(calls), 1+r.IntN(8)))] // the latest are the likeliest
			}
			got, want, what := "", "", ""
			switch k := r.IntN(20); {
			case k < 7:
				at := now + r.Int64N(3)
				may := at >= w.regime.closed
				if what = "call"; may != (s.Till <= at) {
					t.Fatalf("seed %d: at %d: may go: %v, want %v, state %+v\n%q", seed, at, !may, may, s, trace)
				}
				if !may {
					continue
				}
				call, probe := w.call(at, lease)
				got, want = fmt.Sprint(s.Take(at, lease, now)), fmt.Sprint(probe)
				call.gen = s.Gen
				calls = append(calls, call)
			case k < 10:
				what = "later"
				h := Hold{Length: 1 + r.Int64N(100), Rule: Later, First: r.IntN(4) == 0, Why: 1}
				got, want = outcomes[s.Hold(h, c.gen, now)], outcomes[w.hold(c, h, now)]
			case k < 12:
				what = "refused"
				h := Hold{Length: 80, Rule: Refusal, First: true, Why: 4}
				got, want = outcomes[s.Hold(h, c.gen, now)], outcomes[w.hold(c, h, now)]
			case k < 14:
				what = "overloaded"
				h := Hold{Length: 10, Longest: 70, Calm: 100, Rule: Later, Why: 2}
				got, want = outcomes[s.Hold(h, c.gen, now)], outcomes[w.hold(c, h, now)]
			case k < 17:
				what = "answered"
				got, want = fmt.Sprint(s.Answered(c.gen, now)), fmt.Sprint(w.probed(c, true, now))
			case k < 18:
				what = "freed"
				got, want = fmt.Sprint(s.Freed(c.gen, now)), fmt.Sprint(w.probed(c, false, now))
			case k < 19:
				what = "operator holds"
				h := Hold{Length: 1 + r.Int64N(100), Rule: Operator, Why: -1}
				got, want = outcomes[s.Hold(h, 0, now)], outcomes[w.hold(nil, h, now)]
			default:
				what = "operator resumes"
				got, want = fmt.Sprint(s.Resume(now)), fmt.Sprint(w.resume(now))
			}
			trace = append(trace, fmt.Sprintf("%d %s: %s", now, what, got))
			seen[what+" "+want]++
			phase := Running
			if w.regime.probe != nil {
				phase = Probing
			} else if w.regime.trial {
				phase = Held
			}
			if got != want || s.Till != w.regime.closed || s.Phase != phase {
				t.Fatalf("seed %d: at %d: %s: %s, state %+v, want %s, %v until %d\n%q", seed, now, what, got, s, want, phase, w.regime.closed, trace)
			}
			for _, c := range calls {
				if late := c.regime != w.regime; late != (c.gen != s.Gen) {
					t.Fatalf("seed %d: at %d: %s: a call of generation %d, now %d: late %v\n%q", seed, now, what, c.gen, s.Gen, late, trace)
				}
			}
		}
	}
	for _, what := range []string{
		"call true", "call false", "later ignored", "later began", "later grew", "refused ignored", "refused began", "overloaded began", "overloaded ignored",
		"answered true", "answered false", "freed true", "freed false", "operator holds began", "operator holds grew", "operator resumes true", "operator resumes false",
	} {
		if seen[what] < 50 {
			t.Errorf("%q came %d times, want 50 at least: %v", what, seen[what], seen)
		}
	}
}
