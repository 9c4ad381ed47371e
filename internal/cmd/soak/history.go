package main

import (
	"cmp"
	"slices"
	"time"
)

// history is what went under one limit.
type history []event

type event struct {
	at    time.Time
	units int64
}

// windows calls do with every window that begins with an event, and its sum.
func (h history) windows(window time.Duration, do func(from, to time.Time, sum int64)) {
	slices.SortFunc(h, func(a, b event) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.units, b.units)) })
	last, sum := 0, int64(0)
	for i, e := range h {
		for last < len(h) && h[last].at.Before(e.at.Add(window)) {
			sum += h[last].units
			last++
		}
		do(e.at, e.at.Add(window), sum)
		sum -= h[i].units
	}
}
