package profiles_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/headway-go/headway/transport/profiles"
)

func answer(contentType string) profiles.Answer {
	return profiles.Answer{Status: 200, Header: http.Header{"Content-Type": {contentType}}}
}

func zip(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, s)
	w.Close()
	return b.String()
}

func TestUsage(t *testing.T) {
	const usage = `"usage":{"prompt_tokens":7,"completion_tokens":3}`
	const sse, doc = "text/event-stream", "application/json"
	long := strings.Repeat("x", 3<<20)
	anthropic := func(lines ...string) string { return "data: " + strings.Join(lines, "\n\ndata: ") + "\n\n" }
	const start = `{"type":"message_start","message":{"usage":{"input_tokens":25,"cache_read_input_tokens":2000,"output_tokens":1}}}`
	for _, tc := range []struct {
		name, kind, body string
		profile          *profiles.Profile
		eof              bool
		want             profiles.Usage
		final, ok        bool
	}{
		{"at the end of a long answer", doc, `{"data":"` + long + `",` + usage + `}`, nil, true, profiles.Usage{Input: 7, Output: 3}, true, true},
		{"at the end, spaced", doc, `{"data":"` + long + `", ` + usage + " }\n", nil, true, profiles.Usage{Input: 7, Output: 3}, true, true},
		{"at the beginning of a long answer", doc, `{` + usage + `,"data":"` + long + `"}`, nil, true, profiles.Usage{}, false, false},
		{"long answer cut behind it", doc, `{"data":"` + long + `",` + usage + `,"a":`, nil, false, profiles.Usage{}, false, false},
		{"long answer quoting it", doc, `{"data":"` + long + `","text":"\"usage\":{\"prompt_tokens\":1}"}`, nil, true, profiles.Usage{}, false, false},
		{"cut", doc, `{` + usage, nil, true, profiles.Usage{}, false, false},
		{"blank lines first", doc, "\n\n{" + usage + "}", nil, true, profiles.Usage{Input: 7, Output: 3}, true, true},
		{"null", doc, `{"usage":null}`, nil, true, profiles.Usage{}, false, false},
		{"echo elsewhere", doc, `{"metadata":{` + usage + `}}`, nil, true, profiles.Usage{}, false, false},
		{"one count of three is negative", doc, `{"usage":{"prompt_tokens":7,"completion_tokens":-3,"total_tokens":4}}`, nil, true, profiles.Usage{}, false, false},
		{"one count is a fraction", doc, `{"usage":{"prompt_tokens":7,"completion_tokens":3.5}}`, nil, true, profiles.Usage{}, false, false},
		{"too large to be true", doc, `{"usage":{"prompt_tokens":7,"completion_tokens":9007199254740991}}`, nil, true, profiles.Usage{}, false, false},
		{"embedding: no output", doc, `{"usage":{"prompt_tokens":8,"total_tokens":8}}`, nil, true, profiles.Usage{Input: 8}, true, true},
		{"reasoning outside of the parts", doc, `{"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":40}}`, nil, true, profiles.Usage{Input: 10, Output: 30}, true, true},
		{"total below the parts", doc, `{"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":1}}`, nil, true, profiles.Usage{Input: 10, Output: 5}, true, true},
		{"CRLF", sse, "data: {" + usage + "}\r\n\r\ndata: [DONE]\r\n\r\n", nil, false, profiles.Usage{Input: 7, Output: 3}, true, true},
		{"no space, no blank line", sse, "data:{" + usage + "}", nil, true, profiles.Usage{Input: 7, Output: 3}, true, true},
		{"event over two lines", sse, "data: {\"usage\":\ndata: {\"prompt_tokens\":7}}\n\n", nil, true, profiles.Usage{Input: 7}, true, true},
		{"comments", sse, ": keep-alive\n\ndata: {" + usage + "}\n\n: keep-alive\n\n", nil, true, profiles.Usage{Input: 7, Output: 3}, true, true},
		{"counts that grow", sse, "data: {\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":1}}\n\ndata: {" + usage + "}\n\n", nil, false, profiles.Usage{Input: 7, Output: 3}, false, true},
		{"Groq", sse, "data: {\"x_groq\":{" + usage + "}}\n\n", nil, true, profiles.Usage{Input: 7, Output: 3}, true, true},
		{"null before it", sse, "data: {\"x\":{\"usage\" : null}," + usage + "}\n\n", nil, true, profiles.Usage{Input: 7, Output: 3}, true, true},
		{"long event behind it", sse, "data: {" + usage + "}\n\ndata: " + long + "\n\n", nil, true, profiles.Usage{Input: 7, Output: 3}, false, true},
		{"long event before it", sse, "data: " + long + "\n\ndata: {" + usage + "}\n\n", nil, true, profiles.Usage{}, false, false},
		{"error event behind it", sse, "data: {" + usage + "}\n\ndata: {\"error\":{\"code\":\"x\"}}\n\n", nil, true, profiles.Usage{Input: 7, Output: 3}, false, true},
		{"error of the Responses API", sse, "data: {" + usage + "}\n\ndata: {\"type\":\"error\",\"code\":\"x\"}\n\n", nil, true, profiles.Usage{Input: 7, Output: 3}, false, true},
		{"null error is none", sse, "data: {\"error\":null," + usage + "}\n\n", nil, true, profiles.Usage{Input: 7, Output: 3}, true, true},
		{"Anthropic, cut after the start", sse, anthropic(start), profiles.Anthropic(), false, profiles.Usage{Input: 2025, Cached: 2000, Output: 1}, false, true},
		{"Anthropic, input repeated", sse, anthropic(start, `{"type":"message_delta","usage":{"input_tokens":30,"output_tokens":15}}`, `{"type":"message_stop"}`),
			profiles.Anthropic(), false, profiles.Usage{Input: 2030, Cached: 2000, Output: 15}, true, true},
		{"a number in quotes", doc, `{"usage":{"prompt_tokens":"7","completion_tokens":3}}`, nil, true, profiles.Usage{}, false, false},
		{"1e300", doc, `{"usage":{"prompt_tokens":1e300,"completion_tokens":3}}`, nil, true, profiles.Usage{}, false, false},
		{"nested count", doc, `{"usage":{"prompt_tokens":{"count":7},"completion_tokens":3}}`, nil, true, profiles.Usage{}, false, false},
		{"list of counts", doc, `{"usage":{"prompt_tokens":[7],"completion_tokens":3}}`, nil, true, profiles.Usage{}, false, false},
		{"minus zero", doc, `{"usage":{"prompt_tokens":-0,"completion_tokens":3}}`, nil, true, profiles.Usage{}, false, false},
		{"zeros", doc, `{"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`, nil, true, profiles.Usage{}, false, false},
		{"one event of two is hostile", sse, "data: {\"usage\":{\"prompt_tokens\":\"x\"}}\n\ndata: {" + usage + "}\n\n", nil, true, profiles.Usage{}, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := tc.profile
			if p == nil {
				p = profiles.OpenAI()
			}
			s := p.Scan(answer(tc.kind))
			for body := tc.body; body != ""; {
				n := min(len(body), 1000)
				io.WriteString(s, body[:n])
				body = body[n:]
			}
			got, final, ok := s.Usage(tc.eof)
			if got.Input != tc.want.Input || got.Output != tc.want.Output || got.Cached != tc.want.Cached || final != tc.final || ok != tc.ok {
				t.Errorf("Usage(%v) = %+v, final %v, %v, want %+v, final %v, %v", tc.eof, got, final, ok, tc.want, tc.final, tc.ok)
			}
		})
	}
}

