package transport_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
	"github.com/headway-go/headway/transport/profiles"
)

// A limit in a unit that nobody prices is an error that names the unit, not a
// call for nothing; the vendor sees no call.
func TestLimitedUnitWithoutPrice(t *testing.T) {
	var calls atomic.Int32
	vendor := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	defer vendor.Close()
	limiter, err := throttle.New(throttle.Config{Default: []throttle.Limit{
		throttle.PerMinute(throttle.Requests, 10), throttle.PerDay("usd_micros", 5_000_000),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer limiter.Close(t.Context())
	for _, tc := range []struct {
		name   string
		change func(*transport.Transport)
		calls  int32
	}{
		{"no price", func(*transport.Transport) {}, 0},
		{"no price, as a response", func(tr *transport.Transport) { tr.Refusals = transport.AsResponse }, 0},
		{"another price", func(tr *transport.Transport) { tr.Cost = throttle.Cost{"images": 2} }, 0},
		{"price", func(tr *transport.Transport) { tr.Cost = throttle.Cost{"usd_micros": 200} }, 1},
		{"profile's price", func(tr *transport.Transport) {
			tr.Profile = profiles.Generic("acme")
			tr.Profile.CostFunc = func(*http.Request, []byte) map[string]int64 { return map[string]int64{"usd_micros": 300} }
		}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			calls.Store(0)
			tr := &transport.Transport{Limiter: limiter, DefaultKeyID: "test"}
			tc.change(tr)
			resp, err := (&http.Client{Transport: tr}).Post(vendor.URL, "application/json", strings.NewReader(`{"model":"m"}`))
			if err == nil {
				resp.Body.Close()
			}
			if got := calls.Load(); got != tc.calls || (err == nil) != (tc.calls == 1) {
				t.Fatalf("%d calls, error %v, want %d calls", got, err, tc.calls)
			}
			if err != nil && (!errors.Is(err, throttle.ErrInvalid) || !strings.Contains(err.Error(), `"usd_micros"`) || errors.Is(err, throttle.ErrRefused)) {
				t.Errorf("error %q, want %q with the unit", err, throttle.ErrInvalid)
			}
		})
	}
}

// Twilio's profile with the limiter itself: a message takes its segments, the
// vendor's own count takes their place, and a 429 is free.
func TestTwilioWithLimiter(t *testing.T) {
	answer := func(w http.ResponseWriter) { fmt.Fprint(w, `{"num_segments":"0"}`) }
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer(w)
	}))
	defer vendor.Close()
	limiter, err := throttle.New(throttle.Config{Key: []throttle.Limit{
		throttle.PerMinute(profiles.SegmentsUnit, 20), throttle.PerMinute(throttle.Requests, 100),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer limiter.Close(t.Context())
	tr := &transport.Transport{Limiter: limiter, Profile: profiles.Twilio(), MaxWait: -1}
	var key string
	send := func(characters int) error {
		form := url.Values{"To": {"+1"}, "From": {"+2"}, "Body": {strings.Repeat("a", characters)}}
		req, err := http.NewRequestWithContext(t.Context(), "POST", vendor.URL, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.SetBasicAuth("AC1", "secret")
		if key, err = tr.Fingerprint(req); err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{Transport: tr}).Do(req)
		if err == nil {
			resp.Write(new(strings.Builder))
			resp.Body.Close()
		}
		return err
	}
	used := func() (segments, requests int64) {
		s, err := limiter.Status(t.Context(), key, "-")
		if err != nil {
			t.Fatal(err)
		}
		return s.Limits[0].Used, s.Limits[1].Used
	}
	for _, tc := range []struct {
		name       string
		answer     string
		status     int
		characters int
		segments   int64 // used after it
		requests   int64
	}{
		{"not counted yet", `{"num_segments":"0"}`, 201, 161, 2, 1},
		{"counted", `{"num_segments":"3"}`, 201, 161, 5, 2},
		{"about the recipient", `{"code":60203}`, 429, 161, 7, 3},
		{"the account is busy", `{"code":20429}`, 429, 161, 7, 3},
	} {
		answer = func(w http.ResponseWriter) {
			w.WriteHeader(tc.status)
			fmt.Fprint(w, tc.answer)
		}
		if err := send(tc.characters); err != nil {
			t.Fatal(err)
		}
		if segments, requests := used(); segments != tc.segments || requests != tc.requests {
			t.Errorf("%s: used %d segments and %d requests, want %d and %d", tc.name, segments, requests, tc.segments, tc.requests)
		}
	}
	var refused *throttle.RefusedError
	if err := send(1); !errors.As(err, &refused) || refused.Reason != throttle.KeyPaused {
		t.Errorf("error %v, want the account paused", err)
	}
	if err := send(21 * 153); !errors.Is(err, throttle.ErrTooLarge) {
		t.Errorf("error %v, want %v", err, throttle.ErrTooLarge)
	}
}
