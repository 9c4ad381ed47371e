package headway_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
)

// stream sends one event, waits until the reader has it, and sends the rest.
func (m *mirror) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	io.WriteString(w, "event: first\r\ndata: {\"a\":1}\n\n")
	http.NewResponseController(w).Flush()
	select {
	case <-m.next:
		io.WriteString(w, "data: {\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n")
	case <-r.Context().Done():
	case <-time.After(20 * time.Second):
	}
}

// Promise 23: streams pass live: the reader has the first event before the
// vendor sends the second (S10).
func TestPromise23_StreamsAreLive(t *testing.T) {
	t.Parallel()
	f := newFleet(t, throttle.Config{Default: []throttle.Limit{throttle.PerMinute(throttle.Tokens, 1e9)}})
	for _, http2 := range []bool{false, true} {
		for _, encoding := range []string{"", "identity"} {
			m := newMirror(t)
			tr := &transport.Transport{Limiter: f.a.Limiter, Base: newRecording(t, http2)}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, "POST", m.url+"/stream", strings.NewReader(`{"model":"m","stream":true}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer k")
			if encoding != "" {
				req.Header.Set("Accept-Encoding", encoding)
			}
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			first := "event: first\r\ndata: {\"a\":1}\n\n"
			b, n := make([]byte, 32<<10), 0 // room for far more than there is
			for n < len(first) && err == nil {
				var more int
				more, err = resp.Body.Read(b[n:])
				n += more
			}
			if string(b[:n]) != first {
				t.Fatalf("HTTP/2 %v: the first event is %q, %v", http2, b[:n], err)
			}
			m.next <- struct{}{}
			rest, err := io.ReadAll(resp.Body)
			if err != nil || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") || resp.ProtoMajor == 2 != http2 {
				t.Errorf("%s: the rest is %q, %v", resp.Proto, rest, err)
			}
			resp.Body.Close()
		}
	}
}

// Promise 23: an upgraded connection goes both ways.
func TestPromise23_UpgradesSurvive(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		for line, err := rw.ReadString('\n'); err == nil; line, err = rw.ReadString('\n') {
			io.WriteString(c, strings.ToUpper(line))
		}
	})}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	f := newFleet(t, plenty())
	tr := &transport.Transport{Limiter: f.a.Limiter, Base: newRecording(t, false)}
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+l.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Authorization": {"Bearer k"}, "Connection": {"Upgrade"}, "Upgrade": {"echo"}}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	both, ok := resp.Body.(io.ReadWriteCloser)
	if resp.StatusCode != 101 || !ok {
		t.Fatalf("answer %d with a body of %T, want an upgrade that can be written to", resp.StatusCode, resp.Body)
	}
	defer both.Close()
	lines := bufio.NewReader(both)
	for i := range 3 {
		fmt.Fprintf(both, "hello %d\n", i)
		if got, err := lines.ReadString('\n'); err != nil || got != fmt.Sprintf("HELLO %d\n", i) {
			t.Fatalf("echo %q, %v", got, err)
		}
	}
}

// closing is a body that counts its ends.
type closing struct {
	io.Reader
	closed atomic.Int32
	close  func() error
}

func (c *closing) Close() error {
	c.closed.Add(1)
	return c.close()
}

// Promise 23: the request's body is closed on every exit, so that who writes it
// is not left hanging (S08).
func TestPromise23_TheBodyIsClosedOnEveryExit(t *testing.T) {
	t.Parallel()
	w := newWire(t, models(throttle.PerMinute(throttle.Requests, 100)), vendorsim.Config{})
	w.vendor.Script("m", vendorsim.RateLimited(time.Minute, vendorsim.DialectSeconds))
	w.status(t, 429, ask{})
	done, cancel := context.WithCancel(t.Context())
	cancel()
	gone := *w
	dead := newHost(t, deadRedis(), throttle.Config{StoreTimeout: 250 * ms, Default: plenty().Default})
	gone.transports = [2]*transport.Transport{{Limiter: dead.Limiter}, {Limiter: dead.Limiter}}
	large := *w
	large.transports[0] = &transport.Transport{Limiter: w.a.Limiter, Cost: throttle.Cost{throttle.Requests: 101}}
	nobody := "http://127.0.0.1:1/v1/chat/completions"
	for _, tc := range []struct {
		name string
		wire *wire
		ask  ask
		want error
	}{
		{"deferred", w, ask{lane: lanes.Background}, throttle.ErrDeferred},
		{"refused", w, ask{}.now(), throttle.ErrRefused},
		{"context done", w, ask{ctx: done}, context.Canceled},
		{"store gone", &gone, ask{}, throttle.ErrStoreUnavailable},
		{"too large", &large, ask{}, throttle.ErrTooLarge},
		{"no credential", w, ask{edit: func(r *http.Request) { r.Header.Del("Authorization") }}, transport.ErrNoCredential},
		{"nobody listens", w, ask{model: "n", url: nobody}, nil},
		{"served", w, ask{model: "n"}, nil},
		{"cut", w, ask{model: "cut"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w.vendor.Script("cut", vendorsim.Answer{Cut: vendorsim.CutBefore})
			req := tc.wire.request(t, tc.ask)
			read, write := io.Pipe()
			body := &closing{Reader: read, close: read.Close}
			model := tc.ask.model
			if model == "" {
				model = "m"
			}
			wrote := make(chan error, 1)
			go func() {
				_, err := io.WriteString(write, `{"model":"`+model+`"}`)
				if tc.name == "served" || tc.name == "cut" {
					write.Close()
				}
				for err == nil && tc.name != "served" && tc.name != "cut" { // more than anybody reads ahead
					_, err = write.Write(make([]byte, 64<<10))
				}
				wrote <- err
			}()
			req.Body, req.GetBody, req.ContentLength = body, nil, -1
			resp, err := tc.wire.transports[0].RoundTrip(req)
			if err == nil {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			if tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
			within(t, 100*ms*slack, "the body is closed", func() bool { return body.closed.Load() > 0 })
			select {
			case <-wrote:
			case <-time.After(100 * ms * slack):
				t.Error("the writer of the body is left hanging")
			}
		})
	}
}

// Promise 23: a vendor's answer reaches the caller whole, and its connection is
// free again when it is read (S09).
func TestPromise23_AnswersLeakNoConnection(t *testing.T) {
	t.Parallel()
	w := newWire(t, plenty(), vendorsim.Config{})
	w.transports[0].Base = &http.Transport{MaxConnsPerHost: 1}
	t.Cleanup(w.transports[0].CloseIdleConnections)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for i := range 200 {
		model := fmt.Sprint("m", i)
		body := `{"error":{"code":"x"}}`
		if i%50 == 49 { // above what is read to judge it
			body = `{"error":{"code":"x` + strings.Repeat(" ", 200<<10) + `"}}`
		}
		w.vendor.Script(model, vendorsim.Answer{Status: 429, Body: body})
		if got := w.send(t, ask{ctx: ctx, model: model}); got.status != 429 || got.body != body {
			t.Fatalf("call %d: answer %d, %v, %d bytes of body, want 429 and %d", i, got.status, got.err, len(got.body), len(body))
		}
	}
	conns := map[int64]bool{}
	for _, a := range w.vendor.Arrivals() {
		conns[a.Conn] = true
	}
	if len(conns) != 1 {
		t.Errorf("200 answers took %d connections, want one", len(conns))
	}
}
