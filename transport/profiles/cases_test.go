package profiles_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/transport/profiles"
)

// vendorCase is one recorded call of testdata/cases.json: a request, the
// vendor's answer, and what they mean.
type vendorCase struct {
	ID      string    `json:"id"`
	Vendor  string    `json:"vendor"`
	Now     time.Time `json:"now"`
	Request struct {
		Method  string            `json:"method"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers"`
		Body    json.RawMessage   `json:"body"`
	} `json:"request"`
	Response struct {
		Status  int               `json:"status"`
		Headers map[string]string `json:"headers"`
		Body    json.RawMessage   `json:"body"`
	} `json:"response"`
	Expect struct {
		Class        string  `json:"class"`
		Scope        *string `json:"scope"`
		RetryAfterMS *int64  `json:"retry_after_ms"`
		Model        string  `json:"model"`
		Usage        *struct {
			Input  int64 `json:"input_tokens"`
			Output int64 `json:"output_tokens"`
			Cached int64 `json:"cached_input_tokens"`

			Segments int64 `json:"segments"`
		} `json:"usage"`
	} `json:"expect"`
}

// verbatim returns a body as it goes over the wire: a string stands for itself.
func verbatim(raw json.RawMessage) string {
	var s string
	switch {
	case string(raw) == "null":
		return ""
	case json.Unmarshal(raw, &s) == nil:
		return s
	}
	return string(raw)
}

func header(lines map[string]string) http.Header {
	h := http.Header{}
	for name, value := range lines {
		h.Set(name, value)
	}
	return h
}

func (c vendorCase) request(t *testing.T) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), c.Request.Method, c.Request.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header(c.Request.Headers)
	return req
}

