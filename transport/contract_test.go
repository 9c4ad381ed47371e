package transport

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/headway-go/headway/throttle"
)

// wireCase is one protocol between the transport and a loopback vendor.
type wireCase struct {
	name  string
	start func(*httptest.Server) *http.Transport
}

func wires() []wireCase {
	return []wireCase{
		{"HTTP/1.1", func(s *httptest.Server) *http.Transport {
			s.Start()
			return &http.Transport{}
		}},
		{"HTTP/2 over TLS", func(s *httptest.Server) *http.Transport {
			s.EnableHTTP2 = true
			s.StartTLS()
			return s.Client().Transport.(*http.Transport)
		}},
		{"HTTP/2 in the clear", func(s *httptest.Server) *http.Transport {
			s.Config.Protocols = new(http.Protocols)
			s.Config.Protocols.SetUnencryptedHTTP2(true)
			s.Start()
			return &http.Transport{Protocols: s.Config.Protocols}
		}},
	}
}

// open starts a vendor that speaks the protocol.
func (w wireCase) open(t *testing.T, h http.HandlerFunc) (url string, base *http.Transport) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	base = w.start(s)
	t.Cleanup(func() {
		base.CloseIdleConnections()
		s.Close()
	})
	return s.URL, base
}

// stage is what a line of the contract is tested on.
type stage struct {
	*Transport
	url  string
	book *book

	mu     sync.Mutex // the vendor may still be at the call before
	answer http.HandlerFunc
}

// set sets the vendor's answer.
func (s *stage) set(h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = h
}

func (s *stage) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	h := s.answer
	s.mu.Unlock()
	h(w, r)
}

// request returns a request, and its body that counts its closes.
func (s *stage) request(t *testing.T, method, content string) (*http.Request, *closeCounter) {
	t.Helper()
	body := &closeCounter{Reader: strings.NewReader(content)}
	req, err := http.NewRequestWithContext(t.Context(), method, s.url, body)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = int64(len(content))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }
	return req, body
}

// get sends a request and returns its answer, whose body is read and closed.
func (s *stage) get(t *testing.T, req *http.Request) (*http.Response, string) {
	t.Helper()
	resp, err := s.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp == nil || resp.Body == nil {
		t.Fatalf("RoundTrip() = %+v, want an answer with a body", resp)
	}
	defer resp.Body.Close()
	return resp, readAll(t, resp.Body)
}

