package throttle

import (
	"context"
	"errors"
	"time"

	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/lua"
	"github.com/headway-go/headway/pause"
)

// aloneAtOnce is how long a call that goes without the store may take to be
// still at the time at which it asked the store.
const aloneAtOnce = 50 * time.Millisecond

// comeBack is when a call that is closed out by an outage may come back.
const comeBack = time.Second

// alone decides a call without the store, by the policy of its lane.
func (l *Limiter) alone(ctx context.Context, g *group, p *plan, patience time.Duration, cause error) (*Reservation, error) {
	switch members := g.fleetSize(); p.lane.DuringOutage() {
	case lanes.Open:
		free, own := *p, l.ownGroup(g)
		free.op.Rows, free.units, free.names = nil, nil, nil
		return &Reservation{g: own, plan: &free, answer: own.asItIs(p)}, nil
	case lanes.Local:
		if members < 1 {
			break // it never saw the store: nobody knows what its part is
		}
		began := time.Now()
		part, rest := p.part(members)
		own := l.ownGroup(g)
		r, err := own.admit(ctx, part, patience)
		if err != nil {
			return nil, err
		}
		// The store may have charged a call that asked before it was lost. Such a
		// call is not charged again, unless it has waited since: that charge counts
		// at another time than the call goes.
		lost := (*lostError)(nil)
		asked := time.Since(began) < aloneAtOnce && errors.As(cause, &lost) && g.counted(lost, p)
		if !asked && !l.owe(p) { // the store came back while the call waited
			r, err := l.both(ctx, g, p, r, max(0, patience-time.Since(began)))
			if errors.Is(err, ErrStoreUnavailable) { // and is lost again
				return l.alone(ctx, g, p, max(0, patience-time.Since(began)), err)
			}
			return r, err
		}
		if len(rest) > 0 {
			r.end() // a call larger than the part is not settled: its cost is spread over windows to come
			own.spread(part, rest, r.answer.At)
		}
		return r, nil
	}
	return nil, &OutageError{Key: p.key, Model: p.model, Lane: p.lane.Name,
		Deferred: p.lane.MaxWait == 0, RetryAfter: comeBack + jitter(comeBack), cause: cause}
}

// asItIs is the answer to a call that goes whatever is held: what the vendor says
// to it is news about the scopes as they are now.
func (g *group) asItIs(p *plan) lua.Answer {
	look := func(on string) lua.Op {
		return lua.Op{Kind: lua.Look, Key: p.op.Key, Model: p.op.Model, Line: p.op.Line, On: on}
	}
	now, _ := g.do(context.Background(), look(p.op.Key), look(p.op.Model)) // memory never errs
	return lua.Answer{Status: lua.Go, KeyGen: now[0].By, ModelGen: now[1].By}
}

// handOver decides a call just after an outage: it must fit the part of its
// process and the whole budget.
func (l *Limiter) handOver(ctx context.Context, g *group, p *plan, patience time.Duration) (*Reservation, error) {
	members := g.fleetSize()
	if members < 1 {
		return g.admit(ctx, p, patience)
	}
	began := time.Now()
	part, _ := p.part(members)
	mine, err := l.ownGroup(g).admit(ctx, part, patience)
	if err != nil {
		return nil, err
	}
	return l.both(ctx, g, p, mine, max(0, patience-time.Since(began)))
}

// both has the store decide a call that fits the part of its process, and gives
// the part back when it does not go.
func (l *Limiter) both(ctx context.Context, g *group, p *plan, mine *Reservation, patience time.Duration) (*Reservation, error) {
	r, err := g.admit(ctx, p, patience)
	if err != nil {
		_ = mine.Cancel(ctx) // memory never errs
		return nil, err
	}
	return r, nil
}

// fleetSize is the number of members that parts are made for; zero is unknown.
func (g *group) fleetSize() int64 { return max(g.members.Load(), int64(g.l.config.Members)) }

// ownGroup returns the group of the same key on this process' own store.
func (l *Limiter) ownGroup(g *group) *group {
	o := &l.outage
	o.mu.Lock()
	defer o.mu.Unlock()
	own := o.groups[g.key]
	if own == nil {
		own = &group{l: l, key: g.key, store: o.memory, names: g.names, rooms: map[string]*room{}}
		o.groups[g.key] = own
	}
	return own
}

// isAlone reports whether the group decides by this process' own store in the
// place of the fleet's.
func (g *group) isAlone() bool {
	m, here := g.store.(*Memory)
	return here && m == g.l.outage.memory
}

// part returns the plan under one member's part of every limit: the amount
// divided by the members. A part below one unit has a longer window instead. A
// cost above the part takes the part now, and rest is what is left of it.
func (p *plan) part(members int64) (part *plan, rest []lua.Row) {
	mine := *p
	mine.op.Rows = make([]lua.Row, len(p.op.Rows))
	for i, r := range p.op.Rows {
		if r.Amount < members {
			r.Window = (r.Window*members + r.Amount - 1) / r.Amount
			r.Tape += ":part"
			r.Amount, r.Burst = 1, 0
		} else {
			r.Amount /= members
			if r.Burst > 0 {
				r.Burst = max(1, r.Burst/members)
			}
		}
		r.Ceiling = min(max(1, r.Ceiling/members), r.Amount)
		if over := r.Cost - r.Ceiling; over > 0 {
			r.Cost = r.Ceiling
			left := r
			left.Cost = over
			rest = append(rest, left)
		}
		mine.op.Rows[i] = r
	}
	return &mine, rest
}

