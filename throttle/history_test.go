package throttle

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/headway-go/headway/lua"
	"github.com/headway-go/headway/pause"
)

const (
	second    = int64(1e6)
	testLead  = 5000
	testLease = 2 * second
)

// sent is one call in the exact model, which keeps every event for ever.
type sent struct {
	op      lua.Op
	model   int
	id      int64 // its place in line while it waits
	told    int64 // when it asks again
	place   int64 // when the store said it would go
	at      int64 // when it was charged, once it went
	a       lua.Answer
	waiting bool
	went    bool
	probe   int64 // bits of whose probe it is, until that is answered
	settled bool
}

// history plays random operations under an explicit clock to both stores,
// demands equal answers, and checks them against what every event so far says.
type history struct {
	t      *testing.T
	r      *rand.Rand
	redis  redisStore
	memory *Memory
	names  lua.Names
	models [][]lua.Row // the rows of each model, costs and ceilings to be filled in
	now    int64
	calls  []*sent
	ofKey  int              // limits of the key
	ups    bool             // settle above the estimate too: windows may then be fuller than the limit
	till   map[string]int64 // until when each scope is closed
	said   []said           // by vendors
	n      struct{ went, waited, refused, probes, forecasts, returns, heeded int }
}

func (h *history) do(op lua.Op) lua.Answer {
	h.t.Helper()
	b := lua.Batch{Now: h.now, Lead: testLead, Lease: testLease, Ops: []lua.Op{op}}
	got, err := h.redis.decide(context.Background(), b)
	if err != nil {
		h.t.Fatal(err)
	}
	want, _ := h.memory.decide(context.Background(), b)
	if os.Getenv("TRACE") != "" {
		fmt.Println(h.now, op.Kind, op.At, op.Share, op.Patience, op.ID, op.Rows, "->", got[0])
	}
	if !reflect.DeepEqual(got[0], want[0]) {
		h.t.Fatalf("at %d: %+v\nredis  %+v\nmemory %+v", h.now, op, got[0], want[0])
	}
	return got[0]
}

// used is what the exact model counts for a row in the window that ends at x.
func (h *history) used(tape string, r lua.Row, x int64) (n int64) {
	for _, c := range h.calls {
		if !c.went {
			continue
		}
		for _, cr := range c.op.Rows {
			if cr.Tape != tape {
				continue
			}
			if r.Burst < 0 && windowNumber(&r, c.at) == windowNumber(&r, x) || r.Burst >= 0 && c.at > x-r.Window {
				n += cr.Cost
			}
		}
	}
	return n
}

// reserved is what those who go before the call wait for.
func (h *history) reserved(c *sent, tape string) (n int64) {
	for _, w := range h.calls {
		if w == c || !w.waiting || w.place+lineGrace < h.now || w.op.Line != c.op.Line {
			continue
		}
		if w.op.Share > c.op.Share || w.op.Share == c.op.Share && (w.id < c.id || c.id == 0) {
			for _, r := range w.op.Rows {
				other := w.model != c.model && w.place > max(h.now, h.till[c.op.Key], h.till[c.op.Model])
				if other && (w.a.By <= 0 || w.op.Rows[w.a.By-1].Tape != tape) {
					continue // it waits for something else, and its time has not come
				}
				if r.Tape == tape {
					n += r.Cost
				}
			}
		}
	}
	return n
}

func (h *history) ask(c *sent, kind lua.Kind, patience int64) {
	h.t.Helper()
	c.op.Kind, c.op.ID, c.op.Patience = kind, c.id, patience
	held := max(h.till[c.op.Key], h.till[c.op.Model])
	room := map[string]int64{}
	for _, r := range c.op.Rows {
		room[r.Tape] = r.Ceiling - h.used(r.Tape, r, max(h.now, held)) - h.reserved(c, r.Tape) - r.Cost
	}
	a := h.do(c.op)
	c.a = a
	switch a.Status {
	case lua.Go:
		if a.At < held {
			h.t.Fatalf("went at %d into a pause until %d", a.At, held)
		}
		for i, r := range c.op.Rows {
			vendors, longer := r, r
			vendors.Window -= r.Margin
			longer.Window = vendors.Window + slotLong(r) + testLead
			if r.Burst < 0 {
				vendors, longer = r, r
			}
			most, least := r.Amount-h.used(r.Tape, vendors, a.At)-r.Cost, r.Amount-h.used(r.Tape, longer, a.At)-r.Cost
			if n := a.Left[i].Units; n > most || n < least {
				h.t.Fatalf("at %d: %d left of %s, want %d to %d, row %+v", h.now, n, r.Tape, least, most, r)
			}
			if n := h.used(r.Tape, r, a.At) + r.Cost + a.Left[i].Others; n > r.Ceiling && a.Left[i].Others > 0 {
				h.t.Fatalf("at %d: went into what others use of %s: %d of %d, %+v", h.now, r.Tape, n, r.Ceiling, a.Left[i])
			}
		}
		if a.Wait < 0 || a.Wait > testLead || a.At != h.now+a.Wait {
			h.t.Fatalf("went after %d at %d, now %d", a.Wait, a.At, h.now)
		}
		for _, r := range c.op.Rows {
			if n := r.Ceiling - h.used(r.Tape, r, a.At) - h.reserved(c, r.Tape) - r.Cost; n < 0 {
				h.t.Fatalf("at %d: no room in %s: %d too many; used %d reserved %d; %+v; row %+v", h.now, r.Tape, -n, h.used(r.Tape, r, a.At), h.reserved(c, r.Tape), a, r)
			}
		}
		c.waiting, c.went, c.at, c.probe = false, true, a.At, a.By
		if a.By&lua.ProbeKey != 0 {
			h.n.probes++
			h.till[c.op.Key] = a.At + testLease
		}
		if a.By&lua.ProbeModel != 0 {
			h.n.probes++
			h.till[c.op.Model] = a.At + testLease
		}
		h.n.went++
	case lua.InLine:
		if kind == lua.Take {
			h.n.waited++
		}
		c.waiting, c.id, c.told, c.place = true, a.At, h.now+a.Wait, h.now+a.Wait
	default:
		c.waiting = false
		h.n.refused++
	}
	if a.Status != lua.Go {
		if a.Wait <= 0 {
			h.t.Fatalf("refused or in line with wait %d: %+v", a.Wait, a)
		}
		if a.By > int64(len(c.op.Rows)) || a.By == 0 || a.By < lua.ByKey {
			h.t.Fatalf("by %d names nothing", a.By)
		}
	}
}

