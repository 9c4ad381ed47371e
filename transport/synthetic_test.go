package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/throttle"
)

// S27: the key is in no error, log line or value of ours.
func TestSecrets(t *testing.T) {
	const secret = "SENTINEL-KEY-123"
	var logged bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	places := map[string]func(*http.Request){
		"bearer":   func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+secret) },
		"header":   func(r *http.Request) { r.Header.Set("X-Api-Key", secret) },
		"google":   func(r *http.Request) { r.Header.Set("X-Goog-Api-Key", secret) },
		"query":    func(r *http.Request) { r.URL.RawQuery = "key=" + secret },
		"basic":    func(r *http.Request) { r.SetBasicAuth("user", secret) },
		"userinfo": func(r *http.Request) { r.URL.User = url.UserPassword("user", secret) },
	}
	errs := []error{nil, &throttle.RefusedError{Reason: throttle.KeyPaused, RetryAfter: time.Second}, throttle.ErrStoreUnavailable, throttle.ErrInvalid}
	for name, put := range places {
		for _, refusal := range errs {
			b := &book{err: refusal}
			tr := &Transport{reserve: b.reserve, Logger: logger, DefaultKeyID: "test", Pepper: []byte(secret)}
			req := post(t, "http://127.0.0.1:1/v1", `{"model":"m"}`)
			put(req)
			_, err := tr.RoundTrip(req)
			if err == nil {
				t.Fatal("RoundTrip() succeeded")
			}
			tr.Refusals = AsResponse
			resp, _ := tr.RoundTrip(req)
			var text strings.Builder
			fmt.Fprintf(&text, "%v %+v %#v %+v", err, err, tr.Pepper, b.holds)
			if resp != nil {
				fmt.Fprint(&text, resp.Header, readAll(t, resp.Body))
			}
			for _, h := range b.holds {
				fmt.Fprintf(&text, "%+v", h.call)
			}
			for i := range len(secret) - 7 {
				if piece := secret[i : i+8]; strings.Contains(text.String()+logged.String(), piece) {
					t.Errorf("%s, refusal %v: %q is in %s", name, refusal, piece, text.String())
				}
			}
		}
	}
	if logged.Len() == 0 {
		t.Error("nothing was logged")
	}
}

func TestRefusalForms(t *testing.T) {
	refused := &throttle.RefusedError{
		Reason: throttle.NoRoom, Key: "00ff", Model: "vendor/m & co=ü", Lane: "background",
		Limit: "500 requests per 1m0s", Unit: "requests", RetryAfter: 1200500 * time.Microsecond, Deferred: true,
	}
	tooLarge := &throttle.RefusedError{Reason: throttle.TooLarge, Model: "m", Lane: "live", Limit: "10 tokens per 1m0s", Unit: "tokens"}
	outage := fmt.Errorf("%w: silent", throttle.ErrStoreUnavailable)
	for _, tc := range []struct {
		name       string
		err        error
		mode       Refusals
		stainless  bool
		status     int // 0: the error
		retryAfter string
		marker     string
	}{
		{"auto, plain client", refused, Auto, false, 0, "", ""},
		{"auto, SDK that retries", refused, Auto, true, 429, "2", "no room"},
		{"always error", refused, AsError, true, 0, "", ""},
		{"always response", refused, AsResponse, false, 429, "2", "no room"},
		{"too large", tooLarge, AsResponse, false, 413, "", "too large"},
		{"outage", outage, Auto, true, 503, "", "store unavailable"},
		{"outage, plain client", outage, Auto, false, 0, "", ""},
		{"invalid call", throttle.ErrInvalid, AsResponse, true, 0, "", ""},
		{"context", context.DeadlineExceeded, AsResponse, true, 0, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := &Transport{reserve: (&book{err: tc.err}).reserve, DefaultKeyID: "test", Refusals: tc.mode}
			req := post(t, "http://vendor.example/", "{}")
			if tc.stainless {
				req.Header.Set("X-Stainless-Retry-Count", "0")
			}
			resp, err := (&http.Client{Transport: tr}).Do(req)
			if tc.status == 0 {
				var got *throttle.RefusedError
				if !errors.Is(err, tc.err) || errors.As(tc.err, &got) && !errors.As(err, &got) {
					t.Fatalf("error %v, want %v", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			body := readAll(t, resp.Body)
			if resp.StatusCode != tc.status || resp.Header.Get("Retry-After") != tc.retryAfter || resp.Header.Get("X-Should-Retry") != "false" ||
				resp.Header.Get(RefusedHeader) != tc.marker || resp.ContentLength != int64(len(body)) || resp.Request == nil || resp.Proto != "HTTP/1.1" {
				t.Errorf("answer = %d, length %d of %d, header %v", resp.StatusCode, resp.ContentLength, len(body), resp.Header)
			}
			var decoded struct {
				Error struct {
					Type, Message, Status string
					Code                  int
				}
				Message      string
				Code, Status int
			}
			if err := json.Unmarshal([]byte(body), &decoded); err != nil {
				t.Fatal(err)
			}
			if decoded.Error.Message != tc.err.Error() || decoded.Error.Code != tc.status || decoded.Error.Type == "" || decoded.Error.Status == "" ||
				decoded.Message != tc.err.Error() || decoded.Code != tc.status || decoded.Status != tc.status {
				t.Errorf("body = %s", body)
			}
			got, ok := FromResponse(resp)
			var want *throttle.RefusedError
			if errors.As(tc.err, &want) != ok {
				t.Fatalf("FromResponse() = %v, %v", got, ok)
			}
			if ok {
				rounded := *want
				rounded.RetryAfter = (want.RetryAfter + time.Millisecond - 1).Truncate(time.Millisecond)
				if *got != rounded {
					t.Errorf("FromResponse() = %+v, want %+v", *got, rounded)
				}
			}
		})
	}
	for _, vendor := range []*http.Response{nil, {StatusCode: 429, Header: http.Header{"Retry-After-Ms": {"5"}}}} {
		if got, ok := FromResponse(vendor); ok {
			t.Errorf("FromResponse(%v) = %v, want none", vendor, got)
		}
	}
}
