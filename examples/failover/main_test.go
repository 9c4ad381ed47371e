package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
)

func TestAsk(t *testing.T) {
	for _, tc := range []struct {
		name   string
		limit  throttle.Limit     // of the first model, of which one call is used
		script []vendorsim.Answer // of the first model
		model  string             // that answers
		status int                // of the error, 0 for none
		atOnce bool
		seen   int // calls of the first model that the vendor saw
	}{
		{"room", throttle.PerMinute(throttle.Requests, 2), nil, first, 0, true, 2},
		{"room in a second", throttle.PerSecond(throttle.Requests, 1), nil, first, 0, false, 2},
		{"room in a minute", throttle.PerMinute(throttle.Requests, 1), nil, backup, 0, true, 1},
		{
			"the vendor says later", throttle.PerMinute(throttle.Requests, 100),
			[]vendorsim.Answer{vendorsim.RateLimited(time.Minute, vendorsim.DialectSeconds)}, backup, 0, true, 2,
		},
		{
			"the vendor refuses the key", throttle.PerMinute(throttle.Requests, 100),
			[]vendorsim.Answer{vendorsim.KeyRefused401()}, first, http.StatusUnauthorized, true, 2,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			vendor := vendorsim.Run(t, vendorsim.Config{})
			limiter, err := throttle.New(throttle.Config{Models: map[string][]throttle.Limit{first: {tc.limit}}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { limiter.Close(context.WithoutCancel(t.Context())) })
			client := &http.Client{Transport: &transport.Transport{Limiter: limiter}}
			if model, err := ask(t.Context(), client, vendor.URL(), first, backup); model != first || err != nil {
				t.Fatalf("the first call: %q, %v", model, err)
			}
			vendor.Script(first, tc.script...)
			began := time.Now()
			model, err := ask(t.Context(), client, vendor.URL(), first, backup)
			status, _ := errors.AsType[statusError](err)
			if model != tc.model || int(status) != tc.status {
				t.Errorf("%q with %v, want %q with status %d", model, err, tc.model, tc.status)
			}
			if took := time.Since(began); tc.atOnce && took > 500*time.Millisecond {
				t.Errorf("it took %v, want it at once", took)
			}
			if got := vendor.Count(vendorsim.Filter{Model: first}); got != tc.seen {
				t.Errorf("the vendor saw %d calls of %s, want %d", got, first, tc.seen)
			}
		})
	}
}

func TestBusy(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		want bool
	}{
		{"no error", nil, false},
		{"no room", &throttle.RefusedError{Reason: throttle.NoRoom}, true},
		{"model paused", &throttle.RefusedError{Reason: throttle.ModelPaused}, true},
		{"key paused", &throttle.RefusedError{Reason: throttle.KeyPaused}, false},
		{"too large", &throttle.RefusedError{Reason: throttle.TooLarge}, false},
		{"429", statusError(429), true},
		{"529", statusError(529), true},
		{"400", statusError(400), false},
		{"the caller gave up", context.Canceled, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := busy(tc.err); got != tc.want {
				t.Errorf("busy(%v) = %v, want %v", tc.err, got, tc.want)
			}
		})
	}
}

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	want := "answered by gpt-demo\nanswered by gpt-demo\nanswered by gpt-demo-mini\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
