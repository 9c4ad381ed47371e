package chaostest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
)

// rawVendor answers every request with the bytes that say returns for its path,
// and then resets the connection, as a vendor that dies does.
func rawVendor(t *testing.T, say func(path string) string) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				req := make([]byte, 0, 8<<10)
				for buf := make([]byte, 4<<10); !strings.Contains(string(req), "\r\n\r\n"); { // the body rides behind, or does not matter
					n, err := c.Read(buf)
					if err != nil {
						return
					}
					req = append(req, buf[:n]...)
				}
				_, path, _ := strings.Cut(string(req), " ")
				path, _, _ = strings.Cut(path, " ")
				_, _ = io.WriteString(c, say(path))
				time.Sleep(20 * ms) // or the reset overtakes the bytes
				_ = c.(*net.TCPConn).SetLinger(0)
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// caller is a client of one host, with connections of its own.
func caller(t *testing.T, l *throttle.Limiter) *http.Client {
	t.Helper()
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	return &http.Client{Transport: &transport.Transport{Limiter: l, Base: base, MaxWait: -1}}
}

// request is a call of the model.
func request(t *testing.T, ctx context.Context, url, model string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(fmt.Sprintf(`{"model":%q,"max_tokens":50}`, model)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+apiKey)
	return req
}

// A vendor that resets the connection at any place of its answer: the caller gets
// an error, there or in the body; the estimate stays charged, once; nothing
// pauses unless a whole header said so; the next call goes.
func TestResetAnywhere(t *testing.T) {
	const (
		plain  = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 60\r\n\r\n{\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1},\"x\":\"12345\"}"
		chunks = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"d\r\ndata: {\"a\":1\r\n6\r\n}\n\nda\r\n26\r\nta: {\"usage\":{\"completion_tokens\":1}}\n\r\n0\r\n\r\n"
		later = "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: 100\r\nContent-Length: 50\r\n\r\n{\"error\":{\"code\":\"rate_limit_exceeded\"}}"
	)
	until := func(answer, piece string) string {
		i := strings.Index(answer, piece)
		if i < 0 {
			t.Fatalf("%q is not in the answer", piece)
		}
		return answer[:i+len(piece)]
	}
	rows := []struct {
		name, bytes string
		header      bool // the caller gets an answer
		paused      bool
	}{
		{"no byte", "", false, false},
		{"inside the status line", until(plain, "HTTP/1.1 2"), false, false},
		{"after the status line", until(plain, "OK\r\n"), false, false},
		{"inside a header", until(plain, "Content-Ty"), false, false},
		{"inside the end of the header", until(plain, "60\r\n\r"), false, false},
		{"before the body", until(plain, "\r\n\r\n"), true, false},
		{"inside the body", until(plain, `"usage"`), true, false},
		{"before the last byte", plain[:len(plain)-5], true, false},
		{"inside a chunk's size", chunks[:strings.Index(chunks, "d\r\ndata")+1], true, false},
		{"inside a chunk", until(chunks, `{"a"`), true, false},
		{"between chunks", until(chunks, "\"a\":1\r\n"), true, false},
		{"inside an event of two chunks", until(chunks, "}\n\nda\r\n"), true, false},
		{"before the last chunk", until(chunks, "}}\n\r\n"), true, false},
		{"inside the last chunk", until(chunks, "}}\n\r\n0\r\n"), true, false},
		{"later: inside the header", until(later, "Retry-Af"), false, false},
		{"later: before the body", until(later, "\r\n\r\n"), true, true},
		{"later: inside the body", until(later, `"rate_`), true, true},
	}
	url := rawVendor(t, func(path string) string {
		for i, row := range rows {
			if path == fmt.Sprint("/", i) {
				return row.bytes
			}
		}
		return ""
	})
	prefix := prefixOf(t)
	a, b := newPair(t, throttle.Config{Prefix: prefix, Default: []throttle.Limit{throttle.Per(throttle.Requests, 5, time.Hour), throttle.Per(throttle.Tokens, 10_000, time.Hour)}})
	key := errandKey(t, url)
	client := caller(t, a)
	reserve(t, a, throttle.Call{Key: key, Model: "warm", Cost: throttle.Cost{throttle.Requests: 1, throttle.Tokens: 1}})
	leaks := noLeaks(t)
	for i, row := range rows {
		resp, err := client.Do(request(t, t.Context(), fmt.Sprint(url, "/", i), row.name))
		if (err == nil) != row.header {
			t.Errorf("%s: error %v, want an answer %v", row.name, err, row.header)
		}
		if err == nil {
			if _, err := io.Copy(io.Discard, resp.Body); err == nil {
				t.Errorf("%s: the body ended well", row.name)
			}
			resp.Body.Close()
		}
		m := modelStatus(t, b, key, row.name)
		if m.Limits[0].Used != 1 || m.Limits[1].Used < 50 {
			t.Errorf("%s: charged %d requests and %d tokens, want 1 and the estimate", row.name, m.Limits[0].Used, m.Limits[1].Used)
		}
		if paused := m.State.Left > 0; paused != row.paused || m.Waiting != 0 {
			t.Errorf("%s: paused %v, want %v; %d wait", row.name, paused, row.paused, m.Waiting)
		}
	}
	client.CloseIdleConnections()
	leaks()
	if s := modelStatus(t, b, key, "warm").State; s.Phase != pause.Running {
		t.Errorf("the key is %+v", s)
	}
}

