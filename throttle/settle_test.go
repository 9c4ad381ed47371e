package throttle

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// Promise 6: the estimate is replaced by the vendor's count, once.
func TestSettle(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		actual []Cost
		want   int64 // used of 1000 tokens, 100 of them estimated by this call and 50 by another
		err    error
	}{
		{"down", []Cost{{Tokens: 30}}, 80, nil},
		{"to nothing", []Cost{{Tokens: 0}}, 50, nil},
		{"up", []Cost{{Tokens: 400}}, 450, nil},
		{"up above the limit", []Cost{{Tokens: 5000}}, 5050, nil},
		{"as estimated", []Cost{{Tokens: 100}}, 150, nil},
		{"not named", []Cost{{}}, 150, nil},
		{"another unit", []Cost{{"images": 3}}, 150, nil},
		{"twice", []Cost{{Tokens: 30}, {Tokens: 0}}, 80, nil},
		{"negative", []Cost{{Tokens: -1}}, 150, ErrInvalid},
		{"above 2^53-1", []Cost{{Tokens: MaxAmount + 1}}, 150, ErrInvalid},
		{"largest", []Cost{{Tokens: MaxAmount}}, MaxAmount, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for _, shape := range []Shape{Sliding, Fixed, Bucket} {
				limit := Per(Tokens, 1000, 9600*time.Hour)
				limit.Shape = shape
				if shape == Bucket {
					limit.Burst = 1000
				}
				t.Run(shape.String(), func(t *testing.T) {
					onBoth(t, models(limit), func(t *testing.T, p *pair) {
						c := call()
						c.Cost = Cost{Tokens: 50}
						reserve(t, p.b, c)
						c.Cost = Cost{Tokens: 100}
						r := reserve(t, p.a, c)
						for _, actual := range tc.actual {
							if err := r.Settle(t.Context(), actual); !errors.Is(err, tc.err) {
								t.Errorf("Settle(%v) = %v, want %v", actual, err, tc.err)
							}
						}
						if err := r.Cancel(t.Context()); err != nil && tc.err == nil { // ended: no effect
							t.Errorf("Cancel() after Settle = %v", err)
						}
						if got := used(t, p.b, "m")[Tokens]; tc.err == nil && got != tc.want {
							t.Errorf("used = %d, want %d", got, tc.want)
						}
					})
				})
			}
		})
	}
}

// Promise 6: settling at once from many goroutines counts once.
func TestSettleOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, models(Per(Tokens, 1000, time.Hour)), func(t *testing.T, p *pair) {
		c := call()
		c.Cost = Cost{Tokens: 100}
		reserve(t, p.b, c)
		r := reserve(t, p.a, c)
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() {
				var err error
				if i%2 == 0 {
					err = r.Cancel(t.Context())
				} else {
					err = r.Settle(t.Context(), Cost{Tokens: 0})
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := used(t, p.b, "m")[Tokens]; got != 100 {
			t.Errorf("used = %d, want 100", got)
		}
		r = reserve(t, p.a, c)
		for range 8 { // upwards: nothing stops at zero
			wg.Go(func() { _ = r.Settle(t.Context(), Cost{Tokens: 150}) })
		}
		wg.Wait()
		if got := used(t, p.b, "m")[Tokens]; got != 250 {
			t.Errorf("used = %d, want 100 and 150", got)
		}
	})
}

// S17: a settlement that comes when its window is over writes nothing.
func TestS17LateSettlement(t *testing.T) {
	t.Parallel()
	const window = 200 * time.Millisecond
	for _, shape := range []Shape{Sliding, Fixed, Bucket} {
		limit := Per(Tokens, 4096, window)
		limit.Shape = shape
		if shape == Bucket {
			limit.Burst = 4096
		}
		t.Run(shape.String(), func(t *testing.T) {
			t.Parallel()
			onBoth(t, models(limit), func(t *testing.T, p *pair) {
				c := call()
				c.Cost = Cost{Tokens: 2000}
				down, up := reserve(t, p.a, c), reserve(t, p.b, c)
				pass(window + 50*time.Millisecond)
				if p.redis != nil { // as if the key were gone: it must not come back
					for _, k := range p.keys(t) {
						p.redis.Del(t.Context(), k)
					}
				}
				if err := down.Settle(t.Context(), Cost{Tokens: 50}); err != nil {
					t.Fatal(err)
				}
				if err := up.Settle(t.Context(), Cost{Tokens: 4000}); err != nil {
					t.Fatal(err)
				}
				if got := used(t, p.a, "m")[Tokens]; got != 0 {
					t.Errorf("used = %d in the next window, want 0", got)
				}
				if p.redis != nil {
					for _, k := range p.keys(t) {
						if typ := p.redis.Type(t.Context(), k).Val(); typ == "string" {
							t.Errorf("a late settlement made the key %s", k)
						}
					}
				}
			})
		})
	}
}

