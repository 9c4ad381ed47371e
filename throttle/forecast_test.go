package throttle

import (
	"slices"

	"github.com/headway-go/headway/lua"
)

// slotLong is how much longer than its window a merged entry may count.
func slotLong(r lua.Row) int64 { return r.Window/slots + 1 }

// idle reports whether nobody is in the line of the call.
func (h *history) idle(c *sent) bool {
	return !slices.ContainsFunc(h.calls, func(w *sent) bool { return w != c && w.waiting && w.op.Line == c.op.Line })
}

// earliest is when a row has room for the call, by every event so far: now, or
// a window after some call went.
func (h *history) earliest(r lua.Row) int64 {
	best := int64(-1)
	try := func(x int64) {
		if x >= h.now && (best < 0 || x < best) && h.used(r.Tape, r, x)+r.Cost <= r.Ceiling {
			best = x
		}
	}
	try(h.now)
	for _, c := range h.calls {
		if c.went {
			try(c.at + r.Window)
		}
	}
	return best
}

// forecast checks the time that a refused newcomer was told, when nobody waits:
// never too early, hardly too late, and good for another try.
func (h *history) forecast(c *sent) {
	h.t.Helper()
	if c.a.Status != lua.Refused || !h.idle(c) {
		return
	}
	plain := max(h.till[c.op.Key], h.till[c.op.Model])+rampLongest <= h.now
	margin := false
	for _, r := range c.op.Rows {
		plain = plain && r.Burst == 0 && h.others(r) == 0
		margin = margin || r.Burst < 0 && r.Margin > 0
	}
	if plain {
		h.n.forecasts++
		soonest, latest := h.now, h.now
		for _, r := range c.op.Rows {
			x := h.earliest(r)
			soonest, latest = max(soonest, x), max(latest, x+slotLong(r))
		}
		if x := h.now + c.a.Wait; x < soonest || x > latest {
			h.t.Fatalf("at %d: told to come back in %d, want %d to %d", h.now, c.a.Wait, soonest-h.now, latest-h.now)
		}
	}
	if margin && len(c.op.Rows) > 1 || h.r.IntN(3) > 0 { // another limit's time may lie within a margin
		return
	}
	h.advance(h.now + c.a.Wait)
	if h.ask(c, lua.Take, 0); c.a.Status != lua.Go || c.a.Wait != 0 {
		h.t.Fatalf("at %d: told to come back now, and then %+v; rows %+v", h.now, c.a, c.op.Rows)
	}
	h.n.returns++
	h.look(c.model)
}

// look compares what a limit of the model counts with every event so far.
func (h *history) look(m int) {
	h.t.Helper()
	r := h.models[m][h.r.IntN(len(h.models[m]))]
	if r.Zone.Offset != r.Zone.Next { // windows overlap where a clock goes back
		return
	}
	model := h.names.Model(string(rune('0' + m)))
	got := h.do(lua.Op{Kind: lua.Look, Key: h.names.Key(), Model: model, Line: h.names.Line(h.names.Key()), On: model, Rows: []lua.Row{r}}).At
	least, most := h.used(r.Tape, r, h.now), int64(0)
	if most = least; r.Burst >= 0 {
		most = h.used(r.Tape, r, h.now-slotLong(r))
	}
	if got < least || got > most {
		h.t.Fatalf("at %d: %d are used of %+v, want %d to %d", h.now, got, r, least, most)
	}
}
