package throttle

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/headway-go/headway/lua"
	"github.com/headway-go/headway/pause"
)

// Memory is a store in this process: the same decisions as in Redis, in pure
// Go. Limiters that share a Memory are one fleet. The zero Memory is not
// usable; call [NewMemory]. It is safe for concurrent use.
//
// What it holds expires by the wall clock and is bounded by what is in use: it
// sweeps out what has expired at least once in every thousand operations.
type Memory struct {
	now func() int64 // microseconds

	mu     sync.Mutex
	scopes map[string]*pause.State
	lines  map[string]*memLine
	tapes  map[string]*memTape
	learn  map[string]*learned              // by a model's scope
	fleets map[string]map[string]lua.Member // by fleet, by name
	ops    int
}

// NewMemory returns an empty store on the host's clock.
func NewMemory() *Memory { return NewMemoryClock(time.Now) }

// NewMemoryClock returns an empty store on a clock of the caller's, for tests.
// Only decisions follow it: a call that waits still sleeps in real time.
func NewMemoryClock(now func() time.Time) *Memory {
	return &Memory{
		now:    func() int64 { return now().UnixMicro() },
		scopes: map[string]*pause.State{},
		lines:  map[string]*memLine{},
		tapes:  map[string]*memTape{},
		learn:  map[string]*learned{},
		fleets: map[string]map[string]lua.Member{},
	}
}

const (
	scopeLife   = int64(time.Hour / time.Microsecond)
	lineGrace   = int64(2 * time.Second / time.Microsecond)  // a call that did not ask so long after its time is gone
	extraLife   = int64(10 * time.Second / time.Microsecond) // beyond what can still matter
	rampLongest = int64(time.Minute / time.Microsecond)
	sweepEvery  = 1000
)

// decide carries out the operations of a batch in order, as take.lua does.
func (m *Memory) decide(_ context.Context, b lua.Batch) ([]lua.Answer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := b.Now
	if now == 0 {
		now = m.now()
	}
	t := turn{Memory: m, now: now, lead: b.Lead, lease: b.Lease}
	out := make([]lua.Answer, len(b.Ops))
	for i := range b.Ops {
		out[i] = t.do(&b.Ops[i])
	}
	m.sweep(now, len(b.Ops))
	return out, nil
}

// sweep removes what has expired, once in sweepEvery operations.
func (m *Memory) sweep(now int64, ops int) {
	if m.ops += ops; m.ops < sweepEvery {
		return
	}
	m.ops = 0
	for k, s := range m.scopes {
		if s.Till+scopeLife <= now {
			delete(m.scopes, k)
		}
	}
	for k, q := range m.lines {
		if q.expires <= now {
			delete(m.lines, k)
		}
	}
	for k, t := range m.tapes {
		if t.expires <= now {
			delete(m.tapes, k)
		}
	}
	for k, l := range m.learn {
		if l.at+learnedLife <= now {
			delete(m.learn, k)
		}
	}
	for k := range m.fleets {
		m.roster(k, now)
	}
}

// turn is one batch at one moment.
type turn struct {
	*Memory
	now, lead, lease int64
}

func (t *turn) scope(name string) pause.State {
	if s := t.scopes[name]; s != nil && s.Till+scopeLife > t.now {
		return *s
	}
	return pause.State{}
}

func (t *turn) setScope(name string, s pause.State) {
	t.scopes[name] = &s
}