// spread charges what is left of a large cost in the windows after at.
func (g *group) spread(p *plan, rest []lua.Row, at int64) {
	const windows = 100 // and no further: the longest waits are far shorter
	var ops []lua.Op
	for _, r := range rest {
		for k, left := int64(1), r.Cost; left > 0 && k <= windows; k++ {
			r.Cost = min(left, r.Ceiling)
			left -= r.Cost
			ops = append(ops, lua.Op{Kind: lua.Charge, Key: p.op.Key, Model: p.op.Model, At: at + k*r.Window, Rows: []lua.Row{r}})
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.post(ops)
}

// owe notes what a call spends that the store does not know of, and reports
// whether the outage is still on: what is noted later nobody tells the store in
// time.
func (l *Limiter) owe(p *plan) bool {
	o, now := &l.outage, time.Now().UnixMicro()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.down.Load() {
		return false
	}
	for i := range p.op.Rows {
		o.add(lua.Op{Kind: lua.Charge, Key: p.op.Key, Model: p.op.Model}, &p.op.Rows[i], now)
	}
	return true
}

// add owes the cost of a row. o.mu is held.
func (o *outage) add(op lua.Op, r *lua.Row, now int64) {
	d := o.debts[r.Tape]
	if d == nil {
		d = &debt{op: op, row: *r}
		o.debts[r.Tape] = d
	}
	d.spent.forget(r, now)
	d.spent.charge(r, now, false, now)
}

// repay tells the store what was spent while it was away and still counts. What
// the store does not take stays owed.
func (l *Limiter) repay() {
	o, now := &l.outage, time.Now().UnixMicro()
	o.mu.Lock()
	debts := o.debts
	o.debts = map[string]*debt{}
	o.mu.Unlock()
	for _, g := range l.allGroups() {
		var ops []lua.Op
		for _, d := range debts {
			d.spent.forget(&d.row, now)
			if d.op.Key != g.names.Key() || d.spent.used(&d.row, now) == 0 {
				continue
			}
			op, row := d.op, d.row
			row.Cost = d.spent.sum
			op.Rows = []lua.Row{row}
			ops = append(ops, op)
		}
		if !g.tell(ops) {
			o.mu.Lock()
			for _, op := range ops {
				o.add(op, &op.Rows[0], now)
			}
			o.mu.Unlock()
		}
	}
}

// tell has the store carry out operations outside of any call, and reports
// whether it did.
func (g *group) tell(ops []lua.Op) bool {
	if len(ops) == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), g.l.config.StoreTimeout)
	defer cancel()
	_, err := g.store.decide(ctx, g.l.batch(ops))
	if err != nil {
		g.l.log.Warn("throttle: the store did not take what happened during the outage", "key", g.key, "error", err)
	}
	return err == nil
}

// passOn carries out, where they would not be heard otherwise, the holds that a
// call reports: of one that the store admitted and whose answer came during an
// outage, here; of one whose answer came after the outage, in the store.
func (g *group) passOn(ops []lua.Op, err error, t *target) {
	here := g.isAlone()
	if !here && !errors.Is(err, ErrStoreUnavailable) {
		return
	}
	var holds []lua.Op
	for _, op := range ops {
		if op.Kind == lua.Hold { // the generation is the other store's
			op.Gen, op.Rule, op.Longest = 0, int64(pause.Operator), 0
			holds = append(holds, op)
		}
	}
	if len(holds) == 0 {
		return
	}
	if !here {
		own := g.l.ownGroup(g)
		answers, _ := own.do(context.Background(), holds...) // memory never errs
		for i, a := range answers {
			own.told(holds[i], a, t)
		}
	}
	if !g.l.outage.down.Load() { // else recover tells it
		store, _ := g.l.find(g.key, "")
		store.tell(holds)
	}
}

// heldAlone returns operations that hold in the store what is held here.
func (l *Limiter) heldAlone(g *group) (ops []lua.Op) {
	m := l.outage.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for name, s := range m.scopes {
		if g.names.Has(name) && s.Till > now {
			ops = append(ops, lua.Op{Kind: lua.Hold, Key: g.names.Key(), Model: name, On: name,
				Length: s.Till - now, First: s.Phase > 0, Why: s.Why})
		}
	}
	return ops
}

// alone brings what the store said to be held into this process' own store, and
// wakes everyone who waits for the other one.
func (g *group) alone() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, till := range g.held {
		if left := micros(time.Until(till)); left > 0 {
			hold := lua.Op{Kind: lua.Hold, Key: g.names.Key(), Model: name, On: name, Length: left}
			_, _ = g.l.outage.memory.decide(context.Background(), g.l.batch([]lua.Op{hold})) // memory never errs
		}
	}
	for _, r := range g.rooms {
		r.wakeAll()
	}
}

// remember keeps what an answer of the store says that would matter if it were
// the last: what this process spent, and what is held. g.mu is held.
func (g *group) remember(op *lua.Op, a lua.Answer) {
	if _, here := g.store.(*Memory); here || op.Kind != lua.Take && op.Kind != lua.Ask {
		return
	}
	switch {
	case a.Status == lua.Go && !g.l.outage.over.Load():
		delete(g.held, op.Key)
		delete(g.held, op.Model)
		mirror := lua.Op{Kind: lua.Charge, Key: op.Key, Model: op.Model, Rows: op.Rows}
		_, _ = g.l.outage.memory.decide(context.Background(), g.l.batch([]lua.Op{mirror})) // memory never errs
	case a.By == lua.ByKey:
		g.held[op.Key] = time.Now().Add(time.Duration(a.Wait) * time.Microsecond)
	case a.By == lua.ByModel:
		g.held[op.Model] = time.Now().Add(time.Duration(a.Wait) * time.Microsecond)
	}
}