// S20: a key that lost its expiry gets one with the next admission.
func TestS20LostExpiryIsRepaired(t *testing.T) {
	t.Parallel()
	for _, shape := range []Shape{Sliding, Bucket} {
		limit := Per(Requests, 100, time.Hour)
		limit.Shape = shape
		if shape == Bucket {
			limit.Burst = 100
		}
		t.Run(shape.String(), func(t *testing.T) {
			t.Parallel()
			onRedis(t, models(limit), func(t *testing.T, p *pair) {
				reserve(t, p.a, call())
				keys := p.keys(t)
				for _, k := range keys {
					p.redis.Persist(t.Context(), k)
				}
				reserve(t, p.b, call()) // the check at the end of the test sees every key
			})
		})
	}
}

// S11 a: a call whose context is done takes nothing.
func TestS11DoneContextTakesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, models(Per(Requests, 10, time.Hour)), func(t *testing.T, p *pair) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 100 {
			if _, err := p.a.Wait(ctx, call()); !errors.Is(err, context.Canceled) {
				t.Fatalf("Wait(done context) = %v, want context.Canceled", err)
			}
		}
		if got := used(t, p.b, "m")[Requests]; got != 0 {
			t.Errorf("used = %d, want 0", got)
		}
	})
}

// S11 c: a call that never went out is given back, all of it, in every shape.
func TestS11CancelGivesBack(t *testing.T) {
	t.Parallel()
	bucket := Per("images", 10, time.Hour)
	bucket.Shape, bucket.Burst = Bucket, 5
	fixed := Per("segments", 10, 9600*time.Hour)
	fixed.Shape = Fixed
	c := models(Per(Requests, 10, time.Hour), Per(Tokens, 1000, time.Hour), bucket, fixed)
	c.Key = []Limit{Per(Requests, 12, time.Hour)}
	onBoth(t, c, func(t *testing.T, p *pair) {
		c := call()
		c.Cost = Cost{Requests: 1, Tokens: 300, "images": 5, "segments": 2}
		for i := range 20 { // more than would fit if one stayed
			r := reserve(t, p.each(i), c)
			if err := r.Cancel(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := r.Cancel(t.Context()); err != nil {
				t.Fatalf("second Cancel() = %v", err)
			}
		}
		for unit, n := range used(t, p.b, "m") {
			if n != 0 {
				t.Errorf("used %d %s, want 0", n, unit)
			}
		}
	})
}

// Settling works when the caller's context has ended (S18).
func TestS18SettleAfterCancel(t *testing.T) {
	t.Parallel()
	onBoth(t, models(Per(Tokens, 1000, time.Hour)), func(t *testing.T, p *pair) {
		ctx, cancel := context.WithCancel(t.Context())
		c := call()
		c.Cost = Cost{Tokens: 500}
		r, err := p.a.Reserve(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := r.Settle(ctx, Cost{Tokens: 20}); err != nil {
			t.Fatal(err)
		}
		if got := used(t, p.b, "m")[Tokens]; got != 20 {
			t.Errorf("used = %d, want 20", got)
		}
	})
}

// So does reporting: the pause is there for the whole fleet.
func TestReportAfterCancel(t *testing.T) {
	t.Parallel()
	onBoth(t, models(Per(Requests, 10, time.Hour)), func(t *testing.T, p *pair) {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := p.a.Reserve(ctx, call())
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := r.Report(ctx, later(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if e := refuse(t, p.b, call()); e.Reason != ModelPaused {
			t.Errorf("refusal = %+v, want a paused model", e)
		}
	})
}
