package headway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
)

// Promise 6, S19: a call settles exactly once, however its body ends, on both
// stores. The vendor counts 42 tokens; the estimate is 1,000.
func TestPromise06_EveryWayABodyCanEnd(t *testing.T) {
	t.Parallel()
	const estimate, counted = 1000, 42
	vendor := vendorsim.Run(t, vendorsim.Config{Usage: func(vendorsim.Request) (int64, int64) { return 30, 12 }})
	read := func(resp *http.Response) { _, _ = io.Copy(io.Discard, resp.Body) }
	ways := []struct {
		name   string
		stream bool
		answer vendorsim.Answer
		want   int64
		end    func(resp *http.Response, cancel func())
	}{
		{"read, then closed", false, vendorsim.Answer{}, counted, func(r *http.Response, _ func()) { read(r); r.Body.Close() }},
		{"read, never closed", false, vendorsim.Answer{}, counted, func(r *http.Response, _ func()) { read(r) }},
		{"closed twice", false, vendorsim.Answer{}, counted, func(r *http.Response, _ func()) { read(r); r.Body.Close(); r.Body.Close() }},
		{"read past the end", false, vendorsim.Answer{}, counted, func(r *http.Response, _ func()) { read(r); read(r); r.Body.Close() }},
		{"closed by two goroutines", false, vendorsim.Answer{}, counted, func(r *http.Response, _ func()) {
			read(r)
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() { r.Body.Close() })
			}
			wg.Wait()
		}},
		{"stream, read", true, vendorsim.Answer{}, counted, func(r *http.Response, _ func()) { read(r); r.Body.Close() }},
		{"stream, closed early", true, vendorsim.Answer{Gap: 30 * ms}, estimate, func(r *http.Response, _ func()) {
			_, _ = r.Body.Read(make([]byte, 16))
			r.Body.Close()
		}},
		{"stream, never read, cancelled", true, vendorsim.Answer{Gap: 30 * ms}, estimate, func(_ *http.Response, cancel func()) { cancel() }},
		{"stream, read while cancelled", true, vendorsim.Answer{Gap: 30 * ms}, estimate, func(r *http.Response, cancel func()) {
			_, _ = r.Body.Read(make([]byte, 16))
			cancel()
			read(r)
			r.Body.Close()
		}},
		{"cut by the vendor", true, vendorsim.Answer{Cut: 200}, estimate, func(r *http.Response, _ func()) { read(r); r.Body.Close() }},
		{"never read, closed", false, vendorsim.Answer{}, estimate, func(r *http.Response, _ func()) { r.Body.Close() }},
		{"no body", false, vendorsim.Answer{Status: http.StatusNoContent}, estimate, func(r *http.Response, _ func()) { read(r); r.Body.Close() }},
		{"an error of the vendor", false, vendorsim.ServerError500(), estimate, func(r *http.Response, _ func()) { read(r); r.Body.Close() }},
	}
	limits := []throttle.Limit{throttle.PerMinute(throttle.Tokens, 10_000)}
	for store, config := range map[string]throttle.Config{
		"memory": {Default: limits},
		"redis":  {Default: limits, Redis: server.Client(), Prefix: prefixOf(t)},
	} {
		limiter, err := throttle.New(config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = limiter.Close(context.Background()) })
		wire := &transport.Transport{Limiter: limiter, Cost: throttle.Cost{throttle.Tokens: estimate}}
		for i, way := range ways {
			t.Run(store+"/"+way.name, func(t *testing.T) {
				model := fmt.Sprintf("%s-%d", store, i)
				vendor.Script(model, way.answer)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				body := fmt.Sprintf(`{"model":%q,"stream":%v,"stream_options":{"include_usage":true},"messages":[]}`, model, way.stream)
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, vendor.URL()+"/v1/chat/completions", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer "+apiKey)
				key, err := wire.Fingerprint(req)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := wire.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				way.end(resp, cancel)
				used := func() int64 {
					s, err := limiter.Status(context.Background(), key, model)
					if err != nil {
						t.Fatal(err)
					}
					return s.Models[0].Limits[0].Used
				}
				for bound := time.Now().Add(2 * time.Second); used() != way.want && time.Now().Before(bound); {
					<-time.After(5 * ms)
				}
				cancel()
				resp.Body.Close()
				<-time.After(20 * ms) // a second settlement would come now
				if got := used(); got != way.want {
					t.Errorf("used = %d, want %d", got, way.want)
				}
			})
		}
	}
}
