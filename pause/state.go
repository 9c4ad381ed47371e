package pause

// Phase is where a scope (a key, or one model of it) stands.
type Phase int

const (
	Running Phase = iota // open, once a pause without a probe is over
	Held                 // closed until Till; then one call goes first, as the probe
	Probing              // that call is out; Till is the end of its lease
)

var phaseNames = [...]string{"running", "held", "probing"}

// String returns "running", "held" or "probing".
func (p Phase) String() string {
	if p < 0 || int(p) >= len(phaseNames) {
		return "unknown"
	}
	return phaseNames[p]
}

// Rule says whose word a hold is, and so which generations it is heard from.
type Rule int

const (
	Operator Rule = iota // always heard
	Later                // a vendor's "later": an older generation may lengthen a running pause, not start one
	Refusal              // a refusal of the key: heard from the present generation only
)

// State is the state of one scope. All times are microseconds of the store's
// clock. The zero State is open and has never been held.
//
// A generation begins with every pause, probe and end of a pause. A call
// carries the generation it was admitted in, and what it reports counts only
// if that is still the present one.
//
//	state    hold (heard)          take, Till over   answered    freed    resume
//	Running  Running or Held, g+   goes              -           -        Running, g+ (if Till ahead)
//	Held     Held, longer          Probing, g+       -           -        Running, g+
//	Probing  Running or Held, g+   Probing, g+       Running g+  Held g+  Running, g+
//
// g+ begins a generation. Held rather than Running follows a hold that wants
// one call first. Answered and freed count from the present generation only.
type State struct {
	Till  int64
	Phase Phase
	Gen   int64
	Rung  int64 // length of the last step of the ladder
	Why   int64
}

// Hold is a request to close a scope.
type Hold struct {
	Length  int64 // microseconds
	Longest int64 // when above zero: a ladder that doubles from Length up to Longest
	Calm    int64 // after so long without a pause the ladder starts again
	First   bool  // when the hold is over, one call goes first
	Rule    Rule
	Why     int64
}

// Outcome is what became of a hold.
type Outcome int

const (
	Ignored Outcome = iota
	Began
	Grew
)

func (s *State) begin(p Phase, till, now int64) {
	s.Phase, s.Till, s.Gen = p, till, max(now, s.Gen+1)
}

// Hold closes the scope, or lengthens the pause it is in: a pause only grows.
func (s *State) Hold(h Hold, gen, now int64) Outcome {
	mine, running := gen == s.Gen, s.Till > now && s.Phase < Probing
	if h.Rule != Operator && !mine && (h.Rule == Refusal || !running) {
		return Ignored
	}
	length := h.Length
	if h.Longest > 0 && mine {
		if s.Rung > 0 && now < s.Till+h.Calm {
			length = min(2*s.Rung, h.Longest)
		}
		s.Rung = length
	}
	first := Running
	if h.First {
		first = Held
	}
	till := now + length
	if running {
		if till <= s.Till && first <= s.Phase {
			return Ignored
		}
		s.Till, s.Phase, s.Why = max(till, s.Till), max(first, s.Phase), h.Why
		return Grew
	}
	if h.Rule == Operator && s.Phase > Running {
		first = Held // an operator's pause does not excuse a refused key from its probe
	}
	s.Why = h.Why
	s.begin(first, till, now)
	return Began
}

// Take tells the state that a call goes at the given time, which is not before
// Till. It returns whether that call is the probe, leased until at+lease.
func (s *State) Take(at, lease, now int64) bool {
	if s.Phase == Running {
		return false
	}
	s.begin(Probing, at+lease, now)
	return true
}

// Answered says that the probe of generation gen was accepted by the vendor.
func (s *State) Answered(gen, now int64) bool { return s.probed(Running, gen, now) }

// Freed says that the probe of generation gen learned nothing: the next call probes.
func (s *State) Freed(gen, now int64) bool { return s.probed(Held, gen, now) }

func (s *State) probed(next Phase, gen, now int64) bool {
	if s.Phase != Probing || gen != s.Gen {
		return false
	}
	s.begin(next, now, now)
	return true
}

// Resume opens the scope now, whatever held it.
func (s *State) Resume(now int64) bool {
	if s.Till <= now && s.Phase == Running {
		return false
	}
	s.Rung = 0
	s.begin(Running, now, now)
	return true
}
