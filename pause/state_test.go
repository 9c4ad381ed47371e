package pause

import "testing"

// A state at 1000 us: gen 5, and for the held ones till 2000.
const now = 1000

var (
	open    = State{Till: 500, Gen: 5}
	fresh   = State{}
	paused  = State{Till: 2000, Gen: 5, Why: 1}
	refused = State{Phase: Held, Till: 2000, Gen: 5, Why: 4}
	waiting = State{Phase: Held, Till: 900, Gen: 5, Why: 4} // for its probe
	probing = State{Phase: Probing, Till: 2000, Gen: 5, Why: 4}
	lost    = State{Phase: Probing, Till: 900, Gen: 5, Why: 4} // the lease is over
)

// TestHoldTransitions has every cell of the column "hold" in the table above State.
func TestHoldTransitions(t *testing.T) {
	later := func(length int64) Hold { return Hold{Length: length, Rule: Later, Why: 1} }
	first := func(length int64) Hold { return Hold{Length: length, First: true, Rule: Later, Why: 1} }
	refusal := Hold{Length: 3000, First: true, Rule: Refusal, Why: 4}
	operator := Hold{Length: 3000, Rule: Operator, Why: -1}
	for _, tc := range []struct {
		name string
		from State
		hold Hold
		gen  int64
		out  Outcome
		want State
	}{
		{"never held, later", fresh, later(100), 0, Began, State{Till: 1100, Gen: 1000, Why: 1}},
		{"open, later", open, later(100), 5, Began, State{Till: 1100, Gen: 1000, Why: 1}},
		{"open, later, one call first", open, first(100), 5, Began, State{Phase: Held, Till: 1100, Gen: 1000, Why: 1}},
		{"open, refusal", open, refusal, 5, Began, State{Phase: Held, Till: 4000, Gen: 1000, Why: 4}},
		{"open, operator", open, operator, 0, Began, State{Till: 4000, Gen: 1000, Why: -1}},
		{"open, late later", open, later(100), 4, Ignored, open},
		{"open, late refusal", open, refusal, 4, Ignored, open},

		{"paused, longer", paused, later(1500), 5, Grew, State{Till: 2500, Gen: 5, Why: 1}},
		{"paused, shorter", paused, later(500), 5, Ignored, paused},
		{"paused, the same", paused, later(1000), 5, Ignored, paused},
		{"paused, late and longer", paused, later(1500), 4, Grew, State{Till: 2500, Gen: 5, Why: 1}},
		{"paused, late and shorter", paused, later(500), 4, Ignored, paused},
		{"paused, shorter but one call first", paused, first(500), 5, Grew, State{Phase: Held, Till: 2000, Gen: 5, Why: 1}},
		{"paused, refusal", paused, refusal, 5, Grew, State{Phase: Held, Till: 4000, Gen: 5, Why: 4}},
		{"paused, late refusal", paused, refusal, 4, Ignored, paused},
		{"paused, operator longer", paused, operator, 0, Grew, State{Till: 4000, Gen: 5, Why: -1}},

		{"refused, longer later", refused, later(1500), 5, Grew, State{Phase: Held, Till: 2500, Gen: 5, Why: 1}},
		{"refused, late longer later", refused, later(1500), 4, Grew, State{Phase: Held, Till: 2500, Gen: 5, Why: 1}},
		{"refused, shorter later", refused, later(500), 5, Ignored, refused},
		{"refused, late refusal", refused, refusal, 4, Ignored, refused},
		{"refused, operator keeps the probe", refused, operator, 0, Grew, State{Phase: Held, Till: 4000, Gen: 5, Why: -1}},

		{"waiting for its probe, later", waiting, later(100), 5, Began, State{Till: 1100, Gen: 1000, Why: 1}},
		{"waiting for its probe, late later", waiting, later(100), 4, Ignored, waiting},
		{"waiting for its probe, late refusal", waiting, refusal, 4, Ignored, waiting},
		{"waiting for its probe, operator keeps it", waiting, operator, 0, Began, State{Phase: Held, Till: 4000, Gen: 1000, Why: -1}},

		{"probing, refused again", probing, refusal, 5, Began, State{Phase: Held, Till: 4000, Gen: 1000, Why: 4}},
		{"probing, the probe is told later", probing, later(100), 5, Began, State{Till: 1100, Gen: 1000, Why: 1}},
		{"probing, the probe is told much later", probing, first(100), 5, Began, State{Phase: Held, Till: 1100, Gen: 1000, Why: 1}},
		{"probing, late refusal", probing, refusal, 4, Ignored, probing},
		{"probing, late later", probing, later(9000), 4, Ignored, probing},
		{"probing, operator keeps the probe", probing, operator, 0, Began, State{Phase: Held, Till: 4000, Gen: 1000, Why: -1}},
		{"lost, its late refusal", lost, refusal, 5, Began, State{Phase: Held, Till: 4000, Gen: 1000, Why: 4}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := tc.from
			if got := s.Hold(tc.hold, tc.gen, now); got != tc.out || s != tc.want {
				t.Errorf("Hold() = %v, state %+v, want %v, %+v", got, s, tc.out, tc.want)
			}
		})
	}
}

