package headway_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
	"github.com/headway-go/headway/transport/profiles"
)

// mirror is a vendor that remembers what it received and answers by path. It
// speaks HTTP/1.1 and unencrypted HTTP/2.
type mirror struct {
	url  string
	next chan struct{} // lets the second event of /stream go

	mu   sync.Mutex
	seen []received
}

// received is a request as the vendor has it.
type received struct {
	Method, URI, Host string
	Header, Trailer   http.Header
	Length            int64
	Encoding          []string
	Body              string
}

// noise is n bytes of every value, without a short period.
func noise(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*i>>7 ^ i)
	}
	return string(b)
}

// answers are what the vendor says, by path. The map is never written.
var answers = map[string]func(w http.ResponseWriter){
	"/plain": func(w http.ResponseWriter) {
		w.Header()["X-Twice"] = []string{"a", "b"}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"usage":{"prompt_tokens":3,"completion_tokens":4,"input_tokens":3,"output_tokens":4}}`)
	},
	"/error": func(w http.ResponseWriter) {
		w.WriteHeader(400)
		io.WriteString(w, `{"error":{"code":"x"}}`)
	},
	"/big-error": func(w http.ResponseWriter) {
		w.WriteHeader(500)
		io.WriteString(w, noise(150<<10))
	},
	"/big": func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/octet-stream")
		io.WriteString(w, noise(300<<10))
	},
	"/gzip": func(w http.ResponseWriter) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "application/json")
		z := gzip.NewWriter(w)
		io.WriteString(z, `{"usage":{"prompt_tokens":3,"completion_tokens":4}}`)
		z.Close()
	},
	"/empty":    func(w http.ResponseWriter) { w.WriteHeader(204) },
	"/redirect": func(w http.ResponseWriter) { w.Header().Set("Location", "/plain"); w.WriteHeader(307) },
	"/trailer": func(w http.ResponseWriter) {
		w.Header().Set("Trailer", "X-Sum")
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {}\r\n\r\ndata: [DONE]\n\n")
		w.Header().Set("X-Sum", "42")
	},
}

func newMirror(t *testing.T) *mirror {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &mirror{url: "http://" + l.Addr().String(), next: make(chan struct{}, 1)}
	s := &http.Server{Handler: m, Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return m
}

func (m *mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	m.mu.Lock()
	m.seen = append(m.seen, received{r.Method, r.RequestURI, r.Host, r.Header, r.Trailer, r.ContentLength, r.TransferEncoding, string(body)})
	m.mu.Unlock()
	w.Header()["Date"] = nil
	if answer := answers[r.URL.Path]; answer != nil {
		answer(w)
		return
	}
	m.stream(w, r)
}

// last is the last request that the vendor received.
func (m *mirror) last() received {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen[len(m.seen)-1]
}

// recording is a transport of one protocol that keeps what it writes to the wire.
type recording struct {
	*http.Transport
	mu  sync.Mutex
	out bytes.Buffer
}

func newRecording(t *testing.T, http2 bool) *recording {
	r := &recording{}
	r.Transport = &http.Transport{Protocols: new(http.Protocols), DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return recordedConn{c, r}, err
	}}
	r.Protocols.SetHTTP1(!http2)
	r.Protocols.SetUnencryptedHTTP2(http2)
	t.Cleanup(r.CloseIdleConnections)
	return r
}

type recordedConn struct {
	net.Conn
	r *recording
}

func (c recordedConn) Write(b []byte) (int, error) {
	c.r.mu.Lock()
	c.r.out.Write(b)
	c.r.mu.Unlock()
	return c.Conn.Write(b)
}

func (r *recording) written() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.out.String()
	r.out.Reset()
	return s
}

// got is an answer as the caller has it.
type got struct {
	Status, Proto   string
	Header, Trailer http.Header
	Length          int64
	Encoding        []string
	Uncompressed    bool
	Body, Err       string
}

func exchange(t *testing.T, rt http.RoundTripper, req *http.Request) got {
	t.Helper()
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Request != req {
		t.Error("the answer's Request is not the caller's")
	}
	body, err := io.ReadAll(resp.Body)
	return got{resp.Status, resp.Proto, resp.Header, resp.Trailer, resp.ContentLength, resp.TransferEncoding, resp.Uncompressed, string(body), fmt.Sprint(err)}
}

// Promise 23: both sides receive byte for byte what the other one sent.
func TestPromise23_ByteForByte(t *testing.T) {
	t.Parallel()
	chat := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("hello ", 10_000) + `"}]}`
	requests := map[string]func(url string) *http.Request{
		"chat": func(url string) *http.Request {
			r, _ := http.NewRequest("POST", url+"?a=1&b=%20;", strings.NewReader(chat))
			r.Header["X-Twice"] = []string{"one", "two"}
			r.Header.Set("X-Api-Key", "k")
			return r
		},
		"pipe": func(url string) *http.Request { // no GetBody, no length
			r, _ := http.NewRequest("POST", url, io.MultiReader(strings.NewReader(chat), strings.NewReader(noise(300<<10))))
			r.Header.Set("Authorization", "Bearer k")
			r.Header.Set("Accept-Encoding", "gzip")
			r.Trailer = http.Header{"X-Sum": {"7"}}
			return r
		},
		"get": func(url string) *http.Request {
			r, _ := http.NewRequest("GET", url, nil)
			r.Header.Set("Authorization", "Bearer k")
			r.Host = "other.example"
			return r
		},
		"form": func(url string) *http.Request {
			r, _ := http.NewRequest("PUT", url, strings.NewReader("model=m&text=a+b"))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Authorization", "Bearer k")
			return r
		},
	}
	for _, http2 := range []bool{false, true} {
		for _, profile := range []*profiles.Profile{profiles.OpenAI(), profiles.Anthropic(), profiles.Generic("acme")} {
			t.Run(fmt.Sprintf("%s, HTTP/2 %v", profile.Name, http2), func(t *testing.T) {
				t.Parallel()
				f := newFleet(t, throttle.Config{Default: []throttle.Limit{throttle.PerSecond(throttle.Requests, 1e6), throttle.PerSecond(throttle.Tokens, 1e12)}})
				m := newMirror(t)
				for name, request := range requests {
					for path := range answers {
						if name != "chat" && path != "/plain" {
							continue // every request to one answer, and one request to every answer
						}
						plain, ours := newRecording(t, http2), newRecording(t, http2)
						headway := &transport.Transport{Limiter: f.a.Limiter, Base: ours, Profile: profile}
						want := exchange(t, plain, request(m.url+path))
						wantSeen := m.last()
						have := exchange(t, headway, request(m.url+path))
						if seen := m.last(); !reflect.DeepEqual(seen, wantSeen) {
							t.Errorf("%s %s: the vendor received %.300v, want %.300v", name, path, seen, wantSeen)
						}
						if !reflect.DeepEqual(have, want) {
							t.Errorf("%s %s: the caller received %.500v, want %.500v", name, path, have, want)
						}
						w, h := plain.written(), ours.written()
						if wantSeen.Length < 0 { // how a body of no known length is cut into chunks is the connection's own
							w, _, _ = strings.Cut(w, "\r\n\r\n")
							h, _, _ = strings.Cut(h, "\r\n\r\n")
						}
						if !http2 && w != h {
							t.Errorf("%s %s: %d bytes on the wire, want the same %d: %.300q", name, path, len(h), len(w), h)
						}
					}
				}
			})
		}
	}
}

