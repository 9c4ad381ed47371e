package headway_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
)

// reserved notes what calls are charged before they go.
type reserved struct {
	*throttle.Limiter
	mu    sync.Mutex
	calls []int64
}

func (r *reserved) Wait(ctx context.Context, c throttle.Call) (*throttle.Reservation, error) {
	held, err := r.Limiter.Wait(ctx, c)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.calls = append(r.calls, held.Cost()[throttle.Tokens])
	}
	return held, err
}

// mix is traffic of one kind: requests, and what the vendor counts for them.
type mix struct {
	name, path string
	body       func(r *rand.Rand) string
	usage      func(r *rand.Rand, q vendorsim.Request) (in, out int64)
}

func words(r *rand.Rand, mean float64, word string) string {
	return strings.Repeat(word+" ", 1+int(math.Exp(r.NormFloat64()*0.5)*mean))
}

func spread(r *rand.Rand, n, by float64) int64 { return max(1, int64(n*math.Exp(r.NormFloat64()*by))) }

var mixes = []mix{
	{"chat, English, generous caps", "/v1/chat/completions", func(r *rand.Rand) string {
		return fmt.Sprintf(`{"model":"m","max_tokens":4096,"messages":[{"role":"user","content":"%s"}]}`, words(r, 300, "limits"))
	}, func(r *rand.Rand, q vendorsim.Request) (in, out int64) {
		return spread(r, float64(len(q.Body))/6, 0.05), spread(r, 220, 0.4)
	}},
	{"messages, another alphabet, streamed, two caps", "/v1/messages", func(r *rand.Rand) string {
		limit := []int{512, 8192}[r.IntN(2)]
		return fmt.Sprintf(`{"model":"m","stream":true,"max_tokens":%d,"messages":[{"role":"user","content":"%s"}]}`, limit, words(r, 500, "限制"))
	}, func(r *rand.Rand, q vendorsim.Request) (in, out int64) {
		return spread(r, float64(len(q.Body))/2.4, 0.05), spread(r, float64(q.MaxTokens)/10, 0.3)
	}},
	{"responses, some with pictures, no caps", "/v1/responses", func(r *rand.Rand) string {
		picture := ""
		if r.IntN(3) == 0 {
			data := base64.StdEncoding.EncodeToString(make([]byte, 100_000+r.IntN(200_000)))
			picture = `{"type":"input_image","image_url":"data:image/png;base64,` + data + `"},`
		}
		return fmt.Sprintf(`{"model":"m","input":[{"role":"user","content":[%s{"type":"input_text","text":"%s"}]}]}`, picture, words(r, 150, "picture"))
	}, func(r *rand.Rand, q vendorsim.Request) (in, out int64) {
		text := len(q.Body)
		if _, data, ok := strings.Cut(string(q.Body), "base64,"); ok {
			text -= strings.IndexByte(data, '"')
			in = spread(r, 1100, 0.2)
		}
		return in + spread(r, float64(text)/5, 0.05), spread(r, 90, 0.3)
	}},
}

// After 50 settled calls an estimate is at most half as wrong as it was, and what
// a window reserves is 0.9 to 1.3 of what the vendor counts, over the wire.
func TestEstimatesLearnFromAnswers(t *testing.T) {
	for _, mix := range mixes {
		t.Run(mix.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(3, 5))
			var counted []int64
			vendor := vendorsim.Run(t, vendorsim.Config{Usage: func(q vendorsim.Request) (in, out int64) {
				in, out = mix.usage(r, q) // one call at a time
				counted = append(counted, in+out)
				return in, out
			}})
			f := newFleet(t, throttle.Config{Default: []throttle.Limit{throttle.PerMinute(throttle.Tokens, throttle.MaxAmount)}})
			hosts := []*reserved{{Limiter: f.a.Limiter}, {Limiter: f.b.Limiter}}
			call := func(host *reserved) {
				client := &http.Client{Transport: &transport.Transport{Limiter: host}}
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, vendor.URL()+mix.path, strings.NewReader(mix.body(r)))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer sk-estimates")
				if mix.path == "/v1/messages" {
					req.Header.Set("Anthropic-Version", "2023-06-01")
				}
				resp, err := client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
					t.Fatalf("status %d, %v", resp.StatusCode, err)
				}
				resp.Body.Close()
			}
			wrong := func(calls, counted []int64) (off, reserved, taken int64) {
				for i, n := range calls {
					off, reserved, taken = off+max(n-counted[i], counted[i]-n), reserved+n, taken+counted[i]
				}
				return off, reserved, taken
			}
			for range 9 { // too few to learn from
				call(hosts[0])
			}
			before, first, firstTook := wrong(hosts[0].calls, counted)
			before = before * 100 / 9
			for range 41 {
				call(hosts[0])
			}
			call(hosts[1]) // hears of it with its first answer
			counted, hosts[1].calls = nil, nil
			for range 100 {
				call(hosts[1])
			}
			after, estimated, took := wrong(hosts[1].calls, counted)
			ratio := float64(estimated) / float64(took)
			t.Logf("off by %.2f of what it was; reserved %.2f of what was counted, before %.2f",
				float64(after)/float64(before), ratio, float64(first)/float64(firstTook))
			if 2*after > before {
				t.Errorf("estimates are off by %d, were off by %d: want half at most", after, before)
			}
			if ratio < 0.9 || ratio > 1.3 {
				t.Errorf("reserved %.2f of what was counted, want 0.9 to 1.3", ratio)
			}
		})
	}
}
