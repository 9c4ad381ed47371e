package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport/profiles"
)

// Every hop of a redirect is a call of its own, and what another host answers
// never touches this key.
func TestRedirects(t *testing.T) {
	const body = `{"model":"m"}`
	for _, tc := range []struct {
		name   string
		to     string
		header string // that carries the key
		change func(*Transport)
		same   bool // the hop counts under the same key
		err    error
	}{
		{"within the vendor", "api.anthropic.com", "X-Api-Key", nil, true, nil},
		{"another host gets the key all the same", "other.example", "X-Api-Key", nil, false, nil},
		{"http.Client dropped the key", "other.example", "Authorization", nil, false, ErrNoCredential},
		{"the key has a stable name", "other.example", "Authorization", func(tr *Transport) { tr.KeyID = "one" }, false, nil},
		{"a stable name stands in", "other.example", "Authorization", func(tr *Transport) { tr.DefaultKeyID = "one" }, false, nil},
		{"the profile is fixed", "other.example", "X-Api-Key", func(tr *Transport) { tr.Profile = profiles.Anthropic() }, false, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			url := vendor(t, func(w http.ResponseWriter, r *http.Request) {
				if got, _ := io.ReadAll(r.Body); string(got) != body {
					t.Errorf("%s got the body %q", r.Host, got)
				}
				if r.URL.Path == "/first" {
					http.Redirect(w, r, "http://"+tc.to+"/second", http.StatusTemporaryRedirect)
					return
				}
				w.WriteHeader(401)
			})
			b := &book{}
			client := b.client(t, func(tr *Transport) {
				tr.DefaultKeyID = ""
				if tc.change != nil {
					tc.change(tr)
				}
				tr.Base.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(url, "http://"))
				}
			})
			req := post(t, "http://api.anthropic.com/first", body)
			req.Header.Set(tc.header, "K")
			resp, err := client.Do(req)
			if !errors.Is(err, tc.err) {
				t.Fatalf("Do() error %v, want %v", err, tc.err)
			}
			hops := 2
			if err != nil {
				hops = 1
			} else {
				resp.Body.Close()
			}
			if len(b.holds) != hops {
				t.Fatalf("%d calls reserved, want %d", len(b.holds), hops)
			}
			first := b.holds[0]
			if len(first.reports) != 1 || first.reports[0] != (pause.Verdict{}) || first.cancels != 0 {
				t.Errorf("first hop: reports %+v, %d cancels, want ok alone", first.reports, first.cancels)
			}
			if hops == 1 {
				return
			}
			second := b.holds[1]
			if len(second.reports) != 1 || second.reports[0].Class != pause.KeyRefused || second.call.Cost[throttle.Requests] != 1 {
				t.Errorf("second hop: %+v, want a call of its own whose key is refused", second)
			}
			if got := second.call.Key == first.call.Key; got != tc.same {
				t.Errorf("same key %v, want %v", got, tc.same)
			}
		})
	}
}

// readCounter is a body that counts its reads.
type readCounter struct {
	closeCounter
	reads atomic.Int32
}

func (c *readCounter) Read(b []byte) (int, error) {
	c.reads.Add(1)
	return c.closeCounter.Read(b)
}

// A request that expects 100-continue sends its body when the vendor wants it.
func TestExpectContinue(t *testing.T) {
	const body = `{"model":"m","input":"hello"}`
	for _, oneShot := range []bool{false, true} {
		for _, wanted := range []bool{true, false} {
			url := vendor(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Expect") != "100-continue" {
					t.Errorf("Expect: %q", r.Header.Get("Expect"))
				}
				if !wanted {
					w.WriteHeader(http.StatusExpectationFailed)
					return
				}
				got, _ := io.ReadAll(r.Body)
				w.Write(got)
			})
			b := &book{}
			client := b.client(t, func(tr *Transport) { tr.Base.(*http.Transport).ExpectContinueTimeout = time.Minute })
			req := post(t, url, body)
			sent := &readCounter{closeCounter: closeCounter{Reader: strings.NewReader(body)}}
			req.Body = sent
			if oneShot {
				req.GetBody = nil
			}
			req.Header.Set("Expect", "100-continue")
			var asked atomic.Bool
			trace := &httptrace.ClientTrace{Got100Continue: func() { asked.Store(true) }}
			resp := do(t, client, req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
			got := readAll(t, resp.Body)
			if wanted != (got == body) || wanted != asked.Load() || wanted != (resp.StatusCode == 200) {
				t.Errorf("one-shot %v, wanted %v: %d %q, asked for the body %v", oneShot, wanted, resp.StatusCode, got, asked.Load())
			}
			if h := b.last(t); h.call.Model != "m" {
				t.Errorf("one-shot %v: Model = %q, want m", oneShot, h.call.Model)
			}
			if !oneShot && !wanted && sent.reads.Load() != 0 {
				t.Errorf("the body was read %d times though nobody wanted it", sent.reads.Load())
			}
			eventually(t, "the body is closed", func() bool { return sent.closes.Load() > 0 })
		}
	}
}
