package transport

import (
	"context"
	"time"

	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/throttle"
)

type (
	modelKey   struct{}
	keyIDKey   struct{}
	costKey    struct{}
	maxWaitKey struct{}
)

// WithModel returns a context whose calls count under model, whatever their
// requests name. Empty changes nothing.
func WithModel(ctx context.Context, model string) context.Context {
	return context.WithValue(ctx, modelKey{}, model)
}

// WithKeyID returns a context whose calls count under the stable name id instead
// of their credential; see [Transport.KeyID]. Empty changes nothing.
func WithKeyID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, keyIDKey{}, id)
}

// WithCost returns a context whose calls cost this much, by unit; see
// [Transport.Cost]. Nil changes nothing. cost must not change afterwards.
func WithCost(ctx context.Context, cost throttle.Cost) context.Context {
	return context.WithValue(ctx, costKey{}, cost)
}

// WithMaxWait returns a context whose calls wait for room no longer than d,
// instead of the lane's own time, and not at all if d is negative. Zero changes
// nothing.
func WithMaxWait(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, maxWaitKey{}, d)
}

// modelOf returns the model that ctx or the transport fixes, "" if neither does.
func (t *Transport) modelOf(ctx context.Context) string {
	if m, _ := ctx.Value(modelKey{}).(string); m != "" {
		return m
	}
	return t.Model
}

func (t *Transport) keyIDOf(ctx context.Context) string {
	if id, _ := ctx.Value(keyIDKey{}).(string); id != "" {
		return id
	}
	return t.KeyID
}

// costOf returns the cost that ctx or the transport fixes, nil if neither does.
func (t *Transport) costOf(ctx context.Context) throttle.Cost {
	if c, _ := ctx.Value(costKey{}).(throttle.Cost); c != nil {
		return c
	}
	return t.Cost
}

func (t *Transport) maxWaitOf(ctx context.Context) time.Duration {
	if d, _ := ctx.Value(maxWaitKey{}).(time.Duration); d != 0 {
		return d
	}
	return t.MaxWait
}

func (t *Transport) laneOf(ctx context.Context) lanes.Lane {
	lane, _ := lanes.From(ctx)
	return lane.Or(t.Lane).Or(lanes.Live)
}