// advance moves the clock; whoever waits asks when its time has come.
func (h *history) advance(to int64) {
	for {
		var next *sent
		for _, c := range h.calls {
			if c.waiting && c.told <= to && (next == nil || c.told < next.told) {
				next = c
			}
		}
		if next == nil {
			break
		}
		late := h.r.Int64N(3 * testLead)
		h.now = max(h.now, next.told-testLead/2+late)
		h.ask(next, lua.Ask, []int64{3600 * second, 3600 * second, 10 * second}[h.r.IntN(3)])
	}
	h.now = max(h.now, to)
}

func (h *history) pick(ok func(*sent) bool) *sent {
	var from []*sent
	for _, c := range h.calls {
		if ok(c) {
			from = append(from, c)
		}
	}
	if len(from) == 0 {
		return nil
	}
	return from[h.r.IntN(len(from))]
}

// take makes a call with random costs and lane.
func (h *history) take() {
	m := h.r.IntN(len(h.models))
	share := []float64{1, 1, 1, 0.8, 0.6}[h.r.IntN(5)]
	c := &sent{model: m, op: lua.Op{Key: h.names.Key(), Model: h.names.Model(fmt.Sprint(m)), Share: share, ModelTag: int64(m + 1), KeyRows: h.ofKey}}
	c.op.Line = h.names.Line(h.names.Key())
	for _, r := range h.models[m] {
		r.Cost = 1
		if r.Amount > 50 {
			r.Cost = 1 + h.r.Int64N(max(1, r.Amount/8))
			if h.r.IntN(20) == 0 {
				r.Cost = 1 + h.r.Int64N(r.Amount/2)
			}
			if h.r.IntN(30) == 0 {
				r.Cost = r.Amount // cut to the ceiling
			}
		}
		r.Ceiling = max(1, int64(share*float64(r.Amount)))
		r.Cost = min(r.Cost, r.Ceiling)
		c.op.Rows = append(c.op.Rows, r)
	}
	h.calls = append(h.calls, c)
	patience := int64(0)
	if share > 0.6 {
		patience = []int64{0, 5 * second, 600 * second}[h.r.IntN(3)]
	}
	h.ask(c, lua.Take, patience)
	h.forecast(c)
}

func (h *history) adjust(c *sent) {
	c.settled = true
	op := lua.Op{Kind: lua.Adjust, Key: c.op.Key, Model: c.op.Model, At: c.at}
	if h.r.IntN(4) > 0 {
		op.Guessed = lua.Parts{Input: h.r.Int64N(1e9), Output: h.r.Int64N(5)}
		op.Took = lua.Parts{Input: h.r.Int64N(1e9), Output: h.r.Int64N(1e9)}
	}
	for i := range c.op.Rows {
		r := c.op.Rows[i]
		d := -h.r.Int64N(r.Cost + 1)
		if h.ups && h.r.IntN(3) == 0 {
			d = h.r.Int64N(r.Cost + 1)
		}
		live := r.Burst < 0 && windowNumber(&r, c.at) == windowNumber(&r, h.now) || r.Burst >= 0 && c.at > h.now-r.Window
		if live {
			c.op.Rows[i].Cost += d
		}
		r.Cost = d
		op.Rows = append(op.Rows, r)
	}
	h.do(op)
}

