// Package lanes names the priority classes of calls.
//
// A lane has a share of the budget and a longest wait. Live work may use the
// whole budget and waits for room; background work stops at its share and is
// deferred at once. Programs define lanes of their own as plain values.
package lanes

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// Lane is a priority class. A call of a lane with a larger share goes before
// every call of a lane with a smaller one; calls of lanes with equal shares go
// first come, first served.
//
// The zero Lane stands for [Live]. A Lane is a value: copy it freely.
type Lane struct {
	// Name appears in refusals, events and logs. It must not be empty.
	Name string

	// Share is the part of every limit that the lane may fill, above 0 and at
	// most 1. A limit of N units has a ceiling of floor(Share*N), at least 1.
	Share float64

	// MaxWait is the longest time a call waits for room. Zero means that the
	// call is deferred at once with the time to come back.
	MaxWait time.Duration

	// Outage says what happens to the calls while the shared store does not
	// answer. Zero is Local for a lane that waits and Closed for one that does
	// not.
	Outage Outage
}

// Outage is what becomes of calls while the shared store does not answer.
type Outage int

const (
	Auto   Outage = iota // Local for a lane that waits, Closed for one that does not
	Local                // this process' fair part of every limit: the amount divided by the members of the fleet
	Closed               // refused, with the time to come back
	Open                 // not limited at all
)

var outageNames = [...]string{"auto", "local", "closed", "open"}

// String returns "auto", "local", "closed" or "open".
func (o Outage) String() string {
	if o < 0 || int(o) >= len(outageNames) {
		return "unknown"
	}
	return outageNames[o]
}

// DuringOutage returns Local, Closed or Open: what Outage says, or stands for.
func (l Lane) DuringOutage() Outage {
	switch {
	case l.Outage != Auto:
		return l.Outage
	case l.MaxWait > 0:
		return Local
	}
	return Closed
}

// The two lanes that most programs need. Treat them as constants.
var (
	// Live may use the whole budget and waits for room up to 5 seconds. A call
	// that names no lane is live.
	Live = Lane{Name: "live", Share: 1, MaxWait: 5 * time.Second}

	// Background is admitted only while the budget is at most 60% used, its
	// own cost included, and is deferred at once otherwise.
	Background = Lane{Name: "background", Share: 0.6}
)

// Or returns l, or other when l is the zero Lane.
func (l Lane) Or(other Lane) Lane {
	if l == (Lane{}) {
		return other
	}
	return l
}

// Validate says what is wrong with the lane, naming the field, or returns nil.
func (l Lane) Validate() error {
	switch {
	case l.Name == "":
		return errors.New("lanes: Name: must not be empty")
	case math.IsNaN(l.Share) || l.Share <= 0 || l.Share > 1:
		return fmt.Errorf("lanes: Share of %q: must be above 0 and at most 1, got %v", l.Name, l.Share)
	case l.MaxWait < 0:
		return fmt.Errorf("lanes: MaxWait of %q: must not be negative, got %v", l.Name, l.MaxWait)
	case l.Outage < Auto || l.Outage > Open:
		return fmt.Errorf("lanes: Outage of %q: unknown policy %d", l.Name, l.Outage)
	}
	return nil
}

// Ceiling returns the units of a limit of amount units that the lane may fill:
// floor(Share*amount), at least 1 and at most amount. It is exact for amounts
// up to 2^53-1 when Share is 1.
func (l Lane) Ceiling(amount int64) int64 {
	if l.Share >= 1 {
		return amount
	}
	// A share such as 0.29 of 100 must give 29, not 28.999999999999996.
	c := math.Floor(math.Nextafter(l.Share*float64(amount), math.Inf(1)))
	return min(max(1, int64(c)), amount)
}

type laneKey struct{}

// With returns a context whose calls belong to lane.
func With(ctx context.Context, lane Lane) context.Context {
	return context.WithValue(ctx, laneKey{}, lane)
}

// From returns the lane that [With] put into ctx, and whether there is one.
func From(ctx context.Context) (Lane, bool) {
	l, ok := ctx.Value(laneKey{}).(Lane)
	return l, ok
}
