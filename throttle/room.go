package throttle

import (
	"context"
	"time"

	"github.com/headway-go/headway/lua"
)

const (
	// lead is how early the store may grant a call: it answers with the rest of
	// the wait and charges the call at its own time, so that the pace of a line
	// does not drift with the lateness of those who wake.
	lead = 15 * time.Millisecond

	// askEarly is how long before its time a call in line asks. The difference
	// to lead is for clocks; being late by less than askEarly costs nothing.
	askEarly = 10 * time.Millisecond

	// watchEvery is how often a process with sleepers asks whether their times
	// have changed.
	watchEvery = time.Second

	// moved is by how much a time must change to wake those who wait for it.
	moved = 20 * time.Millisecond
)

// room is where the calls of this process that wait for one model sleep.
type room struct {
	keyGen, modelGen int64
	sleepers         map[*sleeper]struct{}
}

// sleeper is one waiting call.
type sleeper struct {
	id   int64         // its place in line
	wake chan struct{} // of capacity 1
}

// sleep waits until d is over, the call is woken, or ctx or the limiter ends;
// only the last two are errors. The sleeper is in the room of the model; a is
// the answer that sent it there.
func (g *group) sleep(ctx context.Context, model string, s *sleeper, a lua.Answer, d time.Duration) error {
	g.mu.Lock()
	r := g.rooms[model]
	if r == nil {
		r = &room{keyGen: a.KeyGen, modelGen: a.ModelGen, sleepers: map[*sleeper]struct{}{}}
		g.rooms[model] = r
	}
	r.sleepers[s] = struct{}{}
	if r.keyGen > a.KeyGen || r.modelGen > a.ModelGen { // the answer is older than what the room has heard
		s.nudge()
	}
	if !g.watch {
		g.watch = true
		g.l.pending.begin()
		go g.watchSleepers()
	}
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		if delete(r.sleepers, s); len(r.sleepers) == 0 {
			delete(g.rooms, model)
		}
		g.mu.Unlock()
	}()

	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.wake:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-g.l.closed:
		return ErrClosed
	}
}

// watchSleepers wakes, once a second, the first in line of each room. When it
// learns that its time has moved it wakes the others (see wakeAll). It ends
// with the last sleeper.
func (g *group) watchSleepers() {
	defer g.l.pending.end()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-g.l.closed:
			return
		}
		g.mu.Lock()
		if len(g.rooms) == 0 {
			g.watch = false
			g.mu.Unlock()
			return
		}
		for _, r := range g.rooms {
			var first *sleeper
			for s := range r.sleepers {
				if first == nil || s.id < first.id {
					first = s
				}
			}
			first.nudge()
		}
		g.mu.Unlock()
	}
}

func (s *sleeper) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// calm forgets a nudge that its own call gave.
func (s *sleeper) calm() {
	select {
	case <-s.wake:
	default:
	}
}

// wakeAll makes every call that waits for the model ask again.
func (g *group) wakeAll(model string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r := g.rooms[model]; r != nil {
		r.wakeAll()
	}
}

func (r *room) wakeAll() {
	for s := range r.sleepers {
		s.nudge()
	}
}

// hear takes note of the generations in an answer: those who wait ask again
// when a pause has begun or ended. g.mu is held.
func (g *group) hear(op *lua.Op, a lua.Answer) {
	if op.Kind == lua.Look {
		return
	}
	for model, r := range g.rooms {
		changed := a.KeyGen > r.keyGen
		r.keyGen = max(r.keyGen, a.KeyGen)
		if model == op.Model {
			changed = changed || a.ModelGen > r.modelGen
			r.modelGen = max(r.modelGen, a.ModelGen)
		}
		if changed {
			r.wakeAll()
		}
	}
}
