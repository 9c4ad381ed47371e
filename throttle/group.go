package throttle

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headway-go/headway/lua"
)

// maxBatch is the most operations that one script call decides.
const maxBatch = 128

// maxStray is the most calls of the store that may be out beyond their time:
// one that found the outage, one that tries whether it is over.
const maxStray = 2

// group merges the operations of one process on one key: one that finds none in
// flight goes at once, those that come meanwhile ride in the next call of the
// script together, in order.
type group struct {
	l     *Limiter
	store store
	key   string
	names lua.Names

	mu       sync.Mutex
	flight   *flight // the call of the script that is out, or nil
	queue    []*rider
	answered time.Time            // when the store last answered in time
	rooms    map[string]*room     // who sleeps, by model's scope
	watch    bool                 // a watch is running
	held     map[string]time.Time // scopes that the store says are held, until when

	tally   tally
	members atomic.Int64 // of the fleet, when last heard
}

// rider is one operation and its caller, who waits on done.
type rider struct {
	op     lua.Op
	answer lua.Answer
	err    error
	done   chan struct{} // of capacity 1
	flight *flight       // nil while queued
	gone   bool          // the caller left; what was admitted is given back
	went   *plan         // but the call went without the store: see counted
}

// flight is one call of the script.
type flight struct {
	riders []*rider
	stray  bool // it did not answer in time; the group goes on without it
}

// do carries out operations, in order and side by side in one call of the
// script, and returns their answers. It ends with ctx, and within the store's
// timeout in any case; what was admitted for a caller who left is given back.
func (g *group) do(ctx context.Context, ops ...lua.Op) ([]lua.Answer, error) {
	if m, ok := g.store.(*Memory); ok {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.here(m, ops), nil
	}
	if g.l.outage.down.Load() {
		return nil, &lostError{cause: g.l.outage.why()}
	}
	riders := make([]*rider, len(ops))
	g.mu.Lock()
	for i := range ops {
		riders[i] = &rider{op: ops[i], done: make(chan struct{}, 1)}
		g.queue = append(g.queue, riders[i])
	}
	g.start()
	g.mu.Unlock()

	timer := time.NewTimer(g.l.config.StoreTimeout)
	defer timer.Stop()
	answers := make([]lua.Answer, len(ops))
	for i, r := range riders {
		for answered := false; !answered; {
			select {
			case <-r.done:
				answered = true
			case <-ctx.Done():
				g.abandon(riders[i:], false)
				return nil, ctx.Err()
			case <-timer.C:
				left := g.patience()
				if left <= 0 {
					g.abandon(riders[i:], true)
					return nil, g.lost(fmt.Errorf("no answer within %v", g.l.config.StoreTimeout), r)
				}
				timer.Reset(left)
			}
		}
		if r.err != nil {
			g.abandon(riders[i+1:], false)
			return nil, g.lost(r.err, nil)
		}
		answers[i] = r.answer
	}
	return answers, nil
}

// patience is how much longer the store may take to answer those whose time is
// over: its timeout since it last answered anyone. A long queue is no outage.
func (g *group) patience() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.l.config.StoreTimeout - time.Since(g.answered)
}

// here carries out operations on the memory of this process: there is nothing
// to merge and nothing to wait for. g.mu is held.
func (g *group) here(m *Memory, ops []lua.Op) []lua.Answer {
	answers, _ := m.decide(context.Background(), g.l.batch(ops)) // memory never errs
	for i := range answers {
		g.hear(&ops[i], answers[i])
	}
	return answers
}

// start sends what is queued, unless a call of the script is out, or too many
// are without an answer. g.mu is held.
func (g *group) start() {
	if g.flight != nil || len(g.queue) == 0 || g.l.strays.Load() >= maxStray {
		return
	}
	n := min(len(g.queue), maxBatch)
	f := &flight{riders: slices.Clone(g.queue[:n])}
	g.queue = slices.Delete(g.queue, 0, n)
	inTurn(f.riders)
	for _, r := range f.riders {
		r.flight = f
	}
	g.flight = f
	g.l.pending.begin()
	go g.fly(f)
}

// inTurn puts those who ask again into the order in which they stand in line,
// and leaves everyone else where they are.
func inTurn(riders []*rider) {
	var at []int
	var asks []*rider
	for i, r := range riders {
		if r.op.Kind == lua.Ask {
			at, asks = append(at, i), append(asks, r)
		}
	}
	slices.SortStableFunc(asks, func(a, b *rider) int { return cmp.Compare(a.op.ID, b.op.ID) })
	for i, r := range asks {
		riders[at[i]] = r
	}
}

