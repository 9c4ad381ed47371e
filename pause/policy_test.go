package pause

import (
	"strings"
	"testing"
	"time"
)

// TestEffect has every row of the table above Policy.Effect.
func TestEffect(t *testing.T) {
	const s, m = int64(1e6), int64(60e6)
	named := func(d time.Duration) Hint { return Hint{Wait: d, Named: true} }
	hold := func(c Class, length int64, first bool) Hold {
		return Hold{Length: length, First: first, Rule: Later, Why: int64(c)}
	}
	refusal := func(c Class) Hold { return Hold{Length: 5 * m, First: true, Rule: Refusal, Why: int64(c)} }
	ladder := hold(Overloaded, 2*s, false)
	ladder.Longest, ladder.Calm = 30*s, m
	for _, tc := range []struct {
		name string
		v    Verdict
		want Effect
	}{
		{"ok", Verdict{}, Effect{Probe: Works}},
		{"client error", Verdict{Class: ClientError}, Effect{Probe: Works}},
		{"client error that names a wait", Verdict{Class: ClientError, Scope: Model, Hint: named(time.Hour)}, Effect{Probe: Works}},
		{"server error", Verdict{Class: ServerError}, Effect{Probe: Nothing}},
		{"unknown class", Verdict{Class: 99, Scope: Key}, Effect{Probe: Nothing}},

		{"rate limited, unnamed", Verdict{Class: RateLimited, Scope: Model}, Effect{Model, hold(RateLimited, 30*s, false), Works}},
		{"rate limited, scope not said", Verdict{Class: RateLimited}, Effect{Model, hold(RateLimited, 30*s, false), Works}},
		{"rate limited, named", Verdict{Class: RateLimited, Scope: Model, Hint: named(7 * time.Second)}, Effect{Model, hold(RateLimited, 7*s, false), Works}},
		{"rate limited, part of a microsecond", Verdict{Class: RateLimited, Scope: Model, Hint: named(1)}, Effect{Model, hold(RateLimited, 1, false), Works}}, // S01
		{"rate limited, now", Verdict{Class: RateLimited, Scope: Model, Hint: named(0)}, Effect{Model, hold(RateLimited, s, false), Works}},                   // S02
		{"rate limited, negative", Verdict{Class: RateLimited, Scope: Model, Hint: named(-time.Hour)}, Effect{Model, hold(RateLimited, s, false), Works}},
		{"rate limited, the cap", Verdict{Class: RateLimited, Scope: Model, Hint: named(5 * time.Minute)}, Effect{Model, hold(RateLimited, 5*m, false), Works}},
		{"rate limited, above the cap", Verdict{Class: RateLimited, Scope: Model, Hint: named(5*time.Minute + 1)}, Effect{Model, hold(RateLimited, 5*m, true), Works}}, // S03
		{"rate limited by account", Verdict{Class: RateLimited, Scope: Key}, Effect{Key, hold(RateLimited, 30*s, false), Works}},

		{"overloaded, unnamed", Verdict{Class: Overloaded, Scope: Model}, Effect{Model, ladder, Nothing}},
		{"overloaded, named", Verdict{Class: Overloaded, Scope: Model, Hint: named(9 * time.Second)}, Effect{Model, hold(Overloaded, 9*s, false), Nothing}},
		{"overloaded, above the cap", Verdict{Class: Overloaded, Scope: Model, Hint: named(time.Hour)}, Effect{Model, hold(Overloaded, 5*m, true), Nothing}},

		{"quota of the account", Verdict{Class: QuotaExhausted, Scope: Key}, Effect{Key, refusal(QuotaExhausted), Refused}},
		{"quota, short time beside it", Verdict{Class: QuotaExhausted, Scope: Key, Hint: named(2 * time.Second)}, Effect{Key, refusal(QuotaExhausted), Refused}}, // S30
		{"quota of a model", Verdict{Class: QuotaExhausted, Scope: Model}, Effect{Model, hold(QuotaExhausted, 5*m, true), Works}},
		{"key refused", Verdict{Class: KeyRefused, Scope: Key}, Effect{Key, refusal(KeyRefused), Refused}},
		{"key refused, scope not said", Verdict{Class: KeyRefused}, Effect{Key, refusal(KeyRefused), Refused}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := (Policy{}).Effect(tc.v); got != tc.want {
				t.Errorf("Effect() = %+v, want %+v", got, tc.want)
			}
		})
	}
}

// Every length of a policy is used where its name says.
func TestEffectOfAPolicy(t *testing.T) {
	p := Policy{Unnamed: 1 * time.Second, Now: 2 * time.Second, Cap: 30 * time.Second, Refused: 4 * time.Second,
		Overload: 6 * time.Second, OverloadMax: 7 * time.Second, OverloadCalm: 8 * time.Second}
	for _, tc := range []struct {
		name string
		v    Verdict
		want time.Duration
	}{
		{"unnamed", Verdict{Class: RateLimited}, p.Unnamed},
		{"now", Verdict{Class: RateLimited, Hint: Hint{Named: true}}, p.Now},
		{"cap", Verdict{Class: RateLimited, Hint: Hint{Wait: time.Hour, Named: true}}, p.Cap},
		{"quota of a model", Verdict{Class: QuotaExhausted, Scope: Model}, p.Cap},
		{"refused", Verdict{Class: KeyRefused}, p.Refused},
		{"overload", Verdict{Class: Overloaded}, p.Overload},
	} {
		if got := p.Effect(tc.v).Hold.Length; got != tc.want.Microseconds() {
			t.Errorf("%s: held for %d us, want %v", tc.name, got, tc.want)
		}
	}
	if h := p.Effect(Verdict{Class: Overloaded}).Hold; h.Longest != 7e6 || h.Calm != 8e6 {
		t.Errorf("ladder up to %d us, calm %d us, want 7 s and 8 s", h.Longest, h.Calm)
	}
}

func TestPolicyDefaults(t *testing.T) {
	want := Policy{30 * time.Second, time.Second, 5 * time.Minute, 5 * time.Minute, 30 * time.Second, 2 * time.Second, 30 * time.Second, time.Minute}
	if got := (Policy{}).WithDefaults(); got != want {
		t.Errorf("WithDefaults() = %+v, want %+v", got, want)
	}
	own := Policy{1, 2, 3, 4, 5, 6, 7, 8}
	if got := own.WithDefaults(); got != own {
		t.Errorf("WithDefaults() = %+v, want %+v", got, own)
	}
}

func TestPolicyValidate(t *testing.T) {
	for _, tc := range []struct {
		name string
		p    Policy
		want string // part of the error, "" for none
	}{
		{"zero", Policy{}, ""},
		{"Unnamed", Policy{Unnamed: -1}, "Unnamed"},
		{"Now", Policy{Now: time.Microsecond}, "Now"},
		{"Cap", Policy{Cap: MaxHint + 1}, "Cap"},
		{"Refused", Policy{Refused: -time.Second}, "Refused"},
		{"Lease", Policy{Lease: 1}, "Lease"},
		{"Overload", Policy{Overload: -1}, "Overload"},
		{"OverloadMax", Policy{Overload: time.Minute}, "OverloadMax"},
		{"OverloadCalm", Policy{OverloadCalm: -1}, "OverloadCalm"},
		{"short", Policy{Unnamed: time.Millisecond, Cap: time.Millisecond}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.p.Validate()
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want+":") {
				t.Errorf("Validate() = %v, want an error naming %q", err, tc.want)
			}
		})
	}
}