func loadCases(t *testing.T, file string) []vendorCase {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var cases []vendorCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

func TestVendorCases(t *testing.T) {
	runCases(t, "testdata/cases.json", map[string]int{
		"openai": 16, "azure-openai": 5, "anthropic": 11, "generic": 9, "gemini": 11, "vertex": 3, "twilio": 3,
		"bedrock": 5, "mistral": 2, "cohere": 1, "groq": 2, "together": 1, "deepseek": 2, "openrouter": 3, "xai": 2,
		"elevenlabs": 1, "deepgram": 1, "vonage": 4, "telnyx": 1, "sns": 1, "sendgrid": 2, "whatsapp": 2,
	})
}

// runCases runs the recorded calls of a file, of which want says how many there
// are of each vendor. A vendor's profile has its name; OpenAI's is the one for
// hosts that no profile names.
func runCases(t *testing.T, file string, want map[string]int) {
	ran := map[string]int{}
	for _, c := range loadCases(t, file) {
		ran[c.Vendor]++
		name := c.Vendor
		if name == "generic" {
			name = "openai"
		}
		p := profiles.Choose(profiles.Builtin(), c.request(t))
		if p.Name != name {
			t.Errorf("%s: Choose() = %q, want %q", c.ID, p.Name, name)
		}
		t.Run(c.ID, func(t *testing.T) { checkCase(t, c, p) })
		if c.Vendor == "generic" {
			t.Run(c.ID+"/generic", func(t *testing.T) { checkCase(t, c, profiles.Generic("demo")) })
		}
	}
	if !maps.Equal(ran, want) {
		t.Errorf("ran %v cases, want %v", ran, want)
	}
}

func checkCase(t *testing.T, c vendorCase, p *profiles.Profile) {
	req := c.request(t)
	if got := p.Read(req, strings.NewReader(verbatim(c.Request.Body))); got.Model != c.Expect.Model {
		t.Errorf("Read().Model = %q, want %q", got.Model, c.Expect.Model)
	}
	body := verbatim(c.Response.Body)
	a := profiles.Answer{
		Status: c.Response.Status, Header: header(c.Response.Headers), Model: c.Expect.Model, Now: c.Now,
	}
	if a.Status >= 400 || p.ReadOK && strings.Contains(a.Header.Get("Content-Type"), "json") {
		a.Body = []byte(body) // the transport reads no other body ahead
	}
	verdict := p.Judge(a)
	var usage profiles.Usage
	var final, ok bool
	if scanner := p.Scan(a); scanner != nil { // nil: a body that counts nothing, such as XML
		for _, b := range []byte(body) { // the slowest wire
			scanner.Write([]byte{b})
		}
		if trouble, ok := scanner.Trouble(); ok {
			verdict = p.Judge(trouble)
		}
		usage, final, ok = scanner.Usage(true)
	}
	scope := map[string]string{"": "none", "model": "model", "key": "key", "account": "key"}
	wantScope := "none"
	if c.Expect.Scope != nil {
		wantScope = scope[*c.Expect.Scope]
	}
	if got := verdict.Class.String(); got != c.Expect.Class {
		t.Errorf("Class = %s, want %s", got, c.Expect.Class)
	}
	if got := verdict.Scope.String(); got != wantScope {
		t.Errorf("Scope = %s, want %s", got, wantScope)
	}
	var wantWait time.Duration
	if c.Expect.RetryAfterMS != nil {
		wantWait = min(time.Duration(*c.Expect.RetryAfterMS)*time.Millisecond, 5*time.Minute)
	}
	if got := min(verdict.Hint.Wait, 5*time.Minute); got != wantWait {
		t.Errorf("Hint.Wait = %v, want %v", got, wantWait)
	}
	if ok != (c.Expect.Usage != nil) {
		t.Fatalf("Usage() = %+v, %v, want %+v", usage, ok, c.Expect.Usage)
	}
	if want := c.Expect.Usage; ok && p.Name != "demo" {
		if usage.Input != want.Input || usage.Output != want.Output || usage.Cached != want.Cached || usage.Units["segments"] != want.Segments || !final {
			t.Errorf("Usage() = %+v, final %v, want %+v", usage, final, *want)
		}
	}
}

// S30: which refusals are about the key.
func TestRefusals(t *testing.T) {
	key := pause.Verdict{Class: pause.KeyRefused, Scope: pause.Key}
	quota := pause.Verdict{Class: pause.QuotaExhausted, Scope: pause.Key}
	limited := pause.Verdict{Class: pause.RateLimited, Scope: pause.Model}
	clientError := pause.Verdict{Class: pause.ClientError}
	for _, tc := range []struct {
		name   string
		status int
		body   string
		want   pause.Verdict
	}{
		{"billing by code", 429, `{"error":{"code":"insufficient_quota"}}`, quota},
		{"billing by code, after other fields", 429, `{"request":{"code":"x"},"error":{"message":"rate limit","code":"credit_balance_exhausted"}}`, quota},
		{"rate limit by code", 429, `{"error":{"code":"rate_limit_exceeded"}}`, limited},
		{"402", 402, `{}`, quota},
		{"401", 401, ``, key},
		{"403", 403, `nope`, key},
		{"bad key behind a 400, by reason", 400, `{"error":{"code":400,"details":[{"reason":"OTHER"},{"reason":"API_KEY_INVALID"}]}}`, key},
		{"the same in an array", 400, `[{"error":{"code":400,"details":[{"reason":"API_KEY_INVALID"}]}}]`, key},
		{"bad key behind a 400, by text", 400, `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: demo"}`, key},
		{"plain 400", 400, `{"error":{"message":"bad temperature"}}`, clientError},
		{"page", 429, `<html>insufficient_quota</html>`, limited},
		{"no body", 429, ``, limited},
		{"1 MiB", 429, `{"error":{"message":"` + strings.Repeat("x", 1<<20), limited},
		{"code before 1 MiB", 429, `{"error":{"code":"insufficient_quota","message":"` + strings.Repeat("x", 1<<20), quota},
		{"words in an echo of the prompt", 429, `{"input":"insufficient_quota","error":{"message":"slow down"}}`, limited},
		{"403 names the model in words", 403, `{"error":{"message":"You must be verified to use the model."}}`, clientError},
		{"403 names this model", 403, `{"error":{"message":"gpt-x is not for you"}}`, clientError},
		{"403 names a longer model", 403, `{"error":{"message":"gpt-x-mini is not for you"}}`, key},
		{"401 with the model's name only", 401, `{"error":{"message":"key not valid for gpt-x"}}`, key},
		{"too large", 429, `{"error":{"message":"Limit 30000, Used 3, Requested 30001."}}`, clientError},
		{"too large behind a 413", 413, `{"error":{"message":"Limit 6000, Requested 8000","code":"rate_limit_exceeded"}}`, clientError},
		{"exactly the limit", 429, `{"error":{"message":"Limit 30000, Used 3, Requested 30000."}}`, limited},
		{"hostile numbers", 429, `{"error":{"message":"Limit 1, Requested 99999999999999999999999"}}`, limited},
		{"timeout", 408, ``, pause.Verdict{Class: pause.ServerError}},
		{"501", 501, ``, pause.Verdict{Class: pause.ServerError}},
		{"redirect", 307, ``, pause.Verdict{Class: pause.OK}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := profiles.OpenAI().Judge(profiles.Answer{Status: tc.status, Body: []byte(tc.body), Model: "gpt-x"})
			if got != tc.want {
				t.Errorf("Judge() = %+v, want %+v", got, tc.want)
			}
		})
	}
}

// S30: a definitive billing code wins over a short Retry-After, and keeps it.
func TestBillingBeforeRetryAfter(t *testing.T) {
	got := profiles.OpenAI().Judge(profiles.Answer{
		Status: 429, Header: http.Header{"Retry-After": {"2"}}, Body: []byte(`{"error":{"code":"insufficient_quota"}}`),
	})
	want := pause.Verdict{Class: pause.QuotaExhausted, Scope: pause.Key, Hint: pause.Hint{Wait: 2 * time.Second, Named: true}}
	if got != want {
		t.Errorf("Judge() = %+v, want %+v", got, want)
	}
}

