package throttle

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/headway-go/headway/lua"
)

const (
	// beatEvery is how often a process in use announces itself, see beatAfter.
	beatEvery = 3 * time.Second

	// idleAfter is how long after its last call a process says no more.
	idleAfter = 30 * time.Second

	// reportModels is the most models that an announcement names.
	reportModels = 64
)

// Report is what a process says of itself every few seconds while it is in use.
type Report struct {
	Models  []string       `json:"models,omitempty"`  // lately called, sorted
	Refused map[string]int `json:"refused,omitempty"` // calls refused since it started, by lane and reason: "background: no room"
	Waiting int            `json:"waiting,omitempty"` // calls waiting now
}

// tally is what a process counts about one key between two announcements.
type tally struct {
	mu      sync.Mutex
	models  map[string]time.Time // last use
	refusal map[string]int
	used    time.Time
}

// beatAfter is the time before the announcement of this number, from zero. The
// first ones come sooner: processes that start together hear at first only of
// those that were a little earlier, and an outage would find them with parts
// that are too large.
func beatAfter(n int) time.Duration {
	switch n {
	case 0:
		return 50 * time.Millisecond // a process that makes one call and ends need not say so
	case 1:
		return 450 * time.Millisecond
	case 2:
		return time.Second
	}
	return beatEvery
}

// use notes a call to the model.
func (t *tally) use(model string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used = time.Now()
	if t.models == nil {
		t.models, t.refusal = map[string]time.Time{}, map[string]int{}
	}
	if _, known := t.models[model]; known || len(t.models) < reportModels {
		t.models[model] = t.used
	}
}

// refused counts a refusal; lanes and reasons are few.
func (t *tally) refused(e *RefusedError) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if name := e.Lane + ": " + e.Reason.String(); t.refusal[name] > 0 || len(t.refusal) < reportModels {
		t.refusal[name]++
	}
}

// report returns what there is to say, and whether the key is in use.
func (t *tally) report(now time.Time) (r Report, inUse bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.models, func(_ string, last time.Time) bool { return now.Sub(last) > idleAfter })
	return Report{Models: slices.Sorted(maps.Keys(t.models)), Refused: maps.Clone(t.refusal)}, now.Sub(t.used) <= idleAfter
}

// beat starts the announcements if they are not running. l.mu is held.
func (l *Limiter) beat() {
	if l.beating {
		return
	}
	l.beating = true
	l.pending.begin()
	go l.announce()
}

// announce tells the store every few seconds that this process uses its keys,
// and ends when it uses none.
func (l *Limiter) announce() {
	defer l.pending.end()
	next := time.NewTimer(beatAfter(0))
	defer next.Stop()
	for n := 1; ; n++ {
		leaving := false
		select {
		case <-next.C:
			next.Reset(beatAfter(n))
		case <-l.closed:
			leaving = true
		}
		if l.outage.down.Load() { // recover announces, and no key is forgotten that has debts
			if leaving {
				return
			}
			continue
		}
		busy := false
		for _, g := range l.allGroups() {
			report, inUse := g.tally.report(time.Now())
			if !inUse && !leaving {
				l.forget(g)
				continue
			}
			busy = true
			report.Waiting = g.sleeping()
			if err := g.say(report, leaving); err != nil { // the calls notice an outage; this is only news
				l.log.Debug("throttle: announcement failed", "error", err)
			}
		}
		if leaving {
			return
		}
		if !busy {
			l.mu.Lock()
			l.beating = false
			l.mu.Unlock()
			return
		}
	}
}

// forget drops the group of a key that is out of use, so that keys that rotate
// do not pile up. One that comes back gets a new group.
func (l *Limiter) forget(g *group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.flight == nil && len(g.queue) == 0 && len(g.rooms) == 0 {
		delete(l.groups, g.key)
	}
}

// say makes one announcement and hears how many members the fleet has.
func (g *group) say(r Report, leaving bool) error {
	text, _ := json.Marshal(r) // strings and numbers always marshal
	ctx, cancel := context.WithTimeout(context.Background(), g.l.config.StoreTimeout)
	defer cancel()
	members, err := g.store.announce(ctx, g.names, lua.Announcement{Name: g.l.config.Name, Report: string(text), Leaving: leaving})
	if err == nil && !g.l.outage.down.Load() && !g.l.outage.over.Load() {
		g.members.Store(int64(members)) // a store that came back empty does not know everyone yet
	}
	return err
}

// sleeping counts the calls of this process that wait.
func (g *group) sleeping() (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.rooms {
		n += len(r.sleepers)
	}
	return n
}
