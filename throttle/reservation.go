package throttle

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/headway-go/headway/lua"
	"github.com/headway-go/headway/pause"
)

// Reservation is an admitted call: its estimated cost is taken from the budget.
// Its owner sends the call and then ends the reservation with Settle, or with
// Cancel when the call never went out. One that is not ended stays charged as
// estimated, which is right for a call whose fate is unknown.
//
// All methods are safe for concurrent use. They block for one answer of the
// store at most, and go on when ctx is cancelled: what a call did must be told
// after its caller has gone.
type Reservation struct {
	g      *group
	plan   *plan
	answer lua.Answer

	mu    sync.Mutex
	ended bool
	probe int64 // bits of lua.ProbeKey and lua.ProbeModel that were reported on
}

// Cost returns what the call was charged, by unit: the estimate, lowered where
// it was a guess above what the lane may fill.
func (r *Reservation) Cost() Cost {
	c := make(Cost, len(r.plan.units))
	for i, unit := range r.plan.units {
		c[unit] = r.plan.op.Rows[i].Cost
	}
	return c
}

// At returns the moment of the store's clock at which the call was charged: the
// moment that every limit counts it at. The host's own clock may differ.
func (r *Reservation) At() time.Time { return time.UnixMicro(r.answer.At) }

// Probe reports whether this call is the one trial call of the fleet after a
// refused key or a long pause.
func (r *Reservation) Probe() bool { return r.answer.By != 0 }

// announce emits the events of a call that goes after it has waited.
func (r *Reservation) announce(waited time.Duration) {
	l, p := r.g.l, r.plan
	if r.answer.By&lua.ProbeKey != 0 {
		l.emit(Event{Kind: ProbeSent, Key: p.key, Scope: pause.Key})
	}
	if r.answer.By&lua.ProbeModel != 0 {
		l.emit(Event{Kind: ProbeSent, Key: p.key, Model: p.model, Scope: pause.Model})
	}
	l.emit(Event{Kind: Admitted, Key: p.key, Model: p.model, Lane: p.lane.Name, Wait: waited})
}

// end reports whether this is the first call to end the reservation.
func (r *Reservation) end() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := !r.ended
	r.ended = true
	return first
}

// Settle replaces the estimate by what the vendor counted, in the window that
// was charged; units that actual does not name stay as estimated, and those that
// follow from others (see [Tokens] and [Prices]) follow. A window that is over is
// left alone. The fleet learns from it, see Call.Guess. Only the first Settle,
// SettleAtLeast or Cancel has an effect; later ones return nil.
func (r *Reservation) Settle(ctx context.Context, actual Cost) error {
	if err := actual.validate("Settle: Cost"); err != nil || !r.end() {
		return err
	}
	op := r.op(lua.Adjust)
	op.At, op.Rows = r.answer.At, r.plan.delta(r.actual(actual))
	if len(op.Rows) == 0 {
		return nil // and nothing to learn: it took what was expected
	}
	op.Guessed, op.Took = r.plan.learn(actual)
	answers, err := r.g.do(context.WithoutCancel(ctx), op)
	if err == nil {
		r.plan.heard(answers[0].Lately())
	}
	return err
}

// SettleAtLeast is Settle for a count that is not final, such as that of a
// stream which was cut: what is above the estimate is charged, nothing is given
// back, and nothing is learned.
func (r *Reservation) SettleAtLeast(ctx context.Context, seen Cost) error {
	if err := seen.validate("SettleAtLeast: Cost"); err != nil || !r.end() {
		return err
	}
	op := r.op(lua.Adjust)
	more := func(row lua.Row) bool { return row.Cost < 0 }
	op.At, op.Rows = r.answer.At, slices.DeleteFunc(r.plan.delta(r.actual(seen)), more)
	if len(op.Rows) == 0 {
		return nil
	}
	_, err := r.g.do(context.WithoutCancel(ctx), op)
	return err
}

// actual is what the call took in the units that were counted, and in those
// that follow from them and from what else was estimated.
func (r *Reservation) actual(counted Cost) Cost {
	l, t := r.g.l, r.plan.target
	all := make(Cost, len(r.plan.cost)+len(counted)+2)
	maps.Copy(all, r.plan.cost)
	maps.Copy(all, counted)
	before, after := l.complete(t, r.plan.cost), l.complete(t, all)
	maps.DeleteFunc(after, func(unit string, n int64) bool {
		_, is := counted[unit]
		return !is && n == before[unit]
	})
	return after
}

