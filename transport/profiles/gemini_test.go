package profiles_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/transport/profiles"
)

func read(t *testing.T, p *profiles.Profile, url, contentType, body string) profiles.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	return p.Read(req, strings.NewReader(body))
}

func TestGoogleRequests(t *testing.T) {
	const studio, vertex = "https://generativelanguage.googleapis.com", "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/us-central1"
	for _, tc := range []struct {
		name, url, body, model string
		output, copies         int64
	}{
		{"plain", studio + "/v1beta/models/gemini-2.5-flash:generateContent?key=K", `{}`, "gemini-2.5-flash", -1, 1},
		{"caps", studio + "/v1beta/models/m:streamGenerateContent", `{"generationConfig":{"maxOutputTokens":70,"candidateCount":3}}`, "m", 70, 3},
		{"caps as protobuf spells them", studio + "/v1beta/models/m:generateContent", `{"generation_config":{"max_output_tokens":70,"candidate_count":3}}`, "m", 70, 3},
		{"tuned", studio + "/v1beta/tunedModels/mine:generateContent", `{}`, "tunedModels/mine", -1, 1},
		{"escaped", studio + "/v1beta/models/a%2Fb%20c:generateContent", `{}`, "a/b c", -1, 1},
		{"escaped colon", studio + "/v1beta/models/m%3AgenerateContent", `{}`, "m", -1, 1},
		{"no method", studio + "/v1beta/models/m", ``, "m", -1, 1},
		{"list", studio + "/v1beta/models", ``, "", -1, 1},
		{"empty id", studio + "/v1beta/models/:generateContent", `{}`, "", -1, 1},
		{"path goes before the body", studio + "/v1beta/models/m:batchEmbedContents", `{"model":"models/other"}`, "m", -1, 1},
		{"OpenAI's dialect", studio + "/v1beta/openai/chat/completions", `{"model":"gemini-2.5-flash","max_tokens":9,"n":2}`, "gemini-2.5-flash", 9, 2},
		{"OpenAI's dialect, whole name", studio + "/v1beta/openai/chat/completions", `{"model":"models/gemini-2.5-flash"}`, "gemini-2.5-flash", -1, 1},
		{"Interactions", studio + "/v1beta/interactions", `{"model":"gemini-3","generation_config":{"max_output_tokens":5}}`, "gemini-3", 5, 1},
		{"Vertex", vertex + "/publishers/google/models/gemini-2.5-pro:generateContent", `{}`, "gemini-2.5-pro", -1, 1},
		{"Vertex, partner", vertex + "/publishers/anthropic/models/claude-x@20250101:streamRawPredict", `{"max_tokens":8}`, "claude-x@20250101", 8, 1},
		{"Vertex, own endpoint", vertex + "/endpoints/123:predict", `{}`, "endpoints/123", -1, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := profiles.Gemini()
			if strings.HasPrefix(tc.url, vertex) {
				p = profiles.Vertex()
			}
			got := read(t, p, tc.url, "application/json", tc.body)
			if got.Model != tc.model || got.Output != tc.output || got.Copies != tc.copies {
				t.Errorf("Read() = %+v, want model %q, output %d, copies %d", got, tc.model, tc.output, tc.copies)
			}
		})
	}
	upload := read(t, profiles.Gemini(), studio+"/upload/v1beta/files", "video/mp4", strings.Repeat("x", 4096))
	if upload.Text != 0 {
		t.Errorf("Read() counts %d bytes of text in a video, want none", upload.Text)
	}
}

