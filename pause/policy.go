package pause

import (
	"fmt"
	"time"
)

// Policy holds the lengths of the pauses. The zero value of every field is the
// default that it names.
type Policy struct {
	// Unnamed is the pause after a "later" that names no usable time. Default 30 s.
	Unnamed time.Duration
	// Now is the pause after a "later" that names a moment that has come. Default 1 s.
	Now time.Duration
	// Cap is the longest pause of one "later", whatever it names. A vendor that
	// named more gets one call first when the pause is over. Default 5 min.
	Cap time.Duration
	// Refused is the pause of a refused key, before its probe and between
	// probes. Default 5 min.
	Refused time.Duration
	// Lease is how long a probe that does not answer keeps its place. Default 30 s.
	Lease time.Duration
	// Overload is the first pause after an "overloaded" that names no time; it
	// doubles while that repeats. Default 2 s.
	Overload time.Duration
	// OverloadMax is the longest of these. Default 30 s.
	OverloadMax time.Duration
	// OverloadCalm is how long after such a pause the next begins at Overload
	// again. Default 1 min.
	OverloadCalm time.Duration
}

// WithDefaults returns p with the defaults in place of zero fields.
func (p Policy) WithDefaults() Policy {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	set(&p.Unnamed, 30*time.Second)
	set(&p.Now, time.Second)
	set(&p.Cap, 5*time.Minute)
	set(&p.Refused, 5*time.Minute)
	set(&p.Lease, 30*time.Second)
	set(&p.Overload, 2*time.Second)
	set(&p.OverloadMax, 30*time.Second)
	set(&p.OverloadCalm, time.Minute)
	return p
}

// Validate says what is wrong with the policy, naming the field, or returns nil.
func (p Policy) Validate() error {
	p = p.WithDefaults()
	for _, f := range []struct {
		name string
		d    time.Duration
	}{
		{"Unnamed", p.Unnamed}, {"Now", p.Now}, {"Cap", p.Cap}, {"Refused", p.Refused}, {"Lease", p.Lease},
		{"Overload", p.Overload}, {"OverloadMax", p.OverloadMax}, {"OverloadCalm", p.OverloadCalm},
	} {
		if f.d < time.Millisecond || f.d > MaxHint {
			return fmt.Errorf("pause: %s: must be 1ms to %v, got %v", f.name, MaxHint, f.d)
		}
	}
	if p.OverloadMax < p.Overload {
		return fmt.Errorf("pause: OverloadMax: must be at least Overload (%v), got %v", p.Overload, p.OverloadMax)
	}
	return nil
}

// Probe says what an answer tells about the scope whose probe it is.
type Probe int

const (
	Nothing Probe = iota // inconclusive: the next call probes
	Works                // the key is accepted: resume
	Refused              // still refused: the pause repeats
)

// Effect is what a verdict does.
type Effect struct {
	// Scope is what a hold closes, or None.
	Scope Scope
	Hold  Hold
	// Probe is what the answer means when the call was the probe of its key.
	Probe Probe
}

// Effect looks the verdict up in the table of what each does:
//
//	verdict          scope  hold                                        as the answer to a key's probe
//	ok               -      -                                           works
//	rate limited     its    named time, or Unnamed; at most Cap         works
//	overloaded       model  named time, or the ladder from Overload     nothing
//	quota exhausted  key    Refused, one call first                     refused
//	quota exhausted  model  Cap, one call first                         works
//	key refused      key    Refused, one call first                     refused
//	client error     -      -                                           works
//	server error     -      -                                           nothing
//
// A rate limit that names more than Cap is held for Cap, and one call goes first.
func (p Policy) Effect(v Verdict) Effect {
	p = p.WithDefaults()
	later := func(unnamed time.Duration) Hold {
		d := unnamed
		switch {
		case v.Hint.Named && v.Hint.Wait <= 0:
			d = p.Now
		case v.Hint.Named:
			d = v.Hint.Wait
		}
		return Hold{Length: micros(min(d, p.Cap)), First: d > p.Cap, Rule: Later, Why: int64(v.Class)}
	}
	scope := v.Scope
	if scope == None {
		scope = Model
	}
	refused := Hold{Length: micros(p.Refused), First: true, Rule: Refusal, Why: int64(v.Class)}
	switch v.Class {
	case OK, ClientError:
		return Effect{Probe: Works}
	case RateLimited:
		return Effect{Scope: scope, Hold: later(p.Unnamed), Probe: Works}
	case Overloaded:
		h := later(p.Overload)
		if !v.Hint.Named {
			h.Longest, h.Calm = micros(p.OverloadMax), micros(p.OverloadCalm)
		}
		return Effect{Scope: scope, Hold: h, Probe: Nothing}
	case QuotaExhausted:
		if scope == Model {
			return Effect{Scope: Model, Hold: Hold{Length: micros(p.Cap), First: true, Rule: Later, Why: int64(v.Class)}, Probe: Works}
		}
		return Effect{Scope: Key, Hold: refused, Probe: Refused}
	case KeyRefused:
		return Effect{Scope: Key, Hold: refused, Probe: Refused}
	}
	return Effect{Probe: Nothing}
}

// micros rounds up to whole microseconds, the store's unit.
func micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }
