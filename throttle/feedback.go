package throttle

import (
	"time"

	"github.com/headway-go/headway/lua"
	"github.com/headway-go/headway/pause"
)

// Left is what a vendor says is left of one of its limits.
type Left struct {
	// Unit and Window say which limit it is: the one of the same unit and window
	// that the limiter keeps, of the key or of the model as Scope says. There need
	// not be one.
	Unit   string
	Window time.Duration
	Scope  pause.Scope

	// Units is what is left now. Reset is when all of it will be there again; zero
	// is unknown.
	Units int64
	Reset time.Duration
}

// Heed believes a vendor that has less left of a limit than this call left, by
// the fleet's own count: the difference went to somebody else who uses the key,
// who has done since then as the fleet did, in proportion. It is missing from
// the budget at once, for the whole fleet, until it has left the window or the
// vendor's reset comes; the most that is heard in a window counts. A vendor that
// has more left is not believed: Heed never gives anything back. Status shows it
// as LimitStatus.Others.
//
// It does not block. It asks the store only for news: when more went to others
// than the call was told, a few times in a window while anything does, and, one
// command more a call, while less than an eighth is left. It has no effect during an outage of the store.
func (r *Reservation) Heed(left ...Left) {
	if r.g.isAlone() || len(r.answer.Left) != len(r.plan.limits) {
		return // decided without the store
	}
	var ops []lua.Op
	for _, said := range left {
		for i, limit := range r.plan.limits {
			row := r.plan.op.Rows[i]
			same := limit.Unit == said.Unit && limit.Window == said.Window && limit.Lane == "" &&
				(said.Scope == pause.Key) == (i < r.plan.op.KeyRows)
			row.Cost = r.answer.Left[i].Units - said.Units
			if !same || said.Units < 0 || said.Reset > said.Window || row.Cost <= 0 {
				continue
			}
			if row.Cost <= r.answer.Left[i].Others && said.Units*often >= row.Amount && !r.plan.due(row) {
				continue
			}
			op := r.op(lua.Heed)
			op.At, op.Reset, op.Rows = r.answer.At, micros(max(0, said.Reset)), []lua.Row{row}
			op.Mine = row.Amount - r.answer.Left[i].Units - r.plan.op.Rows[i].Cost // others have a call under way too
			ops = append(ops, op)
		}
	}
	if len(ops) == 0 || r.g.l.outage.down.Load() {
		return
	}
	r.g.mu.Lock()
	defer r.g.mu.Unlock()
	r.g.post(ops)
}

// often is how many times in a window, and below which part of a limit always,
// the store is told what went to others even if it knows as much.
const often = 8

// due reports whether it is time to say again what went to others, and notes it.
func (t *target) due(r lua.Row) bool {
	last, said := t.heeded.Load(r.Tape)
	if said && time.Since(last.(time.Time)) < time.Duration(r.Window)*time.Microsecond/often {
		return false
	}
	t.heeded.Store(r.Tape, time.Now())
	return true
}
