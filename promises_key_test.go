package headway_test

import (
	"testing"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
)

// keyOff is a wire whose refused keys pause for half a second.
func keyOff(t *testing.T) *wire {
	c := plenty()
	c.Policy = offPolicy
	return newWire(t, c, vendorsim.Config{})
}

// keyState is the state of the key.
func (w *wire) keyState(t *testing.T, a ask) throttle.ScopeStatus {
	t.Helper()
	s, _ := w.b.status(t, w.call(t, a).Key, "m")
	return s.State
}

// over waits until the key's pause is over, without a call.
func (w *wire) over(t *testing.T) {
	t.Helper()
	eventually(t, "the pause is over", func() bool { return w.keyState(t, ask{}).Left == 0 })
}

// Promise 15: a refused key pauses every model for the whole fleet, then exactly
// one call finds out, again and again until it works (S29).
func TestPromise15_ARefusedKeyGetsOneProbe(t *testing.T) {
	t.Parallel()
	w := keyOff(t)
	seen := func() int { return w.vendor.Count(vendorsim.Filter{}) }
	crowd := func(i int) ask { return ask{model: []string{"m", "n", "o"}[i%3]}.now() }
	w.vendor.RefuseKey(apiKey, true)
	w.status(t, 401, ask{})
	for period := 1; period <= 3; period++ {
		began := w.now(t)
		if left := w.keyState(t, ask{}).Left; left > offPolicy.Refused || left < offPolicy.Refused-200*ms*slack {
			t.Errorf("period %d: the pause has %v left, want %v", period, left, offPolicy.Refused)
		}
		before := seen()
		out := w.many(t, 200, crowd)
		if w.now(t).Sub(began) < offPolicy.Refused/2 && (count(t, out, 0) != 200 || seen() != before) { // unless the machine slept
			t.Errorf("period %d: %d of 200 refused, the vendor saw %d, want none", period, count(t, out, 0), seen()-before)
		}
		w.over(t)
		works := period == 3
		w.vendor.RefuseKey(apiKey, !works)
		before = seen()
		w.vendor.Hold() // the probe stays out
		done := make(chan []answer)
		go func() { done <- w.many(t, 200, crowd) }()
		w.await(t, before+1)
		eventually(t, "the others are answered", func() bool { return w.told(throttle.RefusedCall) >= 200*period*2-period })
		if got := w.keyState(t, ask{}); got.Phase != pause.Probing {
			t.Errorf("period %d: the key is %+v, want probing", period, got)
		}
		if got := seen() - before; got != 1 {
			t.Errorf("period %d: the vendor saw %d probes, want 1", period, got)
		}
		w.vendor.Release()
		if got := count(t, <-done, map[bool]int{true: 200, false: 401}[works]); got != 1 {
			t.Errorf("period %d: %d calls got the answer of the probe, want 1", period, got)
		}
	}
	if out := w.many(t, 60, crowd); count(t, out, 200) != 60 {
		t.Errorf("%d of 60 went after the probe got through, want all at once", count(t, out, 200))
	}
	if began, sent := w.told(throttle.PauseBegan), w.told(throttle.ProbeSent); began != 3 || sent != 3 {
		t.Errorf("the fleet told of %d pauses and %d probes, want 3 and 3, each once", began, sent)
	}
}

// Promise 15: what each answer to the probe does.
func TestPromise15_AnswersToTheProbe(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		answer  vendorsim.Answer
		status  int
		resumed bool // everything goes on
		probes  bool // the next call probes at once
	}{
		{"a rate limit proves the key", vendorsim.RateLimited(time.Minute, vendorsim.DialectSeconds), 429, true, false},
		{"so does a client error", vendorsim.Answer{Status: 400}, 400, true, false},
		{"a server error proves nothing", vendorsim.ServerError500(), 500, false, true},
		{"nor does an overload", vendorsim.Overloaded529(), 529, false, true},
		{"nor a cut connection", vendorsim.Answer{Cut: vendorsim.CutBefore}, 0, false, true},
		{"no quota repeats the pause", vendorsim.Quota429(), 429, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := keyOff(t)
			w.vendor.Script("m", vendorsim.KeyRefused401(), tc.answer)
			w.status(t, 401, ask{})
			w.over(t)
			if got := w.send(t, ask{host: 1}.now()); got.status != tc.status {
				t.Fatalf("the probe: answer %d, %v, want %d", got.status, got.err, tc.status)
			}
			switch {
			case tc.resumed:
				if s := w.keyState(t, ask{}); s != (throttle.ScopeStatus{}) {
					t.Errorf("the key is %+v, want it open without another probe", s)
				}
				w.status(t, 200, ask{model: "n"}.now())
				w.status(t, 200, ask{model: "n", host: 1}.now())
				if tc.status == 429 { // and that model is paused
					w.refused(t, ask{}.now())
				}
			case tc.probes:
				w.vendor.Hold()
				done := make(chan answer)
				go func() { done <- w.send(t, ask{model: "n"}.now()) }()
				w.await(t, 3)
				if e := w.refused(t, ask{model: "o", host: 1}.now()); e.Reason != throttle.KeyPaused {
					t.Errorf("beside the probe: %v, want the key paused", e)
				}
				w.vendor.Release()
				if got := <-done; got.status != 200 {
					t.Errorf("the next probe: answer %d, %v, want 200", got.status, got.err)
				}
				w.status(t, 200, ask{model: "o", host: 1}.now())
			default:
				if e := w.refused(t, ask{model: "n"}.now()); e.Reason != throttle.KeyPaused {
					t.Errorf("refused because %v, want the key paused", e.Reason)
				}
			}
		})
	}
}