func (t *turn) do(o *lua.Op) lua.Answer {
	k := t.scope(o.Key)
	m := k
	if o.Model != "" {
		m = t.scope(o.Model)
	}
	a := lua.Answer{KeyGen: k.Gen, ModelGen: m.Gen}
	switch o.Kind {
	case lua.Take:
		return t.admit(o, 0)
	case lua.Ask:
		return t.admit(o, o.ID)
	case lua.Leave:
		if t.line(o.Line).leave(o.ID) {
			a.Status = lua.Go
		}
	case lua.Adjust:
		for i := range o.Rows {
			if t.tape(&o.Rows[i]).adjust(&o.Rows[i], o.At, t.now) {
				a.Status = lua.Go
			}
		}
		lately := t.lately(o.Model, o.Guessed, o.Took)
		a.Wait, a.At = lately.Input, lately.Output
	case lua.Heed:
		for i := range o.Rows {
			if t.tape(&o.Rows[i]).heed(&o.Rows[i], o, t.now) {
				a.Status = lua.Go
			}
		}
	case lua.Charge:
		for i := range o.Rows {
			r := o.Rows[i]
			tape, x := t.keep(&r), max(t.now, o.At)
			r.Cost = min(r.Cost, MaxAmount-tape.used(&r, x))
			tape.charge(&r, x, r.Burst > 0, t.now)
		}
		a.Status = lua.Go
	case lua.Look:
		s := t.scope(o.On)
		a = lua.Answer{Status: lua.Status(s.Phase), Wait: max(0, s.Till-t.now), KeyGen: s.Why, ModelGen: int64(len(t.line(o.Line).calls)), By: s.Gen}
		if len(o.Rows) > 0 {
			tape := t.tape(&o.Rows[0])
			a.At = tape.used(&o.Rows[0], t.now)
			a.By = tape.others(t.now)
		}
	default:
		a.Status, a.Wait = t.change(o)
		a.KeyGen = t.scope(o.Key).Gen
		if a.ModelGen = a.KeyGen; o.Model != "" {
			a.ModelGen = t.scope(o.Model).Gen
		}
	}
	return a
}

// change applies a report to a scope.
func (t *turn) change(o *lua.Op) (status lua.Status, left int64) {
	s := t.scope(o.On)
	ok := false
	switch o.Kind {
	case lua.Hold:
		h := pause.Hold{Length: o.Length, Longest: o.Longest, Calm: o.Calm, First: o.First, Rule: pause.Rule(o.Rule), Why: o.Why}
		status = lua.Status(s.Hold(h, o.Gen, t.now))
		ok = status != lua.Refused
	case lua.Answered:
		ok = s.Answered(o.Gen, t.now)
	case lua.Freed:
		ok = s.Freed(o.Gen, t.now)
	case lua.Resume:
		ok = s.Resume(t.now)
	}
	if ok {
		t.setScope(o.On, s)
		status = max(status, lua.Go)
	}
	return status, max(0, s.Till-t.now)
}

// admit decides when the call may go. Then it goes, stands in line, or is
// refused and leaves no trace.
func (t *turn) admit(o *lua.Op, id int64) lua.Answer {
	key, model := t.scope(o.Key), t.scope(o.Model)
	q := t.line(o.Line)
	held := max(key.Till, model.Till)
	a := lua.Answer{By: lua.ByModel, KeyGen: key.Gen, ModelGen: model.Gen}
	if key.Till >= model.Till {
		a.By = lua.ByKey
	}
	if id == 0 {
		id = q.next(t.now)
	}
	c := &waiting{id: id, share: o.Share, model: o.ModelTag, open: max(t.now, held)}
	// A limit is a ramp for a window, a minute at most, after the end of a pause of its own scope.
	ramp := func(i int) int64 {
		end := held
		if i < o.KeyRows {
			end = key.Till
		}
		return end + min(o.Rows[i].Window, rampLongest)
	}
	x, early := c.open, t.lead
	for i := range o.Rows {
		r := &o.Rows[i]
		if r.Cost == 0 {
			continue
		}
		y, e := t.room(r, q, c, ramp(i))
		if y > x {
			x, a.By = y, int64(i+1)
		}
		early = min(early, e)
	}
	if o.Kind == lua.Ask {
		q.leave(id)
	}
	a.Wait = x - t.now
	switch {
	case a.Wait <= early && a.Wait <= o.Patience:
		a.Status, a.At, a.By, a.Left = lua.Go, x, 0, make([]lua.Left, len(o.Rows))
		for i := range o.Rows {
			r := &o.Rows[i]
			tape := t.keep(r)
			tape.charge(r, x, r.Burst > 0 || x < ramp(i), t.now)
			a.Left[i] = lua.Left{Units: r.Amount - tape.counted(r, x), Others: tape.others(x)}
		}
		if model.Take(x, t.lease, t.now) {
			t.setScope(o.Model, model)
			a.By |= lua.ProbeModel
		}
		if key.Take(x, t.lease, t.now) {
			t.setScope(o.Key, key)
			a.By |= lua.ProbeKey
		}
		a.KeyGen, a.ModelGen = key.Gen, model.Gen
	case a.Wait > o.Patience:
		a.Status = lua.Refused
	default:
		a.Status, a.At = lua.InLine, id
		t.lines[o.Line] = q
		c.told, c.rows = x, slices.Clone(o.Rows)
		if a.By > 0 {
			c.by = o.Rows[a.By-1].Tag
		}
		q.join(c, t.now)
	}
	return a
}

