package main

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// setup is a client of the SDK in front of a vendor.
type setup struct {
	vendor   *vendorsim.Server
	limiter  *throttle.Limiter
	client   openai.Client
	attempts atomic.Int32 // what the SDK asked the transport for
	wire     *transport.Transport
}

// RoundTrip counts what the SDK sends, before Headway sees it.
func (s *setup) RoundTrip(r *http.Request) (*http.Response, error) {
	s.attempts.Add(1)
	return s.wire.RoundTrip(r)
}

func newSetup(t *testing.T) *setup {
	t.Helper()
	s := &setup{vendor: vendorsim.Run(t, vendorsim.Config{Dialect: vendorsim.DialectMillis})}
	var err error
	s.limiter, err = throttle.New(throttle.Config{Default: []throttle.Limit{
		throttle.PerMinute(throttle.Requests, 10), throttle.PerMinute(throttle.Tokens, 10_000),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.limiter.Close(context.WithoutCancel(t.Context())) })
	s.wire = &transport.Transport{Limiter: s.limiter}
	s.client = newClient(s, s.vendor.URL())
	return s
}

// used returns the requests and tokens that the model has used.
func (s *setup) used(t *testing.T, model string) (requests, tokens int64) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, s.vendor.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+apiKey)
	key, err := s.wire.Fingerprint(req)
	if err != nil {
		t.Fatal(err)
	}
	status, err := s.limiter.Status(t.Context(), key, model)
	if err != nil {
		t.Fatal(err)
	}
	limits := status.Models[0].Limits
	return limits[0].Used, limits[1].Used
}

// counted returns the tokens that the vendor counted in its last call.
func (s *setup) counted() int64 {
	a := s.vendor.Arrivals()
	return a[len(a)-1].In + a[len(a)-1].Out
}

func TestCallSettlesUsage(t *testing.T) {
	s := newSetup(t)
	answer, err := s.client.Chat.Completions.New(t.Context(), ask("m"))
	if err != nil {
		t.Fatal(err)
	}
	requests, tokens := s.used(t, "m")
	if requests != 1 || tokens != answer.Usage.TotalTokens || tokens != s.counted() {
		t.Errorf("used %d requests and %d tokens, want 1 and %d", requests, tokens, s.counted())
	}
}

// S10: the first chunk is here while the vendor still sends.
// S19: without a count the estimate stays.
func TestStream(t *testing.T) {
	for _, tc := range []struct {
		name         string
		includeUsage bool
	}{
		{"with usage", true},
		{"without usage", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSetup(t)
			s.vendor.SetStream(2, 100*time.Millisecond)
			params := ask("m")
			if tc.includeUsage {
				params.StreamOptions.IncludeUsage = openai.Bool(true)
			}
			stream := s.client.Chat.Completions.NewStreaming(t.Context(), params)
			defer stream.Close()
			if !stream.Next() {
				t.Fatalf("no chunk: %v", stream.Err())
			}
			if !s.vendor.Arrivals()[0].Answered.IsZero() {
				t.Error("the vendor had sent its last chunk before the first one was here")
			}
			_, estimate := s.used(t, "m")
			if estimate < 100 { // the most output asked for, and the text
				t.Errorf("%d tokens are reserved while the stream runs, want at least 100", estimate)
			}
			for stream.Next() {
			}
			if stream.Err() != nil {
				t.Fatal(stream.Err())
			}
			want := estimate
			if tc.includeUsage {
				want = s.counted()
			}
			if _, tokens := s.used(t, "m"); tokens != want {
				t.Errorf("used %d tokens, want %d", tokens, want)
			}
		})
	}
}

