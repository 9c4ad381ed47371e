package vendorsim_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
)

func TestArrival(t *testing.T) {
	c := newClock()
	v := vendorsim.Run(t, vendorsim.Config{Now: c.Now})
	sent := body("m", `,"max_tokens":100`)
	post(t, v, chat, sent)
	a := v.Arrivals()[0]
	if a.Path != chat || a.Shape != vendorsim.Chat || a.Key != "test-key-1" || a.Model != "m" || a.Lane != "live" ||
		a.Body != sha256.Sum256([]byte(sent)) || a.BodyLen != int64(len(sent)) || a.Status != 200 || !a.Accepted ||
		a.In != int64(len(sent))/4 || a.Out != 50 || a.Broken || a.Conn < 1 || a.Remote == "" ||
		!a.Received.Equal(c.Now()) || !a.Answered.Equal(c.Now()) {
		t.Errorf("arrival %+v", a)
	}
	c.add(-time.Hour) // a clock that steps back is held where it was
	post(t, v, chat, body("m", ""))
	if b := v.Arrivals()[1]; b.Received.Before(a.Received) || b.Out != 64 {
		t.Errorf("second arrival at %v with %d out, want not before %v, 64", b.Received, b.Out, a.Received)
	}
}

// S27: the key is there to compare and never to print.
func TestKeyDoesNotPrint(t *testing.T) {
	a := vendorsim.Arrival{Key: "SENTINEL-KEY-123"}
	q := &vendorsim.Request{Key: a.Key}
	asJSON, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%v %+v %#v %s %q %x %d %v %+v %#v ", a, a, a, a.Key, a.Key, a.Key, a.Key, []any{a}, q, q) + string(asJSON)
	hex := fmt.Sprintf("%x", "SENTINEL-KEY-123")
	if strings.Contains(got, "SENTINEL") || strings.Contains(got, hex) {
		t.Errorf("the key was printed, %d bytes of output", len(got))
	}
}

