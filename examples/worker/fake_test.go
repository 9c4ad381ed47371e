package main

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/throttletest"
	"github.com/headway-go/headway/transport"
)

// A vendor's "later" defers the job for as long as it said, and not longer.
func TestVendorSaysLater(t *testing.T) {
	clock := throttletest.NewClock()
	vendor := throttletest.NewVendor(throttletest.Answer{Status: http.StatusTooManyRequests, Header: map[string]string{"Retry-After": "40"}})
	limiter, err := throttle.New(throttle.Config{
		Memory:  throttle.NewMemoryClock(clock.Now),
		Default: []throttle.Limit{throttle.PerSecond(throttle.Requests, 10)},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer limiter.Close(t.Context())
	client := &http.Client{Transport: &transport.Transport{Limiter: limiter, Base: vendor, Lane: lanes.Background}}
	job := func() error { return call(t.Context(), client, "https://api.openai.com") }

	if err := job(); err == nil || errors.Is(err, throttle.ErrRefused) {
		t.Fatalf("the vendor's 429: %v, want the vendor's word", err)
	}
	if wait, ok := throttle.RetryAfter(job()); !ok || wait < 40*time.Second {
		t.Errorf("deferred for %v, %v, want 40 s", wait, ok)
	}
	clock.Advance(41 * time.Second)
	if err := job(); err != nil {
		t.Errorf("after the pause: %v", err)
	}
	if got := len(vendor.Requests()); got != 2 {
		t.Errorf("the vendor saw %d calls, want 2", got)
	}
}
