package main

import (
	"testing"
	"time"
)

// The quickest rows, told how many the fleet has and away for a second, keep
// their bounds; under the race detector the times are four times as long.
func TestQuickRows(t *testing.T) {
	for _, name := range []string{"^killed, empty$", "^stopped$", "^READONLY$", "^user without SCRIPT$"} {
		rows, err := chosen(name)
		if err != nil || len(rows) != 1 {
			t.Fatalf("chosen(%q) = %d rows, %v", name, len(rows), err)
		}
		row := rows[0]
		row.members, row.away = hosts, time.Second
		t.Run(row.name, func(t *testing.T) {
			r, err := row.fairly(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range r.broken {
				t.Error(b)
			}
			t.Logf("%d calls, %d went, %d + %d at most in a window, finding %v, known %v, recovery %v, stall %v, before: %q",
				r.calls, r.admitted, r.first.n, r.other.n, r.finding, r.known, r.recovery, r.stall, r.before)
		})
	}
}

// A pattern that matches no row is an error, and every row has a name of its own
// and says what it does.
func TestChosen(t *testing.T) {
	if _, err := chosen("no such row"); err == nil {
		t.Error("a pattern that matches nothing is no error")
	}
	if _, err := chosen("("); err == nil {
		t.Error("a broken pattern is no error")
	}
	seen := map[string]bool{}
	for _, s := range scenarios() {
		if seen[s.name] || s.name == "" || s.injected == "" || s.setup == nil {
			t.Errorf("row %q is there twice, or says too little", s.name)
		}
		seen[s.name] = true
	}
}
