package main

import (
	"testing"
	"time"

	"github.com/headway-go/headway/throttle"
)

// judged is what the bounds say of made-up calls.
func judged(s scenario, calls []called, events []told) result {
	st := &stage{scenario: s, injected: time.Now()}
	st.record.calls, st.record.events = calls, events
	r := result{scenario: s}
	st.comeback(&r)
	return r
}

// What a limiter tells, and when, is held against the row's expectation.
func TestComeback(t *testing.T) {
	lost, back := told{0, throttle.StoreLost, time.Now().Add(time.Second), nil}, told{0, throttle.StoreBack, time.Now().Add(2 * time.Second), nil}
	for _, tc := range []struct {
		name   string
		outage outage
		events []told
		broken int
	}{
		{"lost and back", mustLose, []told{lost, back}, 0},
		{"not noticed", mustLose, nil, 1},
		{"not back", mustLose, []told{lost}, 1},
		{"none", mustKeep, nil, 0},
		{"one that must not be", mustKeep, []told{lost, back}, 1},
		{"either way", mayLose, nil, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := judged(scenario{bounds: bounds{outage: tc.outage}}, nil, tc.events).broken; len(got) != tc.broken {
				t.Errorf("broken: %q, want %d", got, tc.broken)
			}
		})
	}
}

// The fullest window is the one that is over its bound by more.
func TestMostWorse(t *testing.T) {
	ok, over := most{n: 70, bound: 80}, most{n: 41, bound: 40}
	if got := ok.worse(over); got != over {
		t.Errorf("worse = %+v, want the one above its bound", got)
	}
	if got := over.worse(ok); got != over {
		t.Errorf("worse = %+v, want the one above its bound", got)
	}
	if got := (most{}).worse(ok); got != ok {
		t.Errorf("worse than nothing = %+v", got)
	}
}

// A window touches a moment that it holds, or whose first window it begins in.
func TestTouching(t *testing.T) {
	now := time.Now()
	for _, tc := range []struct {
		from time.Duration
		want int
	}{{-window - 1, 0}, {-window + 1, 1}, {0, 1}, {window - 1, 1}, {window, 0}} {
		if got := touching(now.Add(tc.from), []time.Time{now}); got != tc.want {
			t.Errorf("a window that begins at %v touches %d, want %d", tc.from, got, tc.want)
		}
	}
}
