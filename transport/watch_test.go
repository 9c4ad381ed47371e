package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/throttle"
)

// Watch and Restore against an SDK that flattens every error.
func TestRestore(t *testing.T) {
	flat := errors.New("sdk: network error")
	refused := &throttle.RefusedError{Reason: throttle.ModelPaused, Model: "m", RetryAfter: time.Second}
	outage := fmt.Errorf("%w: silent", throttle.ErrStoreUnavailable)
	for _, tc := range []struct {
		name     string
		err      error // of the call
		mode     Refusals
		sdk      error // what the SDK makes of it; nil: it hands the call's on
		remember bool
	}{
		{"refusal", refused, AsError, flat, true},
		{"refusal as a response", refused, AsResponse, flat, true},
		{"outage", outage, AsError, flat, true},
		{"outage as a response", outage, AsResponse, flat, true},
		{"SDK takes it for a timeout", refused, AsError, context.DeadlineExceeded, true},
		{"SDK keeps it", refused, AsError, nil, false},
		{"a mistake in the program", throttle.ErrInvalid, AsError, flat, false},
		{"nothing was refused", nil, AsError, flat, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			base := roundTrip(func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 200}, nil })
			tr := &Transport{reserve: (&book{err: tc.err}).reserve, DefaultKeyID: "test", Refusals: tc.mode, Base: base}
			ctx := Watch(t.Context())
			_, err := tr.RoundTrip(post(t, "http://vendor.example/", "{}").WithContext(ctx))
			if tc.sdk != nil {
				err = tc.sdk
			}
			got := Restore(ctx, err)
			if !tc.remember {
				if got != err {
					t.Errorf("Restore() = %v, want the error itself", got)
				}
				return
			}
			if !errors.Is(got, err) || !errors.Is(got, tc.err) {
				t.Errorf("Restore() = %v, want both %v and %v", got, err, tc.err)
			}
			var as *throttle.RefusedError
			if errors.As(tc.err, &as) && (!errors.As(got, &as) || as != refused) {
				t.Errorf("errors.As() = %v, want the refusal", as)
			}
			if Restore(ctx, nil) != nil {
				t.Error("Restore(nil) is an error")
			}
		})
	}
	if got := Restore(t.Context(), flat); got != flat {
		t.Errorf("Restore() without Watch = %v, want the error itself", got)
	}
}

// Of concurrent calls under one context one refusal is left, and it is whole.
func TestRestoreConcurrent(t *testing.T) {
	tr := &Transport{DefaultKeyID: "test", reserve: func(_ context.Context, c throttle.Call) (reservation, error) {
		return nil, &throttle.RefusedError{Model: c.Model, RetryAfter: time.Second}
	}}
	ctx := Watch(t.Context())
	last := func() string {
		var got *throttle.RefusedError
		errors.As(Restore(ctx, io.EOF), &got)
		if got == nil {
			return ""
		}
		return got.Model
	}
	var calls sync.WaitGroup
	for i := range 16 {
		req := post(t, "http://vendor.example/", `{"model":"`+strconv.Itoa(i)+`"}`).WithContext(ctx)
		calls.Go(func() {
			if _, err := tr.RoundTrip(req); err == nil {
				t.Error("RoundTrip() succeeded")
			}
			if last() == "" {
				t.Error("Restore() found nothing")
			}
		})
	}
	calls.Wait()
	tr.RoundTrip(post(t, "http://vendor.example/", `{"model":"last"}`).WithContext(ctx))
	if got := last(); got != "last" {
		t.Errorf("Restore() gave the refusal of %q, want the last", got)
	}
}

// NoRetries adds one header to one kind of answer.
func TestNoRetries(t *testing.T) {
	long := lanes.Lane{Name: "batch", Share: 0.5, MaxWait: time.Minute}
	for _, tc := range []struct {
		name    string
		on      bool
		lane    lanes.Lane
		maxWait time.Duration
		status  int
		want    []string
	}{
		{"off", false, lanes.Background, 0, 429, []string{"true"}},
		{"background", true, lanes.Background, 0, 429, []string{"false"}},
		{"live", true, lanes.Live, 0, 429, []string{"true"}},
		{"live that may not wait", true, lanes.Live, -1, 429, []string{"false"}},
		{"background that may wait", true, lanes.Background, time.Second, 429, []string{"true"}},
		{"another lane that waits", true, long, 0, 429, []string{"true"}},
		{"other statuses", true, lanes.Background, 0, 503, []string{"true"}},
		{"success", true, lanes.Background, 0, 200, []string{"true"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sent := http.Header{"Retry-After": {"86400"}, "X-Should-Retry": {"true"}, "Content-Type": {"application/json"}}
			tr := &Transport{
				reserve: (&book{}).reserve, DefaultKeyID: "test", NoRetries: tc.on, Lane: tc.lane, MaxWait: tc.maxWait,
				Base: roundTrip(func(*http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: tc.status, Header: sent, Body: io.NopCloser(strings.NewReader("{}"))}, nil
				}),
			}
			resp, err := tr.RoundTrip(post(t, "http://vendor.example/", "{}"))
			if err != nil {
				t.Fatal(err)
			}
			if got := resp.Header["X-Should-Retry"]; len(got) != 1 || got[0] != tc.want[0] {
				t.Errorf("X-Should-Retry: %v, want %v", got, tc.want)
			}
			if len(resp.Header) != 3 || resp.Header.Get("Retry-After") != "86400" || resp.StatusCode != tc.status || readAll(t, resp.Body) != "{}" {
				t.Errorf("answer = %d %v, want the rest unchanged", resp.StatusCode, resp.Header)
			}
			if sent.Get("X-Should-Retry") != "true" {
				t.Error("the base's own header was changed")
			}
		})
	}
}
