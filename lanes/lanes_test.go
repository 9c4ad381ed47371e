package lanes

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	for _, tc := range []struct {
		name string
		lane Lane
		want string // part of the error, "" for none
	}{
		{"live", Live, ""},
		{"background", Background, ""},
		{"zero", Lane{}, "Name"},
		{"no share", Lane{Name: "x"}, "Share"},
		{"negative share", Lane{Name: "x", Share: -0.1}, "Share"},
		{"share above one", Lane{Name: "x", Share: 1.1}, "Share"},
		{"NaN share", Lane{Name: "x", Share: math.NaN()}, "Share"},
		{"negative wait", Lane{Name: "x", Share: 1, MaxWait: -time.Second}, "MaxWait"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.lane.Validate()
			if got := err != nil; got != (tc.want != "") {
				t.Fatalf("Validate() = %v, want an error naming %q", err, tc.want)
			}
			if err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Validate() = %v, want it to name %q", err, tc.want)
			}
		})
	}
}

// S15: a ceiling is floor(share x amount), at least 1.
func TestCeiling(t *testing.T) {
	for _, tc := range []struct {
		share        float64
		amount, want int64
	}{
		{0.6, 10, 6}, {0.6, 1, 1}, {0.6, 2, 1}, {0.6, 5, 3}, {0.29, 100, 29}, {0.57, 100, 57},
		{0.1, 3, 1}, {1, 1<<53 - 1, 1<<53 - 1}, {0.6, 1_000_000, 600_000}, {0.7, 10, 7},
	} {
		if got := (Lane{Name: "x", Share: tc.share}).Ceiling(tc.amount); got != tc.want {
			t.Errorf("Ceiling(%v of %d) = %d, want %d", tc.share, tc.amount, got, tc.want)
		}
	}
}

func TestContext(t *testing.T) {
	if _, ok := From(t.Context()); ok {
		t.Error("From(empty context): got a lane, want none")
	}
	if got, ok := From(With(t.Context(), Background)); !ok || got != Background {
		t.Errorf("From(With(Background)) = %v, %v", got, ok)
	}
	if got := (Lane{}).Or(Live); got != Live {
		t.Errorf("zero.Or(Live) = %v, want Live", got)
	}
}
