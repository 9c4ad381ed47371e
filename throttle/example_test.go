package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/throttle"
)

// key stands for a fingerprint, which package fingerprint makes of an API key.
const key = "0123456789abcdef0123456789abcdef"

// newLimiter returns a limiter on the memory store.
func newLimiter(limits ...throttle.Limit) *throttle.Limiter {
	limiter, err := throttle.New(throttle.Config{Models: map[string][]throttle.Limit{"large": limits}})
	if err != nil {
		panic(err)
	}
	return limiter
}

// A call waits for room, is charged its estimate, and is settled by the vendor's
// count.
func ExampleLimiter_Wait() {
	ctx := context.Background()
	limiter := newLimiter(throttle.Per(throttle.Requests, 1, 200*time.Millisecond), throttle.PerMinute(throttle.Tokens, 1000))
	defer limiter.Close(ctx)

	began := time.Now()
	for range 2 {
		r, err := limiter.Wait(ctx, throttle.Call{
			Key: key, Model: "large",
			Cost: throttle.Cost{throttle.Requests: 1, throttle.Tokens: 400}, // the estimate
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		// The call goes out here, and the vendor counts 120 tokens.
		if err := r.Settle(ctx, throttle.Cost{throttle.Tokens: 120}); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("the second call waited:", time.Since(began) >= 190*time.Millisecond)

	status, err := limiter.Status(ctx, key, "large")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range status.Models[0].Limits {
		fmt.Printf("%d of %v\n", l.Used, l.Limit)
	}
	// Output:
	// the second call waited: true
	// 1 of 1 requests per 200ms
	// 240 of 1000 tokens per 1m0s
}

// Reserve never waits. A reservation whose call was not sent is cancelled.
func ExampleLimiter_Reserve() {
	ctx := context.Background()
	limiter := newLimiter(throttle.PerMinute(throttle.Requests, 1))
	defer limiter.Close(ctx)
	call := throttle.Call{Key: key, Model: "large", Cost: throttle.Cost{throttle.Requests: 1}}

	first, err := limiter.Reserve(ctx, call)
	fmt.Println("first:", err)
	_, err = limiter.Reserve(ctx, call)
	fmt.Println("second is refused:", errors.Is(err, throttle.ErrRefused))
	fmt.Println("cancel:", first.Cancel(ctx))
	_, err = limiter.Reserve(ctx, call)
	fmt.Println("third:", err)
	// Output:
	// first: <nil>
	// second is refused: true
	// cancel: <nil>
	// third: <nil>
}

// A worker puts a deferred job back with the time to come back, which is not a
// failure of the job.
func ExampleRetryAfter() {
	ctx := context.Background()
	limiter := newLimiter(throttle.PerMinute(throttle.Tokens, 1000))
	defer limiter.Close(ctx)

	for _, tokens := range []int64{500, 500, 5000} {
		_, err := limiter.Wait(ctx, throttle.Call{
			Key: key, Model: "large", Lane: lanes.Background, // 60% of every limit
			Cost: throttle.Cost{throttle.Tokens: tokens},
		})
		switch after, later := throttle.RetryAfter(err); {
		case err == nil:
			fmt.Println(tokens, "run the job")
		case later:
			fmt.Println(tokens, "put it back for about", after.Round(time.Minute))
		case errors.Is(err, throttle.ErrTooLarge):
			fmt.Println(tokens, "give up: it can never fit")
		default:
			fmt.Println(tokens, "an outage, or a mistake in the program:", err)
		}
	}
	// Output:
	// 500 run the job
	// 500 put it back for about 1m0s
	// 5000 give up: it can never fit
}

// An operator holds a model for the whole fleet, looks, and opens it again.
func ExampleLimiter_Pause() {
	ctx := context.Background()
	limiter := newLimiter(throttle.PerMinute(throttle.Requests, 500))
	defer limiter.Close(ctx)
	call := throttle.Call{Key: key, Model: "large", Cost: throttle.Cost{throttle.Requests: 1}}
	look := func() {
		status, err := limiter.Status(ctx, key, "large")
		if err != nil {
			fmt.Println(err)
			return
		}
		m := status.Models[0]
		fmt.Printf("%s for %v more: %q\n", m.Model, m.State.Left.Round(time.Second), m.State.Why)
	}

	if err := limiter.Pause(ctx, key, "large", 10*time.Second); err != nil {
		fmt.Println(err)
	}
	look()
	_, err := limiter.Reserve(ctx, call)
	var refused *throttle.RefusedError
	fmt.Println(errors.As(err, &refused) && refused.Reason == throttle.ModelPaused)

	if err := limiter.Resume(ctx, key, "large"); err != nil {
		fmt.Println(err)
	}
	look()
	_, err = limiter.Reserve(ctx, call)
	fmt.Println(err)
	// Output:
	// large for 10s more: "operator"
	// true
	// large for 0s more: ""
	// <nil>
}
