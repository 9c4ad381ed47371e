package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
)

// A vendor of the loopback kind, so that the examples need no key.
func exampleVendor(calls *int) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		*calls++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"usage":{"prompt_tokens":3,"completion_tokens":5}}`)
	}))
}

func Example() {
	var calls int
	vendor := exampleVendor(&calls)
	defer vendor.Close()

	limiter, err := throttle.New(throttle.Config{
		Default: []throttle.Limit{throttle.PerMinute(throttle.Requests, 2)},
	})
	if err != nil {
		panic(err)
	}
	client := &http.Client{Transport: &transport.Transport{Limiter: limiter, Lane: lanes.Background}}

	for range 2 {
		req, _ := http.NewRequest("POST", vendor.URL, strings.NewReader(`{"model":"small"}`))
		req.Header.Set("Authorization", "Bearer demo")
		resp, err := client.Do(req)
		var refused *throttle.RefusedError
		if errors.As(err, &refused) {
			fmt.Println(refused.Reason, "in", refused.Limit)
			continue
		}
		resp.Body.Close()
		fmt.Println(resp.Status)
	}
	fmt.Println("calls:", calls)
	// Output:
	// 200 OK
	// no room in 2 requests per 1m0s
	// calls: 1
}

// An SDK that replaces every error of its client by words of its own.
func ExampleRestore() {
	limiter, err := throttle.New(throttle.Config{
		Default: []throttle.Limit{throttle.PerMinute(throttle.Requests, 1)},
	})
	if err != nil {
		panic(err)
	}
	var calls int
	vendor := exampleVendor(&calls)
	defer vendor.Close()
	client := &http.Client{Transport: &transport.Transport{Limiter: limiter, Lane: lanes.Background, KeyID: "demo"}}
	generate := func(ctx context.Context) error {
		req, _ := http.NewRequestWithContext(ctx, "POST", vendor.URL, strings.NewReader(`{"model":"small"}`))
		resp, err := client.Do(req)
		if err != nil {
			return errors.New("sdk: network error")
		}
		return resp.Body.Close()
	}
	for range 2 {
		ctx := transport.Watch(context.Background())
		err := transport.Restore(ctx, generate(ctx))
		wait, refused := throttle.RetryAfter(err)
		fmt.Println(refused, wait > 0)
	}
	// Output:
	// false false
	// true true
}

// The transport with the limiter itself: budget, settling and pauses.
func TestWithLimiter(t *testing.T) {
	answer := func(w http.ResponseWriter) { fmt.Fprint(w, `{"usage":{"prompt_tokens":3,"completion_tokens":5}}`) }
	calls := 0
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		w.Header().Set("Content-Type", "application/json")
		answer(w)
	}))
	defer vendor.Close()
	limiter, err := throttle.New(throttle.Config{Default: []throttle.Limit{throttle.PerMinute(throttle.Tokens, 1000)}})
	if err != nil {
		t.Fatal(err)
	}
	defer limiter.Close(t.Context())
	tr := &transport.Transport{Limiter: limiter, MaxWait: -1}
	client := &http.Client{Transport: tr}
	send := func() (*http.Response, error) {
		req, err := http.NewRequestWithContext(t.Context(), "POST", vendor.URL, strings.NewReader(`{"model":"m","max_tokens":100}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer K")
		resp, err := client.Do(req)
		if err == nil {
			var b strings.Builder
			resp.Write(&b)
			resp.Body.Close()
		}
		return resp, err
	}
	used := func() int64 {
		req, _ := http.NewRequestWithContext(t.Context(), "POST", vendor.URL, nil)
		req.Header.Set("Authorization", "Bearer K")
		key, err := tr.Fingerprint(req)
		if err != nil {
			t.Fatal(err)
		}
		s, err := limiter.Status(t.Context(), key, "m")
		if err != nil {
			t.Fatal(err)
		}
		return s.Models[0].Limits[0].Used
	}
	for i := range int64(3) { // what the vendor counted takes the estimate's place
		if _, err := send(); err != nil {
			t.Fatal(err)
		}
		if got, want := used(), 8*(i+1); got != want {
			t.Fatalf("used %d tokens after %d calls, want %d", got, i+1, want)
		}
	}
	answer = func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "20")
		w.WriteHeader(429)
		fmt.Fprint(w, `{"error":{"code":"rate_limit_exceeded"}}`)
	}
	if resp, err := send(); err != nil || resp.StatusCode != 429 {
		t.Fatalf("send() = %v, %v, want the vendor's 429", resp, err)
	}
	before := calls
	var refused *throttle.RefusedError
	if _, err := send(); !errors.As(err, &refused) || refused.Reason != throttle.ModelPaused || calls != before {
		t.Fatalf("error %v after %d more calls, want the model paused", err, calls-before)
	}
	if refused.RetryAfter < 15*time.Second || refused.RetryAfter > 30*time.Second {
		t.Errorf("RetryAfter = %v, want about 20s", refused.RetryAfter)
	}
}
