package main

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/transport"
	"github.com/headway-go/headway/transport/profiles"
)

const limited = `{
	"now": "2026-03-02T10:00:00Z",
	"request": {"method": "POST", "url": "https://api.openai.com/v1/chat/completions",
		"headers": {"Authorization": "Bearer sk-demo", "Content-Type": "application/json"}, "body": {"model": "gpt-5"}},
	"response": {"status": 429, "headers": {"Content-Type": "application/json", "Retry-After": "1.5"},
		"body": {"error": {"message": "slow down, gpt-5", "code": "rate_limit_exceeded"}}}}`

func one(t *testing.T, input string) (got explained) {
	t.Helper()
	out, problems, code := headway(input, "explain")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, problems)
	}
	if strings.Count(out, "\n") != 1 {
		t.Fatalf("output = %q, want one line", out)
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// The shape is part of the interface: every field is there, null where none.
func TestShape(t *testing.T) {
	out, _, _ := headway(limited, "explain")
	want := `{"vendor":"openai","class":"rate_limited","scope":"model","retry_after_ms":1500,"model":"gpt-5","usage":null,` +
		`"fingerprint":"` + idOf(t, "https://api.openai.com/", "sk-demo") + `","rule":"status 429, error.code = rate_limit_exceeded"}` + "\n"
	if out != want {
		t.Errorf("output = %s, want %s", out, want)
	}
	if out, _, _ = headway(strings.Replace(limited, `"gpt-5"`, `"<m>"`, 1), "explain"); !strings.Contains(out, `"model":"<m>"`) {
		t.Errorf("output = %s, want the model as it is", out)
	}
	out, _, _ = headway(`{"request":{"url":"https://api.openai.com/"},"response":{"status":200}}`, "explain")
	want = `{"vendor":"openai","class":"ok","scope":null,"retry_after_ms":null,"model":null,"usage":null,"fingerprint":null,"rule":"status 200, no rule"}` + "\n"
	if out != want {
		t.Errorf("output = %s, want %s", out, want)
	}
}

// idOf returns the fingerprint under which the transport counts a request.
func idOf(t *testing.T, url, key string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	id, err := (&transport.Transport{}).Fingerprint(req)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestVendor(t *testing.T) {
	for _, tc := range []struct{ name, vendor, host, header, want string }{
		{"by host", "", "api.anthropic.com", "X", "anthropic"},
		{"by mark", "", "llm.example", "anthropic-version", "anthropic"},
		{"unknown host", "", "llm.example", "X", "openai"},
		{"named, behind a gateway", "gemini", "llm.example", "X", "gemini"},
		{"named, against the host", "openai", "api.anthropic.com", "X", "openai"},
		{"no such profile", "acme", "llm.example", "X", "openai"},
		{"no such profile, known host", "claude", "api.anthropic.com", "X", "anthropic"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := one(t, `{"vendor":"`+tc.vendor+`","request":{"url":"https://`+tc.host+`/","headers":{"`+tc.header+`":"1"}},"response":{"status":200}}`)
			if got.Vendor != tc.want {
				t.Errorf("vendor = %q, want %q", got.Vendor, tc.want)
			}
		})
	}
}

func TestRule(t *testing.T) {
	for _, tc := range []struct{ name, url, status, kind, body, class, rule string }{
		{"status alone", "https://api.openai.com/", "402", "text/plain", `"pay"`, "quota_exhausted", "status 402, no rule"},
		{"field, at any status", "https://api.openai.com/", "429", "application/json", `{"error":{"type":"INSUFFICIENT_QUOTA"}}`, "quota_exhausted", "error.type = insufficient_quota"},
		{"text", "https://api.openai.com/", "400", "application/json", `{"error":"Incorrect API key provided"}`, "key_refused", `status 400, text matches /(?i)^(incorrect|invalid) api key\b/`},
		{"model", "https://api.openai.com/deployments/gpt-x", "403", "application/json", `{"error":"no gpt-x for you"}`, "client_error", "status 403, text names the model"},
		{"limit", "https://api.openai.com/", "429", "application/json", `{"error":"Limit 3, Requested 4"}`, "client_error", "text asks for more than the limit"},
		{"event of a stream", "https://api.openai.com/", "200", "text/event-stream", `"data: {\"error\":{\"code\":\"server_error\"}}\n\n"`, "server_error", "status 200, error.code = server_error"},
		{"status inside", "https://generativelanguage.googleapis.com/", "200", "text/event-stream", `"data: {\"error\":{\"code\":503}}\n\n"`, "overloaded", "status 503 in error.code, no rule"},
		{"stream behind an error", "https://api.openai.com/", "429", "text/event-stream", `"data: {\"error\":{\"code\":\"insufficient_quota\"}}\n\n"`, "quota_exhausted", "error.code = insufficient_quota"},
		{"odd status", "https://api.openai.com/", "777", "text/plain", `null`, "server_error", "status 777, no rule"},
		{"code behind 64 KiB", "https://api.openai.com/", "429", "application/json", `{"x":"` + strings.Repeat("x", judgedBytes) + `","error":{"code":"insufficient_quota"}}`, "rate_limited", "status 429, no rule"},
		{"the transport does not read a 200", "https://api.openai.com/", "200", "application/json", `{"error":{"code":"insufficient_quota"}}`, "ok", "status 200, no rule"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := one(t, `{"request":{"url":"`+tc.url+`"},"response":{"status":`+tc.status+`,"headers":{"content-type":"`+tc.kind+`"},"body":`+tc.body+`}}`)
			if got.Class != tc.class || got.Rule != tc.rule {
				t.Errorf("class %q by %q, want %q by %q", got.Class, got.Rule, tc.class, tc.rule)
			}
		})
	}
}

