package throttle

import (
	"cmp"
	"math"
	"slices"

	"github.com/headway-go/headway/lua"
)

// memTape is what went under one limit and when: take.lua's tape as Go values.
// The units of a window are a sum over the end of entries; a Fixed limit has
// the number of its window in newest and its count in sum.
type memTape struct {
	entries []entry // oldest first
	number  int64   // Fixed: of the window that sum counts
	sum     int64
	meter   float64 // when the bucket would be empty again
	expires int64

	// What went to somebody else who uses the key, as the vendor tells: foreign
	// until gone, and then next until last.
	foreign, gone, next, last int64
}

type entry struct{ at, units int64 }

const (
	slots = 112 // a tape of many entries merges what goes in the same 1/112 of its window
	exact = 16  // a tape of fewer older entries does not merge
)

// tape returns the tape of the row as it is now, an empty one if there is none.
func (t *turn) tape(r *lua.Row) *memTape {
	tape := t.tapes[r.Tape]
	if tape == nil {
		return &memTape{}
	}
	tape.forget(r, t.now)
	if tape.gone <= t.now {
		tape.foreign, tape.gone, tape.next, tape.last = tape.next, tape.last, 0, 0
	}
	return tape
}

// forget drops what has left the window.
func (t *memTape) forget(r *lua.Row, now int64) {
	if r.Burst < 0 {
		return
	}
	for len(t.entries) > 0 && t.entries[0].at <= now-r.Window {
		t.sum -= t.entries[0].units
		t.entries = t.entries[1:]
	}
	if len(t.entries) == 0 {
		t.meter = 0
	}
}

// keep returns the tape of the row for a charge.
func (t *turn) keep(r *lua.Row) *memTape {
	tape := t.tape(r)
	t.tapes[r.Tape] = tape
	return tape
}

func (t *memTape) used(r *lua.Row, now int64) int64 {
	if r.Burst < 0 && t.number < windowNumber(r, now) {
		return 0
	}
	return t.sum
}

// counted is used in the vendor's window, which is shorter by the margin.
func (t *memTape) counted(r *lua.Row, x int64) int64 {
	n := t.used(r, x)
	for _, e := range t.entries {
		if e.at > x-r.Window+r.Margin {
			break
		}
		n -= e.units
	}
	return n
}

func (t *memTape) merges() bool { return len(t.entries) > exact }

func slotOf(r *lua.Row, at int64) float64 {
	return math.Floor(float64(at) / (float64(r.Window) / slots))
}

// room returns the earliest time from c.open on at which the limit has room for
// call c behind those ahead of it, and how early it may be granted. Until ramp
// (a pause has just ended) every limit is a bucket with a burst of a tenth.
func (t *turn) room(r *lua.Row, q *memLine, c *waiting, ramp int64) (y, early int64) {
	tape, x, front := t.tape(r), c.open, q.ahead(r.Tag, c)
	if r.Burst < 0 {
		return tape.roomFixed(r, x, front), 0
	}
	y, early = x, t.lead
	if tape.sum+r.Cost > MaxAmount { // what leaves the window by then is still in the sum
		early = 0
	}
	need, others := sum(tape.sum, sum(front, r.Cost))-r.Ceiling, tape.others(x)
	if need+others > 0 {
		y = max(x, tape.freed(r, need+others, t.now, q, c, front))
	}
	if others > 0 { // or they are gone first
		gone := max(x, tape.gone, tape.last)
		if need > 0 {
			gone = max(gone, tape.freed(r, need, t.now, q, c, front))
		}
		y = min(y, gone)
	}
	if r.Burst > 0 || x < ramp {
		if front > 0 { // a meter has no place left for those who are overtaken
			early = 0
		}
		burst := r.Burst
		if burst == 0 {
			burst = r.Amount
		}
		if x < ramp {
			burst = min(burst, max(1, r.Amount/10))
		}
		at := max(tape.meter, float64(x)) + float64(float64(float64(front)+float64(r.Cost)-float64(max(burst, r.Cost)))*float64(r.Window)/float64(r.Amount))
		if r.Burst == 0 {
			at = min(at, float64(ramp))
		}
		y = max(y, int64(math.Ceil(at)))
	}
	return y, early
}

// freed forecasts when need units will have left the window: those that went
// leave a window after they went, oldest first; then those ahead (front units in
// all), a window after their own times.
func (t *memTape) freed(r *lua.Row, need, now int64, q *memLine, c *waiting, front int64) int64 {
	var last int64
	for i, e := range t.entries {
		last = e.at
		if i == len(t.entries)-1 && t.merges() { // the newest entry may still move within its slot
			last = int64(math.Ceil((slotOf(r, e.at) + 1) * (float64(r.Window) / slots)))
		}
		if need -= e.units; need <= 0 {
			return last + r.Window
		}
	}
	stay := front - need // of those ahead, the last ones, which need not have left
	for _, w := range slices.Backward(q.calls) {
		if w.before(c, r.Tag) {
			if stay -= w.cost(r.Tag); stay < 0 {
				last = max(last, w.told)
				break
			}
		}
	}
	return max(last, now) + r.Window
}