func TestMaxInWindow(t *testing.T) {
	c := newClock()
	v := vendorsim.Run(t, vendorsim.Config{Now: c.Now, Usage: func(q vendorsim.Request) (in, out int64) { return q.MaxTokens, 1 }})
	if got := v.MaxInWindow(time.Minute, vendorsim.Requests, vendorsim.Filter{}); got != 0 {
		t.Errorf("of nothing: %d", got)
	}
	for _, call := range []struct {
		after  time.Duration
		tokens int
	}{{0, 9}, {20 * time.Second, 9}, {40*time.Second - 1, 9}, {1, 9}, {40 * time.Second, 29}} {
		c.add(call.after)
		post(t, v, chat, body("m", fmt.Sprintf(`,"max_tokens":%d`, call.tokens)))
		v.Script("m", vendorsim.ServerError500())
		post(t, v, chat, body("m", "")) // not accepted: not counted
	}
	tests := []struct {
		name   string
		window time.Duration
		unit   vendorsim.Unit
		filter vendorsim.Filter
		want   int64
	}{
		{"half-open: the first and the fourth are a minute apart", time.Minute, vendorsim.Requests, vendorsim.Filter{}, 3},
		{"one nanosecond longer", time.Minute + 1, vendorsim.Requests, vendorsim.Filter{}, 4},
		{"tokens", time.Minute, vendorsim.Tokens, vendorsim.Filter{}, 50},
		{"input tokens", time.Minute, vendorsim.InputTokens, vendorsim.Filter{}, 47},
		{"output tokens", time.Hour, vendorsim.OutputTokens, vendorsim.Filter{}, 5},
		{"another model", time.Hour, vendorsim.Requests, vendorsim.Filter{Model: "other"}, 0},
		{"nothing", 0, vendorsim.Requests, vendorsim.Filter{}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := v.MaxInWindow(tt.window, tt.unit, tt.filter); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

func TestFilter(t *testing.T) {
	v := vendorsim.Run(t, vendorsim.Config{LaneHeader: "X-Class"})
	post(t, v, chat, body("a", ""), "X-Class", "one")
	post(t, v, messages, body("a", ""), "X-Api-Key", "test-key-2")
	v.Script("b", vendorsim.ServerError500())
	post(t, v, chat, body("b", ""))
	tests := []struct {
		name   string
		filter vendorsim.Filter
		want   int
	}{
		{"all", vendorsim.Filter{}, 3},
		{"key", vendorsim.Filter{Key: "test-key-2"}, 1},
		{"path", vendorsim.Filter{Path: chat}, 2},
		{"model", vendorsim.Filter{Model: "a"}, 2},
		{"lane", vendorsim.Filter{Lane: "one"}, 1},
		{"status", vendorsim.Filter{Status: 500}, 1},
		{"accepted", vendorsim.Filter{Accepted: true}, 2},
		{"match", vendorsim.Filter{Match: func(a vendorsim.Arrival) bool { return a.Shape == vendorsim.Anthropic }}, 1},
		{"both", vendorsim.Filter{Model: "b", Accepted: true}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := v.Count(tt.filter); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
	v.Reset()
	if v.Count(vendorsim.Filter{}) != 0 || v.Refused() != 0 || v.Dropped() != 0 {
		t.Error("something is left after Reset")
	}
}

// S13: calls are judged when they arrive, not when they are answered; and S15:
// 64 at once, on a real clock, get exactly the limit.
func TestHoldAndConcurrency(t *testing.T) {
	const calls, limit = 64, 10
	v := vendorsim.Run(t, vendorsim.Config{Models: map[string][]vendorsim.Limit{
		"m": {{Amount: limit, Window: time.Hour}},
	}})
	v.Hold()
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			if _, err := try(t, v, chat, body("m", "")); err != nil {
				t.Error(err)
			}
		})
	}
	if err := v.Await(bounded(t), calls, vendorsim.Filter{}); err != nil {
		t.Fatal(err)
	}
	if got := v.Count(vendorsim.Filter{Accepted: true}); got != limit {
		t.Errorf("%d accepted before any answer, want %d", got, limit)
	}
	if got := v.Count(vendorsim.Filter{Status: 200}); got != 0 {
		t.Errorf("%d answered while held", got)
	}
	v.Release()
	all.Wait()
	if got := v.MaxConcurrent(vendorsim.Filter{Accepted: true}); got != limit {
		t.Errorf("accepted and open at once: %d, want %d", got, limit)
	}
	if got := v.MaxConcurrent(vendorsim.Filter{}); got != calls {
		t.Errorf("open at once: %d, want %d", got, calls)
	}
	if got := v.MaxInWindow(time.Hour, vendorsim.Requests, vendorsim.Filter{}); got != limit {
		t.Errorf("in an hour: %d, want %d", got, limit)
	}
	if got := v.Refused(); got != calls-limit {
		t.Errorf("refused %d, want %d", got, calls-limit)
	}
}

// lastWrite remembers whether the arrival was still open when bytes were written.
type lastWrite struct {
	*httptest.ResponseRecorder
	vendor *vendorsim.Server
	open   bool
}

func (w *lastWrite) WriteString(s string) (int, error) {
	w.open = w.vendor.Arrivals()[0].Answered.IsZero()
	return w.ResponseRecorder.WriteString(s)
}

// A client that sends one call after the other is never seen with two open: a
// call has ended before the client can have read its last bytes.
func TestCallEndsBeforeItsLastBytes(t *testing.T) {
	for _, more := range []string{"", `,"stream":true`} {
		v, err := vendorsim.New(vendorsim.Config{})
		if err != nil {
			t.Fatal(err)
		}
		w := &lastWrite{httptest.NewRecorder(), v, true}
		r := httptest.NewRequest(http.MethodPost, chat, strings.NewReader(body("m", more)))
		r.Header.Set("Authorization", "Bearer test-key-1")
		v.ServeHTTP(w, r)
		if w.open || w.Body.Len() == 0 || v.MaxConcurrent(vendorsim.Filter{}) != 1 {
			t.Errorf("body %q: open at its last bytes: %v, of %d", more, w.open, w.Body.Len())
		}
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	v := vendorsim.Run(t, vendorsim.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := v.Await(ctx, 1, vendorsim.Filter{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestDelayIsLive(t *testing.T) {
	v := vendorsim.Run(t, vendorsim.Config{})
	v.SetDelay(30 * time.Millisecond)
	post(t, v, chat, body("m", ""))
	v.SetDelay(0)
	v.SetStream(3, 10*time.Millisecond)
	post(t, v, chat, body("m", `,"stream":true`))
	a := v.Arrivals()
	if got := a[0].Answered.Sub(a[0].Received); got < 30*time.Millisecond {
		t.Errorf("delayed by %v, want 30ms", got)
	}
	if got := a[1].Answered.Sub(a[1].Received); got < 40*time.Millisecond {
		t.Errorf("five events took %v, want four gaps of 10ms", got)
	}
}