// Promise 23: the caller's request is never modified (S07).
func TestPromise23_TheRequestIsNotModified(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	f := newFleet(t, throttle.Config{Default: []throttle.Limit{throttle.PerSecond(throttle.Requests, 1e6)}})
	tr := &transport.Transport{Limiter: f.a.Limiter, Base: newRecording(t, false)}
	for _, name := range []string{"header", "no header"} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", m.url+"/plain?x=1", strings.NewReader(`{"model":"m"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer k")
		if name == "no header" {
			tr.DefaultKeyID = "anonymous"
			req.Header = nil
		}
		before := req.Clone(t.Context())
		for range 100 {
			body, err := req.GetBody()
			if err != nil {
				t.Fatal(err)
			}
			req.Body = body
			exchange(t, tr, req)
			if req.Body != body {
				t.Fatal("Body was replaced")
			}
		}
		if !reflect.DeepEqual(req.Header, before.Header) || !reflect.DeepEqual(req.URL, before.URL) || req.Context() != t.Context() ||
			req.ContentLength != before.ContentLength || req.GetBody == nil || req.Host != before.Host || req.Trailer != nil || req.Method != before.Method {
			t.Errorf("%s: the request became %+v, want %+v", name, req, before)
		}
		if got := m.last(); len(got.Header["Authorization"]) > 1 || got.Body != `{"model":"m"}` {
			t.Errorf("the hundredth call was %+v", got)
		}
	}
}
