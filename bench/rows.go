package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/headway-go/headway/throttle"
	"github.com/redis/go-redis/v9"
)

// plenty is a limit that no row reaches; with a window of a second its tape is
// as long as it gets after the first one.
const plenty = 1_000_000_000

var cost = throttle.Cost{throttle.Requests: 1, throttle.Tokens: 700}

// newRows prepares what is measured, in the order of the table.
func newRows(ctx context.Context, rdb *redis.Client) ([]row, error) {
	models := map[string][]throttle.Limit{
		"one":  {throttle.PerSecond(throttle.Requests, plenty)},
		"two":  {throttle.PerSecond(throttle.Requests, plenty), throttle.PerSecond(throttle.Tokens, plenty)},
		"none": {throttle.PerDay(throttle.Requests, 1), throttle.PerDay(throttle.Tokens, plenty)},
	}
	shared, err := throttle.New(throttle.Config{Redis: rdb, Models: models, StoreTimeout: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	alone, err := throttle.New(throttle.Config{Models: models})
	if err != nil {
		return nil, err
	}
	call := func(model string) throttle.Call { return throttle.Call{Key: "bench", Model: model, Cost: cost} }
	if _, err := shared.Reserve(ctx, call("none")); err != nil { // spends it
		return nil, err
	}
	empty := redis.NewScript("return 1")
	peer := redis_rate.NewLimiter(rdb)
	reserve := func(l *throttle.Limiter, model string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := l.Reserve(ctx, call(model))
			return err
		}
	}
	return []row{
		{"empty EVALSHA", func(ctx context.Context) error {
			return empty.Run(ctx, rdb, []string{"bench:empty"}).Err()
		}},
		{"redis_rate", func(ctx context.Context) error {
			r, err := peer.Allow(ctx, "bench", redis_rate.PerSecond(1_000_000))
			if err == nil && r.Allowed == 0 {
				err = errors.New("not allowed")
			}
			return err
		}},
		{"Reserve, one limit", reserve(shared, "one")},
		{"Reserve, two limits", reserve(shared, "two")},
		{"Reserve, refused", func(ctx context.Context) error {
			_, err := shared.Reserve(ctx, call("none"))
			if _, ok := errors.AsType[*throttle.RefusedError](err); !ok {
				return fmt.Errorf("want a refusal, got %v", err)
			}
			return nil
		}},
		{"Reserve + Settle", func(ctx context.Context) error {
			r, err := shared.Reserve(ctx, call("two"))
			if err != nil {
				return err
			}
			return r.Settle(ctx, throttle.Cost{throttle.Tokens: 650})
		}},
		{"Reserve, memory store", reserve(alone, "two")},
	}, nil
}