// heed says that something of one limit went to others, and keeps an exact list
// of all that was said.
func (h *history) heed() {
	c := h.pick(func(c *sent) bool { return c.went && c.a.Status == lua.Go })
	if c == nil {
		return
	}
	r := c.op.Rows[h.r.IntN(len(c.op.Rows))]
	r.Cost = 1 + h.r.Int64N(r.Amount)
	op := lua.Op{Kind: lua.Heed, Key: c.op.Key, Model: c.op.Model, At: c.at, Rows: []lua.Row{r}}
	if h.r.IntN(2) == 0 {
		op.Reset = 1 + h.r.Int64N(r.Window)
	}
	used := h.do(lua.Op{Kind: lua.Look, Key: op.Key, Model: op.Model, Line: c.op.Line, On: op.Model, Rows: op.Rows}).At
	op.Mine = h.r.Int64N(used + 1)
	till := c.at + r.Window
	if r.Burst < 0 {
		till = boundary(&r, c.at)
	}
	if op.Reset > 0 {
		till = min(till, h.now+op.Reset)
	}
	before := h.others(r)
	since := used - op.Mine // others have done no more since, and in proportion
	if r.Cost < op.Mine {
		since = int64(float64(since)*float64(r.Cost)/float64(op.Mine)) + 1
	}
	most := min(r.Amount, r.Cost+since)
	h.said = append(h.said, said{r.Tape, most, h.now, till})
	news := h.do(op).Status == lua.Go
	if after := h.others(r); news != (after > before) || after < before || after > max(before, most) {
		h.t.Fatalf("at %d: %d of %s went to others, then %d; news %v of %d", h.now, before, r.Tape, after, news, r.Cost)
	}
	h.n.heeded++
}

// said is what a vendor said went to others: how much, when, and until when.
type said struct {
	tape          string
	units         int64
	heard, expiry int64
}

// others is what the stores say; it lies between what is surely true now and the
// most that was said of times not long past.
func (h *history) others(r lua.Row) int64 {
	h.t.Helper()
	key := h.names.Key()
	got := h.do(lua.Op{Kind: lua.Look, Key: key, Model: key, Line: h.names.Line(key), On: key, Rows: []lua.Row{r}}).By
	most := int64(0)
	for _, s := range h.said {
		if s.tape == r.Tape && s.expiry+2*r.Window > h.now {
			most = max(most, s.units)
		}
	}
	if got > most || got < 0 {
		h.t.Fatalf("at %d: %d of %s went to others, want %d at most", h.now, got, r.Tape, most)
	}
	return got
}

// charge enters what was spent elsewhere, as far as the limits hold it.
func (h *history) charge() {
	c := h.pick(func(*sent) bool { return true })
	if c == nil {
		return
	}
	op := c.op
	op.Kind, op.At = lua.Charge, h.now
	op.Rows = slices.Clone(op.Rows)
	for i, r := range op.Rows {
		op.Rows[i].Cost = min(r.Cost, r.Amount-h.used(r.Tape, r, h.now))
		if r.Burst > 0 || op.Rows[i].Cost <= 0 || r.Amount > MaxAmount/2 { // there the store charges what it can count
			return
		}
	}
	h.do(op)
	h.calls = append(h.calls, &sent{op: op, at: h.now, went: true, settled: true})
}

// scope operations: pauses, refusals, probes' outcomes, an operator's resume.
func (h *history) change() {
	c := h.pick(func(c *sent) bool { return c.went })
	if c == nil {
		return
	}
	onKey := h.r.IntN(3) == 0
	op := lua.Op{Kind: lua.Hold, Key: c.op.Key, Model: c.op.Model, On: c.op.Model, Gen: c.a.ModelGen, Rule: int64(pause.Later)}
	if onKey {
		op.On, op.Gen = op.Key, c.a.KeyGen
	}
	op.Length = 1 + h.r.Int64N(20*second)
	switch h.r.IntN(8) {
	case 0:
		op.Rule, op.First = int64(pause.Refusal), true
	case 1:
		op.First = true
	case 2:
		op.Rule = int64(pause.Operator)
	case 3:
		op.Longest, op.Calm = 30*second, 60*second
		op.Length = 2 * second
	case 4, 5:
		op.Kind = lua.Answered
		if p := h.pick(func(c *sent) bool { return c.probe != 0 }); p != nil {
			op.Key, op.Model, op.On, op.Gen = p.op.Key, p.op.Model, p.op.Model, p.a.ModelGen
			if p.probe&lua.ProbeKey != 0 {
				op.On, op.Gen = p.op.Key, p.a.KeyGen
			}
			p.probe = 0
		}
	case 6:
		op.Kind = lua.Freed
	case 7:
		op.Kind = lua.Resume
	}
	before := h.till[op.On]
	a := h.do(op)
	if a.Status == lua.Refused {
		return
	}
	h.till[op.On] = h.now + a.Wait
	if op.Kind == lua.Hold && a.Status == lua.InLine && h.now+a.Wait < before {
		h.t.Fatalf("a pause until %d shrank to %d", before, h.now+a.Wait)
	}
	if op.Kind == lua.Hold && h.now+a.Wait < h.now+min(op.Length, 2*second) {
		h.t.Fatalf("held for %d, want at least %d", a.Wait, op.Length)
	}
	if op.Kind == lua.Resume || op.Kind == lua.Answered { // the watch: whoever waits hears of it
		for _, w := range h.calls {
			if w.waiting {
				w.told = min(w.told, h.now+h.r.Int64N(second))
			}
		}
	}
}
