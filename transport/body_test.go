package transport

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway/throttle"
)

// roundTrip is a base transport made of a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// S06: what is sent is what the caller gave, and can still be sent again.
func TestBodyIsWhole(t *testing.T) {
	var hash atomic.Value
	url := vendor(t, func(w http.ResponseWriter, r *http.Request) {
		h := sha256.New()
		n, _ := io.Copy(h, r.Body)
		hash.Store(hex.EncodeToString(h.Sum(nil)))
		if r.ContentLength >= 0 && n != r.ContentLength {
			t.Errorf("ContentLength %d, got %d bytes", r.ContentLength, n)
		}
	})
	payload := []byte(`{"model":"m","input":"` + strings.Repeat("x", 1<<20) + `"}`)
	sum := sha256.Sum256(payload)
	want := hex.EncodeToString(sum[:])
	for _, tc := range []struct {
		name   string
		body   func() io.Reader
		length int64
	}{
		{"reader with GetBody", func() io.Reader { return bytes.NewReader(payload) }, int64(len(payload))},
		{"one-shot, length known", func() io.Reader { return io.MultiReader(bytes.NewReader(payload)) }, int64(len(payload))},
		{"one-shot, length unknown", func() io.Reader { return io.MultiReader(bytes.NewReader(payload)) }, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), "POST", url, tc.body())
			if err != nil {
				t.Fatal(err)
			}
			req.ContentLength = tc.length
			b := &book{}
			spied := 0
			client := b.client(t, func(tr *Transport) {
				base := tr.Base
				tr.Base = roundTrip(func(out *http.Request) (*http.Response, error) {
					spied++
					if (out.GetBody == nil) != (req.GetBody == nil) || out.ContentLength != req.ContentLength ||
						!reflect.DeepEqual(out.TransferEncoding, req.TransferEncoding) {
						t.Errorf("sent with GetBody %v, ContentLength %d, TransferEncoding %v", out.GetBody != nil, out.ContentLength, out.TransferEncoding)
					}
					if out.GetBody != nil && out.Body != req.Body {
						t.Error("Body was touched although there is a GetBody")
					}
					return base.RoundTrip(out)
				})
			})
			do(t, client, req)
			if got := hash.Load(); got != want || spied != 1 {
				t.Errorf("vendor got %v in %d sends, want %v in 1", got, spied, want)
			}
			if got := b.last(t).call.Model; got != "m" {
				t.Errorf("Model = %q, want m", got)
			}
		})
	}
}

func TestGetBodyError(t *testing.T) {
	bad := errors.New("no copy today")
	req := post(t, "http://vendor.example/", "{}")
	body := &closeCounter{Reader: strings.NewReader("{}")}
	req.Body, req.GetBody = body, func() (io.ReadCloser, error) { return nil, bad }
	resp, err := (&Transport{reserve: (&book{}).reserve, DefaultKeyID: "test"}).RoundTrip(req)
	if !errors.Is(err, bad) || resp != nil {
		t.Errorf("RoundTrip() = %v, %v, want GetBody's error", resp, err)
	}
	if body.closes.Load() == 0 {
		t.Error("body was not closed")
	}
}

