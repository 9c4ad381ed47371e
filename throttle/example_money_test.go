package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/throttle"
)

// Five dollars a day for the key, one an hour for background work.
func ExampleNewPrices() {
	prices, err := throttle.NewPrices(throttle.USD, throttle.PriceTable{
		"gpt-4o": {throttle.InputTokens: throttle.PerMillion(2.50), throttle.OutputTokens: throttle.PerMillion(10)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	hourly := throttle.Per(throttle.USD, throttle.Micros(1), time.Hour)
	hourly.Lane = lanes.Background.Name
	limiter, err := throttle.New(throttle.Config{
		Prices: prices,
		Key:    []throttle.Limit{throttle.PerDay(throttle.USD, throttle.Micros(5)), hourly},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	cost := throttle.Cost{throttle.InputTokens: 200_000, throttle.OutputTokens: 40_000}
	for _, model := range []string{"gpt-4o", "gpt-4o", "gpt-5"} {
		r, err := limiter.Reserve(ctx, throttle.Call{Key: "fingerprint", Model: model, Lane: lanes.Background, Cost: cost})
		if err != nil {
			var refused *throttle.RefusedError
			fmt.Println(model, "refused by money:", errors.As(err, &refused) && refused.Unit == throttle.USD)
			continue
		}
		fmt.Println(model, "charged", r.Cost()[throttle.USD])
	}

	// Output:
	// gpt-4o charged 900000
	// gpt-4o refused by money: true
	// gpt-5 refused by money: false
}
