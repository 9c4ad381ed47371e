package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/throttletest"
	"github.com/headway-go/headway/transport"
)

// The backup answers until the first model's minute is over, which takes this
// test no time.
func TestBackToTheFirstModel(t *testing.T) {
	clock, vendor := throttletest.NewClock(), throttletest.NewVendor()
	limiter, err := throttle.New(throttle.Config{
		Memory: throttle.NewMemoryClock(clock.Now),
		Models: map[string][]throttle.Limit{first: {throttle.PerMinute(throttle.Requests, 1)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer limiter.Close(t.Context())
	client := &http.Client{Transport: &transport.Transport{Limiter: limiter, Base: vendor}}
	for i, want := range []string{first, backup, first} {
		if i == 2 {
			clock.Advance(time.Minute)
		}
		if got, err := ask(t.Context(), client, "https://api.openai.com", first, backup); got != want || err != nil {
			t.Errorf("call %d was answered by %q, %v, want %q", i, got, err, want)
		}
	}
	if got := len(vendor.Requests()); got != 3 {
		t.Errorf("the vendor saw %d calls, want 3", got)
	}
}
