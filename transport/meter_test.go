package transport

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/transport/profiles"
)

const (
	jsonAnswer = `{"choices":[{"message":{"content":"\"usage\":{\"prompt_tokens\":1}"}}],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}`
	usageEvent = `data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}` + "\n\n"
	textEvent  = `data: {"choices":[{"delta":{"content":"hi"}}],"usage":null}` + "\n\n"
	doneEvent  = "data: [DONE]\n\n"
)

// stream sends events one by one, and then hangs up if told so.
func stream(hangUp bool, events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			io.WriteString(w, e)
			http.NewResponseController(w).Flush()
		}
		if hangUp {
			panic(http.ErrAbortHandler)
		}
	}
}

func twenty(more ...string) []string {
	var events []string
	for range 20 {
		events = append(events, textEvent)
	}
	return append(events, more...)
}

// S19: streams are charged, even when dropped; no way of ending settles twice.
func TestSettle(t *testing.T) {
	readAll := func(r *http.Response) { io.Copy(io.Discard, r.Body) }
	readEvents := func(n int) func(*http.Response) {
		return func(r *http.Response) { io.CopyN(io.Discard, r.Body, int64(n*len(textEvent))) }
	}
	closeBody := func(r *http.Response) { r.Body.Close() }
	nothing := func(*http.Response) {}
	twice := func(r *http.Response) {
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { r.Body.Close() })
		}
		both.Wait()
	}
	const none = -1
	for _, tc := range []struct {
		name   string
		answer http.HandlerFunc
		read   func(*http.Response)
		end    func(*http.Response)
		want   int64 // tokens
	}{
		{"a: read to the end, then closed", stream(false, twenty(usageEvent, doneEvent)...), readAll, closeBody, 10},
		{"b: closed after event 5", stream(false, twenty(usageEvent, doneEvent)...), readEvents(5), closeBody, none},
		{"c: vendor hangs up", stream(true, twenty()...), readAll, closeBody, none},
		{"d: no usage", stream(false, twenty(doneEvent)...), readAll, closeBody, none},
		{"closed between usage and end", stream(false, usageEvent, strings.Repeat(textEvent, 5)), readEvents(2), closeBody, none},
		{"closed twice at once", stream(false, twenty(usageEvent, doneEvent)...), readEvents(21), twice, none},
		{"read past [DONE], no EOF", stream(false, usageEvent+doneEvent+textEvent), readEvents(2), twice, 10},
		{"JSON", says(200, "application/json", jsonAnswer), readAll, twice, 10},
		{"JSON, charset", says(200, "application/json; charset=utf-8", jsonAnswer), readAll, closeBody, 10},
		{"JSON, read whole without EOF", stringAnswer(jsonAnswer), func(r *http.Response) { io.CopyN(io.Discard, r.Body, int64(len(jsonAnswer))) }, closeBody, 10},
		{"JSON, half read", stringAnswer(jsonAnswer), func(r *http.Response) { io.CopyN(io.Discard, r.Body, int64(len(jsonAnswer)-2)) }, closeBody, none},
		{"JSON, never read", says(200, "application/json", jsonAnswer), nothing, closeBody, none},
		{"not JSON", says(200, "text/plain", jsonAnswer), readAll, closeBody, none},
		{"204", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, readAll, closeBody, none},
		{"negative", says(200, "application/json", `{"usage":{"prompt_tokens":-7,"completion_tokens":-3}}`), readAll, closeBody, none},
		{"fraction", says(200, "application/json", `{"usage":{"prompt_tokens":7.5,"completion_tokens":1e3}}`), readAll, closeBody, none},
		{"huge", says(200, "application/json", `{"usage":{"prompt_tokens":99999999999999999999}}`), readAll, closeBody, none},
		{"1e300", says(200, "application/json", `{"usage":{"prompt_tokens":1e300,"completion_tokens":3}}`), readAll, closeBody, none},
		{"strings", says(200, "application/json", `{"usage":{"prompt_tokens":"7","completion_tokens":"3"}}`), readAll, closeBody, none},
		{"nested", says(200, "application/json", `{"usage":{"prompt_tokens":{"n":7},"completion_tokens":[3]}}`), readAll, closeBody, none},
		{"zeros", says(200, "application/json", `{"usage":{"prompt_tokens":0,"completion_tokens":0}}`), readAll, closeBody, none},
		{"null", says(200, "application/json", `{"usage":{"prompt_tokens":null,"completion_tokens":null}}`), readAll, closeBody, none},
		{"array stream", says(200, "application/json", "["+jsonAnswer+","+jsonAnswer+"]"), readAll, closeBody, 10},
		{"array stream, cut", stringAnswer("[" + jsonAnswer + ","), func(r *http.Response) { io.CopyN(io.Discard, r.Body, int64(len(jsonAnswer)+2)) }, closeBody, none},
		{"more than estimated, cut", stream(true, `data: {"usage":{"prompt_tokens":9000}}`+"\n\n"), readAll, closeBody, 9000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			leaks := noLeaks(t)
			b := &book{}
			client := b.client(t, openAI)
			server := httptest.NewServer(tc.answer)
			resp, err := client.Do(post(t, server.URL, `{"model":"m"}`))
			if err != nil {
				t.Fatal(err)
			}
			tc.read(resp)
			tc.end(resp)
			h := b.last(t)
			want := []int64{}
			if tc.want != none {
				want = append(want, tc.want)
			}
			if len(h.settled) != len(want) || len(want) == 1 && h.settled[0]["tokens"] != want[0] {
				t.Errorf("settled %v, want %v", h.settled, want)
			}
			if h.cancels != 0 || h.dead || len(h.reports) != 1 || h.reports[0].Class != pause.OK {
				t.Errorf("%d cancels, dead context %v, reports %v", h.cancels, h.dead, h.reports)
			}
			client.CloseIdleConnections()
			server.Close()
			leaks()
		})
	}
}

