package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
)

const apiKey = "sk-loopback-0000000000"

// setup is a gateway between its clients, of any language, and a vendor.
type setup struct {
	*testing.T
	vendor *vendorsim.Server
	url    string
}

func newSetup(t *testing.T) setup {
	t.Helper()
	vendor := vendorsim.Run(t, vendorsim.Config{LaneHeader: laneHeader})
	target, err := url.Parse(vendor.URL())
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := throttle.New(throttle.Config{Default: []throttle.Limit{
		throttle.PerMinute(throttle.Requests, 2), throttle.PerMinute(throttle.Tokens, 10_000),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { limiter.Close(context.WithoutCancel(t.Context())) })
	gateway := httptest.NewServer(newGateway(target, limiter))
	t.Cleanup(gateway.Close)
	return setup{t, vendor, gateway.URL}
}

// post calls through the gateway, with no part of Headway on this side.
func (s setup) post(body string, header map[string]string) *http.Response {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+apiKey)
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { resp.Body.Close() })
	return resp
}

const ask = `{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"hi"}]}`

func TestCallPassesThrough(t *testing.T) {
	s := newSetup(t)
	resp := s.post(ask, map[string]string{laneHeader: "background"})
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), `"total_tokens"`) {
		t.Fatalf("%s, %q, %v; want the vendor's answer", resp.Status, body, err)
	}
	got := s.vendor.Arrivals()[0]
	if got.Key != apiKey || got.Model != "m" || got.BodyLen != int64(len(ask)) {
		t.Errorf("the vendor saw %+v, want the call as it was", got)
	}
	if got.Lane != "" {
		t.Errorf("the vendor saw the lane %q", got.Lane)
	}
}

// Two calls fit into 10,000 tokens only if the second comes after the first was
// settled by the vendor's count.
func TestCallSettles(t *testing.T) {
	s := newSetup(t)
	large := strings.Replace(ask, "50", "6000", 1)
	for i := range 2 {
		resp := s.post(large, nil)
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("call %d: %s, %v", i, resp.Status, err)
		}
	}
}

func TestRefusalIsAnAnswer(t *testing.T) {
	s := newSetup(t)
	background := map[string]string{laneHeader: "background"}
	s.post(ask, background) // the lane's share of 2
	resp := s.post(ask, background)
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" ||
		resp.Header.Get("X-Should-Retry") != "false" {
		t.Errorf("%s with %v, want a 429 with a time to come back", resp.Status, resp.Header)
	}
	if refused, ok := transport.FromResponse(resp); !ok || refused.Reason != throttle.NoRoom || refused.Lane != "background" {
		t.Errorf("refusal %+v, %v; want no room for background", refused, ok)
	}
	if got := s.post(ask, nil); got.StatusCode != http.StatusOK {
		t.Errorf("the live call got %s, want the part that background leaves", got.Status)
	}
	if got := s.vendor.Count(vendorsim.Filter{}); got != 2 {
		t.Errorf("the vendor saw %d calls, want 2", got)
	}
}

// S10: the first piece is here while the vendor still sends.
func TestStreamIsFlushed(t *testing.T) {
	s := newSetup(t)
	s.vendor.SetStream(4, 200*time.Millisecond)
	resp := s.post(strings.Replace(ask, "{", `{"stream":true,`, 1), nil)
	lines := bufio.NewScanner(resp.Body)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "data: {") {
		t.Fatalf("got %q, %v; want the first piece", lines.Text(), lines.Err())
	}
	if !s.vendor.Arrivals()[0].Answered.IsZero() {
		t.Error("the vendor had sent its last piece before the first one was here")
	}
	last := ""
	for lines.Scan() {
		if lines.Text() != "" {
			last = lines.Text()
		}
	}
	if last != "data: [DONE]" || lines.Err() != nil {
		t.Errorf("the stream ends in %q, %v", last, lines.Err())
	}
}

// A vendor that answers before Go's client has looked for the end of the request
// must not be cut off. That is a matter of luck: one call in ten or so, without care.
func TestVendorAnswersAtOnce(t *testing.T) {
	s := newSetup(t)
	s.vendor.SetStream(2, 2*time.Millisecond)
	for i := range 100 {
		key := fmt.Sprintf("Bearer %s-%d", apiKey, i) // each with a budget of its own
		resp := s.post(strings.Replace(ask, "{", `{"stream":true,`, 1), map[string]string{"Authorization": key})
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		resp.Body.Close()
	}
}

func TestMistakesOfTheCaller(t *testing.T) {
	for _, tc := range []struct {
		name   string
		header map[string]string
		want   int
	}{
		{"an unknown lane", map[string]string{laneHeader: "urgent"}, http.StatusBadRequest},
		{"no key", map[string]string{"Authorization": ""}, http.StatusUnauthorized},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSetup(t)
			if got := s.post(ask, tc.header).StatusCode; got != tc.want {
				t.Errorf("status %d, want %d", got, tc.want)
			}
			if got := s.vendor.Count(vendorsim.Filter{}); got != 0 {
				t.Errorf("the vendor saw %d calls", got)
			}
		})
	}
}

// A vendor that cannot be reached is told without the details of the network.
func TestNoVendor(t *testing.T) {
	s := newSetup(t)
	s.vendor.Close()
	resp := s.post(ask, nil)
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusBadGateway || string(body) != "the vendor gave no answer\n" || err != nil {
		t.Errorf("%s, %q, %v", resp.Status, body, err)
	}
}

// The program serves until it is told to stop.
func TestRun(t *testing.T) {
	vendor := vendorsim.Run(t, vendorsim.Config{})
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, w, config{listen: "127.0.0.1:0", vendor: vendor.URL(), requests: 10, tokens: 10_000})
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	s := setup{t, vendor, strings.TrimSpace(line)}
	if got := s.post(ask, nil).StatusCode; got != http.StatusOK {
		t.Errorf("status %d", got)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
}
