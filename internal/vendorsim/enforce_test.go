package vendorsim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
)

func perMinute(unit vendorsim.Unit, n int64) vendorsim.Limit {
	return vendorsim.Limit{Unit: unit, Amount: n, Window: time.Minute}
}

// S15: exactly the limit, in every algorithm, and its edge.
func TestLimitsAreEnforced(t *testing.T) {
	tests := []struct {
		algorithm    vendorsim.Algorithm
		step         time.Duration
		before, then string
	}{
		{vendorsim.SlidingLog, time.Minute, "429", "200 200 200 429"},
		{vendorsim.FixedWindow, 30 * time.Second, "429", "200 200 200 429"}, // the clock starts half-way
		{vendorsim.TokenBucket, 20 * time.Second, "429", "200 429 429 429"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.algorithm), func(t *testing.T) {
			c := newClock()
			c.add(30 * time.Second)
			v := vendorsim.Run(t, vendorsim.Config{Now: c.Now, Models: map[string][]vendorsim.Limit{
				"m": {{Amount: 3, Window: time.Minute, Algorithm: tt.algorithm}},
			}})
			if got := statuses(t, v, 4, body("m", "")); got != "200 200 200 429" {
				t.Errorf("at the start: %s", got)
			}
			c.add(tt.step - time.Microsecond)
			if got := statuses(t, v, 1, body("m", "")); got != tt.before {
				t.Errorf("just before the edge: %s, want %s", got, tt.before)
			}
			c.add(time.Microsecond)
			if got := statuses(t, v, 4, body("m", "")); got != tt.then {
				t.Errorf("at the edge: %s, want %s", got, tt.then)
			}
		})
	}
}

func TestScopes(t *testing.T) {
	cfg := vendorsim.Config{
		Key:    []vendorsim.Limit{perMinute(vendorsim.Requests, 4)},
		Models: map[string][]vendorsim.Limit{"a": {perMinute(vendorsim.Requests, 2)}},
	}
	other := []string{"Authorization", "bearer test-key-2"}
	v := vendorsim.Run(t, cfg)
	if got := statuses(t, v, 3, body("a", "")); got != "200 200 429" {
		t.Errorf("model a: %s", got)
	}
	if got := statuses(t, v, 3, body("b", "")); got != "200 200 429" {
		t.Errorf("model b has no limit, its key has: %s", got)
	}
	if got := statuses(t, v, 3, body("a", ""), other...); got != "200 200 429" {
		t.Errorf("another key: %s", got)
	}
	cfg.OneAccount = true
	v = vendorsim.Run(t, cfg)
	if got := statuses(t, v, 2, body("a", "")) + " " + statuses(t, v, 1, body("a", ""), other...); got != "200 200 429" {
		t.Errorf("another key of one account: %s", got)
	}
}

// S14: all limits or none; a refusal takes nothing from the others.
func TestAllLimitsOrNone(t *testing.T) {
	v := vendorsim.Run(t, vendorsim.Config{
		Models: map[string][]vendorsim.Limit{"m": {perMinute(vendorsim.Requests, 3), perMinute(vendorsim.Tokens, 100)}},
		Usage: func(q vendorsim.Request) (in, out int64) {
			return 0, q.MaxTokens
		},
	})
	got := statuses(t, v, 1, body("m", `,"max_tokens":60`)) + " " + statuses(t, v, 20, body("m", `,"max_tokens":41`)) +
		" " + statuses(t, v, 2, body("m", `,"max_tokens":20`))
	if want := "200 " + strings.Repeat("429 ", 20) + "200 200"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// S16: a call above the whole limit is told so, and no time.
func TestTooLarge(t *testing.T) {
	v := vendorsim.Run(t, vendorsim.Config{Models: map[string][]vendorsim.Limit{"m": {perMinute(vendorsim.OutputTokens, 10)}}})
	r := post(t, v, chat, body("m", `,"max_completion_tokens":22`))
	if r.status != 429 || r.header.Get("Retry-After") != "" || !strings.Contains(r.body, "Request too large") ||
		!strings.Contains(r.body, "Limit 10, Requested 11") {
		t.Errorf("got %d %v %s", r.status, r.header, r.body)
	}
}

func TestSetLimits(t *testing.T) {
	v := vendorsim.Run(t, vendorsim.Config{})
	if err := v.SetLimits("m", perMinute(vendorsim.Requests, 1)); err != nil {
		t.Fatal(err)
	}
	if got := statuses(t, v, 2, body("m", "")); got != "200 429" {
		t.Errorf("with a limit: %s", got)
	}
	if err := v.SetLimits("m", vendorsim.Limit{}); err == nil {
		t.Error("a limit without an amount was accepted")
	}
	if err := v.SetLimits("m"); err != nil {
		t.Fatal(err)
	}
	if got := statuses(t, v, 2, body("m", "")); got != "200 200" {
		t.Errorf("without: %s", got)
	}
}

func TestRefuseKey(t *testing.T) {
	v := vendorsim.Run(t, vendorsim.Config{})
	v.RefuseKey("test-key-1", true)
	r := post(t, v, chat, body("m", ""))
	if r.status != 401 || !strings.Contains(r.body, `"code":"invalid_api_key"`) || !strings.Contains(r.body, "test-key-1") {
		t.Errorf("OpenAI: %d %s", r.status, r.body)
	}
	if r := post(t, v, messages, body("m", ""), "X-Api-Key", "test-key-1"); r.status != 401 || !strings.Contains(r.body, "authentication_error") {
		t.Errorf("Anthropic: %d %s", r.status, r.body)
	}
	if r := post(t, v, messages, body("m", ""), "X-Api-Key", "test-key-2"); r.status != 200 {
		t.Errorf("another key: %d", r.status)
	}
	v.RefuseKey("test-key-1", false)
	if r := post(t, v, chat, body("m", "")); r.status != 200 {
		t.Errorf("afterwards: %d", r.status)
	}
}