// fly makes one call of the script and hands out its answers.
func (g *group) fly(f *flight) {
	defer g.l.pending.end()
	ops := make([]lua.Op, len(f.riders))
	for i, r := range f.riders {
		ops[i] = r.op
	}
	ctx, cancel := context.WithTimeout(context.Background(), g.l.config.StoreTimeout)
	answers, err := g.store.decide(ctx, g.l.batch(ops))
	cancel()

	g.mu.Lock()
	if err == nil && !f.stray {
		g.answered = time.Now()
	}
	var back []lua.Op
	for i, r := range f.riders {
		if err != nil {
			r.err = err
		} else {
			r.answer = answers[i]
			g.hear(&r.op, r.answer)
			g.remember(&r.op, r.answer)
			if r.gone {
				back = append(back, g.late(r)...)
			}
		}
		r.done <- struct{}{}
	}
	if f.stray {
		g.l.strays.Add(-1)
	} else {
		g.flight = nil
	}
	g.post(back)
	g.mu.Unlock()
}

// late returns the operations that answer a rider whose caller has left. g.mu is held.
func (g *group) late(r *rider) []lua.Op {
	switch {
	case r.went == nil:
		return giveBack(r.op, r.answer)
	case r.answer.Status == lua.Go: // charged, and it did go; only a probe it was not
		return freed(r.op, r.answer)
	}
	back := giveBack(r.op, r.answer)
	if !g.l.owe(r.went) { // the outage is over already
		charge := lua.Op{Kind: lua.Charge, Key: r.op.Key, Model: r.op.Model, Rows: r.went.op.Rows}
		back = append(back, charge)
	}
	return back
}

// counted reports whether what a call asked before the store was lost may be
// charged there, so that it must not be charged again when it goes without the
// store. Where the answer may still come, it decides, see late.
func (g *group) counted(lost *lostError, p *plan) bool {
	r := lost.rider
	if !lost.sent || r == nil {
		return lost.sent
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case r.flight == nil: // it was never sent
		return false
	case len(r.done) > 0: // its answer came meanwhile, and what it admitted was given back
		return r.err != nil
	}
	r.went = p
	return true
}

// abandon lets go of riders whose caller leaves. Those still queued never ran.
func (g *group) abandon(riders []*rider, late bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var back []lua.Op
	for _, r := range riders {
		switch {
		case r.flight == nil:
			g.queue = slices.DeleteFunc(g.queue, func(q *rider) bool { return q == r })
		case len(r.done) > 0: // answered just now
			if r.err == nil {
				back = append(back, giveBack(r.op, r.answer)...)
			}
		default:
			r.gone = true
			if late && !r.flight.stray {
				r.flight.stray = true
				g.l.strays.Add(1)
				g.flight = nil
			}
		}
	}
	g.post(back)
}

// post queues operations whose answers nobody awaits. g.mu is held.
func (g *group) post(ops []lua.Op) {
	if m, ok := g.store.(*Memory); ok {
		g.here(m, ops)
		return
	}
	for _, op := range ops {
		g.queue = append(g.queue, &rider{op: op, done: make(chan struct{}, 1)})
	}
	g.start()
}

// giveBack returns the operations that undo an admission that nobody uses.
func giveBack(op lua.Op, a lua.Answer) []lua.Op {
	if op.Kind != lua.Take && op.Kind != lua.Ask {
		return nil
	}
	switch a.Status {
	case lua.InLine:
		op.Kind, op.ID, op.Rows = lua.Leave, a.At, nil
		return []lua.Op{op}
	case lua.Go:
		return append([]lua.Op{refund(op, a.At)}, freed(op, a)...)
	}
	return nil
}

// refund returns the operation that gives back all that op was charged at at.
func refund(op lua.Op, at int64) lua.Op {
	op.Kind, op.At = lua.Adjust, at
	op.Rows = slices.Clone(op.Rows)
	for i := range op.Rows {
		op.Rows[i].Cost = -op.Rows[i].Cost
	}
	return op
}

// freed returns the operations that give the place of a probe to the next call.
func freed(op lua.Op, a lua.Answer) (ops []lua.Op) {
	if a.By&lua.ProbeKey != 0 {
		ops = append(ops, lua.Op{Kind: lua.Freed, Key: op.Key, Model: op.Model, On: op.Key, Gen: a.KeyGen})
	}
	if a.By&lua.ProbeModel != 0 {
		ops = append(ops, lua.Op{Kind: lua.Freed, Key: op.Key, Model: op.Model, On: op.Model, Gen: a.ModelGen})
	}
	return ops
}

func (l *Limiter) batch(ops []lua.Op) lua.Batch {
	return lua.Batch{Lead: micros(lead), Lease: micros(l.config.Policy.Lease), Ops: ops}
}

func micros(d time.Duration) int64 { return int64(d / time.Microsecond) }
