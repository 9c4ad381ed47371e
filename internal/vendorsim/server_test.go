package vendorsim_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
)

const (
	chat      = "/v1/chat/completions"
	responses = "/v1/responses"
	messages  = "/v1/messages"
)

// clock is a vendor's clock that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// bounded is the test's context with an end, so that a broken server fails a test and does not hang it.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

type reply struct {
	status int
	header http.Header
	body   string
}

func body(model, more string) string { return fmt.Sprintf(`{"model":%q%s}`, model, more) }

// try makes one call with the key test-key-1, the lane "live", and other headers.
func try(t *testing.T, v *vendorsim.Server, path, body string, header ...string) (reply, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(bounded(t), http.MethodPost, v.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer test-key-1")
	req.Header.Set("X-Lane", "live")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, string(b)}, err
}

func post(t *testing.T, v *vendorsim.Server, path, body string, header ...string) reply {
	t.Helper()
	r, err := try(t, v, path, body, header...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func statuses(t *testing.T, v *vendorsim.Server, n int, body string, header ...string) string {
	t.Helper()
	var out []string
	for range n {
		out = append(out, fmt.Sprint(post(t, v, chat, body, header...).status))
	}
	return strings.Join(out, " ")
}

// An example of the vendor in a program: a limit of two, three calls.
func ExampleStart() {
	v, err := vendorsim.Start(vendorsim.Config{
		Models: map[string][]vendorsim.Limit{"small": {{Amount: 2, Window: time.Hour}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer v.Close()
	for range 3 {
		req, _ := http.NewRequest(http.MethodPost, v.URL()+"/v1/responses", strings.NewReader(`{"model":"small"}`))
		req.Header.Set("Authorization", "Bearer any")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		res.Body.Close()
		fmt.Println(res.StatusCode)
	}
	fmt.Println("most in an hour:", v.MaxInWindow(time.Hour, vendorsim.Requests, vendorsim.Filter{}))
	// Output:
	// 200
	// 200
	// 429
	// most in an hour: 2
}

func TestMalformedCalls(t *testing.T) {
	v := vendorsim.Run(t, vendorsim.Config{})
	tests := []struct {
		name, path, body string
		header           []string
		want             int
	}{
		{"path", "/v1/nothing", body("m", ""), nil, 404},
		{"no key", chat, body("m", ""), []string{"Authorization", ""}, 401},
		{"not a bearer", chat, body("m", ""), []string{"Authorization", "Basic test-key-1"}, 401},
		{"not JSON", chat, "model=m", nil, 400},
		{"no model", chat, "{}", nil, 400},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if r := post(t, v, tt.path, tt.body, tt.header...); r.status != tt.want {
				t.Errorf("status %d, want %d", r.status, tt.want)
			}
		})
	}
	if got := v.Count(vendorsim.Filter{}); got != len(tests) {
		t.Errorf("%d arrivals logged, want %d", got, len(tests))
	}
}

// The vendor works without a listener, and over HTTP/2 on its own port.
func TestWithoutListenerAndHTTP2(t *testing.T) {
	v, err := vendorsim.New(vendorsim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, chat, strings.NewReader(body("m", "")))
	r.Header.Set("Authorization", "Bearer test-key-1")
	v.ServeHTTP(w, r)
	if w.Code != 200 || v.URL() != "" {
		t.Errorf("without a listener: %d, URL %q", w.Code, v.URL())
	}
	v.Close()

	v = vendorsim.Run(t, vendorsim.Config{})
	tr := &http.Transport{Protocols: new(http.Protocols)}
	tr.Protocols.SetUnencryptedHTTP2(true)
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(bounded(t), http.MethodPost, v.URL()+chat, strings.NewReader(body("m", "")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer test-key-1")
	res, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.ProtoMajor != 2 || res.StatusCode != 200 || v.Arrivals()[0].Conn != 1 {
		t.Errorf("HTTP/2: %s %d, connection %d", res.Proto, res.StatusCode, v.Arrivals()[0].Conn)
	}
}

func TestCloseEndsHeldCalls(t *testing.T) {
	v, err := vendorsim.Start(vendorsim.Config{Delay: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() {
		_, err := try(t, v, chat, body("m", ""))
		result <- err
	}()
	if err := v.Await(bounded(t), 1, vendorsim.Filter{}); err != nil {
		t.Fatal(err)
	}
	v.Close()
	v.Close()
	if err := <-result; err == nil {
		t.Error("the delayed call got an answer")
	}
	if a := v.Arrivals()[0]; !a.Broken || a.Status != 0 || a.Answered.IsZero() {
		t.Errorf("arrival %+v, want broken without a status", a)
	}
	if _, err := try(t, v, chat, body("m", "")); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("after Close: %v, want a refused connection", err)
	}
}