// drains returns how long, in microseconds, the bucket of the limit takes to
// drain so many units. The conversions keep Go from fusing what Lua rounds.
func drains(r *lua.Row, units int64) float64 {
	return float64(float64(units) * float64(r.Window) / float64(r.Amount))
}

// charge enters the cost at x.
func (t *memTape) charge(r *lua.Row, x int64, metered bool, now int64) {
	if r.Burst < 0 {
		if k := windowNumber(r, x); t.number < k {
			t.number, t.sum = k, 0
			t.expires = now + 2*r.Window + extraLife
		}
		t.sum += r.Cost
		return
	}
	if metered {
		t.meter = max(t.meter, float64(x)) + drains(r, r.Cost)
	}
	n := len(t.entries)
	if n > 0 && t.entries[n-1].at >= x {
		t.change(x, r.Cost)
		return
	}
	t.sum += r.Cost
	switch {
	case t.merges() && slotOf(r, t.entries[n-1].at) == slotOf(r, x):
		t.entries[n-1].at = x // counted until later than needed, never less
		t.entries[n-1].units += r.Cost
	default:
		t.entries = append(t.entries, entry{x, r.Cost})
		t.expires = now + 2*r.Window + extraLife
	}
}

// adjust changes what was charged at at, never below zero and never in a window
// that is over. It reports whether there was something to change.
func (t *memTape) adjust(r *lua.Row, at, now int64) bool {
	d := min(r.Cost, MaxAmount-t.sum)
	if r.Burst < 0 {
		if t.sum == 0 || windowNumber(r, at) != t.number {
			return false
		}
		t.sum = max(0, t.sum+d)
		return true
	}
	if at <= now-r.Window {
		return false
	}
	if n := len(t.entries); n == 0 || t.entries[n-1].at < at {
		return false
	}
	d = t.change(at, d)
	if d > 0 && r.Burst > 0 {
		t.meter = max(t.meter, float64(now)) + drains(r, d)
	} else if t.meter > float64(now) { // given back, but not what the meter would have lost to standing idle
		m := 0.0
		for _, e := range t.entries {
			m = max(m, float64(e.at)) + drains(r, e.units)
		}
		t.meter = max(m, t.meter+drains(r, d))
	}
	return true
}

// heed believes a vendor that has less left than this fleet left, see take.lua.
func (t *memTape) heed(r *lua.Row, o *lua.Op, now int64) bool {
	till := o.At + r.Window
	if r.Burst < 0 {
		till = boundary(r, o.At)
	}
	if o.Reset > 0 {
		till = min(till, now+o.Reset)
	}
	if till <= now || t.used(r, now) == 0 {
		return false
	}
	before, since := t.others(now), max(0, t.counted(r, now)-o.Mine)
	n := min(r.Amount, r.Cost+int64(math.Ceil(float64(since)*min(1, float64(r.Cost)/float64(max(1, o.Mine))))))
	switch {
	case n >= before && till >= t.gone:
		t.foreign, t.gone = n, till
	case n >= before:
		t.foreign, t.gone, t.next, t.last = n, till, max(t.next, before), max(t.last, t.gone)
	default:
		t.next, t.last = max(t.next, n), max(t.last, till)
	}
	return n > before
}

// others is what of the limit is used at x by somebody else.
func (t *memTape) others(x int64) int64 {
	switch {
	case x < t.gone:
		return t.foreign
	case x < t.last:
		return t.next
	}
	return 0
}

// change adds units to the entry that holds at, the first one not before it,
// never below zero. It returns what it added. The newest entry is not before at.
func (t *memTape) change(at, d int64) int64 {
	i, _ := slices.BinarySearchFunc(t.entries, at, func(e entry, at int64) int { return cmp.Compare(e.at, at) })
	e := &t.entries[i]
	d = max(d, -e.units)
	e.units += d
	t.sum += d
	return d
}

// Fixed windows are numbered by the clock of their time zone.

func offset(r *lua.Row, at int64) int64 {
	if at < r.Zone.Change {
		return r.Zone.Offset
	}
	return r.Zone.Next
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func windowNumber(r *lua.Row, at int64) int64 { return floorDiv(at+offset(r, at), r.Window) }

// boundary returns the end of the window that at lies in.
func boundary(r *lua.Row, at int64) int64 {
	e := (windowNumber(r, at) + 1) * r.Window
	b := e - offset(r, at)
	if at < r.Zone.Change && b >= r.Zone.Change { // a midnight that is skipped ends with the skip
		b = max(r.Zone.Change, e-r.Zone.Next)
	}
	return b
}

func (t *memTape) roomFixed(r *lua.Row, x, front int64) int64 {
	used := int64(0)
	if t.number >= windowNumber(r, x) {
		used = t.sum
	}
	switch need := sum(used, sum(front, r.Cost)) - r.Ceiling; {
	case need <= 0 && need+t.others(x) > 0:
		x = max(t.gone, t.last)
	case need > 0:
		more := (sum(front, r.Cost) - 1) / r.Ceiling // windows that those ahead fill first
		x = boundary(r, x) + max(0, more)*r.Window
	}
	if m := r.Margin; m > 0 {
		into := x + offset(r, x) - windowNumber(r, x)*r.Window
		if into < m {
			x += m - into
		} else if into > r.Window-m {
			x = boundary(r, x) + m
		}
	}
	return x
}
