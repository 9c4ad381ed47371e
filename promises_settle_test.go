package headway_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport/profiles"
)

// Promise 6: an estimate is settled once, by the vendor's own count, and stays
// where there is no count to trust.
func TestPromise06_EstimatesAreSettledOnce(t *testing.T) {
	t.Parallel()
	const estimate = 1000
	w := newWire(t, throttle.Config{Default: []throttle.Limit{throttle.PerMinute(throttle.Tokens, 10_000)}}, vendorsim.Config{
		Usage: func(q vendorsim.Request) (int64, int64) {
			if q.Model == "more" {
				return 1500, 200
			}
			return 30, 12
		},
	})
	for _, tr := range w.transports {
		tr.Cost = throttle.Cost{throttle.Tokens: estimate}
	}
	usage := func(u string) vendorsim.Answer { return vendorsim.Answer{Body: `{"choices":[],"usage":` + u + `}`} }
	stream := func(model string) string {
		return `{"model":"` + model + `","stream":true,"stream_options":{"include_usage":true},"messages":[]}`
	}
	for _, tc := range []struct {
		model  string
		answer vendorsim.Answer
		body   string
		want   int64
	}{
		{"less", vendorsim.Answer{}, "", 42},
		{"more", vendorsim.Answer{}, "", 1700},
		{"stream", vendorsim.Answer{}, stream("stream"), 42},
		{"stream without a count", vendorsim.Answer{}, `{"model":"stream without a count","stream":true}`, estimate},
		{"cut stream", vendorsim.Answer{Cut: 300}, stream("cut stream"), estimate}, // S19
		{"no count", vendorsim.Answer{Body: `{"choices":[]}`}, "", estimate},
		{"zeros", usage(`{"prompt_tokens":0,"completion_tokens":0}`), "", estimate}, // no call takes none
		{"negative", usage(`{"prompt_tokens":-5,"completion_tokens":1}`), "", estimate},
		{"a fraction", usage(`{"prompt_tokens":1.5,"completion_tokens":1}`), "", estimate},
		{"too large to be true", usage(`{"prompt_tokens":99999999999999999999,"completion_tokens":1}`), "", estimate},
		{"words", usage(`{"prompt_tokens":"NaN","completion_tokens":[]}`), "", estimate},
		{"not JSON", vendorsim.Answer{Body: "usage: prompt_tokens 3"}, "", estimate},
	} {
		t.Run(tc.model, func(t *testing.T) {
			w.vendor.Script(tc.model, tc.answer)
			a := ask{model: tc.model, body: tc.body}
			if got := w.send(t, a); got.status != 200 {
				t.Fatalf("answer %d, %v, want 200", got.status, got.err)
			}
			if got := w.b.used(t, w.call(t, a), throttle.Tokens); got != tc.want {
				t.Errorf("used = %d, want %d", got, tc.want)
			}
		})
	}

	t.Run("closed early", func(t *testing.T) {
		w.vendor.Script("closed", vendorsim.Answer{Gap: 50 * ms})
		a := ask{model: "closed", body: stream("closed")}
		resp, err := w.transports[0].RoundTrip(w.request(t, a))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := resp.Body.Read(make([]byte, 64)); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := w.b.used(t, w.call(t, a), throttle.Tokens); got != estimate {
			t.Errorf("used = %d, want the estimate", got)
		}
	})

	t.Run("never twice", func(t *testing.T) {
		f := newFleet(t, models(throttle.PerMinute(throttle.Tokens, 1000)))
		r, other := reserve(t, f.a, costing(100)), reserve(t, f.b, costing(50))
		for _, n := range []int64{30, 30, 0, 900} {
			if err := r.Settle(t.Context(), throttle.Cost{throttle.Tokens: n}); err != nil {
				t.Fatal(err)
			}
			if err := r.Cancel(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := f.b.used(t, costing(0), throttle.Tokens); got != 80 {
				t.Fatalf("used = %d, want 80", got)
			}
		}
		if err := other.Settle(t.Context(), throttle.Cost{throttle.Tokens: throttle.MaxAmount}); err != nil {
			t.Fatal(err)
		}
		if got := f.a.used(t, costing(0), throttle.Tokens); got != throttle.MaxAmount { // full, not beyond what is exact
			t.Errorf("used = %d, want 2^53-1", got)
		}
	})

	// S17, S18: in the window that was charged or nowhere, whoever has gone.
	for _, shape := range []throttle.Shape{throttle.Sliding, throttle.Fixed, throttle.Bucket} {
		t.Run("late, "+shape.String(), func(t *testing.T) {
			t.Parallel()
			l := throttle.Per(throttle.Tokens, 1000, 300*ms)
			l.Shape = shape
			if shape == throttle.Bucket {
				l.Burst = 1000
			}
			f := newFleet(t, models(l))
			less, more, gone := reserve(t, f.a, costing(100)), reserve(t, f.a, costing(100)), reserve(t, f.a, costing(100))
			eventually(t, "the window is over", func() bool { return f.now(t).After(gone.At().Add(l.Window)) })
			fresh := reserve(t, f.b, costing(30))
			before := f.keys(t)
			cancelled, cancel := context.WithCancel(t.Context())
			cancel()
			err := errors.Join(less.Settle(cancelled, throttle.Cost{throttle.Tokens: 1}),
				more.Settle(cancelled, throttle.Cost{throttle.Tokens: 900}), gone.Cancel(cancelled))
			if err != nil {
				t.Fatal(err)
			}
			want := int64(30)
			got := f.a.used(t, costing(0), throttle.Tokens)
			if f.now(t).Before(fresh.At().Add(l.Window)) && shape != throttle.Fixed && got != want || got > want {
				t.Errorf("used = %d after late settling, want the fresh %d", got, want)
			}
			if after := f.keys(t); len(after) > len(before) {
				t.Errorf("late settling made keys: %q", after)
			}
		})
	}
}

// Promise 7: a call that never went out costs nothing; one whose fate is unknown,
// or that was answered, stays charged.
func TestPromise07_OnlyWhatNeverWentIsFree(t *testing.T) {
	t.Parallel()
	const estimate = 700
	c := throttle.Config{Default: []throttle.Limit{throttle.PerMinute(throttle.Tokens, 10_000), throttle.PerMinute(throttle.Requests, 100)}}
	w := newWire(t, c, vendorsim.Config{})
	for _, tr := range w.transports {
		tr.Cost = throttle.Cost{throttle.Tokens: estimate}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	broken := errors.New("no body today")
	free := profiles.OpenAI()
	free.Free = []int{429}

	for _, tc := range []struct {
		name    string
		answer  vendorsim.Answer
		ask     ask
		profile *profiles.Profile
		charged bool
	}{
		{"context done before", vendorsim.Answer{}, ask{ctx: cancelled}, nil, false}, // S11
		{"nobody listens", vendorsim.Answer{}, ask{url: "http://127.0.0.1:1/v1/chat/completions"}, nil, false},
		{"GetBody fails", vendorsim.Answer{}, ask{edit: func(r *http.Request) {
			r.GetBody = func() (io.ReadCloser, error) { return nil, broken }
		}}, nil, false},
		{"cut before an answer", vendorsim.Answer{Cut: vendorsim.CutBefore}, ask{}, nil, true},
		{"500", vendorsim.ServerError500(), ask{}, nil, true},
		{"529", vendorsim.Overloaded529(), ask{}, nil, true},
		{"401", vendorsim.KeyRefused401(), ask{}, nil, true},
		{"403", vendorsim.ModelForbidden403(), ask{}, nil, true},
		{"429", vendorsim.RateLimited(time.Second, vendorsim.DialectSeconds), ask{}, nil, true},
		{"400", vendorsim.Answer{Status: 400}, ask{}, nil, true},
		{"429 that is documented as free", vendorsim.RateLimited(time.Second, vendorsim.DialectSeconds), ask{}, free, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := tc.ask
			a.key, a.model = "sk-"+tc.name, tc.name
			w.vendor.Script(tc.name, tc.answer)
			w.transports[0].Profile = tc.profile
			got := w.send(t, a)
			w.transports[0].Profile = nil
			if sent := w.vendor.Count(vendorsim.Filter{Model: tc.name}); sent != 0 != (tc.charged || tc.profile != nil) {
				t.Fatalf("answer %d, %v; the vendor saw %d calls", got.status, got.err, sent)
			}
			want := map[bool][2]int64{true: {1, estimate}, false: {0, 0}}[tc.charged]
			if tc.ask.ctx != nil {
				a.ctx = nil
			}
			k := w.call(t, a)
			if used := [2]int64{w.b.used(t, k, throttle.Requests), w.b.used(t, k, throttle.Tokens)}; used != want {
				t.Errorf("used = %d (answer %d, %v), want %d", used, got.status, got.err, want)
			}
		})
	}

	t.Run("cancelled while it is out", func(t *testing.T) {
		w.vendor.Hold()
		defer w.vendor.Release()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan answer, 1)
		a := ask{ctx: ctx, model: "out", key: "sk-out"}
		go func() { done <- w.send(t, a) }()
		eventually(t, "the call is out", func() bool { return w.vendor.Count(vendorsim.Filter{Model: "out"}) == 1 })
		cancel()
		if got := <-done; !errors.Is(got.err, context.Canceled) {
			t.Fatalf("answer %d, %v, want the context's error", got.status, got.err)
		}
		if got := w.b.used(t, w.call(t, ask{model: "out", key: "sk-out"}), throttle.Tokens); got != estimate {
			t.Errorf("used = %d, want the estimate", got)
		}
	})
}
