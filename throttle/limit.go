package throttle

import (
	"fmt"
	"time"
)

// MaxAmount is the largest number of units that a limit, a cost or a settled
// count can hold: 2^53-1, the largest whole number that both Redis' Lua and Go
// keep exactly.
const MaxAmount = 1<<53 - 1

// Shape says how a limit looks at time.
type Shape int

const (
	// Sliding admits at most Amount in every interval of the length of the
	// window, wherever it begins. It is the default.
	//
	// Worst case in any window: Amount.
	Sliding Shape = iota

	// Fixed counts in windows that are aligned to the clock and start again
	// from nothing, for vendors that reset on the minute or at midnight of a
	// time zone.
	//
	// Worst case in an aligned window: Amount. Worst case in any other
	// interval of the length of a window: 2*Amount, half on each side of the
	// boundary.
	Fixed

	// Bucket is Sliding and smooth: never more than Burst at once, and after
	// that no faster than Amount per Window (the meter, GCRA). Burst 1 is
	// strict pacing: 20 a second is one call every 50 ms.
	//
	// Worst case in any window: Amount. Worst case in a shorter interval of
	// length d: Burst + Amount*d/Window. A call that costs more than Burst goes
	// alone, when the bucket is full.
	Bucket
)

var shapeNames = [...]string{"sliding", "fixed", "bucket"}

// String returns "sliding", "fixed" or "bucket".
func (s Shape) String() string {
	if s < 0 || int(s) >= len(shapeNames) {
		return "unknown"
	}
	return shapeNames[s]
}

// Limit is a number of units in a window of time. Make one with [PerSecond],
// [PerMinute], [PerDay] or [Per] and change the fields that need it.
type Limit struct {
	// Unit is what the limit counts, such as [Requests]. A call under this
	// limit must name its cost in this unit.
	Unit string

	// Amount is the number of units, 1 to [MaxAmount].
	Amount int64

	// Window is the length of time, from 1 millisecond to 400 days, in whole
	// microseconds.
	Window time.Duration

	// Shape is how the window moves; zero is [Sliding].
	Shape Shape

	// Burst is the most units that go at once under [Bucket], 1 to Amount. It
	// must be zero for the other shapes.
	Burst int64

	// Margin allows for the network's jitter between the store's clock and the
	// vendor's, for vendors that count to the unit. Sliding and Bucket windows
	// become longer by it; in a Fixed window nothing is admitted within Margin
	// of a boundary. Zero is none.
	Margin time.Duration

	// Zone is the time zone whose clock a [Fixed] window follows, for instance
	// a day that ends at midnight in Los Angeles. Nil is UTC. It must be nil
	// for the other shapes.
	Zone *time.Location

	// Lane makes the limit count only the calls of the lane of this name, such
	// as "background at most 1 USD an hour". Empty counts every lane.
	Lane string
}

// Per returns a sliding limit of amount units per window.
func Per(unit string, amount int64, window time.Duration) Limit {
	return Limit{Unit: unit, Amount: amount, Window: window}
}

// PerSecond returns a sliding limit of amount units per second.
func PerSecond(unit string, amount int64) Limit { return Per(unit, amount, time.Second) }

// PerMinute returns a sliding limit of amount units per minute.
func PerMinute(unit string, amount int64) Limit { return Per(unit, amount, time.Minute) }

// PerDay returns a sliding limit of amount units per 24 hours.
func PerDay(unit string, amount int64) Limit { return Per(unit, amount, 24*time.Hour) }

const (
	minWindow = time.Millisecond
	maxWindow = 400 * 24 * time.Hour
)

// validate says what is wrong with the limit, naming the field.
func (l Limit) validate() error {
	bad := func(field, format string, args ...any) error {
		return fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...))
	}
	switch {
	case l.Unit == "" || len(l.Unit) > 64:
		return bad("Unit", "must have 1 to 64 bytes, got %d", len(l.Unit))
	case l.Amount < 1 || l.Amount > MaxAmount:
		return bad("Amount", "must be 1 to 2^53-1, got %d (a limit of 0 can never admit)", l.Amount)
	case l.Window < minWindow || l.Window > maxWindow:
		return bad("Window", "must be 1ms to 9600h, got %v", l.Window)
	case l.Window%time.Microsecond != 0:
		return bad("Window", "must be whole microseconds, got %v", l.Window)
	case l.Shape < Sliding || l.Shape > Bucket:
		return bad("Shape", "unknown shape %d", l.Shape)
	case l.Shape == Bucket && (l.Burst < 1 || l.Burst > l.Amount):
		return bad("Burst", "must be 1 to Amount for a Bucket, got %d", l.Burst)
	case l.Shape != Bucket && l.Burst != 0:
		return bad("Burst", "only a Bucket has one, got %d for %v", l.Burst, l.Shape)
	case l.Shape != Fixed && l.Zone != nil:
		return bad("Zone", "only a Fixed window has one")
	case l.Margin < 0 || l.Margin%time.Microsecond != 0:
		return bad("Margin", "must be whole microseconds and not negative, got %v", l.Margin)
	case l.Shape == Fixed && l.Margin > l.Window/4:
		return bad("Margin", "must be at most a quarter of a Fixed window, got %v", l.Margin)
	case l.Margin > l.Window:
		return bad("Margin", "must be at most the window, got %v", l.Margin)
	}
	return nil
}