// TestTransitions has every cell of the columns take, answered, freed and resume.
func TestTransitions(t *testing.T) {
	take := func(s *State) bool { return s.Take(now+5, 300, now) }
	answered := func(gen int64) func(*State) bool { return func(s *State) bool { return s.Answered(gen, now) } }
	freed := func(gen int64) func(*State) bool { return func(s *State) bool { return s.Freed(gen, now) } }
	resume := func(s *State) bool { return s.Resume(now) }
	for _, tc := range []struct {
		name string
		from State
		do   func(*State) bool
		ok   bool
		want State
	}{
		{"take, never held", fresh, take, false, fresh},
		{"take, open", open, take, false, open},
		{"take, waiting for its probe", waiting, take, true, State{Phase: Probing, Till: 1305, Gen: 1000, Why: 4}},
		{"take, the probe is lost", lost, take, true, State{Phase: Probing, Till: 1305, Gen: 1000, Why: 4}},

		{"answered, open", open, answered(5), false, open},
		{"answered, paused", paused, answered(5), false, paused},
		{"answered, refused", refused, answered(5), false, refused},
		{"answered, probing", probing, answered(5), true, State{Till: 1000, Gen: 1000, Why: 4}},
		{"answered, probing, late", probing, answered(4), false, probing},
		{"answered, the lease is over and nobody else went", lost, answered(5), true, State{Till: 1000, Gen: 1000, Why: 4}},

		{"freed, open", open, freed(5), false, open},
		{"freed, paused", paused, freed(5), false, paused},
		{"freed, refused", refused, freed(5), false, refused},
		{"freed, probing", probing, freed(5), true, State{Phase: Held, Till: 1000, Gen: 1000, Why: 4}},
		{"freed, probing, late", probing, freed(4), false, probing},

		{"resume, never held", fresh, resume, false, fresh},
		{"resume, open", open, resume, false, open},
		{"resume, paused", paused, resume, true, State{Till: 1000, Gen: 1000, Why: 1}},
		{"resume, refused", refused, resume, true, State{Till: 1000, Gen: 1000, Why: 4}},
		{"resume, waiting for its probe", waiting, resume, true, State{Till: 1000, Gen: 1000, Why: 4}},
		{"resume, probing", probing, resume, true, State{Till: 1000, Gen: 1000, Why: 4}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := tc.from
			if got := tc.do(&s); got != tc.ok || s != tc.want {
				t.Errorf("got %v, state %+v, want %v, %+v", got, s, tc.ok, tc.want)
			}
		})
	}
}

// TestLadder: it doubles while overloads repeat, up to the longest step, and
// starts again after a calm time or a resume.
func TestLadder(t *testing.T) {
	h := Hold{Length: 100, Longest: 350, Calm: 1000, Rule: Later}
	var s State
	at := int64(10_000)
	step := func(wait, want int64) {
		t.Helper()
		at = max(s.Till+wait, 10_000)
		if out := s.Hold(h, s.Gen, at); out != Began || s.Till != at+want {
			t.Fatalf("%v, held for %d, want %d", out, s.Till-at, want)
		}
	}
	step(0, 100)
	step(0, 200)
	step(999, 350)
	step(10, 350)
	step(1000, 100) // calm
	step(0, 200)
	if out := s.Hold(h, s.Gen-1, at+50); out != Ignored || s.Rung != 200 { // of the same overload
		t.Errorf("a late answer: %v, rung %d, want it ignored", out, s.Rung)
	}
	s.Resume(s.Till - 1)
	step(1, 100)
}

// TestGenerations: two changes in one microsecond, or on a clock that went
// back, still differ.
func TestGenerations(t *testing.T) {
	s := State{}
	last := s.Gen
	for i := range int64(10) {
		s.Hold(Hold{Length: 10, Rule: Operator}, 0, 1000-i)
		s.Resume(1000 - i)
		if s.Gen <= last {
			t.Fatalf("generation %d follows %d", s.Gen, last)
		}
		last = s.Gen
	}
}

func TestNames(t *testing.T) {
	for _, tc := range []struct{ got, want string }{
		{Running.String(), "running"}, {Held.String(), "held"}, {Probing.String(), "probing"}, {Phase(9).String(), "unknown"}, {Phase(-1).String(), "unknown"},
		{None.String(), "none"}, {Model.String(), "model"}, {Key.String(), "key"}, {Scope(9).String(), "unknown"},
		{OK.String(), "ok"}, {QuotaExhausted.String(), "quota_exhausted"}, {Class(-1).String(), "unknown"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
	}
}
