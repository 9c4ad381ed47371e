package main

import (
	"time"

	"github.com/headway-go/headway/throttle"
)

// A scene lasts so many windows. In the first and last ones the bursts have the
// budget to themselves; in between the lines of both models are never empty, at
// the end of it without bursts.
const (
	window    = time.Second
	slots     = 56 // edges in a window that the bursts aim at besides its own
	saturated = 3  // lines are full from this window on
	quiet     = 7  // no bursts from this one
	calm      = 9  // lines are full until this one
	last      = 12
	processes = 4
	waiters   = 16 // of each process and model
)

// load is the calls of one model, its limits, and the unit whose limit they fill.
type load struct {
	model             string
	binding           string
	requests, tokens  int64 // limits
	cheapest, dearest int64 // tokens of a call, drawn evenly
	atWindow, atSlot  int   // calls of one process in a burst at the edge of a window, of a slot
}

// scene is one shape of limits under two loads.
type scene struct {
	name  string
	shape throttle.Shape
	burst func(amount int64) int64 // nil for Sliding
	loads [2]load
}

var (
	usual = [2]load{
		{"small", throttle.Requests, 400, 100_000, 1, 100, 120, 4},
		{"large", throttle.Tokens, 400, 100_000, 300, 1000, 60, 2},
	}
	// even has calls that go 20 ms apart, since a strict pace cannot make up for
	// a process that wakes late.
	even = [2]load{
		{"small", throttle.Requests, 50, 100_000, 1, 2000, 30, 2},
		{"large", throttle.Tokens, 400, 100_000, 1900, 2000, 30, 2},
	}
	scenes = [...]scene{
		{"full burst", throttle.Sliding, nil, usual},
		{"small burst", throttle.Bucket, func(amount int64) int64 { return amount / 10 }, usual},
		{"strict pacing", throttle.Bucket, func(int64) int64 { return 1 }, even},
	}
)

// limits are those of the scene for the model of one load.
func (s scene) limits(l load) []throttle.Limit {
	limits := []throttle.Limit{
		{Unit: throttle.Requests, Amount: l.requests, Window: window, Shape: s.shape},
		{Unit: throttle.Tokens, Amount: l.tokens, Window: window, Shape: s.shape},
	}
	for i := range limits {
		if s.burst != nil {
			limits[i].Burst = s.burst(limits[i].Amount)
		}
	}
	return limits
}
