package transport

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway/pause"
)

// drips is a body that says its pieces one by one, and closes as net/http's do.
type drips struct {
	pieces []string
	every  time.Duration
	closed chan struct{}
}

func (d *drips) Read(b []byte) (int, error) {
	if len(d.pieces) == 0 {
		return 0, io.EOF
	}
	select {
	case <-d.closed:
		return 0, http.ErrBodyReadAfterClose
	case <-time.After(d.every):
	}
	n := copy(b, d.pieces[0])
	if d.pieces[0] = d.pieces[0][n:]; d.pieces[0] == "" {
		d.pieces = d.pieces[1:]
	}
	return n, nil
}

func (d *drips) Close() error {
	close(d.closed)
	return nil
}

// An error body that drips holds the caller up for a second at most. The verdict
// uses what is there, and the caller gets every byte.
func TestDrippingErrorBody(t *testing.T) {
	const billing = `{"error":{"code":"insufficient_quota"`
	rest := strings.Split(strings.Repeat("x", 10), "")
	for _, tc := range []struct {
		name   string
		pieces []string
		every  time.Duration
		want   pause.Class
		took   time.Duration
		read   bool
	}{
		{"the code comes in time", append([]string{billing, "}}"}, rest...), 400 * time.Millisecond, pause.QuotaExhausted, peekTime, true},
		{"the code comes late", append([]string{"  ", billing}, rest...), 600 * time.Millisecond, pause.RateLimited, peekTime, true},
		{"nothing comes", []string{billing + "}}"}, time.Hour, pause.RateLimited, peekTime, true},
		{"all of it comes", []string{billing, "}}"}, 100 * time.Millisecond, pause.QuotaExhausted, 200 * time.Millisecond, true},
		{"more than the peek", []string{strings.Repeat(" ", 2*maxPeek), billing, "}}"}, time.Millisecond, pause.RateLimited, maxPeek / 4096 * time.Millisecond, true},
		{"closed at once", append([]string{billing, "}}"}, rest...), 400 * time.Millisecond, pause.QuotaExhausted, peekTime, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &book{}
				tr := &Transport{reserve: b.reserve, DefaultKeyID: "test", Base: roundTrip(func(*http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: 429, Header: http.Header{}, Body: &drips{tc.pieces, tc.every, make(chan struct{})}}, nil
				})}
				whole, start := strings.Join(tc.pieces, ""), time.Now()
				resp, err := tr.RoundTrip(post(t, "http://vendor.example/", "{}"))
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took != tc.took {
					t.Errorf("RoundTrip() took %v, want %v", took, tc.took)
				}
				if got := b.last(t).reports; len(got) != 1 || got[0].Class != tc.want {
					t.Errorf("reports %+v, want one of %v", got, tc.want)
				}
				if tc.read {
					if got := readAll(t, resp.Body); got != whole {
						t.Errorf("read %d bytes, want all %d", len(got), len(whole))
					}
				}
				resp.Body.Close()
			})
		})
	}
}

// The same over the wire: bytes pass as they come, and neither Close nor the end
// of the context leaves anything behind.
func TestDrippingOverTheWire(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		leaks := noLeaks(t)
		more := make(chan string)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(503)
			for {
				http.NewResponseController(w).Flush()
				select {
				case s := <-more:
					io.WriteString(w, s)
				case <-r.Context().Done():
					panic(http.ErrAbortHandler) // no end that a reader could take for the body's own
				}
			}
		}))
		server.EnableHTTP2 = http2
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.StartTLS()
		client := (&book{}).client(t, func(tr *Transport) { tr.Base = server.Client().Transport })
		ask := func(ctx context.Context) *http.Response {
			resp, err := client.Do(post(t, server.URL, "{}").WithContext(ctx))
			if err != nil {
				t.Fatal(err)
			}
			return resp
		}
		resp := ask(t.Context())
		for _, s := range []string{"one", "two"} {
			more <- s
			got := make([]byte, 3)
			if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != s {
				t.Errorf("read %q, %v, want %q", got, err, s)
			}
		}
		resp.Body.Close()
		if n, err := resp.Body.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("Read() after Close = %d, %v, want an error", n, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		resp = ask(ctx)
		cancel()
		if _, err := io.ReadAll(resp.Body); err == nil {
			t.Errorf("%s: the body ended well though its context was cancelled", resp.Proto)
		}
		client.CloseIdleConnections()
		server.Close()
		leaks()
	}
}
