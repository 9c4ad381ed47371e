package transport

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport/profiles"
)

// book is a limiter that admits everything, or nothing if err is set, and notes
// what it is told.
type book struct {
	err   error
	block bool // reporting and settling wait for their context, as with a silent store

	mu    sync.Mutex
	holds []*hold
}

// hold is one call that the book admitted.
type hold struct {
	book    *book
	call    throttle.Call
	settled []throttle.Cost
	reports []pause.Verdict
	left    []throttle.Left
	cancels int
	dead    bool // some bookkeeping came with a context that was already over
}

func (b *book) reserve(_ context.Context, c throttle.Call) (reservation, error) {
	if b.err != nil {
		return nil, b.err
	}
	h := &hold{book: b, call: c}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holds = append(b.holds, h)
	return h, nil
}

func (h *hold) Cost() throttle.Cost { return estimated(h.call) }

// estimated is what a call would be charged in requests, tokens and what else it knows.
func estimated(c throttle.Call) throttle.Cost {
	cost := throttle.Cost{throttle.Tokens: c.Guess[throttle.InputTokens] + c.Guess[throttle.OutputTokens]}
	maps.Copy(cost, c.Cost)
	return cost
}

func (h *hold) note(ctx context.Context, do func()) error {
	h.book.mu.Lock()
	h.dead = h.dead || ctx.Err() != nil
	do()
	h.book.mu.Unlock()
	if h.book.block {
		<-time.After(250 * time.Millisecond) // as long as the limiter lets a store be silent
	}
	return ctx.Err()
}

func (h *hold) Settle(ctx context.Context, actual throttle.Cost) error {
	return h.note(ctx, func() { h.settled = append(h.settled, maps.Clone(actual)) })
}

func (h *hold) SettleAtLeast(ctx context.Context, seen throttle.Cost) error {
	if seen[throttle.Tokens] <= h.Cost()[throttle.Tokens] {
		return nil
	}
	return h.Settle(ctx, seen)
}

func (h *hold) Heed(left ...throttle.Left) {
	h.book.mu.Lock()
	defer h.book.mu.Unlock()
	h.left = append(h.left, left...)
}

func (h *hold) Cancel(ctx context.Context) error { return h.note(ctx, func() { h.cancels++ }) }

func (h *hold) Report(ctx context.Context, v pause.Verdict) error {
	return h.note(ctx, func() { h.reports = append(h.reports, v) })
}

// last returns a copy of what was noted for the latest call.
func (b *book) last(t *testing.T) hold {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.holds) == 0 {
		t.Fatal("nothing was reserved")
	}
	return *b.holds[len(b.holds)-1]
}

// client returns a client whose transport asks b and has connections of its own.
func (b *book) client(t *testing.T, change func(*Transport)) *http.Client {
	t.Helper()
	base := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(base.CloseIdleConnections)
	tr := &Transport{Base: base, reserve: b.reserve, DefaultKeyID: "test"}
	if change != nil {
		change(tr)
	}
	return &http.Client{Transport: tr}
}

// vendor starts a loopback vendor.
func vendor(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// says returns a vendor's answer.
func says(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func post(t *testing.T, url, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return req
}

func do(t *testing.T, c *http.Client, req *http.Request) *http.Response {
	t.Helper()
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// eventually waits for a condition, 5 seconds at most.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never came true: %s", what)
		}
	}
}

// noLeaks returns a check that all goroutines since are gone.
func noLeaks(t *testing.T) func() {
	before := runtime.NumGoroutine()
	return func() {
		t.Helper()
		eventually(t, "goroutines are back to base", func() bool { return runtime.NumGoroutine() <= before })
	}
}

// openAI makes every host OpenAI's own.
func openAI(t *Transport) { t.Profile = profiles.OpenAI() }