// A refused call is asked for once, comes back at once, whatever the SDK's own
// retries, and says why.
func TestRefusal(t *testing.T) {
	for _, tc := range []struct {
		name    string
		retries int
	}{
		{"retries off", 0},
		{"the SDK's default retries", 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSetup(t)
			ctx := lanes.With(t.Context(), lanes.Background)
			for range 6 { // the lane's share of 10
				if _, err := s.client.Chat.Completions.New(ctx, ask("m")); err != nil {
					t.Fatal(err)
				}
			}
			s.attempts.Store(0)
			began := time.Now()
			_, err := s.client.Chat.Completions.New(ctx, ask("m"), option.WithMaxRetries(tc.retries))
			if took := time.Since(began); took > 400*time.Millisecond {
				t.Errorf("the refusal took %v, want it at once", took)
			}
			if got := s.attempts.Load(); got != 1 {
				t.Errorf("%d attempts, want 1", got)
			}
			if got := s.vendor.Count(vendorsim.Filter{}); got != 6 {
				t.Errorf("the vendor saw %d calls, want 6", got)
			}
			refused := refusal(err)
			if refused == nil {
				t.Fatalf("error %v carries no refusal", err)
			}
			if refused.Reason != throttle.NoRoom || refused.Limit != "10 requests per 1m0s" || refused.Lane != "background" ||
				!errors.Is(refused, throttle.ErrDeferred) || refused.RetryAfter <= 0 {
				t.Errorf("refusal %+v, want no room in 10 requests per 1m0s for background, deferred", refused)
			}
		})
	}
}

// The vendor's own 429 reaches the SDK as it is. What the SDK then sends again
// is a new call: it waits for the end of the pause, and spends budget.
func TestVendorRateLimit(t *testing.T) {
	const later = 300 * time.Millisecond
	for _, tc := range []struct {
		name     string
		retries  int
		attempts int32
		requests int64
		status   int // of the error, 0 when the retry got through
	}{
		{"retries off", 0, 1, 1, http.StatusTooManyRequests},
		{"one retry", 1, 2, 2, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSetup(t)
			s.vendor.Script("m", vendorsim.RateLimited(later, vendorsim.DialectMillis))
			began := time.Now()
			_, err := s.client.Chat.Completions.New(t.Context(), ask("m"), option.WithMaxRetries(tc.retries))
			status := 0
			var e *openai.Error
			if errors.As(err, &e) {
				status = e.StatusCode
			}
			if status != tc.status || refusal(err) != nil {
				t.Fatalf("error %v with status %d, want the vendor's own %d", err, status, tc.status)
			}
			if got := s.attempts.Load(); got != tc.attempts {
				t.Errorf("%d attempts, want %d", got, tc.attempts)
			}
			if requests, _ := s.used(t, "m"); requests != tc.requests {
				t.Errorf("%d requests spent, want %d", requests, tc.requests)
			}
			if tc.retries > 0 {
				if first := s.vendor.Arrivals()[1].Received.Sub(began); first < later {
					t.Errorf("the vendor saw the retry after %v, before the %v that it named", first, later)
				}
				return
			}
			_, err = s.client.Chat.Completions.New(lanes.With(t.Context(), lanes.Background), ask("m"))
			if refused := refusal(err); refused == nil || refused.Reason != throttle.ModelPaused {
				t.Errorf("the next call got %v, want the model paused", err)
			}
		})
	}
}

// A refused key stops every model of the key.
func TestRefusedKey(t *testing.T) {
	s := newSetup(t)
	s.vendor.RefuseKey(apiKey, true)
	_, err := s.client.Chat.Completions.New(t.Context(), ask("m"))
	var e *openai.Error
	if !errors.As(err, &e) || e.StatusCode != http.StatusUnauthorized {
		t.Fatalf("error %v, want the vendor's 401", err)
	}
	_, err = s.client.Chat.Completions.New(t.Context(), ask("another"))
	refused := refusal(err)
	if refused == nil || refused.Reason != throttle.KeyPaused {
		t.Fatalf("the call to another model got %v, want the key paused", err)
	}
	if refused.RetryAfter < 4*time.Minute {
		t.Errorf("RetryAfter = %v, want about five minutes", refused.RetryAfter)
	}
	if got := s.vendor.Count(vendorsim.Filter{}); got != 1 {
		t.Errorf("the vendor saw %d calls, want 1", got)
	}
}

// The program itself runs to its end.
func TestRun(t *testing.T) {
	if err := run(t.Context()); err != nil {
		t.Fatal(err)
	}
}