// S30: which of Gemini's refusals are about the key.
func TestGeminiRefusals(t *testing.T) {
	key := pause.Verdict{Class: pause.KeyRefused, Scope: pause.Key}
	spent := pause.Verdict{Class: pause.QuotaExhausted, Scope: pause.Key}
	day := pause.Verdict{Class: pause.QuotaExhausted, Scope: pause.Model}
	limited := pause.Verdict{Class: pause.RateLimited, Scope: pause.Model}
	reason := func(s string) string {
		return `[{"error":{"status":"X","message":"no","details":[{"reason":"` + s + `","metadata":{"reason":"x"}}]}}]`
	}
	for _, tc := range []struct {
		name   string
		status int
		body   string
		want   pause.Verdict
	}{
		{"blocked service", 403, reason("API_KEY_SERVICE_BLOCKED"), key},
		{"blocked referrer", 403, reason("API_KEY_HTTP_REFERRER_BLOCKED"), key},
		{"blocked address", 403, reason("API_KEY_IP_ADDRESS_BLOCKED"), key},
		{"service off", 403, reason("SERVICE_DISABLED"), key},
		{"user's project", 403, reason("USER_PROJECT_DENIED"), key},
		{"billing off", 403, reason("BILLING_DISABLED"), spent},
		{"another reason", 403, reason("OTHER"), key},
		{"another 400", 400, reason("FIELD_INVALID"), pause.Verdict{Class: pause.ClientError}},
		{"country", 400, `{"error":{"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}`, key},
		{"precondition of a file", 400, `{"error":{"message":"The file is not in an ACTIVE state.","status":"FAILED_PRECONDITION"}}`, pause.Verdict{Class: pause.ClientError}},
		{"suspended, naming the model", 403, `{"error":{"message":"gemini-x: suspended","details":[{"reason":"CONSUMER_SUSPENDED"}]}}`, key},
		{"the model", 403, `{"error":{"message":"no permission for models/gemini-x."}}`, pause.Verdict{Class: pause.ClientError}},
		{"limit 0", 429, `{"error":{"message":"Quota exceeded, limit: 0, model: gemini-x","status":"RESOURCE_EXHAUSTED"}}`, day},
		{"limit 05 is none", 429, `{"error":{"message":"Quota exceeded, limit: 05"}}`, limited},
		{"limit 10", 429, `{"error":{"message":"Quota exceeded, limit: 10"}}`, limited},
		{"PerDay in second place", 429, `{"error":{"details":[{"violations":[{"quotaId":"APerMinute"},{"quotaId":"BPerDayPerProject"}]}]}}`, day},
		{"Interactions: money", 402, `{"error":{"code":"payment_required"}}`, spent},
		{"Interactions: quota", 429, `{"error":{"code":"quota_exceeded"}}`, day},
		{"gone wrong", 500, `{"error":{"status":"INTERNAL"}}`, pause.Verdict{Class: pause.ServerError}},
		{"too late", 504, `{"error":{"status":"DEADLINE_EXCEEDED"}}`, pause.Verdict{Class: pause.ServerError}},
		{"inside of a stream: overloaded", 200, `{"error":{"code":503}}`, pause.Verdict{Class: pause.Overloaded, Scope: pause.Model}},
		{"inside of a stream: limited", 200, `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}`, limited},
		{"inside of a stream: key", 200, `{"error":{"code":400,"details":[{"reason":"API_KEY_INVALID"}]}}`, key},
		{"inside of a stream: no status", 200, `{"error":{"code":7}}`, pause.Verdict{}},
		{"status of its own goes first", 500, `{"error":{"code":429}}`, pause.Verdict{Class: pause.ServerError}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, p := range []*profiles.Profile{profiles.Gemini(), profiles.Vertex()} {
				if got := p.Judge(profiles.Answer{Status: tc.status, Body: []byte(tc.body), Model: "gemini-x"}); got != tc.want {
					t.Errorf("%s: Judge() = %+v, want %+v", p.Name, got, tc.want)
				}
			}
		})
	}
}