// The contract of http.RoundTripper line by line, and what http.Response adds.
func TestRoundTripperContract(t *testing.T) {
	abort := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	refused := &throttle.RefusedError{Reason: throttle.NoRoom}
	lines := []struct {
		line  string
		check func(*testing.T, *stage)
	}{
		{"must return err == nil if it obtained a response, regardless of the response's HTTP status code", func(t *testing.T, s *stage) {
			for _, status := range []int{200, 204, 206, 304, 308, 400, 401, 402, 403, 404, 408, 413, 425, 429, 451, 498, 500, 502, 503, 504, 529, 599, 999} {
				s.set(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
				req, _ := s.request(t, "POST", "{}")
				if resp, _ := s.get(t, req); resp.StatusCode != status {
					t.Errorf("status %d, want %d", resp.StatusCode, status)
				}
			}
		}},
		{"A non-nil err should be reserved for failure to obtain a response", func(t *testing.T, s *stage) {
			s.set(abort)
			req, _ := s.request(t, "POST", "{}")
			if resp, err := s.RoundTrip(req); resp != nil || err == nil {
				t.Errorf("RoundTrip() = %v, %v, want an error alone", resp, err)
			}
			s.book.err = refused
			req, _ = s.request(t, "POST", "{}")
			if resp, err := s.RoundTrip(req); resp != nil || !errors.Is(err, refused) {
				t.Errorf("RoundTrip() = %v, %v, want the refusal alone", resp, err)
			}
		}},
		{"should not attempt to handle higher-level protocol details such as redirects, authentication, or cookies", func(t *testing.T, s *stage) {
			calls := 0
			s.set(func(w http.ResponseWriter, r *http.Request) {
				calls++
				w.Header().Set("Location", "/again")
				w.Header().Set("Www-Authenticate", "Basic")
				w.Header().Set("Set-Cookie", "a=b")
				w.WriteHeader([]int{302, 307, 401, 407, 200}[calls-1])
			})
			for n := 1; n <= 5; n++ {
				req, _ := s.request(t, "POST", "{}")
				if resp, _ := s.get(t, req); calls != n || len(resp.Header["Location"])*len(resp.Header["Www-Authenticate"])*len(resp.Header["Set-Cookie"]) != 1 || req.Header.Get("Cookie") != "" {
					t.Errorf("call %d: vendor called %d times, answer %v", n, calls, resp.Header)
				}
			}
		}},
		{"should not modify the request, except for consuming and closing the Request's Body", func(t *testing.T, s *stage) {
			for _, status := range []int{200, 429} {
				s.set(says(status, "application/json", jsonAnswer))
				req, body := s.request(t, "POST", `{"model":"m"}`)
				req.Header = http.Header{"Authorization": {"Bearer K"}, "X-Two": {"a", "b"}, "x-odd": {"c"}}
				req.Host = "other.example"
				req.Trailer = http.Header{"X-Sum": {"1"}}
				req.ContentLength = -1
				req.TransferEncoding = []string{"chunked"}
				before := req.Clone(req.Context())
				s.get(t, req)
				if req.Body != body {
					t.Error("Body is another one")
				}
				after := *req
				before.Body, after.Body, before.GetBody, after.GetBody = nil, nil, nil, nil
				if !reflect.DeepEqual(before, &after) {
					t.Errorf("request changed:\n got %+v\nwant %+v", after, before)
				}
			}
		}},
		{"Callers should not mutate or reuse the request until the Response's Body has been closed", func(t *testing.T, s *stage) {
			s.set(stream(false, twenty(usageEvent, doneEvent)...))
			req, _ := s.request(t, "POST", `{"model":"m"}`)
			for range 20 { // the race detector sees whether anybody still looks at it
				resp, err := s.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Read(make([]byte, 10))
				resp.Body.Close()
				req.Header.Set("X-Mine", "now")
				req.Method, req.URL.Path, req.Trailer = "PUT", "/again", nil
				req.Body, _ = req.GetBody()
			}
		}},
		{"must always close the body, including on errors", func(t *testing.T, s *stage) {
			dead, cancel := context.WithCancel(t.Context())
			cancel()
			for name, change := range map[string]func(*http.Request){
				"answer":    func(*http.Request) {},
				"failure":   func(*http.Request) { s.set(abort) },
				"one-shot":  func(r *http.Request) { r.GetBody = nil },
				"no copy":   func(r *http.Request) { r.GetBody = func() (io.ReadCloser, error) { return nil, io.EOF } },
				"too late":  func(r *http.Request) { *r = *r.WithContext(dead) },
				"no URL":    func(r *http.Request) { r.URL = nil },
				"bad URL":   func(r *http.Request) { r.URL.Host = "" },
				"bad name":  func(r *http.Request) { r.Header["a b"] = []string{"c"} },
				"bad value": func(r *http.Request) { r.Header.Set("A", "\n") },
				"refusal":   func(*http.Request) { s.book.err = refused },
			} {
				s.set(says(200, "application/json", "{}"))
				s.book.err = nil
				req, body := s.request(t, "POST", `{"model":"m"}`)
				change(req)
				if resp, err := s.RoundTrip(req); err == nil {
					readAll(t, resp.Body)
					resp.Body.Close()
				}
				eventually(t, name+": the body is closed", func() bool { return body.closes.Load() > 0 })
			}
		}},
		{"The Request's URL and Header fields must be initialized", func(t *testing.T, s *stage) {
			req, _ := s.request(t, "POST", "{}")
			req.Header = nil
			s.get(t, req)
			req.URL = nil
			if resp, err := s.RoundTrip(req); resp != nil || err == nil {
				t.Errorf("RoundTrip() without a URL = %v, %v, want an error", resp, err)
			}
		}},
		{"Response: the http Client and Transport guarantee that Body is always non-nil", func(t *testing.T, s *stage) {
			for _, method := range []string{"GET", "HEAD", "POST", "DELETE", "OPTIONS"} {
				for _, status := range []int{200, 204, 304, 401, 429, 500} {
					s.set(says(status, "application/json", ""))
					req, err := http.NewRequestWithContext(t.Context(), method, s.url, nil)
					if err != nil {
						t.Fatal(err)
					}
					if resp, got := s.get(t, req); got != "" || resp.StatusCode != status {
						t.Errorf("%s: %d %q, want %d and nothing", method, resp.StatusCode, got, status)
					}
				}
			}
		}},
		{"Response: Request is the request that was sent to obtain this Response", func(t *testing.T, s *stage) {
			req, _ := s.request(t, "POST", "{}")
			if resp, _ := s.get(t, req); resp.Request != req {
				t.Error("Request is not the caller's")
			}
		}},
		{"Must be safe for concurrent use by multiple goroutines", func(t *testing.T, s *stage) {
			s.set(func(w http.ResponseWriter, r *http.Request) {
				content, _ := io.ReadAll(r.Body)
				if r.URL.Path == "/odd" {
					w.WriteHeader(429)
				}
				w.Write(content)
			})
			var callers sync.WaitGroup
			for i := range 16 {
				callers.Go(func() {
					content := strings.Repeat(string(rune('a'+i)), 1000+i)
					for n := range 10 {
						req, body := s.request(t, "POST", content)
						req.URL.Path = []string{"/even", "/odd"}[n%2]
						resp, err := s.RoundTrip(req)
						if err != nil {
							t.Error(err)
							continue
						}
						got, err := io.ReadAll(resp.Body)
						resp.Body.Close()
						if string(got) != content || err != nil || resp.StatusCode != []int{200, 429}[n%2] || body.closes.Load() == 0 {
							t.Errorf("caller %d got %d and another's answer, error %v", i, resp.StatusCode, err)
						}
					}
				})
			}
			callers.Wait()
			if len(s.book.holds) != 160 {
				t.Errorf("%d calls reserved, want 160", len(s.book.holds))
			}
		}},
	}
	for _, w := range wires() {
		for _, l := range lines {
			t.Run(w.name+"/"+l.line, func(t *testing.T) {
				s := &stage{answer: says(200, "application/json", jsonAnswer), book: &book{}}
				url, base := w.open(t, s.serve)
				s.url = url
				s.Transport = &Transport{Base: base, reserve: s.book.reserve, DefaultKeyID: "test"}
				l.check(t, s)
				for _, h := range s.book.holds {
					if len(h.reports) > 1 || len(h.settled) > 1 || len(h.reports)+h.cancels == 0 || h.dead {
						t.Errorf("a call has the reports %v, settled %v, %d cancels, context dead %v", h.reports, h.settled, h.cancels, h.dead)
					}
				}
			})
		}
	}
}
