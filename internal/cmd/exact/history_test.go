package main

import "testing"

func TestMost(t *testing.T) {
	for _, c := range []struct {
		name   string
		events history
		want   int64
	}{
		{"nothing", nil, 0},
		{"one", history{{5, 3}}, 3},
		{"a window apart", history{{0, 3}, {10, 3}}, 3},
		{"just within", history{{0, 3}, {9, 3}}, 6},
		{"across an edge", history{{0, 1}, {8, 4}, {12, 4}, {20, 1}}, 8},
		{"one moment", history{{7, 2}, {7, 2}, {7, 2}}, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.events.most(10); got != c.want {
				t.Errorf("most(10) = %d, want %d", got, c.want)
			}
		})
	}
}

func TestBetween(t *testing.T) {
	h := history{{0, 1}, {5, 2}, {10, 4}, {15, 8}}
	if got, want := h.between(5, 15), int64(6); got != want {
		t.Errorf("between(5, 15) = %d, want %d", got, want)
	}
}

func TestLevel(t *testing.T) {
	const burst, amount, window = 2, 10, 100 // one unit every 10
	for _, c := range []struct {
		name   string
		events history
		want   float64
	}{
		{"nothing", nil, 0},
		{"a burst", history{{0, 1}, {0, 1}}, 1},
		{"a burst and one more", history{{0, 1}, {0, 1}, {0, 1}}, 1.5},
		{"a burst, then at pace", history{{0, 2}, {10, 1}, {20, 1}}, 1},
		{"a burst, then early", history{{0, 2}, {9, 1}}, 1.05},
		{"a large call alone", history{{0, 4}, {40, 4}}, 1},
		{"a large call early", history{{0, 4}, {38, 4}}, 1.05},
		{"idle time is not saved", history{{0, 2}, {1000, 3}, {1000, 3}}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.events.level(burst, amount, window); got != c.want {
				t.Errorf("level = %v, want %v", got, c.want)
			}
		})
	}
}
