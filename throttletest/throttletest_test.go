package throttletest_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/throttletest"
	"github.com/headway-go/headway/transport"
)

// program is what a user would test: a job that calls the vendor in the background.
type program struct{ client *http.Client }

func (p program) job() error {
	req, err := http.NewRequest(http.MethodPost, "https://api.openai.com/v1/chat/completions", strings.NewReader(`{"model":"m","max_tokens":10}`))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer test")
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("vendor answered %d", resp.StatusCode)
	}
	return nil
}

func newProgram(t testing.TB, clock *throttletest.Clock, vendor *throttletest.Vendor) program {
	t.Helper()
	limiter, err := throttle.New(throttle.Config{
		Memory:  throttle.NewMemoryClock(clock.Now),
		Default: []throttle.Limit{throttle.PerMinute(throttle.Requests, 5), throttle.PerMinute(throttle.Tokens, 10_000)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = limiter.Close(t.Context()) })
	return program{&http.Client{Transport: &transport.Transport{Limiter: limiter, Base: vendor, Lane: lanes.Background}}}
}

func TestBudgetUnderASetClock(t *testing.T) {
	clock, vendor := throttletest.NewClock(), throttletest.NewVendor()
	p := newProgram(t, clock, vendor)
	for range 3 { // 60% of 5
		if err := p.job(); err != nil {
			t.Fatal(err)
		}
	}
	err := p.job()
	wait, ok := throttle.RetryAfter(err)
	if !errors.Is(err, throttle.ErrDeferred) || !ok || wait < time.Minute {
		t.Fatalf("the fourth job: %v, wait %v; want it deferred for a minute", err, wait)
	}
	clock.Advance(time.Minute)
	if err := p.job(); err != nil {
		t.Errorf("a minute later: %v", err)
	}
	if got := len(vendor.Requests()); got != 4 {
		t.Errorf("the vendor got %d calls, want 4", got)
	}
}

func TestScriptedPause(t *testing.T) {
	clock := throttletest.NewClock()
	vendor := throttletest.NewVendor(
		throttletest.Answer{Status: http.StatusTooManyRequests, Header: map[string]string{"Retry-After": "20"}},
		throttletest.Answer{Err: errors.New("connection reset")},
	)
	p := newProgram(t, clock, vendor)
	if err := p.job(); err == nil {
		t.Fatal("the vendor's 429 did not reach the program")
	}
	if err := p.job(); !errors.Is(err, throttle.ErrDeferred) {
		t.Errorf("during the pause: %v, want it deferred", err)
	}
	clock.Advance(21 * time.Second)
	if err := p.job(); err == nil || errors.Is(err, throttle.ErrRefused) {
		t.Errorf("after the pause: %v, want the scripted failure", err)
	}
	if got := vendor.Requests(); len(got) != 2 || !strings.Contains(got[0].Body, `"model":"m"`) {
		t.Errorf("the vendor got %d calls, want 2 with their bodies", len(got))
	}
}