// stringAnswer answers in chunks, so that the length is not known.
func stringAnswer(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, body)
		http.NewResponseController(w).Flush()
		<-r.Context().Done() // the end never comes
	}
}

func TestHeadSettlesAtOnce(t *testing.T) {
	url := vendor(t, says(200, "application/json", ""))
	b := &book{}
	p := profiles.Generic("acme")
	p.UsageFunc = func(h http.Header, _ []byte) (map[string]int64, bool) {
		return map[string]int64{"units": 2}, true
	}
	client := b.client(t, func(tr *Transport) { tr.Profile = p })
	req, err := http.NewRequestWithContext(t.Context(), "HEAD", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp := do(t, client, req)
	if h := b.last(t); len(h.settled) != 1 || h.settled[0]["units"] != 2 {
		t.Errorf("settled %v before Close, want 2 units", h.settled)
	}
	resp.Body.Close()
	if h := b.last(t); len(h.settled) != 1 {
		t.Errorf("settled %d times, want once", len(h.settled))
	}
}

// S18: settling survives the caller's cancel; nothing is left of a call that
// nobody reads.
func TestContextEnds(t *testing.T) {
	leaks := noLeaks(t)
	const event = `data: {"usage":{"prompt_tokens":5000}}` + "\n\n"
	started := make(chan struct{}, 1)
	handler := func(w http.ResponseWriter, r *http.Request) {
		stream(false, event)(w, r)
		started <- struct{}{}
		<-r.Context().Done()
	}
	b := &book{}
	client := b.client(t, openAI)
	server := httptest.NewServer(http.HandlerFunc(handler))
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := client.Do(post(t, server.URL, "{}").WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	<-started
	io.CopyN(io.Discard, resp.Body, int64(len(event)))
	cancel()
	eventually(t, "settled without Close", func() bool { return len(b.last(t).settled) == 1 })
	resp.Body.Close()
	if h := b.last(t); h.dead || len(h.settled) != 1 || h.settled[0]["tokens"] != 5000 {
		t.Errorf("settled %v, dead context %v, want 5000 tokens once", h.settled, h.dead)
	}
	client.CloseIdleConnections()
	server.Close()
	leaks()
}

// S18: a silent store delays Close by 250 ms at most, and leaves nothing behind.
func TestSilentStore(t *testing.T) {
	b := &book{block: true}
	leaks := noLeaks(t)
	tr := &Transport{reserve: b.reserve, DefaultKeyID: "test", Base: roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: 200, ContentLength: -1, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(jsonAnswer)),
		}, nil
	})}
	resp, err := tr.RoundTrip(post(t, "http://vendor.example/", "{}"))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if took := time.Since(start); took > time.Second {
		t.Errorf("reading took %v, want 250 ms", took)
	}
	leaks()
}

// An error event inside of a 200 stream is reported, and no byte waits for it.
func TestErrorInStream(t *testing.T) {
	const start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\n"
	const failure = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
	b := &book{block: true} // the store is slow
	tr := &Transport{reserve: b.reserve, DefaultKeyID: "test", Profile: profiles.Anthropic(), Base: roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: 200, ContentLength: -1, Header: http.Header{"Content-Type": {"text/event-stream"}},
			Body: io.NopCloser(strings.NewReader(start + failure + failure)),
		}, nil
	})}
	leaks := noLeaks(t)
	resp, err := tr.RoundTrip(post(t, "http://vendor.example/", "{}"))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if got := readAll(t, resp.Body); got != start+failure+failure {
		t.Errorf("stream = %q", got)
	}
	if took := time.Since(began); took > 125*time.Millisecond {
		t.Errorf("reading waited %v for the report", took)
	}
	resp.Body.Close()
	eventually(t, "a second report", func() bool { return len(b.last(t).reports) == 2 })
	h := b.last(t)
	if want := (pause.Verdict{Class: pause.Overloaded, Scope: pause.Model}); h.reports[1] != want {
		t.Errorf("report %+v, want %+v", h.reports[1], want)
	}
	if len(h.settled) != 0 {
		t.Errorf("settled %v, want the estimate to stay", h.settled)
	}
	leaks()
}
