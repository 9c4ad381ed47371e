package throttle

import (
	"errors"
	"fmt"
	"time"
)

// The kinds of error that calls end with. Test for them with errors.Is.
var (
	// ErrRefused matches every refusal: the call did not go out and costs
	// nothing. Each is a *[RefusedError].
	ErrRefused = errors.New("throttle: refused")

	// ErrDeferred matches the refusals of lanes that do not wait: come back
	// after RetryAfter. It is not a failure of the work.
	ErrDeferred = errors.New("throttle: deferred")

	// ErrTooLarge matches a refusal that waiting cannot cure: the call costs
	// more than its lane may ever fill. Do not try it again.
	ErrTooLarge = errors.New("throttle: larger than the limit")

	// ErrStoreUnavailable says that the store did not answer and that the lane
	// is closed without it; from Wait and Reserve it is an *[OutageError]. It is
	// an outage, not a limit, and does not match ErrRefused.
	ErrStoreUnavailable = errors.New("throttle: store unavailable")

	// ErrClosed says that the limiter was closed.
	ErrClosed = errors.New("throttle: limiter closed")

	// ErrInvalid says that the call itself is wrong: a limited unit that its
	// cost does not name, a negative cost, a bad lane. Its text names the field.
	ErrInvalid = errors.New("throttle: invalid call")
)

// Reason says why a call was refused.
type Reason int

const (
	NoRoom      Reason = iota // a limit has no room for the call now
	ModelPaused               // the vendor asked for a pause of the model, or an operator did
	KeyPaused                 // the whole key is paused, or its probe is out
	TooLarge                  // the call can never fit
)

var reasonNames = [...]string{"no room", "model paused", "key paused", "too large"}

// String returns the reason in words, such as "model paused".
func (r Reason) String() string {
	if r < 0 || int(r) >= len(reasonNames) {
		return "unknown"
	}
	return reasonNames[r]
}

// RefusedError is the answer to a call that may not go now. It never holds the
// API key. It does not match context.DeadlineExceeded and has no Timeout
// method, so that SDKs neither rewrite nor retry it.
type RefusedError struct {
	Reason Reason
	Key    string // fingerprint
	Model  string
	Lane   string

	// Limit is the limit that refused, such as "500 requests per 1m0s", when
	// Reason is NoRoom or TooLarge. Unit is its unit.
	Limit string
	Unit  string

	// RetryAfter is when to come back: the earliest useful time, rounded up,
	// plus a little jitter that spreads deferred work. It is above zero, except
	// for TooLarge, where it is zero because no time helps.
	RetryAfter time.Duration

	// Deferred says that the lane does not wait: this is work that comes back.
	Deferred bool
}

// Error describes the refusal in one line without any secret.
func (e *RefusedError) Error() string {
	what := "refused"
	if e.Deferred {
		what = "deferred"
	}
	s := fmt.Sprintf("throttle: %s: %s call to model %q: %s", what, e.Lane, e.Model, e.Reason)
	if e.Limit != "" {
		s += " in " + e.Limit
	}
	if e.RetryAfter > 0 {
		s += fmt.Sprintf(", retry after %v", e.RetryAfter.Round(time.Millisecond))
	}
	return s
}

// Is makes errors.Is match the sentinels of this package.
func (e *RefusedError) Is(target error) bool {
	switch target {
	case ErrRefused:
		return true
	case ErrDeferred:
		return e.Deferred && e.Reason != TooLarge
	case ErrTooLarge:
		return e.Reason == TooLarge
	}
	return false
}

// RetryableError returns false: the AWS SDK asks, and must not retry at once.
func (e *RefusedError) RetryableError() bool { return false }

// OutageError is the answer to a call of a lane that is closed while the store
// does not answer. The call did not go out. It never holds the API key.
type OutageError struct {
	Key   string // fingerprint
	Model string
	Lane  string

	// RetryAfter is when another try makes sense, with jitter. Always above zero.
	RetryAfter time.Duration

	// Deferred says that the lane does not wait: this is work that comes back.
	Deferred bool

	cause error
}

// Error describes the outage in one line without any secret.
func (e *OutageError) Error() string {
	return fmt.Sprintf("%v: %s call to model %q not sent, retry after %v: %v",
		ErrStoreUnavailable, e.Lane, e.Model, e.RetryAfter.Round(time.Millisecond), e.cause)
}

// Is makes errors.Is match ErrStoreUnavailable, and ErrDeferred for work that
// comes back.
func (e *OutageError) Is(target error) bool {
	return target == ErrStoreUnavailable || target == ErrDeferred && e.Deferred
}

// RetryableError returns false: the AWS SDK asks, and must not retry at once.
func (e *OutageError) RetryableError() bool { return false }

// RetryAfter returns the time after which the call is worth another try, and
// whether err is a refusal or an outage that a later try can cure. It is all
// that an adapter of a job queue needs.
func RetryAfter(err error) (time.Duration, bool) {
	var refused *RefusedError
	if errors.As(err, &refused) {
		return refused.RetryAfter, refused.Reason != TooLarge
	}
	var outage *OutageError
	if errors.As(err, &outage) {
		return outage.RetryAfter, true
	}
	return 0, false
}
