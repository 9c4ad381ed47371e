package transport

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport/profiles"
)

// S09: 200 errors over one connection, every body complete.
func TestErrorBodiesAreWhole(t *testing.T) {
	const body = `{"error":{"code":"x"}}`
	url := vendor(t, says(429, "application/json", body))
	b := &book{}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxConnsPerHost = 1
	client := b.client(t, func(tr *Transport) { tr.Base = base })
	leaks := noLeaks(t)
	for range 200 {
		resp, err := client.Do(post(t, url, "{}"))
		if err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, resp.Body); got != body || resp.StatusCode != 429 {
			t.Fatalf("answer = %d %q, want 429 %q", resp.StatusCode, got, body)
		}
		resp.Body.Close()
	}
	base.CloseIdleConnections()
	leaks()
}

// S09: a verdict is there before the caller has the answer.
func TestVerdictComesFirst(t *testing.T) {
	url := vendor(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "7")
		says(429, "application/json", `{"error":{"code":"rate_limit_exceeded"}}`)(w, r)
	})
	b := &book{}
	do(t, b.client(t, openAI), post(t, url, "{}"))
	want := pause.Verdict{Class: pause.RateLimited, Scope: pause.Model, Hint: pause.Hint{Wait: 7 * time.Second, Named: true}}
	if h := b.last(t); len(h.reports) != 1 || h.reports[0] != want || h.cancels != 0 || len(h.settled) != 0 {
		t.Errorf("noted %+v, want one report of %+v", h, want)
	}
}

// slowReport is a hold whose report is not done before the answer is with the
// caller, or a while has gone by.
type slowReport struct {
	*hold
	answered chan struct{} // closed when the caller has the answer
	early    chan bool     // whether that came before the report was done
}

func (s slowReport) Report(context.Context, pause.Verdict) error {
	select {
	case <-s.answered:
		s.early <- true
	case <-time.After(200 * time.Millisecond):
		s.early <- false
	}
	return nil
}

// S09: the caller gets the answer when its verdict is told, not while it is being told.
func TestVerdictIsAwaited(t *testing.T) {
	url := vendor(t, says(429, "application/json", `{}`))
	answered, early := make(chan struct{}), make(chan bool, 1)
	c := (&book{}).client(t, func(tr *Transport) {
		tr.reserve = func(context.Context, throttle.Call) (reservation, error) {
			return slowReport{&hold{book: &book{}}, answered, early}, nil
		}
	})
	do(t, c, post(t, url, "{}"))
	close(answered)
	if <-early {
		t.Error("the caller had the answer before its verdict was told")
	}
}

// S30 on the wire: bodies that are compressed, endless or broken.
func TestOddErrorBodies(t *testing.T) {
	const billing = `{"error":{"code":"insufficient_quota"}}`
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	io.WriteString(z, billing)
	z.Close()
	for _, tc := range []struct {
		name    string
		handler http.HandlerFunc
		want    pause.Class
		body    int64
		broken  bool
	}{
		{"gzip, asked for by the caller", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			says(429, "application/json", zipped.String())(w, r)
		}, pause.QuotaExhausted, int64(zipped.Len()), false},
		{"plain", says(429, "application/json", billing), pause.QuotaExhausted, int64(len(billing)), false},
		{"page", says(403, "text/html", "<html>no</html>"), pause.KeyRefused, 15, false},
		{"larger than the peek", says(500, "text/plain", strings.Repeat("x", 10<<20)), pause.ServerError, 10 << 20, false},
		{"broken off", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			says(429, "application/json", billing)(w, r)
		}, pause.QuotaExhausted, int64(len(billing)), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := &book{}
			req := post(t, vendor(t, tc.handler), "{}")
			req.Header.Set("Accept-Encoding", "gzip")
			resp := do(t, b.client(t, openAI), req)
			if h := b.last(t); len(h.reports) != 1 || h.reports[0].Class != tc.want {
				t.Errorf("reports %+v, want %v", h.reports, tc.want)
			}
			n, err := io.Copy(io.Discard, resp.Body)
			if n != tc.body || (err != nil) != tc.broken {
				t.Errorf("body: %d bytes, error %v, want %d bytes, broken %v", n, err, tc.body, tc.broken)
			}
		})
	}
}

