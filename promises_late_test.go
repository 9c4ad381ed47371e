package headway_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport/profiles"
)

// lateWire is a wire whose vendor has several hosts, so that one of them can be
// slow: all of them are one vendor, with one key and one budget.
func lateWire(t *testing.T, p pause.Policy) *wire {
	c := plenty()
	c.Policy = p
	w := newWire(t, c, vendorsim.Config{})
	for _, tr := range w.transports {
		tr.Profile = profiles.OpenAI()
		tr.Profile.Hosts = []string{"127.0.0.1"}
	}
	return w
}

// late sends a call to "m" from host B and keeps the vendor's answer back until
// the function that it returns is called.
func (w *wire) late(t *testing.T, a vendorsim.Answer) func() answer {
	t.Helper()
	slow := vendorsim.Run(t, vendorsim.Config{})
	slow.Script("m", a)
	slow.Hold()
	done := make(chan answer, 1)
	go func() { done <- w.send(t, ask{host: 1, url: slow.URL() + "/v1/chat/completions"}.now()) }()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := slow.Await(ctx, 1, vendorsim.Filter{}); err != nil {
		t.Fatal(err)
	}
	return func() answer {
		slow.Release()
		got := <-done
		if got.err != nil && a.Cut == 0 {
			t.Error(got.err)
		}
		return got
	}
}

// Promise 16: the answer of a call from before a pause neither lifts nor repeats
// it, nor takes the probe's place. A late "later" may lengthen a pause that is
// running, never start one that has ended.
func TestPromise16_LateAnswersDoNoHarm(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		answer vendorsim.Answer
	}{
		{"200", vendorsim.Answer{}},
		{"400", vendorsim.Answer{Status: 400}},
		{"401", vendorsim.KeyRefused401()},
		{"500", vendorsim.ServerError500()},
		{"529", vendorsim.Overloaded529()},
		{"quota", vendorsim.Quota429()},
		{"cut", vendorsim.Answer{Cut: vendorsim.CutBefore}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := lateWire(t, pause.Policy{Refused: 400 * ms})
			beside, during, after := w.late(t, tc.answer), w.late(t, tc.answer), w.late(t, tc.answer)
			w.vendor.Script("n", vendorsim.KeyRefused401())
			w.status(t, 401, ask{model: "n"})

			beside()
			s := w.keyState(t, ask{})
			if s.Phase != pause.Held || s.Left > 400*ms {
				t.Errorf("a late answer beside the pause made the key %+v, want it held as before", s)
			}
			w.over(t)
			w.vendor.Hold()
			probe := make(chan answer, 1)
			go func() { probe <- w.send(t, ask{model: "o"}.now()) }()
			w.await(t, 2)
			during()
			if s := w.keyState(t, ask{}); s.Phase != pause.Probing {
				t.Errorf("a late answer beside the probe made the key %+v, want probing", s)
			}
			for i := range 4 {
				w.refused(t, ask{host: i, model: "o"}.now())
			}
			w.vendor.Release()
			if got := <-probe; got.status != 200 {
				t.Fatalf("the probe: answer %d, %v, want 200", got.status, got.err)
			}
			after()
			for i := range 4 {
				w.status(t, 200, ask{host: i, model: "o"}.now())
			}
		})
	}

	t.Run("later", func(t *testing.T) {
		t.Parallel()
		w := lateWire(t, pause.Policy{})
		named := func(value string) vendorsim.Answer {
			return vendorsim.Answer{Status: 429, Header: http.Header{"Retry-After": {value}}, Body: "{}"}
		}
		longer, shorter, ended := w.late(t, named("3")), w.late(t, named("0.001")), w.late(t, named("60"))
		w.vendor.Script("m", named("2"))
		w.status(t, 429, ask{})
		before := w.now(t)
		longer()
		shorter()
		left := w.left(t, ask{})
		if end := w.now(t).Add(left); end.Before(before.Add(3 * time.Second)) {
			t.Errorf("the pause has %v left, want it lengthened to 3s", left)
		}
		eventually(t, "the pause is over", func() bool { return w.left(t, ask{}) == 0 })
		if got := ended(); got.status != 429 {
			t.Fatalf("answer %d, %v, want 429", got.status, got.err)
		}
		if left := w.left(t, ask{}); left != 0 {
			t.Errorf("a late later started a pause of %v, want none", left)
		}
		w.status(t, 200, ask{host: 1}.now())
	})
}