func TestScanCompressed(t *testing.T) {
	a := answer("application/json")
	a.Header.Set("Content-Encoding", "gzip")
	s := profiles.OpenAI().Scan(a)
	io.WriteString(s, zip(`{"usage":{"prompt_tokens":7}}`))
	if u, final, ok := s.Usage(true); u.Input != 7 || !final || !ok {
		t.Errorf("Usage() = %+v, %v, %v, want 7 tokens", u, final, ok)
	}
	bomb := profiles.OpenAI().Scan(a)
	io.WriteString(bomb, zip(strings.Repeat(" ", 8<<20)+`{"usage":{"prompt_tokens":7}}`))
	if u, _, ok := bomb.Usage(true); ok {
		t.Errorf("Usage() of a bomb = %+v, want none", u)
	}
	a.Header.Set("Content-Encoding", "br")
	if profiles.OpenAI().Scan(a) != nil {
		t.Error("Scan() of an unknown coding: want nil")
	}
	if profiles.OpenAI().Scan(answer("audio/mpeg")) != nil {
		t.Error("Scan() of audio: want nil")
	}
	if got := profiles.Gunzip([]byte(zip("hello")[:20]), 99); len(got) > 5 {
		t.Errorf("Gunzip() of half of it = %q", got)
	}
	if got := profiles.Gunzip([]byte("plain"), 99); string(got) != "plain" {
		t.Errorf("Gunzip() of plain text = %q", got)
	}
}

// S10: whatever comes, a scanner's memory is bounded.
func TestScannerMemory(t *testing.T) {
	chunk := bytes.Repeat([]byte("x"), 32<<10)
	for _, kind := range []string{"text/event-stream", "application/json"} {
		s := profiles.OpenAI().Scan(answer(kind))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 20 << 20 / len(chunk) {
			s.Write(chunk)
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 8<<20 {
			t.Errorf("%s: allocated %d MiB for 20 MiB, want at most 8", kind, got>>20)
		}
	}
}