// The error of a body that was peeked at reaches the caller, also if the body
// says it once only.
func TestErrorOfPeekedBody(t *testing.T) {
	cut := errors.New("cut")
	tr := &Transport{reserve: (&book{}).reserve, DefaultKeyID: "test", Base: roundTrip(func(r *http.Request) (*http.Response, error) {
		body := io.MultiReader(strings.NewReader("half"), io.LimitReader(iotest.ErrReader(cut), 1))
		return &http.Response{StatusCode: 500, ContentLength: -1, Body: io.NopCloser(&once{r: body})}, nil
	})}
	resp, err := tr.RoundTrip(post(t, "http://vendor.example/", "{}"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(resp.Body); string(got) != "half" || err != cut {
		t.Errorf("read %q, error %v, want half and %v", got, err, cut)
	}
}

// once ends after its first error.
type once struct {
	r    io.Reader
	done bool
}

func (o *once) Read(b []byte) (int, error) {
	if o.done {
		return 0, io.EOF
	}
	n, err := o.r.Read(b)
	o.done = err != nil
	return n, err
}

// S10: an event is readable within 100 ms of the vendor's flush, and the bytes
// are the vendor's.
func TestStreamsAreLive(t *testing.T) {
	const first, second = "data: {\"n\":1}\r\n\r\n", "data: {\"n\":2}"
	read := make(chan struct{})
	flushed := make(chan time.Time, 1)
	url := vendor(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, first)
		http.NewResponseController(w).Flush()
		flushed <- time.Now()
		<-read // the rest comes only once the caller has the first event
		io.WriteString(w, second)
	})
	resp := do(t, (&book{}).client(t, openAI), post(t, url, "{}"))
	got := make([]byte, len(first))
	if _, err := io.ReadFull(resp.Body, got); err != nil {
		t.Fatal(err)
	}
	if late := time.Since(<-flushed); late > 400*time.Millisecond {
		t.Errorf("first event came after %v", late)
	}
	close(read)
	if all := string(got) + readAll(t, resp.Body); all != first+second {
		t.Errorf("stream = %q, want %q", all, first+second)
	}
}

// An upgrade stays a two-way body (promise 23).
func TestUpgrade(t *testing.T) {
	url := vendor(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "echo")
		w.WriteHeader(http.StatusSwitchingProtocols)
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		line, _ := rw.ReadString('\n')
		fmt.Fprintf(rw, "you said %s", line)
		rw.Flush()
	})
	req := post(t, url, "")
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	resp := do(t, (&book{}).client(t, nil), req)
	w, ok := resp.Body.(io.ReadWriteCloser)
	if resp.StatusCode != 101 || !ok {
		t.Fatalf("answer = %d, body %T, want 101 and an io.ReadWriteCloser", resp.StatusCode, resp.Body)
	}
	io.WriteString(w, "hello\n")
	if got, err := bufio.NewReader(w).ReadString('\n'); got != "you said hello\n" {
		t.Errorf("read %q, %v", got, err)
	}
}

// A body that goes both ways still does when it is metered.
func TestWriterBody(t *testing.T) {
	type rwc struct {
		io.Reader
		io.Writer
		io.Closer
	}
	var sent bytes.Buffer
	b := &book{}
	p := profiles.Generic("acme")
	p.UsageFunc = func(_ http.Header, body []byte) (map[string]int64, bool) {
		return map[string]int64{"bytes": int64(len(body))}, true
	}
	tr := &Transport{reserve: b.reserve, DefaultKeyID: "test", Profile: p, Base: roundTrip(func(*http.Request) (*http.Response, error) {
		body := rwc{strings.NewReader("in"), &sent, io.NopCloser(nil)}
		return &http.Response{StatusCode: 101, Body: body}, nil
	})}
	resp, err := tr.RoundTrip(post(t, "http://vendor.example/", ""))
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(resp.Body.(io.Writer), "out")
	if got := readAll(t, resp.Body); got != "in" || sent.String() != "out" {
		t.Errorf("read %q, wrote %q, want in, out", got, sent.String())
	}
	resp.Body.Close()
	if h := b.last(t); len(h.settled) != 1 || h.settled[0]["bytes"] != 2 {
		t.Errorf("settled %v, want 2 bytes once", h.settled)
	}
}

// HTTP/2: the same promises, and a call that never left is known as such.
func TestHTTP2(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("came over %s", r.Proto)
		}
		stream(false, usageEvent, doneEvent)(w, r)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	b := &book{}
	client := b.client(t, func(tr *Transport) { openAI(tr); tr.Base = server.Client().Transport })
	resp := do(t, client, post(t, server.URL, `{"model":"m"}`))
	if got := readAll(t, resp.Body); got != usageEvent+doneEvent {
		t.Errorf("stream = %q", got)
	}
	if h := b.last(t); len(h.settled) != 1 || h.settled[0][throttle.Tokens] != 10 {
		t.Errorf("settled %v, want 10 tokens", h.settled)
	}
	resp.Body.Close()
	server.Close()
	client = b.client(t, func(tr *Transport) { tr.Base = server.Client().Transport.(*http.Transport).Clone() })
	if _, err := client.Do(post(t, server.URL, "{}")); err == nil {
		t.Fatal("a closed server answered")
	}
	if h := b.last(t); h.cancels != 1 {
		t.Errorf("%d cancels, want 1", h.cancels)
	}
}