func TestAnthropicRefusals(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status int
		body   string
		want   pause.Class
	}{
		{"own spend limit", 400, `{"error":{"type":"invalid_request_error","message":"You have reached your specified workspace API usage limits."}}`, pause.QuotaExhausted},
		{"disabled", 400, `{"error":{"type":"invalid_request_error","message":"This organization has been disabled."}}`, pause.KeyRefused},
		{"browser", 401, `{"error":{"type":"authentication_error","message":"CORS requests are not allowed for this organization"}}`, pause.ClientError},
		{"resource", 403, `{"error":{"type":"permission_error","message":"Your API key does not have permission to use the specified resource."}}`, pause.ClientError},
		{"too large", 413, `{"error":{"type":"request_too_large"}}`, pause.ClientError},
		{"broke", 500, `{"error":{"type":"api_error"}}`, pause.ServerError},
		{"overloaded behind a 500", 500, `{"error":{"type":"overloaded_error"}}`, pause.Overloaded},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := profiles.Anthropic().Judge(profiles.Answer{Status: tc.status, Body: []byte(tc.body)}); got.Class != tc.want {
				t.Errorf("Class = %v, want %v", got.Class, tc.want)
			}
		})
	}
}

func TestChoose(t *testing.T) {
	for _, tc := range []struct{ name, url, mark, want string }{
		{"host", "https://api.anthropic.com/v1/messages", "", "anthropic"},
		{"host in capitals, port, dot", "https://API.Anthropic.com.:443/v1/messages", "", "anthropic"},
		{"unknown host", "https://llm.example/v1/messages", "", "openai"},
		{"unknown host, marked", "https://llm.example/v1/messages", "Anthropic-Version", "anthropic"},
		{"known host goes before a mark", "https://api.openai.com/v1", "Anthropic-Version", "openai"},
		{"Gemini", "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent", "", "gemini"},
		{"Gemini behind a gateway", "https://llm.example/v1beta/models/m:generateContent", "X-Goog-Api-Key", "gemini"},
		{"Vertex", "https://europe-west4-aiplatform.googleapis.com/v1/x", "", "vertex"},
		{"Vertex, global, express", "https://aiplatform.googleapis.com/v1/x", "X-Goog-Api-Key", "vertex"},
		{"another service of Google's", "https://storage.googleapis.com/x", "", "openai"},
		{"Twilio", "https://api.twilio.com/2010-04-01/Accounts/AC1/Messages.json", "", "twilio"},
		{"suffix is not a host", "https://notapi.anthropic.com/", "", "openai"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), "GET", tc.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			if tc.mark != "" {
				req.Header.Set(tc.mark, "x")
			}
			if got := profiles.Choose(profiles.Builtin(), req); got.Name != tc.want {
				t.Errorf("Choose() = %q, want %q", got.Name, tc.want)
			}
		})
	}
	if got := profiles.Choose(nil, &http.Request{}); got != nil {
		t.Errorf("Choose(nil) = %v, want nil", got)
	}
	p := &profiles.Profile{Hosts: []string{"*.example.com"}}
	for host, want := range map[string]bool{"a.example.com": true, "example.com": false, ".example.com": false, "a.b.example.com": true, "aexample.com": false} {
		if got := p.Owns(host); got != want {
			t.Errorf("Owns(%q) = %v, want %v", host, got, want)
		}
	}
}

func TestFunctions(t *testing.T) {
	p := profiles.Generic("acme")
	p.ModelFunc = func(r *http.Request, body []byte) string { return r.Header.Get("X-Sender") }
	p.CostFunc = func(_ *http.Request, body []byte) map[string]int64 {
		return map[string]int64{"segments": int64(len(body))}
	}
	p.JudgeFunc = func(a profiles.Answer) (pause.Verdict, bool) {
		return pause.Verdict{Class: pause.RateLimited, Scope: pause.Key}, strings.Contains(string(a.Body), "busy")
	}
	p.UsageFunc = func(_ http.Header, body []byte) (map[string]int64, bool) {
		return map[string]int64{"segments": 3, "bad": -1}, string(body) == "three"
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", "https://acme.example/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Sender", "shop")
	req.Body = io.NopCloser(strings.NewReader("not to be read"))
	got := p.Read(req, strings.NewReader("hello"))
	if got.Model != "shop" || got.Cost["segments"] != 5 || got.Text != 5 {
		t.Errorf("Read() = %+v, want model shop, 5 segments, 5 bytes", got)
	}
	if v := p.Judge(profiles.Answer{Status: 200, Header: http.Header{"Retry-After": {"7"}}, Body: []byte("busy")}); v.Class != pause.RateLimited || v.Hint.Wait != 7*time.Second {
		t.Errorf("Judge() = %+v, want rate_limited for 7s", v)
	}
	if v := p.Judge(profiles.Answer{Status: 429}); v.Scope != pause.Model {
		t.Errorf("Judge() = %+v, want the status' own verdict", v)
	}
	s := p.Scan(profiles.Answer{Status: 200})
	io.WriteString(s, "three")
	if u, final, ok := s.Usage(true); !ok || !final || len(u.Cost()) != 1 || u.Cost()["segments"] != 3 {
		t.Errorf("Usage() = %+v, %v, %v, want 3 segments", u, final, ok)
	}
}
