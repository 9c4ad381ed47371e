package throttle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headway-go/headway/lua"
	"github.com/headway-go/headway/pause"
)

// Pause holds a model of a key, or the whole key when model is empty, for d,
// for the whole fleet. A longer pause that is running stays. It blocks for one
// answer of the store.
func (l *Limiter) Pause(ctx context.Context, key, model string, d time.Duration) error {
	if d < time.Millisecond || d > maxWindow {
		return fmt.Errorf("throttle: Pause: must be 1ms to %v, got %v", maxWindow, d)
	}
	return l.operate(ctx, key, model, lua.Op{Kind: lua.Hold, Length: micros(d), Rule: int64(pause.Operator), Why: byOperator})
}

// Resume opens a model of a key, or the whole key when model is empty, now,
// whatever held it. A refused key resumes without a probe.
func (l *Limiter) Resume(ctx context.Context, key, model string) error {
	return l.operate(ctx, key, model, lua.Op{Kind: lua.Resume})
}

// byOperator is why a pause was made by [Limiter.Pause]; other values are a
// [pause.Class].
const byOperator = -1

func (l *Limiter) operate(ctx context.Context, key, model string, op lua.Op) error {
	if key == "" {
		return errors.New("throttle: key: must not be empty")
	}
	g, t := l.find(key, model)
	op.Key, op.Model, op.Line, op.On = t.names.Key(), t.scope, t.line, t.scope
	if model == "" {
		op.On = op.Key
	}
	answers, err := g.do(ctx, op)
	if err != nil {
		return err
	}
	g.told(op, answers[0], t)
	return nil
}
