package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// secret is a credential that no output may hold.
const secret = "sk-SECRET-0123456789"

// recordedExchanges returns the cases of the profiles, one exchange each.
func recordedExchanges(f *testing.F) (list []string) {
	f.Helper()
	for _, file := range []string{casesFile, "../../transport/profiles/testdata/more_cases.json"} {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var cases []json.RawMessage
		if err := json.Unmarshal(data, &cases); err != nil {
			f.Fatal(err)
		}
		for _, c := range cases {
			list = append(list, string(c))
		}
	}
	return list
}

// checkRun runs the command and asserts what holds for every input.
func checkRun(t *testing.T, input string, args ...string) (out, problems string, code int) {
	t.Helper()
	out, problems, code = headway(input, args...)
	switch code {
	case 0:
		if problems != "" {
			t.Fatalf("exit code 0 and %q", problems)
		}
	case 2:
		if out != "" || strings.Count(problems, "\n") != 1 || !strings.HasSuffix(problems, "\n") || !strings.HasPrefix(problems, "headway") || len(problems) > 300+4*len(strings.Join(args, " ")) {
			t.Fatalf("exit code 2, output %q, problems %q, want one line", out, problems)
		}
	default:
		t.Fatalf("exit code %d", code)
	}
	return out, problems, code
}

// FuzzExplain: any input is explained, one JSON object a line, or is wrong, which
// one line says that quotes nothing of it.
func FuzzExplain(f *testing.F) {
	for _, c := range recordedExchanges(f) {
		f.Add(c)
	}
	f.Add("[" + limited + "," + limited + "]")
	for _, input := range []string{
		"", "null", "[]", "{", "[{}]", `{"request":{"headers":{"` + secret + `":5}}}`, `{"request":{"url":"https://` + secret + `:x/"}}`, `{"request":{"method":"` + secret + ` ","url":"https://h/"}}`,
		`{"now":"` + secret + `"}`, `{"request":{"url":"https://h/","body":` + secret + `}}`, `{"request":{"url":"https://h/","body":7}}`, `{"request":{"url":"%zz` + secret + `"}}`,
		`{"` + secret + `":[}`, `{"response":{"status":"` + secret + `"}}`, `{"response":{"status":1e999}}`, `{"request":{"headers":{"a":["` + secret + `"]}}}`,
	} {
		f.Add(input)
	}
	f.Fuzz(func(t *testing.T, input string) {
		for _, args := range [][]string{{"explain"}, {"explain", "-text"}} {
			out, problems, code := checkRun(t, input, args...)
			if code == 2 && strings.Contains(problems, secret) {
				t.Fatalf("the problem quotes the input: %q", problems)
			}
			if code != 0 || len(args) > 1 {
				continue
			}
			for line := range strings.Lines(out) {
				var m explained
				if err := json.Unmarshal([]byte(line), &m); err != nil || m.Vendor == "" || m.Class == "" || m.Class == "unknown" || m.Rule == "" {
					t.Fatalf("line %q: %v", line, err)
				}
				if m.RetryAfterMS != nil && *m.RetryAfterMS <= 0 {
					t.Fatalf("line %q: a wait of nothing", line)
				}
				for unit, n := range m.Usage {
					if n < 0 {
						t.Fatalf("line %q: %d %s", line, n, unit)
					}
				}
			}
		}
	})
}

// FuzzSecret: whatever else the exchange says, the credential is in no output.
func FuzzSecret(f *testing.F) {
	f.Add("openai", "POST", "https://api.openai.com/v1/chat/completions", "Authorization", "Bearer ", "", 429, `{"error":{"code":"insufficient_quota"}}`)
	f.Add("", "GET", "https://h/", "X-Goog-Api-Key", "", "", 200, "x")
	f.Add("gemini", "POST", "https://h/v1/models/m:generateContent?a=b", "?", "key=", "", 401, "<a>")
	f.Add("bedrock", "POST", "https://h/model/m/invoke", "Authorization", "AWS4-HMAC-SHA256 Credential=", "/d/r/s/aws4_request, SignedHeaders=host, Signature=0", 403, `{"__type":"a#b"}`)
	f.Add("bad", "P OST", "https://u:p@h", "Cookie", "a=", ";b", 99, "")
	f.Fuzz(func(t *testing.T, vendor, method, address, name, before, after string, status int, body string) {
		headers := map[string]string{name: before + secret + after}
		if name == "?" {
			address, headers = address+"&"+before+secret+after, nil
		}
		input, err := json.Marshal(map[string]any{
			"vendor":   vendor,
			"request":  map[string]any{"method": method, "url": address, "headers": headers, "body": body},
			"response": map[string]any{"status": status, "headers": map[string]string{"Content-Type": "application/json"}, "body": body},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"explain"}, {"explain", "-text"}, {"explain", "--text"}} {
			out, problems, _ := checkRun(t, string(input), args...)
			if strings.Contains(out+problems, secret) && !strings.Contains(body, secret) && !strings.HasPrefix(before, "model") {
				t.Fatalf("the credential is in %q %q", out, problems)
			}
		}
	})
}

// FuzzCommandLine: any command line is understood, or is wrong, in one line.
func FuzzCommandLine(f *testing.F) {
	for _, line := range []string{"explain", "explain -text", "explain -h", "explain x", "help", "", "what", "explain -text=maybe", "explain --", "-\n", "explain -a\nb", "explain -text=a\nb"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		var args []string
		if line != "" {
			args = strings.Split(line, " ")
		}
		checkRun(t, limited, args...)
	})
}