func TestTrailers(t *testing.T) {
	url := vendor(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "body")
		w.Header().Set("X-Sum", "42")
	})
	resp := do(t, (&book{}).client(t, nil), post(t, url, "{}"))
	readAll(t, resp.Body)
	if got := resp.Trailer.Get("X-Sum"); got != "42" {
		t.Errorf("trailer = %q, want 42", got)
	}
}

// A vendor that hides refusals behind 200.
func TestReadOK(t *testing.T) {
	url := vendor(t, says(200, "application/json", `{"messages":[{"status":"1"}]}`))
	b := &book{}
	client := b.client(t, func(tr *Transport) {
		tr.Profile = profiles.Generic("sms")
		tr.Profile.ReadOK = true
		tr.Profile.Rules = []profiles.Rule{{Fields: []string{"messages.status"}, Values: []string{"1"}, Class: pause.RateLimited, Scope: pause.Key}}
	})
	resp := do(t, client, post(t, url, "{}"))
	if got := readAll(t, resp.Body); got != `{"messages":[{"status":"1"}]}` {
		t.Errorf("body = %q", got)
	}
	if got := b.last(t).reports; len(got) != 1 || got[0].Class != pause.RateLimited {
		t.Errorf("reports = %+v, want rate_limited", got)
	}
}

// What stands behind a 200 may come long after it: then it is judged at its end.
func TestReadOKLate(t *testing.T) {
	for _, tc := range []struct {
		body   string
		decode bool // the caller does not read on to the end
		want   []pause.Class
	}{
		{`{"error":{"code":429}}`, false, []pause.Class{pause.OK, pause.RateLimited}},
		{`{"error":{"code":429}}`, true, []pause.Class{pause.OK, pause.RateLimited}},
		{`{"choices":[]}`, false, []pause.Class{pause.OK}},
	} {
		judged := make(chan struct{})
		url := vendor(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, "  ")
			w.(http.Flusher).Flush()
			<-judged
			io.WriteString(w, tc.body)
		})
		b := &book{}
		client := b.client(t, func(tr *Transport) { tr.Profile = profiles.OpenRouter() })
		resp := do(t, client, post(t, url, "{}"))
		close(judged)
		if tc.decode {
			var answer struct{ Error struct{ Code int } }
			if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Error.Code != 429 {
				t.Errorf("decoded %+v, %v", answer, err)
			}
			resp.Body.Close()
		} else if got := readAll(t, resp.Body); got != "  "+tc.body {
			t.Errorf("body = %q", got)
		}
		var got []pause.Class
		for _, v := range b.last(t).reports {
			got = append(got, v.Class)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: reports %v, want %v", tc.body, got, tc.want)
		}
	}
}

// Promise 7: a vendor that is documented not to count an answer.
func TestFreeAnswers(t *testing.T) {
	url := vendor(t, says(429, "application/json", `{"usage":{"prompt_tokens":5}}`))
	b := &book{}
	client := b.client(t, func(tr *Transport) {
		openAI(tr)
		tr.Profile.Free = []int{429}
		tr.Cost = throttle.Cost{"segments": 3}
	})
	readAll(t, do(t, client, post(t, url, "{}")).Body)
	h := b.last(t)
	if len(h.settled) != 0 || h.cancels != 1 {
		t.Fatalf("settled %v, %d cancels, want none and one", h.settled, h.cancels)
	}
}

// A request that names no model: a dash in the words of a refusal names none
// either, and the key is refused.
func TestDashIsNoModel(t *testing.T) {
	b := &book{}
	tr := &Transport{reserve: b.reserve, DefaultKeyID: "test", Base: roundTrip(func(r *http.Request) (*http.Response, error) {
		body := `{"error":{"message":"Access denied - this key is disabled","type":"invalid_request_error","code":null}}`
		return &http.Response{StatusCode: 403, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
	})}
	resp, err := tr.RoundTrip(post(t, "http://vendor.example/", "{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := b.last(t).reports; len(got) != 1 || got[0].Class != pause.KeyRefused {
		t.Errorf("reports %+v, want the key refused", got)
	}
}
