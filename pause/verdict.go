// Package pause knows what a vendor's answer means and what follows from it:
// it reads the wait that the vendor named, names the verdicts, holds the table
// of what each verdict does, and the state machine of a key or model that is
// held. It does no I/O.
package pause

import "time"

// Class says what kind of answer the vendor gave.
type Class int

const (
	OK             Class = iota // nothing is wrong
	RateLimited                 // over a limit that refills by itself
	Overloaded                  // the vendor is short of capacity
	QuotaExhausted              // money, a spend cap, or a day's or month's quota is gone
	KeyRefused                  // the credential, its organisation or its project is refused
	ClientError                 // this one request is wrong; nothing pauses
	ServerError                 // the vendor broke, or no answer came; nothing pauses
)

var classNames = [...]string{"ok", "rate_limited", "overloaded", "quota_exhausted", "key_refused", "client_error", "server_error"}

// String returns the class as vendors' tables spell it, such as "rate_limited".
func (c Class) String() string {
	if c < 0 || int(c) >= len(classNames) {
		return "unknown"
	}
	return classNames[c]
}

// Scope says what an answer is about.
type Scope int

const (
	None  Scope = iota // this one call
	Model              // one model of one key
	Key                // every model of the key
)

var scopeNames = [...]string{"none", "model", "key"}

// String returns "none", "model" or "key".
func (s Scope) String() string {
	if s < 0 || int(s) >= len(scopeNames) {
		return "unknown"
	}
	return scopeNames[s]
}

// Hint is the wait that an answer named. The zero Hint names none.
type Hint struct {
	// Wait is the time to wait, never negative and never above [MaxHint]. Zero
	// in a named hint means "now": the vendor named a moment that has come.
	Wait time.Duration
	// Named says whether the answer named a usable wait at all.
	Named bool
}

// Verdict is what one answer of a vendor means.
type Verdict struct {
	Class Class
	Scope Scope
	Hint  Hint
}
