package throttle

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/headway-go/headway/lua"
)

// wakeSpread is how far those who wait for the end of a pause spread out.
const wakeSpread = 50 * time.Millisecond

// admit asks the store until the call goes or is refused. A call that must wait
// stands in line; whoever leaves gives the place back.
func (g *group) admit(ctx context.Context, p *plan, patience time.Duration) (*Reservation, error) {
	began := time.Now()
	op := p.op
	op.Patience = micros(patience)
	s := &sleeper{wake: make(chan struct{}, 1)}
	var told time.Time // when the call was last told to go
	for {
		answers, err := g.do(ctx, op)
		if err != nil {
			g.leave(op)
			return nil, err
		}
		a := answers[0]
		wait := time.Duration(a.Wait) * time.Microsecond
		switch a.Status {
		case lua.Refused:
			return nil, p.refused(a)
		case lua.Go:
			if !told.IsZero() && time.Until(told) > askEarly+moved { // sooner than it was told: so may the others
				g.wakeAll(op.Model)
			}
			return g.send(ctx, &Reservation{g: g, plan: p, answer: a}, wait)
		case lua.InLine:
		default:
			return nil, fmt.Errorf("throttle: the store answered with status %d", a.Status)
		}
		at := time.Now().Add(wait)
		if !told.IsZero() && told.Sub(at).Abs() > moved {
			g.wakeAll(op.Model)
			s.calm()
		}
		told = at
		op.Kind, op.ID, s.id = lua.Ask, a.At, a.At
		if err := g.sleep(ctx, op.Model, s, a, p.nap(a, wait)); err != nil {
			g.leave(op)
			return nil, err
		}
		op.Patience = micros(max(0, patience-time.Since(began)))
	}
}

// nap is how long a call in line sleeps before it asks again. It asks a little
// early, except where being early is worth nothing: a call under a fixed window,
// or that stands in line with less than the lead to go, is not granted early;
// and the end of a pause is better spread out.
func (p *plan) nap(a lua.Answer, wait time.Duration) time.Duration {
	switch {
	case a.By < 0:
		return wait + rand.N(wakeSpread)
	case wait <= lead, slices.ContainsFunc(p.op.Rows, func(r lua.Row) bool { return r.Burst < 0 }):
		return wait
	}
	return wait - askEarly
}

// send waits for the rest of an admission that was granted early, and hands it out.
func (g *group) send(ctx context.Context, r *Reservation, rest time.Duration) (*Reservation, error) {
	if rest <= 0 {
		return r, nil
	}
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
		return r, nil
	case <-ctx.Done():
		g.mu.Lock()
		g.post(giveBack(r.plan.op, r.answer))
		g.mu.Unlock()
		return nil, ctx.Err()
	}
}

// leave gives back the place of a call that stands in line.
func (g *group) leave(op lua.Op) {
	if op.Kind != lua.Ask {
		return
	}
	op.Kind, op.Rows = lua.Leave, nil
	g.mu.Lock()
	defer g.mu.Unlock()
	g.post([]lua.Op{op})
}