// memLine is who waits, in order.
type memLine struct {
	calls   []*waiting
	expires int64
}

// waiting is a call that waits, or one that is being decided.
type waiting struct {
	id    int64
	share float64
	model int64 // a tag
	open  int64 // when its scopes are open, or now
	told  int64 // its forecast
	by    int64 // tag of the limit that it waits for; 0 is a pause
	rows  []lua.Row
}

func (w *waiting) cost(tag int64) int64 {
	for i := range w.rows {
		if w.rows[i].Tag == tag {
			return w.rows[i].Cost
		}
	}
	return 0
}

// before says whether w goes before c on a limit: its share is larger, or it is
// of the same share and came first. A call of another model (they meet under a
// limit of the key) counts when it waits for this very limit, or when its time
// has come: it must not keep others from room that it cannot use yet.
func (w *waiting) before(c *waiting, tag int64) bool {
	return (w.share > c.share || w.share == c.share && w.id < c.id) &&
		(w.model == c.model || w.by == tag || w.told <= c.open)
}

// line returns the line without those who are gone; it is kept once someone joins.
func (t *turn) line(name string) *memLine {
	q := t.lines[name]
	if q == nil {
		return &memLine{}
	}
	q.calls = slices.DeleteFunc(q.calls, func(w *waiting) bool { return w.told+lineGrace < t.now })
	return q
}

func (q *memLine) next(now int64) int64 {
	if n := len(q.calls); n > 0 {
		return max(now, q.calls[n-1].id+1)
	}
	return now
}

func (q *memLine) find(id int64) (int, bool) {
	return slices.BinarySearchFunc(q.calls, id, func(w *waiting, id int64) int { return cmp.Compare(w.id, id) })
}

func (q *memLine) leave(id int64) bool {
	i, there := q.find(id)
	if there {
		q.calls = slices.Delete(q.calls, i, i+1)
	}
	return there
}

func (q *memLine) join(w *waiting, now int64) {
	i, _ := q.find(w.id)
	q.calls = slices.Insert(q.calls, i, w)
	last := now
	for _, c := range q.calls {
		last = max(last, c.told)
	}
	q.expires = last + extraLife
}

// ahead sums the units of those who go before a call.
func (q *memLine) ahead(tag int64, c *waiting) int64 {
	var n int64
	for _, w := range q.calls {
		if w.before(c, tag) {
			n = sum(n, w.cost(tag))
		}
	}
	return n
}

// sum adds and stays where an int64 ends: a line of calls near 2^53 units each
// must not wrap around.
func sum(a, b int64) int64 {
	if c := a + b; c >= a || b < 0 {
		return c
	}
	return 1<<63 - 1
}

// announce enters one process into the list of those that use a key, and
// returns how many there are.
func (m *Memory) announce(_ context.Context, names lua.Names, a lua.Announcement) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := names.Fleet()
	if m.fleets[f] == nil {
		m.fleets[f] = map[string]lua.Member{}
	}
	if a.Leaving {
		delete(m.fleets[f], a.Name)
	} else {
		m.fleets[f][a.Name] = lua.Member{Name: a.Name, Seen: m.now(), Report: a.Report}
	}
	return len(m.roster(f, m.now())), nil
}

// members lists the processes that use a key.
func (m *Memory) members(_ context.Context, names lua.Names) ([]lua.Member, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.roster(names.Fleet(), m.now()), nil
}

func (m *Memory) roster(fleet string, now int64) []lua.Member {
	f := m.fleets[fleet]
	maps.DeleteFunc(f, func(_ string, x lua.Member) bool { return x.Seen+lua.MemberLife <= now })
	if len(f) == 0 {
		delete(m.fleets, fleet)
	}
	return slices.SortedFunc(maps.Values(f), func(a, b lua.Member) int { return cmp.Compare(a.Name, b.Name) })
}