func TestGeminiUsage(t *testing.T) {
	const doc, sse = "application/json; charset=UTF-8", "text/event-stream"
	const first = `{"candidates":[{"content":{"parts":[{"text":"]}\\\"["}]}}],"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":1,"totalTokenCount":9}}`
	const last = `{"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":6,"thoughtsTokenCount":5,"totalTokenCount":19,"cachedContentTokenCount":2}}`
	const failure = `{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}`
	counted := profiles.Usage{Input: 8, Cached: 2, Output: 11}
	for _, tc := range []struct {
		name, kind, body string
		eof              bool
		want             profiles.Usage
		final, ok        bool
	}{
		{"array", doc, "[" + first + ",\n" + last + "\n]", true, counted, true, true},
		{"array, spaced", doc, " \r\n[ " + first + "\r\n,\r\n" + last + " ] ", true, counted, true, true},
		{"array, closed by the caller", doc, "[" + first + "," + last + "]", false, counted, true, true},
		{"array, cut", doc, "[" + first + "," + last, false, counted, false, true},
		{"array, cut but ended", doc, "[" + first + "," + last, true, counted, false, true},
		{"array, cut in an element", doc, "[" + first + "," + last[:40], false, profiles.Usage{Input: 8, Output: 1}, false, true},
		{"array, then an error", doc, "[" + last + "," + failure + "]", true, counted, false, true},
		{"array of 3 MiB", doc, "[" + strings.Repeat(first+",", 3<<20/len(first)) + last + "]", true, counted, true, true},
		{"element of 3 MiB", doc, `[{"x":"` + strings.Repeat("x", 3<<20) + `"},` + last + "]", true, profiles.Usage{}, false, false},
		{"array of what is no event", doc, `[1,"]",null,` + last + `,{}]`, true, counted, true, true},
		{"SSE", sse, "data: " + first + "\r\n\r\ndata: " + last + "\r\n\r\n", true, counted, true, true},
		{"SSE, then an error", sse, "data: " + last + "\n\ndata: " + failure + "\n\n", true, counted, false, true},
		{"no total", doc, `{"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":6,"thoughtsTokenCount":5,"toolUsePromptTokenCount":4}}`, true, profiles.Usage{Input: 12, Output: 11}, true, true},
		{"blocked prompt", doc, `{"promptFeedback":{},"usageMetadata":{"promptTokenCount":8,"totalTokenCount":8}}`, true, profiles.Usage{Input: 8}, true, true},
		{"OpenAI's dialect", doc, `{"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":40}}`, true, profiles.Usage{Input: 10, Output: 30}, true, true},
		{"Interactions", doc, `{"usage":{"total_input_tokens":10,"total_output_tokens":5,"total_thought_tokens":2,"total_tool_use_tokens":3,"total_tokens":20}}`, true, profiles.Usage{Input: 13, Output: 7}, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			whole, slow := profiles.Gemini().Scan(answer(tc.kind)), profiles.Gemini().Scan(answer(tc.kind))
			io.WriteString(whole, tc.body)
			for step, rest := 1+len(tc.body)/5000, tc.body; rest != ""; rest = rest[min(step, len(rest)):] {
				io.WriteString(slow, rest[:min(step, len(rest))])
			}
			for _, s := range []*profiles.Scanner{whole, slow} {
				got, final, ok := s.Usage(tc.eof)
				if got.Input != tc.want.Input || got.Output != tc.want.Output || got.Cached != tc.want.Cached || final != tc.final || ok != tc.ok {
					t.Errorf("Usage(%v) = %+v, final %v, %v, want %+v, final %v, %v", tc.eof, got, final, ok, tc.want, tc.final, tc.ok)
				}
				trouble, ok := s.Trouble()
				if ok != strings.Contains(tc.body, failure) || ok && !bytes.Contains(trouble.Body, []byte("UNAVAILABLE")) {
					t.Errorf("Trouble() = %s, %v", trouble.Body, ok)
				}
			}
		})
	}
	zipped := answer(doc)
	zipped.Header.Set("Content-Encoding", "gzip")
	s := profiles.Gemini().Scan(zipped)
	io.WriteString(s, zip("["+first+","+last+"]"))
	if got, final, ok := s.Usage(true); got.Output != 11 || !final || !ok {
		t.Errorf("Usage() of gzip = %+v, %v, %v, want 11 tokens of output", got, final, ok)
	}
	partner := profiles.Vertex().Scan(answer(doc))
	io.WriteString(partner, `{"usage":{"input_tokens":5,"cache_read_input_tokens":100,"output_tokens":3}}`)
	if got, final, ok := partner.Usage(true); got.Input != 105 || got.Output != 3 || !final || !ok {
		t.Errorf("Usage() of a partner's model = %+v, %v, %v, want 105 and 3", got, final, ok)
	}
}
