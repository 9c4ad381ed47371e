package main

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/headway-go/headway/throttle"
)

// diary is what was done to the fleet and what it told.
type diary struct {
	mu     sync.Mutex
	faults map[string]int
	losses []span      // of the store, for all processes
	cuts   []cut       // of the store, for one process
	frozen []cut       // processes that stood still
	starts []time.Time // of processes
	notes  []told
	lost   map[string]time.Time // by process: since when it says that the store is lost
	known  []cut                // outages as the processes told them
	keys   int                  // the most that Redis held
	errs   []error
}

type span struct{ from, to time.Time }

// touches reports whether s has a moment in common with [from, to).
func (s span) touches(from, to time.Time) bool { return s.from.Before(to) && from.Before(s.to) }

// cut is a span of one place in the fleet.
type cut struct {
	span
	host int
}

// told is a note and who told it.
type told struct {
	note
	host int
	name string
}

func (d *diary) fault(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.faults == nil {
		d.faults = map[string]int{}
	}
	d.faults[what]++
}

func (d *diary) loss(from, to time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.losses = append(d.losses, span{from, to})
}

func (d *diary) cutOff(host int, from, to time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cuts = append(d.cuts, cut{span{from, to}, host})
}

func (d *diary) stood(host int, from, to time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.frozen = append(d.frozen, cut{span{from, to}, host})
}

func (d *diary) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.errs) < 20 {
		d.errs = append(d.errs, err)
	}
}

func (d *diary) add(host int, name string, n note) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notes = append(d.notes, told{n, host, name})
	switch n.Kind {
	case throttle.StoreLost.String():
		if d.lost == nil {
			d.lost = map[string]time.Time{}
		}
		d.lost[name] = n.When
	case throttle.StoreBack.String():
		d.known = append(d.known, cut{span{d.lost[name], n.When}, host})
		delete(d.lost, name)
	}
}

// died closes the outages of a process that cannot tell their end, nor the
// store what it spent in them: the others may spend that much again.
func (d *diary) died(host int, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range slices.Collect(maps.Keys(d.lost)) {
		if hostOf(name) == host {
			outage := cut{span{d.lost[name], at}, host}
			d.known, d.cuts = append(d.known, outage), append(d.cuts, outage)
			delete(d.lost, name)
		}
	}
}

// hostOf reads the place out of a process' name, "host2.1".
func hostOf(name string) int { return int(name[len("host")] - '0') }

func (d *diary) held(keys int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keys = max(d.keys, keys)
}

func (d *diary) began() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.starts = append(d.starts, time.Now())
}