// Promise 16: a probe that comes back after its lease does not speak for the
// one that took its place.
func TestPromise16_ALateProbeDoesNoHarm(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]vendorsim.Answer{
		"200": {}, "401": vendorsim.KeyRefused401(), "500": vendorsim.ServerError500(), "cut": {Cut: vendorsim.CutBefore},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := lateWire(t, pause.Policy{Refused: 100 * ms, Lease: 300 * ms * slack})
			w.vendor.Script("n", vendorsim.KeyRefused401())
			w.status(t, 401, ask{model: "n"})
			w.over(t)
			first := w.late(t, late)
			w.over(t) // its lease
			w.vendor.Hold()
			second := make(chan answer, 1)
			go func() { second <- w.send(t, ask{model: "o"}.now()) }()
			w.await(t, 2)
			before := w.keyState(t, ask{})
			first()
			if s := w.keyState(t, ask{}); before.Left > 0 && s.Phase != pause.Probing {
				t.Errorf("the first probe's answer made the key %+v, want the second one's turn", s)
			}
			w.vendor.Release()
			if got := <-second; got.status != 200 {
				t.Fatalf("the second probe: answer %d, %v, want 200", got.status, got.err)
			}
			for i := range 4 {
				w.status(t, 200, ask{host: i, model: "o"}.now())
			}
		})
	}
}

// Promise 17: what an answer is about is what pauses: one model, the key with
// all its models, or nothing; never another key.
func TestPromise17_TheRightScope(t *testing.T) {
	t.Parallel()
	text := func(status int, body string) vendorsim.Answer { return vendorsim.Answer{Status: status, Body: body} }
	for _, tc := range []struct {
		name       string
		answer     vendorsim.Answer
		model, key bool // what pauses
	}{
		{"429", vendorsim.RateLimited(time.Minute, vendorsim.DialectSeconds), true, false},
		{"429 that is no JSON", text(429, "<html>slow down</html>"), true, false},
		{"overloaded", vendorsim.Overloaded529(), true, false},
		{"key refused", vendorsim.KeyRefused401(), true, true},
		{"403", text(403, `{"error":{"message":"no"}}`), true, true},
		{"402", text(402, ""), true, true},
		{"quota", vendorsim.Quota429(), true, true}, // S30
		{"quota with a short time", vendorsim.Answer{Status: 429, Header: http.Header{"Retry-After": {"1"}}, Body: `{"error":{"code":"insufficient_quota"}}`}, true, true},
		{"400 for a bad key", text(400, `{"error":{"details":[{"reason":"API_KEY_INVALID"}]}}`), true, true},
		{"403 about the model", vendorsim.ModelForbidden403(), false, false},
		{"403 about the model in words", text(403, `{"error":{"message":"Project proj_1 does not have access to model m"}}`), false, false},
		{"404 about the model", text(404, `{"error":{"code":"model_not_found"}}`), false, false},
		{"content", text(400, `{"error":{"code":"content_filter"}}`), false, false},
		{"size of the request", text(413, ""), false, false},
		{"above the limit itself", text(429, `{"error":{"code":"rate_limit_exceeded","message":"Request too large for m: Limit 30000, Requested 45211."}}`), false, false},
		{"500", vendorsim.ServerError500(), false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWire(t, plenty(), vendorsim.Config{})
			w.vendor.Script("m", tc.answer)
			w.status(t, tc.answer.Status, ask{})
			check := func(what string, paused bool, a ask) {
				t.Helper()
				a.host = 1
				if paused {
					w.refused(t, a.now())
				} else {
					w.status(t, 200, a.now())
				}
			}
			check("the model", tc.model, ask{})
			check("another model", tc.key, ask{model: "n"})
			check("another key", false, ask{key: "sk-another"})
			check("the key at another vendor", false, ask{url: w.vendor.URL() + "/v1/messages", edit: func(r *http.Request) {
				r.Header.Set("Anthropic-Version", "2023-06-01")
				r.Header.Set("X-Api-Key", apiKey)
				r.Header.Del("Authorization")
			}})
			check("the key in another organization", false, ask{edit: func(r *http.Request) { r.Header.Set("OpenAI-Organization", "org-2") }})
			other := vendorsim.Run(t, vendorsim.Config{})
			check("the key at another host", false, ask{url: other.URL() + "/v1/chat/completions"})
		})
	}

	// A vendor that counts by account pauses the key; models that share a limit share a pause.
	t.Run("by account", func(t *testing.T) {
		t.Parallel()
		c := plenty()
		c.Aliases = map[string]string{"m-2024*": "m"}
		w := newWire(t, c, vendorsim.Config{})
		for _, tr := range w.transports {
			tr.Profile = profiles.OpenAI()
			tr.Profile.JudgeFunc = func(a profiles.Answer) (pause.Verdict, bool) {
				return pause.Verdict{Class: pause.RateLimited, Scope: pause.Key}, a.Status == 429 && a.Model == "account"
			}
		}
		w.vendor.Script("m", vendorsim.RateLimited(time.Minute, vendorsim.DialectSeconds))
		w.status(t, 429, ask{})
		w.refused(t, ask{host: 1, model: "m-2024-08-06"}.now())
		w.status(t, 200, ask{host: 1, model: "n"}.now())
		w.vendor.Script("account", vendorsim.RateLimited(time.Minute, vendorsim.DialectSeconds))
		w.status(t, 429, ask{model: "account"})
		if e := w.refused(t, ask{host: 1, model: "n"}.now()); e.Reason != throttle.KeyPaused || e.RetryAfter < 50*time.Second {
			t.Errorf("refusal %+v, want the key paused for a minute", e)
		}
	})
}
