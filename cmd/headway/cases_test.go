package main

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

const casesFile = "../../transport/profiles/testdata/cases.json"

// expected is what a case of the file says about itself.
type expected struct {
	ID      string `json:"id"`
	Vendor  string `json:"vendor"`
	Request struct {
		URL string `json:"url"`
	} `json:"request"`
	Expect struct {
		Class        string           `json:"class"`
		Scope        *string          `json:"scope"`
		RetryAfterMS *int64           `json:"retry_after_ms"`
		Model        *string          `json:"model"`
		Usage        map[string]int64 `json:"usage"`
		AlsoAccept   struct {
			Model []string `json:"model"`
		} `json:"also_accept"`
	} `json:"expect"`
}

// explained is one line of the output.
type explained struct {
	Vendor       string           `json:"vendor"`
	Class        string           `json:"class"`
	Scope        *string          `json:"scope"`
	RetryAfterMS *int64           `json:"retry_after_ms"`
	Model        *string          `json:"model"`
	Usage        map[string]int64 `json:"usage"`
	Fingerprint  *string          `json:"fingerprint"`
	Rule         string           `json:"rule"`
}

func readCases(t *testing.T) (data []byte, cases []expected) {
	t.Helper()
	data, err := os.ReadFile(casesFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	return data, cases
}

// headway runs the command and returns what it wrote and its exit code.
func headway(input string, args ...string) (out, problems string, code int) {
	var o, p bytes.Buffer
	code = run(args, strings.NewReader(input), &o, &p)
	return o.String(), p.String(), code
}

// The whole file goes in as an array, and comes out in its order.
func TestVendorCases(t *testing.T) {
	data, cases := readCases(t)
	out, problems, code := headway(string(data), "explain")
	if code != 0 || problems != "" {
		t.Fatalf("exit code %d, %q, want 0 and nothing", code, problems)
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != len(cases) {
		t.Fatalf("%d lines, want %d", len(lines), len(cases))
	}
	for i, c := range cases {
		t.Run(c.ID, func(t *testing.T) { checkCase(t, lines[i], c) })
	}
	if len(cases) < 88 {
		t.Errorf("ran %d cases, want 88", len(cases))
	}
}

func checkCase(t *testing.T, line string, c expected) {
	var got explained
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		t.Fatal(err)
	}
	want := c.Expect
	if got.Class != want.Class {
		t.Errorf("class = %q, want %q", got.Class, want.Class)
	}
	scope := strings.Replace(value(want.Scope), "account", "key", 1)
	if value(got.Scope) != scope {
		t.Errorf("scope = %q, want %q", value(got.Scope), scope)
	}
	if (got.RetryAfterMS == nil) != (want.RetryAfterMS == nil) {
		t.Errorf("retry_after_ms given: %v, want %v", got.RetryAfterMS != nil, want.RetryAfterMS != nil)
	} else if got.RetryAfterMS != nil {
		const most = 300_000
		if d := min(*got.RetryAfterMS, most) - min(*want.RetryAfterMS, most); d < -1 || d > 1 {
			t.Errorf("retry_after_ms = %d, want %d", *got.RetryAfterMS, *want.RetryAfterMS)
		}
	}
	if m := value(got.Model); m != value(want.Model) && !slices.Contains(want.AlsoAccept.Model, m) {
		t.Errorf("model = %q, want %q", m, value(want.Model))
	}
	if len(got.Usage) != len(want.Usage) {
		t.Errorf("usage = %v, want %v", got.Usage, want.Usage)
	}
	for unit, n := range want.Usage {
		if got.Usage[unit] != n {
			t.Errorf("usage of %s = %d, want %d", unit, got.Usage[unit], n)
		}
	}
	if got.Vendor == "" || got.Rule == "" {
		t.Errorf("vendor = %q, rule = %q, want both", got.Vendor, got.Rule)
	}
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
