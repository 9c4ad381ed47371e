package throttle

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway/lanes"
)

// flood makes n calls at once over both hosts and counts those that pass.
func flood(t *testing.T, p *pair, n int, c Call) int64 {
	t.Helper()
	var went atomic.Int64
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			switch _, err := p.each(i).Reserve(t.Context(), c); {
			case err == nil:
				went.Add(1)
			case !errors.Is(err, ErrRefused):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	return went.Load()
}

// S15: exactly the limit passes, never one more or less, for every lane and shape.
func TestS15ExactlyTheLimit(t *testing.T) {
	t.Parallel()
	low := lanes.Lane{Name: "low", Share: 0.8}
	fixed := Per(Requests, 10, 9600*time.Hour) // far from a boundary
	fixed.Shape = Fixed
	bucket := Per(Requests, 100, time.Hour)
	bucket.Shape, bucket.Burst = Bucket, 10
	for _, tc := range []struct {
		name  string
		limit Limit
		lane  lanes.Lane
		want  int64
	}{
		{"live of 10", Per(Requests, 10, time.Hour), lanes.Live, 10},
		{"live of 1", Per(Requests, 1, time.Hour), lanes.Live, 1},
		{"background of 10", Per(Requests, 10, time.Hour), lanes.Background, 6},
		{"background of 1", Per(Requests, 1, time.Hour), lanes.Background, 1},
		{"0.8 of 10", Per(Requests, 10, time.Hour), low, 8},
		{"0.8 of 1", Per(Requests, 1, time.Hour), low, 1},
		{"fixed, live of 10", fixed, lanes.Live, 10},
		{"fixed, background of 10", fixed, lanes.Background, 6},
		{"bucket, live burst of 10", bucket, lanes.Live, 10},
		{"bucket, background burst of 10", bucket, lanes.Background, 6},
		{"many", Per(Requests, 500, time.Hour), lanes.Live, 500},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, models(tc.limit), func(t *testing.T, p *pair) {
				c := call()
				c.Lane = tc.lane
				if got := flood(t, p, 1000, c); got != tc.want {
					t.Errorf("%d of 1000 calls passed, want %d", got, tc.want)
				}
			})
		})
	}
}

// S15: a limit or a lane of nothing is an error, not "unlimited".
func TestS15NothingIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := New(models(Per(Requests, 0, time.Minute))); err == nil || !strings.Contains(err.Error(), "Amount") {
		t.Errorf("New(limit of 0) = %v, want an error that names Amount", err)
	}
	onBoth(t, models(Per(Requests, 10, time.Hour)), func(t *testing.T, p *pair) {
		c := call()
		c.Lane = lanes.Lane{Name: "none"}
		if _, err := p.a.Reserve(t.Context(), c); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "Share") {
			t.Errorf("lane of share 0: %v, want ErrInvalid naming Share", err)
		}
	})
}

// S13: what is reserved counts before any answer arrives.
func TestS13ReservedBeforeItIsSent(t *testing.T) {
	t.Parallel()
	onBoth(t, models(Per(Tokens, 1000, time.Hour)), func(t *testing.T, p *pair) {
		c := call()
		c.Cost = Cost{Tokens: 400}
		if got := flood(t, p, 20, c); got != 2 {
			t.Errorf("%d calls of 400 tokens passed, want 2 of 1000", got)
		}
	})
}

// S14: all limits or none; what is refused costs nothing, not even for a moment.
func TestS14AllOrNone(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		lane lanes.Lane
		fill Cost
		want map[string]int64
	}{
		{"tokens are gone", lanes.Live, Cost{Requests: 5, Tokens: 1000}, map[string]int64{Requests: 5, Tokens: 1000}},
		{"the lane's tokens are gone", lanes.Background, Cost{Requests: 1, Tokens: 600}, map[string]int64{Requests: 1, Tokens: 600}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, models(Per(Requests, 10, time.Hour), Per(Tokens, 1000, time.Hour)), func(t *testing.T, p *pair) {
				c := call()
				c.Cost = tc.fill
				reserve(t, p.a, c)
				c.Lane, c.Cost = tc.lane, Cost{Requests: 1, Tokens: 1}
				before := map[string]time.Duration{}
				if p.redis != nil {
					for _, k := range p.keys(t) {
						before[k] = p.redis.PTTL(t.Context(), k).Val()
					}
				}
				stop := make(chan struct{})
				var wg sync.WaitGroup
				wg.Go(func() { // another host looks on
					for {
						if got := used(t, p.b, "m"); got[Requests] != tc.want[Requests] || got[Tokens] != tc.want[Tokens] {
							t.Errorf("used = %v while calls are refused, want %v", got, tc.want)
						}
						select {
						case <-stop:
							return
						default:
						}
					}
				})
				for i := range 100 {
					e := refuse(t, p.each(i), c)
					if e.Reason != NoRoom || e.Unit != Tokens || !strings.Contains(e.Limit, "1000 tokens") || e.RetryAfter <= 0 {
						t.Fatalf("refusal = %+v, want no room in 1000 tokens and a time to come back", e)
					}
				}
				close(stop)
				wg.Wait()
				for k, ttl := range before {
					if now := p.redis.PTTL(t.Context(), k).Val(); now > ttl {
						t.Errorf("refusals moved the expiry of %s from %v to %v", k, ttl, now)
					}
				}
			})
		})
	}
}