// What no built-in profile is sure to have.
func TestDecider(t *testing.T) {
	rules := func(r ...profiles.Rule) *profiles.Profile { return &profiles.Profile{Name: "acme", Rules: r} }
	busy := rules()
	busy.JudgeFunc = func(a profiles.Answer) (pause.Verdict, bool) { return pause.Verdict{}, a.Status == 429 }
	for _, tc := range []struct {
		name    string
		profile *profiles.Profile
		want    string
	}{
		{"function", busy, "the function of acme"},
		{"function that passes on", &profiles.Profile{JudgeFunc: func(profiles.Answer) (pause.Verdict, bool) { return pause.Verdict{}, false }}, "status 429, no rule"},
		{"first rule that matches", rules(profiles.Rule{Status: []int{400}}, profiles.Rule{Fields: []string{"b", "a"}, Values: []string{"0", "1"}}, profiles.Rule{}), "a = 1"},
		{"rule on the status", rules(profiles.Rule{Status: []int{400, 429}}), "status 429"},
		{"any value", rules(profiles.Rule{Fields: []string{"b", "a"}}), "a is there"},
		{"no condition", rules(profiles.Rule{}), "any answer"},
		{"no match", rules(profiles.Rule{Status: []int{400}}), "status 429, no rule"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := decider(tc.profile, profiles.Answer{Status: 429, Body: []byte(`{"a":1}`)}); got != tc.want {
				t.Errorf("decider() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestCounts(t *testing.T) {
	for _, tc := range []struct {
		name  string
		usage profiles.Usage
		want  map[string]int64
	}{
		{"tokens", profiles.Usage{Input: 3, Output: 4}, map[string]int64{"input_tokens": 3, "output_tokens": 4}},
		{"cached", profiles.Usage{Input: 3, Cached: 2}, map[string]int64{"input_tokens": 3, "output_tokens": 0, "cached_input_tokens": 2}},
		{"units", profiles.Usage{Units: map[string]int64{"segments": 2}}, map[string]int64{"segments": 2}},
		{"units of a function", profiles.Usage{Units: map[string]int64{"tokens": 7}}, map[string]int64{"tokens": 7}},
		{"both", profiles.Usage{Input: 3, Output: 4, Units: map[string]int64{"segments": 2, "tokens": 7}}, map[string]int64{"input_tokens": 3, "output_tokens": 4, "segments": 2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := counts(tc.usage); !maps.Equal(got, tc.want) {
				t.Errorf("counts() = %v, want %v", got, tc.want)
			}
		})
	}
}

// A profile that the input names counts under its own name, as Transport.Profile does.
func TestFingerprint(t *testing.T) {
	got := one(t, `{"request":{"url":"https://llm.example/","headers":{"authorization":"Bearer k"}},"response":{"status":200}}`)
	if want := idOf(t, "https://llm.example/", "k"); value(got.Fingerprint) != want {
		t.Errorf("fingerprint = %q, want %q", value(got.Fingerprint), want)
	}
	named := one(t, `{"vendor":"gemini","request":{"url":"https://llm.example/","headers":{"authorization":"Bearer k"}},"response":{"status":200}}`)
	if value(named.Fingerprint) == "" || value(named.Fingerprint) == value(got.Fingerprint) {
		t.Errorf("fingerprint = %q, want another one than %q", value(named.Fingerprint), value(got.Fingerprint))
	}
}

func TestBodies(t *testing.T) {
	const head = `{"request":{"method":"POST","url":"https://api.openai.com/","headers":{"Content-Type":"`
	const tail = `},"response":{"status":200,"headers":{"Content-Type":"application/json","Content-Encoding":"br"},"body":{"usage":{"prompt_tokens":3,"completion_tokens":4}}}}`
	for _, tc := range []struct{ name, kind, body, want string }{
		{"object", "application/json", `{"model":"m"}`, "m"},
		{"array", "application/json", `[{"model":"m"}]`, "m"},
		{"string", "application/json", `" {\"model\":\"m\"}"`, "m"},
		{"form", "application/x-www-form-urlencoded", `"a=b&model=m%2F1"`, "m/1"},
		{"null", "application/json", `null`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := one(t, head+tc.kind+`"},"body":`+tc.body+tail)
			if value(got.Model) != tc.want {
				t.Errorf("model = %q, want %q", value(got.Model), tc.want)
			}
			if got.Usage["input_tokens"] != 3 || got.Usage["output_tokens"] != 4 {
				t.Errorf("usage = %v, want 3 and 4: a body in JSON is not compressed any more", got.Usage)
			}
		})
	}
}

// Secrets are where requests have them, and in every wrong place of the input.
func TestNeverPrintsTheCredential(t *testing.T) {
	const secret = "sk-SENTINEL-0123456789"
	good := strings.ReplaceAll(limited, "sk-demo", secret)
	for _, input := range []string{
		good,
		strings.Replace(good, "slow down", "key "+secret, 1),
		strings.Replace(good, "completions", "completions?key="+secret, 1),
		strings.Replace(good, "https://", "https://user:"+secret+"@", 1),
		strings.Replace(good, "https://", "://"+secret, 1),
		strings.Replace(good, "2026", secret, 1),
		strings.Replace(good, `"POST"`, `"`+secret+` "`, 1),
		strings.Replace(good, "429", `"`+secret+`"`, 1),
		strings.Replace(good, `"Bearer `+secret+`"`, `{"`+secret+`":1}`, 1),
		good[:strings.Index(good, secret)+10],
		secret,
		`"` + secret + `"`,
		`["` + secret + `"]`,
	} {
		for _, args := range [][]string{{"explain"}, {"explain", "--text"}} {
			out, problems, code := headway(input, args...)
			if strings.Contains(out+problems, "SENTINEL") {
				t.Errorf("the credential is in %q", out+problems)
			}
			if out+problems == "" || code != 0 && code != 2 {
				t.Errorf("%q: exit code %d and no word", input, code)
			}
		}
	}
}

func TestBadInput(t *testing.T) {
	const url = `"request":{"url":"https://h.example/"}`
	for _, tc := range []struct{ name, input, want string }{
		{"nothing", " \n", "standard input: empty, want an exchange as JSON"},
		{"no JSON", "hello", "standard input: want a JSON object or an array of them"},
		{"number", "7", "standard input: want a JSON object or an array of them"},
		{"cut off", limited[:200], "standard input: broken JSON at byte 200"},
		{"two documents", limited + limited, "standard input: broken JSON at byte"},
		{"no request", `{"response":{"status":200}}`, "request.url: want a whole URL, with its host"},
		{"path only", `{"request":{"url":"/v1"},"response":{"status":200}}`, "request.url: want a whole URL"},
		{"broken URL", `{"request":{"url":"https://h.example:x/"},"response":{"status":200}}`, "request.url: want a whole URL"},
		{"method", `{"request":{"method":"GET IT","url":"https://h.example/"},"response":{"status":200}}`, "request.method: not a method of HTTP"},
		{"no response", `{` + url + `}`, "response.status: want a number from 100 to 999"},
		{"status", `{` + url + `,"response":{"status":42}}`, "response.status: want a number from 100 to 999"},
		{"status is a string", `{` + url + `,"response":{"status":"200"}}`, "response.status: must not be of type string"},
		{"status is a fraction", `{` + url + `,"response":{"status":200.5}}`, "response.status: must not be of type number"},
		{"headers are an array", `{` + url + `,"response":{"status":200,"headers":[]}}`, "response.headers: must not be of type array"},
		{"body is a number", `{` + url + `,"response":{"status":200,"body":7}}`, "response.body: want an object, an array, a string or null"},
		{"request's body is true", `{"request":{"url":"https://h.example/","body":true},"response":{"status":200}}`, "request.body: want an object"},
		{"now", `{"now":"yesterday",` + url + `,"response":{"status":200}}`, "now: want a time such as 2026-03-02T10:00:00Z"},
		{"in an array", `[` + limited + `,{}]`, "exchange 2: request.url: want a whole URL"},
		{"array of numbers", `[7]`, "exchange 1: want a JSON object"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, problems, code := headway(tc.input, "explain")
			if code != 2 || out != "" {
				t.Errorf("exit code %d, output %q, want 2 and nothing", code, out)
			}
			if !strings.HasPrefix(problems, "headway explain: "+tc.want) || strings.Count(problems, "\n") != 1 {
				t.Errorf("error = %q, want one line with %q", problems, tc.want)
			}
		})
	}
}

func TestArray(t *testing.T) {
	out, _, code := headway(`[`+limited+`,`+strings.Replace(limited, "gpt-5", "gpt-6", 1)+`]`, "explain")
	lines := strings.Split(out, "\n")
	if code != 0 || len(lines) != 3 || !strings.Contains(lines[0], `"gpt-5"`) || !strings.Contains(lines[1], `"gpt-6"`) {
		t.Errorf("exit code %d, output %q, want gpt-5 and gpt-6 on a line each", code, out)
	}
	if out, _, code := headway(`[]`, "explain"); code != 0 || out != "" {
		t.Errorf("of no exchange: exit code %d, output %q, want 0 and nothing", code, out)
	}
}

func TestText(t *testing.T) {
	input, err := os.ReadFile("testdata/text.json")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/text.golden")
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"-text", "--text"} {
		got, problems, code := headway(string(input), "explain", flag)
		if code != 0 || got != string(want) {
			t.Errorf("%s: exit code %d %s, output\n%s\nwant\n%s", flag, code, problems, got, want)
		}
	}
}

func TestCommandLine(t *testing.T) {
	for _, tc := range []struct {
		name          string
		args          []string
		code          int
		out, problems string
	}{
		{"nothing", nil, 0, "usage: headway <command>", ""},
		{"help", []string{"--help"}, 0, "usage: headway <command>", ""},
		{"help of a command", []string{"explain", "-h"}, 0, "usage: headway explain [-text]", ""},
		{"unknown command", []string{"explode"}, 2, "", `headway: no command "explode"`},
		{"unknown flag", []string{"explain", "-x"}, 2, "", "headway explain: flag provided but not defined: -x"},
		{"argument", []string{"explain", "file.json"}, 2, "", "headway explain: takes no arguments"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, problems, code := headway(limited, tc.args...)
			if code != tc.code || !strings.HasPrefix(out, tc.out) || !strings.HasPrefix(problems, tc.problems) {
				t.Errorf("exit code %d, output %q, error %q, want %d, %q, %q", code, out, problems, tc.code, tc.out, tc.problems)
			}
			if (out == "") != (tc.out == "") || strings.Count(problems, "\n") != min(len(tc.problems), 1) {
				t.Errorf("output %q, error %q, want one of them, an error in one line", out, problems)
			}
		})
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestOutputFails(t *testing.T) {
	for _, args := range [][]string{{"explain"}, {"explain", "-text"}} {
		var problems strings.Builder
		if code := run(args, strings.NewReader(limited), full{}, &problems); code != 1 || !strings.Contains(problems.String(), "output: disk full") {
			t.Errorf("exit code %d, error %q, want 1 and disk full", code, problems.String())
		}
	}
}