// S07: the caller's request stays as it was.
func TestRequestIsNotChanged(t *testing.T) {
	url := vendor(t, says(200, "application/json", `{}`))
	b := &book{}
	rt := b.client(t, nil).Transport
	req := post(t, url, `{"model":"m"}`)
	req.Header.Set("Authorization", "Bearer K")
	body := req.Body
	before := req.Clone(req.Context())
	for range 100 {
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Request != req {
			t.Fatal("the answer's Request is not the caller's")
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if req.Body != body {
			t.Fatal("Body is another one")
		}
		req.Body, _ = req.GetBody()
		body = req.Body
	}
	after := *req
	before.Body, after.Body, before.GetBody, after.GetBody = nil, nil, nil, nil
	if !reflect.DeepEqual(before, &after) {
		t.Errorf("request changed:\n got %+v\nwant %+v", after, before)
	}
	bare := post(t, url, "{}")
	bare.Header = nil
	resp, err := rt.RoundTrip(bare)
	if err != nil || bare.Header != nil {
		t.Fatalf("RoundTrip() with a nil Header: %v, Header %v", err, bare.Header)
	}
	resp.Body.Close()
	var clones sync.WaitGroup
	for range 2 {
		clones.Go(func() {
			c := req.Clone(req.Context())
			c.Body, _ = req.GetBody()
			if resp, err := rt.RoundTrip(c); err != nil {
				t.Error(err)
			} else {
				resp.Body.Close()
			}
		})
	}
	clones.Wait()
}

type closeCounter struct {
	io.Reader
	closes atomic.Int32
}

func (c *closeCounter) Close() error {
	c.closes.Add(1)
	if p, ok := c.Reader.(io.Closer); ok {
		return p.Close()
	}
	return nil
}

// S08: the body is closed on every exit, so that its writer does not hang.
func TestBodyIsClosed(t *testing.T) {
	dead, cancel := context.WithCancel(t.Context())
	cancel()
	refused := &throttle.RefusedError{Reason: throttle.ModelPaused, RetryAfter: time.Second}
	for _, tc := range []struct {
		name   string
		ctx    context.Context
		err    error
		change func(*Transport)
	}{
		{"refused", t.Context(), refused, nil},
		{"refused, with a response", t.Context(), refused, func(tr *Transport) { tr.Refusals = AsResponse }},
		{"context done", dead, nil, nil},
		{"store out", t.Context(), throttle.ErrStoreUnavailable, nil},
		{"too large", t.Context(), &throttle.RefusedError{Reason: throttle.TooLarge}, nil},
		{"no credential", t.Context(), nil, func(tr *Transport) { tr.DefaultKeyID = "" }},
		{"no limiter", t.Context(), nil, func(tr *Transport) { tr.reserve = nil }},
		{"base fails", t.Context(), nil, func(tr *Transport) { tr.Base = http.DefaultTransport }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			leaks := noLeaks(t)
			r, w := io.Pipe()
			body := &closeCounter{Reader: r}
			wrote := make(chan error, 1)
			go func() {
				_, err := io.WriteString(w, `{"model":"m"`)
				for err == nil {
					_, err = w.Write(bytes.Repeat([]byte(" "), 4096))
				}
				wrote <- err
			}()
			req, err := http.NewRequestWithContext(tc.ctx, "POST", "http://127.0.0.1:1/", body)
			if err != nil {
				t.Fatal(err)
			}
			tr := &Transport{reserve: (&book{err: tc.err}).reserve, DefaultKeyID: "test"}
			if tc.change != nil {
				tc.change(tr)
			}
			resp, err := tr.RoundTrip(req)
			if (resp == nil) == (err == nil) {
				t.Fatalf("RoundTrip() = %v, %v, want one of them", resp, err)
			}
			select {
			case <-wrote:
			case <-time.After(5 * time.Second):
				t.Fatal("the body's writer hangs")
			}
			if body.closes.Load() == 0 {
				t.Error("body was not closed")
			}
			leaks()
		})
	}
}

// S11: a call whose context ended while it waited is not sent.
func TestContextEndsWhileWaiting(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := &book{}
	tr := &Transport{DefaultKeyID: "test", reserve: func(c context.Context, a throttle.Call) (reservation, error) {
		cancel()
		return b.reserve(c, a)
	}, Base: roundTrip(func(*http.Request) (*http.Response, error) {
		t.Error("sent")
		return nil, io.EOF
	})}
	_, err := tr.RoundTrip(post(t, "http://vendor.example/", "{}").WithContext(ctx))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	if h := b.last(t); h.cancels != 1 || h.dead {
		t.Errorf("%d cancels, context dead %v, want 1, false", h.cancels, h.dead)
	}
}

// S11: what was never sent costs nothing; what may have been sent stays charged.
func TestCancelOnlyWhatNeverLeft(t *testing.T) {
	dropped := &closeCounter{Reader: strings.NewReader("")}
	hangUp := vendor(t, func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		conn.Close()
	})
	for _, tc := range []struct {
		name    string
		url     string
		base    http.RoundTripper
		cancels int
	}{
		{"connection refused", "http://127.0.0.1:1/", nil, 1},
		{"no such host", "http://host.invalid/", nil, 1},
		{"vendor hangs up", hangUp, nil, 0},
		{"base that does not trace", hangUp, roundTrip(func(*http.Request) (*http.Response, error) { return nil, io.EOF }), 0},
		{"base that returns nothing", hangUp, roundTrip(func(*http.Request) (*http.Response, error) { return nil, nil }), 0},
		{"base that returns both", hangUp, roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{Body: dropped}, io.EOF
		}), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := &book{}
			client := b.client(t, func(tr *Transport) {
				if tc.base != nil {
					tr.Base = tc.base
				}
			})
			resp, err := client.Transport.RoundTrip(post(t, tc.url, "{}"))
			if err == nil || resp != nil {
				t.Fatalf("RoundTrip() = %v, %v, want an error alone", resp, err)
			}
			h := b.last(t)
			if h.cancels != tc.cancels || len(h.settled) != 0 {
				t.Errorf("%d cancels, settled %v, want %d and nothing", h.cancels, h.settled, tc.cancels)
			}
			if got := len(h.reports); got != 1-tc.cancels {
				t.Errorf("reports %v, want %d", h.reports, 1-tc.cancels)
			}
		})
	}
	if dropped.closes.Load() == 0 {
		t.Error("the answer beside an error was not closed")
	}
}
