package profiles

import (
	"net/http"
	"strings"
	"time"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
)

// LeftHeaders are the headers of an answer that tell what is left of one of the
// vendor's limits: Unit, Window and Scope say of which. A limit that the vendor
// counts for the whole key has the scope [pause.Key].
type LeftHeaders struct {
	Unit      string
	Window    time.Duration
	Scope     pause.Scope
	Remaining string // units left: a whole number
	Reset     string // when all of it is there again, in any form that vendors use; empty is none

	// Rounded is what the vendor rounds Remaining to a multiple of. Half of it is
	// added, so that nobody else is taken to have used what rounding took away.
	// Zero is not rounded.
	Rounded int64
}

// minute returns the headers of a limit of a model and a minute.
func minute(unit, remaining, reset string) LeftHeaders {
	return LeftHeaders{Unit: unit, Window: time.Minute, Scope: pause.Model, Remaining: remaining, Reset: reset}
}

// Left returns what an answer says is left of the vendor's limits, for
// Reservation.Heed. A header that is missing, or no count (such as Azure's -1),
// says nothing.
func (p *Profile) Left(header http.Header, now time.Time) (left []throttle.Left) {
	for _, l := range p.LeftHeaders {
		units, ok := whole(strings.TrimSpace(header.Get(l.Remaining)))
		if !ok {
			continue
		}
		left = append(left, throttle.Left{Unit: l.Unit, Window: l.Window, Scope: l.Scope,
			Units: units + l.Rounded/2, Reset: pause.ReadReset(header, l.Reset, now)})
	}
	return left
}