// Cancel gives everything back: the call never went out. A probe's place is
// free for the next call.
func (r *Reservation) Cancel(ctx context.Context) error {
	if !r.end() {
		return nil
	}
	ops := giveBack(r.plan.op, r.granted())
	if len(ops) == 0 {
		return nil
	}
	_, err := r.g.do(context.WithoutCancel(ctx), ops...)
	return err
}

// granted is the answer that admitted the call, without the probes reported on.
func (r *Reservation) granted() lua.Answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.answer
	a.By &^= r.probe
	return a
}

// op returns an operation about this call's key and model.
func (r *Reservation) op(kind lua.Kind) lua.Op {
	return lua.Op{Kind: kind, Key: r.plan.op.Key, Model: r.plan.op.Model, Line: r.plan.op.Line}
}

// Report tells the fleet what the vendor answered: it pauses the model or the
// key, ends or repeats a key's pause when this call was its probe, and does
// nothing, without asking the store, when there is nothing to tell. It does not
// settle. What it does is [pause.Policy.Effect].
func (r *Reservation) Report(ctx context.Context, v pause.Verdict) error {
	effect := r.g.l.config.Policy.Effect(v)
	ops := r.report(effect)
	if len(ops) == 0 {
		return nil
	}
	answers, err := r.g.do(context.WithoutCancel(ctx), ops...)
	for i, a := range answers {
		r.g.told(ops[i], a, r.plan.target)
	}
	r.g.passOn(ops, err, r.plan.target)
	return err
}

// report lays out what an effect tells the store.
func (r *Reservation) report(e pause.Effect) (ops []lua.Op) {
	r.mu.Lock()
	probe := r.answer.By &^ r.probe
	r.probe = r.answer.By
	r.mu.Unlock()

	about := func(kind lua.Kind, scope pause.Scope) lua.Op {
		op := r.op(kind)
		op.On, op.Gen = op.Model, r.answer.ModelGen
		if scope == pause.Key {
			op.On, op.Gen = op.Key, r.answer.KeyGen
		}
		return op
	}
	// A hold of the probe's own scope, and of its generation, ends the probe by
	// itself; a word before it would make it late.
	if probe&lua.ProbeKey != 0 && e.Scope != pause.Key {
		ops = append(ops, about(outcome(e.Probe), pause.Key))
	}
	if probe&lua.ProbeModel != 0 && e.Scope != pause.Model {
		probe := e.Probe
		if probe == pause.Refused {
			probe = pause.Nothing // the key's answer says nothing about the model
		}
		ops = append(ops, about(outcome(probe), pause.Model))
	}
	if e.Scope != pause.None {
		op := about(lua.Hold, e.Scope)
		op.Length, op.Longest, op.Calm = e.Hold.Length, e.Hold.Longest, e.Hold.Calm
		op.First, op.Rule, op.Why = e.Hold.First, int64(e.Hold.Rule), e.Hold.Why
		own := int64(lua.ProbeModel)
		if e.Scope == pause.Key {
			own = lua.ProbeKey
		}
		if probe&own != 0 && e.Probe == pause.Nothing {
			op.First = true // the answer was inconclusive: the next call probes
		}
		ops = append(ops, op)
	}
	return ops
}

func outcome(p pause.Probe) lua.Kind {
	if p == pause.Works {
		return lua.Answered
	}
	return lua.Freed
}

// told emits the event of a change that this process made; another process
// that reports the same gets a different answer, so a fleet says it once.
func (g *group) told(op lua.Op, a lua.Answer, t *target) {
	if a.Status == lua.Refused {
		return
	}
	e := Event{Key: t.key, Scope: pause.Key, For: time.Duration(a.Wait) * time.Microsecond}
	if op.On != op.Key {
		e.Model, e.Scope = t.model, pause.Model
	}
	if op.Kind == lua.Hold {
		e.Why = why(op.Why)
	}
	switch {
	case op.Kind == lua.Hold && a.Status == lua.InLine:
		e.Kind = PauseGrew
	case op.Kind == lua.Hold:
		e.Kind = PauseBegan
	case op.Kind == lua.Freed:
		e.Kind = ProbeEnded
	default:
		e.Kind = Resumed
	}
	g.l.emit(e)
}
