package main

import (
	"time"
)

// note is one line from a process, on its stdout.
type note struct {
	Kind string    // what it tells: see below
	When time.Time // by the clock that all processes share

	// Of an admission, written before the call is sent.
	ID      string    `json:",omitempty"` // the call's, which the vendor sees in a header
	Key     string    `json:",omitempty"` // fingerprint; of an event too
	Model   string    `json:",omitempty"` // likewise
	Charged time.Time `json:",omitzero"`  // by the store's clock
	Probe   bool      `json:",omitempty"`

	// Of an event.
	For   time.Duration `json:",omitempty"`
	Error string        `json:",omitempty"`

	// Of the end: what there was before the limiter was made, and is again.
	Before, After *use `json:",omitempty"`
}

// Kinds of note. Those of events are the names of throttle.EventKind.
const (
	admitted = "admitted call" // not the event: that comes without an id
	seen     = "seen"          // an error that a caller got
	ended    = "ended"
)

// use is what a process holds.
type use struct {
	Goroutines, Files int
	Heap              uint64 // bytes, after a collection
}

// order is what a process is told on the first line of its stdin. The keys come
// this way because everybody can read arguments.
type order struct {
	Name          string
	Redis, Vendor string
	Keys          []string
	Seed          uint64
	Idle          time.Duration
}
