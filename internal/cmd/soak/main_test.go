package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if os.Getenv(hostEnv) != "" {
		os.Exit(host(os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// Twenty seconds of everything, as a fixed seed says.
func TestSoak(t *testing.T) {
	var out bytes.Buffer
	err := run(t.Context(), plan{length: 20 * time.Second, seed: 6, details: true}, &out)
	t.Log(&out)
	if err != nil {
		t.Error(err)
	}
	if t.Failed() {
		return
	}
	for _, must := range []string{"Redis killed", "429: "} { // or the seed stages too little
		if !strings.Contains(out.String(), must) {
			t.Errorf("the summary does not have %q", must)
		}
	}
}

// The windows of a history, by hand.
func TestWindows(t *testing.T) {
	start := time.Unix(100, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	h := history{{at(1000), 1}, {at(0), 2}, {at(999), 3}, {at(2500), 4}}
	var sums []int64
	h.windows(time.Second, func(from, to time.Time, sum int64) {
		if to.Sub(from) != time.Second {
			t.Errorf("a window of %v", to.Sub(from))
		}
		sums = append(sums, sum)
	})
	want := []int64{5, 4, 1, 4}
	if len(sums) != len(want) {
		t.Fatalf("sums %d, want %d", sums, want)
	}
	for i := range want {
		if sums[i] != want[i] {
			t.Errorf("sums %d, want %d", sums, want)
		}
	}
}

// A loss allows twice the amount in the windows that it falls in, a process that
// is alone a part more, and nothing is allowed elsewhere.
func TestAllowed(t *testing.T) {
	start := time.Unix(100, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	j := &judge{
		losses:  []span{{at(5000), at(7000)}},
		alone:   []cut{{span{at(20_000), at(22_000)}, 1}, {span{at(21_000), at(23_000)}, 1}, {span{at(21_500), at(22_000)}, 3}},
		unaware: []span{{at(40_000), at(41_500)}},
	}
	for _, tc := range []struct {
		from int
		want int64
	}{
		{0, 40}, {3900, 40}, {4100, 80}, {5000, 80}, {5100, 40}, {7000, 40},
		{18_900, 40}, {19_100, 50}, {21_200, 60}, {22_500, 50}, {23_100, 40},
		{38_900, 40}, {39_100, 80}, {41_400, 80}, {41_600, 40},
	} {
		got, usual := j.allowed(40, at(tc.from), at(tc.from+1000), lead)
		if got != tc.want || usual != (tc.want == 40) {
			t.Errorf("a window at %d ms may hold %d, want %d", tc.from, got, tc.want)
		}
	}
}

// A piece of a key is found in whatever stands around it.
func TestLeaks(t *testing.T) {
	var l leaks
	l.scan("clean", []byte("Bearer [key] sk-soak- host1.1"))
	l.scan("half", []byte("x"+keys[1][len(keys[1])-piece:]+"y"))
	if l.where["clean"] || !l.where["half"] {
		t.Errorf("found in %v, want the half key", l.where)
	}
}
