package main

import (
	"cmp"
	"math"
	"slices"
)

// admission is one admitted call. Times are microseconds: at is the store's,
// when the call was charged; out is the host's, when its caller was let go.
type admission struct {
	model            string
	at, out          int64
	requests, tokens int64
}

// history is what was admitted under one limit, in the order of the store's time.
type history []event

type event struct{ at, units int64 }

// newHistory picks the events of one model and unit.
func newHistory(all []admission, model string, units func(admission) int64) history {
	var h history
	for _, a := range all {
		if a.model == model {
			h = append(h, event{a.at, units(a)})
		}
	}
	slices.SortFunc(h, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return h
}

// most returns the most units admitted in any half-open interval of the length
// of window. It looks at each interval that begins with an event: no other one
// can hold more.
func (h history) most(window int64) int64 {
	var most, sum int64
	first := 0
	for _, e := range h {
		sum += e.units
		for e.at-h[first].at >= window {
			sum -= h[first].units
			first++
		}
		most = max(most, sum)
	}
	return most
}

// between returns the units admitted in [from, to).
func (h history) between(from, to int64) (sum int64) {
	for _, e := range h {
		if from <= e.at && e.at < to {
			sum += e.units
		}
	}
	return sum
}

// level fills a bucket that drains amount units a window and returns the
// fullest it got, as a part of what it may hold: burst, or the one call that
// costs more. It is at most 1 just when every interval of length d, however
// short, holds at most burst + amount*d/window.
func (h history) level(burst, amount, window int64) float64 {
	var level, fullest float64
	for i, e := range h {
		if i > 0 {
			level -= float64(e.at-h[i-1].at) * float64(amount) / float64(window)
		}
		level = max(0, level) + float64(e.units)
		fullest = max(fullest, level/float64(max(burst, e.units)))
	}
	return math.Round(fullest*1e6) / 1e6 // the meter keeps fractions of a microsecond
}