// A vendor that names times that contradict each other, or are none: the pause
// is above zero and at most the cap, for this model alone, and an operator can
// end it.
func TestLiesAboutTime(t *testing.T) {
	t.Parallel()
	const limit = 20 * time.Second
	prefix := prefixOf(t)
	a, b := newPair(t, throttle.Config{Prefix: prefix, Default: []throttle.Limit{throttle.Per(throttle.Requests, 100, time.Hour)},
		Policy: pause.Policy{Cap: limit, Unnamed: 7 * time.Second}})
	for name, header := range map[string]string{
		"NaN":                "Retry-After: NaN",
		"infinity":           "Retry-After: +Inf",
		"exponent":           "Retry-After: 1e400",
		"hexadecimal":        "Retry-After: 0x7fffffff",
		"above 2^63":         "Retry-After: 9223372036854775808",
		"4,000 digits":       "Retry-After: " + strings.Repeat("9", 4000),
		"negative ms":        "Retry-After-Ms: -9223372036854775808",
		"negative and named": "Retry-After: -5\r\nRetry-After-Ms: 3000",
		"contradictory":      "Retry-After: 1\r\nRetry-After-Ms: 15000\r\nX-Ratelimit-Reset-Requests: 9h",
		"two of a kind":      "Retry-After: 2\r\nRetry-After: 10",
		"a date and a day":   "Retry-After: Thu, 01 Jan 1970 00:00:00 GMT\r\nRetry-After: 86400",
		"its own clock":      "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\nRetry-After: Fri, 31 Dec 9999 23:59:59 GMT",
		"bytes":              "Retry-After: \xff\xfe\x01",
		"empty":              "Retry-After:",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := rawVendor(t, func(string) string {
				return "HTTP/1.1 429 No\r\nContent-Type: application/json\r\n" + header + "\r\nContent-Length: 2\r\n\r\n{}"
			})
			key := errandKey(t, url)
			resp, err := caller(t, a).Do(request(t, t.Context(), url, "m"))
			if err != nil {
				if name == "bytes" { // net/http refuses such a header itself
					return
				}
				t.Fatal(err)
			}
			resp.Body.Close()
			e := refuse(t, b, one(key, "m"))
			if e.Reason != throttle.ModelPaused || e.RetryAfter <= 0 || e.RetryAfter > limit*11/10 {
				t.Errorf("refusal %+v, want a pause of at most %v", e, limit)
			}
			reserve(t, b, one(key, "other"))
			if err := b.Resume(t.Context(), key, "m"); err != nil {
				t.Fatal(err)
			}
			reserve(t, a, one(key, "m"))
		})
	}
}

