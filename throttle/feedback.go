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

// Heed believes a vendor that has less left of a limit than the fleet thinks,
// because somebody else uses the key: what is missing is taken from the budget
// at once, for the whole fleet, until it has left the window or the vendor's own
// reset comes. It never gives anything back: a vendor that has more left has not
// counted yet what is under way.
//
// It does not block, and asks the store only if the vendor has less than this
// call left behind when it was admitted. It has no effect during an outage of the
// store. What it took shows as LimitStatus.Others.
func (r *Reservation) Heed(left ...Left) {
	if _, here := r.g.store.(*Memory); here && r.g.l.config.Redis != nil || len(r.answer.Left) != len(r.plan.limits) {
		return // decided without the store
	}
	var ops []lua.Op
	for _, said := range left {
		for i, limit := range r.plan.limits {
			same := limit.Unit == said.Unit && limit.Window == said.Window && limit.Lane == "" &&
				(said.Scope == pause.Key) == (i < r.plan.op.KeyRows)
			if !same || said.Units < 0 || said.Units >= r.answer.Left[i] || said.Reset > said.Window {
				continue
			}
			op := r.op(lua.Heed)
			row := r.plan.op.Rows[i]
			row.Cost = said.Units
			op.At, op.Reset, op.Rows = r.answer.At, micros(max(0, said.Reset)), []lua.Row{row}
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
