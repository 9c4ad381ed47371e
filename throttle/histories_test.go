package throttle

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/headway-go/headway/lua"
)

// check looks at every window of every tape.
func (h *history) check() {
	h.t.Helper()
	byTape := map[string][]entry{}
	rows := map[string]lua.Row{}
	for _, c := range h.calls {
		if c.waiting {
			h.t.Fatalf("a call still waits: %+v", c)
		}
		for _, r := range c.op.Rows {
			rows[r.Tape] = r
			if c.went {
				byTape[r.Tape] = append(byTape[r.Tape], entry{c.at, r.Cost})
			}
		}
	}
	for tape, es := range byTape {
		r := rows[tape]
		slices.SortFunc(es, func(a, b entry) int { return int(a.at - b.at) })
		most, in, lo := int64(0), int64(0), 0
		for _, e := range es {
			in += e.units
			for es[lo].at <= e.at-r.Window || r.Burst < 0 && windowNumber(&r, es[lo].at) != windowNumber(&r, e.at) {
				in -= es[lo].units
				lo++
			}
			most = max(most, in)
		}
		if most > r.Amount && !h.ups {
			h.t.Fatalf("%s: %d of %d in one window", tape, most, r.Amount)
		}
		if r.Burst > 0 && !h.ups {
			h.checkBucket(tape, r, es)
		}
	}
}

// checkBucket: no interval d holds more than Burst + Amount*d/Window, or one larger call.
func (h *history) checkBucket(tape string, r lua.Row, es []entry) {
	full := es[0].at
	for i, e := range es {
		used := int64(0)
		for _, f := range es[i:] {
			used += f.units
			d := f.at - e.at
			allowed := float64(max(r.Burst, f.units)) + float64(r.Amount)*float64(d)/float64(r.Window) + float64(e.units-min(e.units, r.Burst))
			if grain := 1e-3 + float64(r.Amount)/float64(r.Window); float64(used) > allowed+grain && d > 0 { // what drains in a microsecond
				h.t.Fatalf("%s: %d units in %d us, burst %d, full %d", tape, used, d, r.Burst, full)
			}
		}
	}
}

// rows makes random limits for one scope.
func (h *history) limits(scope string, n int) (rows []lua.Row) {
	for i := range n {
		w := []int64{second, 10 * second, 60 * second, 86400 * second}[h.r.IntN(4)]
		r := lua.Row{Window: w, Amount: 3 + h.r.Int64N(40)}
		if h.r.IntN(2) == 0 {
			r.Amount = 1000 + h.r.Int64N(100_000)
			if h.r.IntN(5) == 0 && !h.ups { // settling above the estimate is cut at 2^53-1
				r.Amount = MaxAmount - h.r.Int64N(1000)
			}
		}
		switch h.r.IntN(5) {
		case 0:
			r.Burst = -1
			off := (h.r.Int64N(27) - 12) * 3600 * second
			r.Zone = lua.Zone{Offset: off, Change: h.now, Next: off}
			if w == 86400*second { // only whole days follow a change of the clock
				r.Zone.Change, r.Zone.Next = h.now+h.r.Int64N(4*w), off+(2*h.r.Int64N(2)-1)*3600*second
			}
		case 1:
			r.Burst = 1 + h.r.Int64N(r.Amount)
		}
		if h.r.IntN(2) == 0 {
			r.Margin = w / 50
		}
		r.Tape = h.names.Tape(scope, "u"+strconv.Itoa(i), w, r.Burst < 0, "")
		r.Tag = lua.Tag(r.Tape)
		rows = append(rows, r)
	}
	return rows
}

func env(name string, or int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return or
}

// TestHistories: both stores answer random histories alike, and no answer
// breaks a limit, a ceiling, a turn or a pause. HISTORIES sets how many.
func TestHistories(t *testing.T) {
	c := server.Client()
	defer c.Close()
	first := env("FIRST", 0)
	total, forecasts, returns, heeded := 0, 0, 0, 0
	for seed := first; seed < first+env("HISTORIES", 60); seed++ {
		h := &history{
			t: t, r: rand.New(rand.NewPCG(uint64(seed), 1)), redis: redisStore{c}, memory: NewMemory(),
			names: lua.NewNames("history", fmt.Sprintf("%d-%d", seed, time.Now().UnixNano())),
			now:   1764400000*second + int64(seed)*7777777, ups: seed%4 == 3, till: map[string]int64{},
		}
		var key []lua.Row
		if seed%3 == 1 {
			key, h.ofKey = h.limits(h.names.Key(), 1), 1
		}
		shortest := int64(86400 * second)
		for m := range 1 + h.r.IntN(2) {
			rows := append(slices.Clone(key), h.limits(h.names.Model(fmt.Sprint(m)), 1+h.r.IntN(3))...)
			h.models = append(h.models, rows)
			for _, r := range rows {
				shortest = min(shortest, r.Window)
			}
		}
		for range 200 {
			h.advance(h.now + h.r.Int64N(shortest/6))
			h.look(h.r.IntN(len(h.models)))
			switch k := h.r.IntN(21); {
			case k == 20:
				h.heed()
			case k < 13:
				h.take()
			case k < 15:
				if w := h.pick(func(c *sent) bool { return c.waiting }); w != nil {
					h.do(lua.Op{Kind: lua.Leave, Key: w.op.Key, Model: w.op.Model, Line: w.op.Line, ID: w.id})
					w.waiting = false
				}
			case k == 15:
				h.charge()
			case k < 18:
				if s := h.pick(func(c *sent) bool { return c.went && !c.settled }); s != nil {
					h.adjust(s)
				}
			default:
				if seed%2 == 0 {
					h.change()
				}
			}
			if t.Failed() {
				return
			}
		}
		h.advance(h.now + 400*86400*second)
		h.check()
		for _, k := range c.Keys(t.Context(), "history:*").Val() {
			if ttl := c.PTTL(t.Context(), k).Val(); ttl <= 0 {
				t.Fatalf("seed %d: key %s has no expiry", seed, k)
			}
		}
		c.FlushAll(t.Context())
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		total += h.n.went
		forecasts += h.n.forecasts
		returns += h.n.returns
		heeded += h.n.heeded
		if testing.Verbose() {
			t.Logf("seed %d: %+v", seed, h.n)
		}
	}
	if total == 0 || forecasts == 0 || returns == 0 || heeded == 0 {
		t.Fatalf("%d calls went, %d forecasts and %d returns were checked, a vendor was heeded %d times, want some of each", total, forecasts, returns, heeded)
	}
}