// S16: a call that can never fit is told so, and delays nobody.
func TestS16TooLargeIsItsOwnError(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		lane lanes.Lane
		cost int64
	}{
		{"live", lanes.Live, 1001},
		{"background", lanes.Background, 700},
		{"largest", lanes.Live, MaxAmount},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, models(Per(Tokens, 1000, time.Hour)), func(t *testing.T, p *pair) {
				c := call()
				c.Lane, c.Cost = tc.lane, Cost{Tokens: tc.cost}
				_, err := p.a.Wait(t.Context(), c)
				e := refusal(t, err)
				if e.Reason != TooLarge || !errors.Is(err, ErrTooLarge) || errors.Is(err, ErrDeferred) {
					t.Errorf("err = %v, want too large and not deferred", err)
				}
				if _, ok := RetryAfter(err); ok || e.RetryAfter != 0 {
					t.Errorf("RetryAfter = %v, %v, want none: no time helps", e.RetryAfter, ok)
				}
				if got := used(t, p.b, "m")[Tokens]; got != 0 {
					t.Errorf("used = %d, want 0", got)
				}
				c.Lane, c.Cost = lanes.Live, Cost{Tokens: 1000}
				reserve(t, p.b, c)
			})
		})
	}
}

// A guess above what the lane may fill is lowered to it, in every limit of the unit.
func TestGuessIsLowered(t *testing.T) {
	t.Parallel()
	onBoth(t, models(Per(Tokens, 1000, time.Hour), Per(Tokens, 5000, 24*time.Hour)), func(t *testing.T, p *pair) {
		c := call()
		c.Lane, c.Cost, c.Guess = lanes.Background, nil, Cost{Tokens: 9999}
		r := reserve(t, p.a, c)
		if got := r.Cost()[Tokens]; got != 600 {
			t.Errorf("Cost() = %d, want 600", got)
		}
		for _, l := range model(t, p.b, "m").Limits {
			if l.Used != 600 {
				t.Errorf("used %d of %v, want 600", l.Used, l.Limit)
			}
		}
	})
}

// Promise 5: a limited unit that the cost does not name is an error naming it.
func TestInvalidCalls(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		call Call
		want string
	}{
		{"unit not named", Call{Key: "key", Model: "m", Cost: Cost{Requests: 1}}, Tokens},
		{"no cost", Call{Key: "key", Model: "m"}, Requests},
		{"negative", Call{Key: "key", Model: "m", Cost: Cost{Requests: 1, Tokens: -1}}, Tokens},
		{"above 2^53-1", Call{Key: "key", Model: "m", Cost: Cost{Requests: 1, Tokens: MaxAmount + 1}}, Tokens},
		{"negative in an unlimited unit", Call{Key: "key", Model: "m", Cost: Cost{Requests: 1, Tokens: 1, "images": -1}}, "images"},
		{"no key", Call{Model: "m", Cost: Cost{Requests: 1, Tokens: 1}}, "Key"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, models(Per(Requests, 10, time.Hour), Per(Tokens, 10, time.Hour)), func(t *testing.T, p *pair) {
				if _, err := p.a.Wait(t.Context(), tc.call); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("err = %v, want ErrInvalid naming %q", err, tc.want)
				}
				if got := used(t, p.b, "m"); got[Requests] != 0 || got[Tokens] != 0 {
					t.Errorf("used = %v, want none", got)
				}
			})
		})
	}
}

// S26: numbers are whole and exact up to 2^53-1 in both stores.
func TestS26LargeNumbersAreExact(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{999_999, 1_000_000, 1e14, 1e15, MaxAmount - 1, MaxAmount} {
		for _, shape := range []Shape{Sliding, Fixed, Bucket} {
			limit := Per(Tokens, n, 9600*time.Hour)
			limit.Shape = shape
			if shape == Bucket {
				limit.Burst = n
			}
			t.Run(limit.String()+" "+shape.String(), func(t *testing.T) {
				t.Parallel()
				onBoth(t, models(limit), func(t *testing.T, p *pair) {
					c := call()
					c.Cost = Cost{Tokens: n - 1}
					big := reserve(t, p.a, c)
					c.Cost = Cost{Tokens: 1}
					if shape != Bucket { // a bucket also drains
						reserve(t, p.b, c)
						refuse(t, p.a, c)
						if got := used(t, p.b, "m")[Tokens]; got != n {
							t.Errorf("used = %d, want %d", got, n)
						}
						if err := big.Settle(t.Context(), Cost{Tokens: n - 3}); err != nil {
							t.Fatal(err)
						}
						reserve(t, p.b, c)
						c.Cost = Cost{Tokens: 2}
						refuse(t, p.b, c)
						return
					}
					if got := used(t, p.b, "m")[Tokens]; got != n-1 {
						t.Errorf("used = %d, want %d", got, n-1)
					}
				})
			})
		}
	}
}

// A limit of one lane counts that lane's calls only, and once.
func TestLimitOfALane(t *testing.T) {
	t.Parallel()
	bucket := Per(Requests, 100, time.Hour)
	bucket.Shape, bucket.Burst = Bucket, 100
	own := Per(Requests, 20, time.Hour)
	own.Lane = lanes.Background.Name
	for _, tc := range []struct {
		name   string
		common Limit
	}{{"beside a sliding limit", Per(Requests, 100, time.Hour)}, {"beside a bucket", bucket}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, models(tc.common, own), func(t *testing.T, p *pair) {
				c := call()
				reserve(t, p.a, c)
				c.Lane = lanes.Background
				if got := flood(t, p, 100, c); got != 20 {
					t.Errorf("%d background calls passed, want 20", got)
				}
			})
		})
	}
}
