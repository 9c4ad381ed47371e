package vendorsim

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Unit names what a [Limit] counts. The zero value is [Requests].
type Unit string

// The units a vendor counts. They are also the words its headers use.
const (
	Requests     Unit = "requests"
	Tokens       Unit = "tokens" // input + output
	InputTokens  Unit = "input-tokens"
	OutputTokens Unit = "output-tokens"
)

// Algorithm is how a [Limit] counts. The zero value is [SlidingLog].
type Algorithm int

const (
	// SlidingLog remembers every accepted call: in any half-open interval of
	// one Window at most Amount units are accepted, exactly.
	SlidingLog Algorithm = iota
	// FixedWindow counts from zero in windows aligned to the Unix epoch: up to
	// 2 x Amount can pass in one Window that straddles an edge.
	FixedWindow
	// TokenBucket holds Burst units and refills by Amount a Window, evenly: in
	// any interval of one Window at most Burst + Amount units are accepted.
	TokenBucket
)

// Limit is one limit of the vendor, plain data.
type Limit struct {
	Unit      Unit          // zero: Requests
	Amount    int64         // units a Window, at least 1
	Window    time.Duration // whole microseconds, at least 1 us
	Algorithm Algorithm     // zero: SlidingLog
	Burst     int64         // TokenBucket only: its size in units; zero: Amount
}

// capacity is the largest cost that can ever fit.
func (l Limit) capacity() int64 {
	if l.Algorithm == TokenBucket && l.Burst > 0 {
		return l.Burst
	}
	return l.Amount
}

func (l Limit) check() error {
	ticks := float64(l.Window / time.Microsecond)
	full := float64(l.capacity()) * ticks // token-microseconds of a whole bucket
	switch {
	case l.Unit != "" && l.Unit != Requests && l.Unit != Tokens && l.Unit != InputTokens && l.Unit != OutputTokens:
		return fmt.Errorf("unit: %q is not counted here", l.Unit)
	case l.Amount < 1:
		return errors.New("amount: must be at least 1")
	case l.Window < time.Microsecond || l.Window%time.Microsecond != 0:
		return errors.New("window: must be whole microseconds, at least one")
	case l.Algorithm < SlidingLog || l.Algorithm > TokenBucket:
		return fmt.Errorf("algorithm: %d is not known", l.Algorithm)
	case l.Burst < 0 || l.Burst > 0 && l.Algorithm != TokenBucket:
		return errors.New("burst: must be 0, or positive on a token bucket")
	case l.Algorithm == TokenBucket && full >= math.MaxInt64/4:
		return errors.New("burst: times the window is too large to count exactly")
	case l.Algorithm == TokenBucket && full/float64(l.Amount) >= math.MaxInt64/1e4:
		return errors.New("burst: takes centuries to refill")
	}
	return nil
}

// cost is what a call with this use takes from the limit.
func (u Unit) cost(in, out int64) int64 {
	switch u {
	case Tokens:
		return in + out
	case InputTokens:
		return in
	case OutputTokens:
		return out
	}
	return 1
}

// A meter keeps one limit of one key. Its callers hold the server's lock, pass
// times that never go back, and costs of 0 to capacity.
type meter interface {
	used(now time.Time) int64                  // units that count at now
	wait(now time.Time, n int64) time.Duration // until n fits; 0: it fits now
	take(now time.Time, n int64)
	idle(now time.Time) time.Duration // until nothing counts any more
}

// gauge is a limit with its meter.
type gauge struct {
	Limit
	meter
}

func newGauge(l Limit, now time.Time) *gauge {
	if l.Unit == "" {
		l.Unit = Requests
	}
	switch l.Algorithm {
	case FixedWindow:
		return &gauge{l, &fixed{limit: l}}
	case TokenBucket:
		return &gauge{l, &bucket{limit: l, born: now, ticks: int64(l.Window / time.Microsecond)}}
	}
	return &gauge{l, &sliding{limit: l}}
}

// sliding is the exact log. Every entry costs at least one unit, so there are
// never more than Amount of them.
type sliding struct {
	limit   Limit
	entries []entry // oldest first
	sum     int64
}

type entry struct {
	at time.Time
	n  int64
}

// used drops what left the half-open window: a call at t counts in [t, t+Window).
func (s *sliding) used(now time.Time) int64 {
	gone := 0
	for gone < len(s.entries) && now.Sub(s.entries[gone].at) >= s.limit.Window {
		s.sum -= s.entries[gone].n
		gone++
	}
	s.entries = s.entries[gone:]
	return s.sum
}

func (s *sliding) wait(now time.Time, n int64) time.Duration {
	over := s.used(now) + n - s.limit.Amount
	for _, e := range s.entries {
		if over <= 0 {
			break
		}
		if over -= e.n; over <= 0 {
			return e.at.Add(s.limit.Window).Sub(now)
		}
	}
	return 0
}

func (s *sliding) take(now time.Time, n int64) {
	if n > 0 {
		s.entries = append(s.entries, entry{now, n})
		s.sum += n
	}
}

func (s *sliding) idle(now time.Time) time.Duration {
	if s.used(now) == 0 {
		return 0
	}
	return s.entries[len(s.entries)-1].at.Add(s.limit.Window).Sub(now)
}

// fixed counts in windows [k x Window, (k+1) x Window) since the Unix epoch.
type fixed struct {
	limit  Limit
	window int64 // k
	count  int64
}

func (f *fixed) used(now time.Time) int64 {
	if k := now.UnixNano() / int64(f.limit.Window); k != f.window {
		f.window, f.count = k, 0
	}
	return f.count
}

func (f *fixed) wait(now time.Time, n int64) time.Duration {
	if f.used(now)+n <= f.limit.Amount {
		return 0
	}
	return f.limit.Window - time.Duration(now.UnixNano()%int64(f.limit.Window))
}

func (f *fixed) take(now time.Time, n int64) { f.count = f.used(now) + n }

func (f *fixed) idle(now time.Time) time.Duration {
	if f.used(now) == 0 {
		return 0
	}
	return f.limit.Window - time.Duration(now.UnixNano()%int64(f.limit.Window))
}

// bucket keeps what was taken and has not refilled, in units x microseconds of
// the window, so that a microsecond refills exactly Amount of them.
type bucket struct {
	limit Limit
	born  time.Time
	ticks int64 // the window in microseconds
	last  int64 // microseconds since born
	debt  int64
}

func (b *bucket) drain(now time.Time) {
	tick := int64(now.Sub(b.born) / time.Microsecond)
	passed := tick - b.last
	b.last = tick
	if passed > b.debt/b.limit.Amount {
		b.debt = 0
		return
	}
	b.debt -= passed * b.limit.Amount
}

func (b *bucket) used(now time.Time) int64 {
	b.drain(now)
	return ceilDiv(b.debt, b.ticks)
}

func (b *bucket) wait(now time.Time, n int64) time.Duration {
	b.drain(now)
	over := b.debt + (n-b.limit.capacity())*b.ticks
	if over <= 0 {
		return 0
	}
	return time.Duration(ceilDiv(over, b.limit.Amount)) * time.Microsecond
}

func (b *bucket) take(now time.Time, n int64) {
	b.drain(now)
	b.debt += n * b.ticks
}

func (b *bucket) idle(now time.Time) time.Duration {
	b.drain(now)
	return time.Duration(ceilDiv(b.debt, b.limit.Amount)) * time.Microsecond
}

// ceilDiv rounds up, also below zero; unit is positive.
func ceilDiv(n, unit int64) int64 {
	q := n / unit
	if n%unit > 0 {
		q++
	}
	return q
}