// A vendor that lies about what a call took: what is no count leaves the
// estimate, and a large count fills this model's budget, for its window, and no
// other.
func TestLiesAboutUsage(t *testing.T) {
	t.Parallel()
	const estimate = 50
	a, b := newPair(t, throttle.Config{Default: []throttle.Limit{throttle.Per(throttle.Tokens, 1000, time.Hour)}})
	for _, tc := range []struct {
		usage string
		least int64
		most  int64
	}{
		{`{"prompt_tokens":-5,"completion_tokens":-7}`, estimate, 100},
		{`{"prompt_tokens":"NaN","completion_tokens":null}`, estimate, 100},
		{`{"prompt_tokens":1e400,"completion_tokens":1e400}`, estimate, 100},
		{`{"prompt_tokens":1.5,"completion_tokens":2.5}`, 0, 100},
		{`{"prompt_tokens":99999999999999999999,"completion_tokens":1}`, estimate, 100},
		{`{"prompt_tokens":9007199254740991,"completion_tokens":9007199254740991}`, estimate, 100},
		{`{"prompt_tokens":2000000000,"completion_tokens":1}`, estimate, 100},
		{`{"prompt_tokens":900000000,"completion_tokens":1}`, 900_000_001, 900_000_001},
		{`[]`, estimate, 100},
	} {
		t.Run(tc.usage, func(t *testing.T) {
			t.Parallel()
			body := `{"usage":` + tc.usage + `}`
			url := rawVendor(t, func(string) string {
				return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			})
			key := errandKey(t, url)
			resp, err := caller(t, a).Do(request(t, t.Context(), url, "m"))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(resp.Body); string(got) != body {
				t.Errorf("the caller got %q, %v", got, err)
			}
			resp.Body.Close()
			if n := used(t, b, key, "m", throttle.Tokens); n < tc.least || n > tc.most {
				t.Errorf("%d tokens are charged, want %d to %d", n, tc.least, tc.most)
			}
			c := throttle.Call{Key: key, Model: "other", Cost: throttle.Cost{throttle.Tokens: 1000}}
			reserve(t, b, c)
		})
	}
}

// A vendor that never stops: the caller has the answer within about a second,
// leaves when it likes, and nothing remains.
func TestEndlessAnswers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	endless := func(head, piece string, every time.Duration) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, head)
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, piece); err != nil {
					return
				}
				http.NewResponseController(w).Flush()
				time.Sleep(every)
			}
		}
	}
	status := func(code int, next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", r.URL.Query().Get("type"))
			w.WriteHeader(code)
			next(w, r)
		}
	}
	mux := http.NewServeMux()
	mux.Handle("/error", status(500, endless("", strings.Repeat("x", 32<<10), 0)))
	mux.Handle("/later", status(429, endless(`{"error":{"code":"`, "x", 50*ms)))
	mux.Handle("/nested", status(429, endless("", strings.Repeat(`{"error":`, 1000), 0)))
	mux.Handle("/comments", status(200, endless("", ": ping\n\n", ms)))
	mux.Handle("/line", status(200, endless("data: ", strings.Repeat("y", 32<<10), 0)))
	s := &http.Server{Handler: mux}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	url := "http://" + l.Addr().String()
	a, b := newPair(t, throttle.Config{Default: []throttle.Limit{throttle.Per(throttle.Requests, 10, time.Hour)}})
	client := caller(t, a)
	key := errandKey(t, url)
	reserve(t, a, one(key, "warm"))
	leaks := noLeaks(t)
	for _, path := range []string{"/error?type=text/plain", "/later?type=application/json", "/nested?type=application/json", "/comments?type=text/event-stream", "/line?type=text/event-stream"} {
		for _, leave := range []string{"closes", "is cancelled"} {
			ctx, cancel := context.WithCancel(t.Context())
			began := time.Now()
			resp, err := client.Do(request(t, ctx, url+path, path+leave))
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if d := time.Since(began); d > time.Second+500*ms*slack {
				t.Errorf("%s: the caller had the answer after %v, want a second", path, d)
			}
			if _, err := io.CopyN(io.Discard, resp.Body, 8); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			if leave == "closes" {
				resp.Body.Close()
			}
			cancel()
			if n := used(t, b, key, path+leave, throttle.Requests); n != 1 {
				t.Errorf("%s: %d requests are charged, want 1", path, n)
			}
		}
	}
	client.CloseIdleConnections()
	s.Close()
	leaks()
}
