package fingerprint_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/headway-go/headway/fingerprint"
)

const sentinel = "SENTINEL-KEY-123"

func mustFingerprint(t *testing.T, s fingerprint.Scope, c fingerprint.Credential) string {
	t.Helper()
	fp, err := s.Fingerprint(c)
	if err != nil {
		t.Fatalf("Fingerprint(): %v", err)
	}
	return fp
}

// The wanted values were computed outside Go. A change of them gives every
// fleet new fingerprints: budgets and pauses start afresh at an update.
func TestFingerprintIsPinned(t *testing.T) {
	tests := []struct {
		name  string
		scope fingerprint.Scope
		cred  fingerprint.Credential
		want  string
	}{
		{"key", fingerprint.Scope{Profile: "openai"}, fingerprint.Key(sentinel), "ffe9e1e6a5f4a722165f0c28c8510abd"},
		{"everything", fingerprint.Scope{
			Profile: "openai",
			Host:    "gw.example.com",
			Headers: []string{"openai-organization: org-1", "openai-project: p-1"},
			Pepper:  fingerprint.Pepper("pepper"),
		}, fingerprint.Key(sentinel), "dcde79165aae25f30e9fb62a671d8b44"},
		{"account", fingerprint.Scope{Profile: "twilio"}, fingerprint.Account("acme"), "9a0558133942672bcec81cb5fc7569ab"},
	}
	form := regexp.MustCompile(`^[0-9a-f]{32}$`)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := mustFingerprint(t, tt.scope, tt.cred)
			if got != tt.want {
				t.Errorf("Fingerprint() = %q, want %q", got, tt.want)
			}
			if !form.MatchString(got) {
				t.Errorf("Fingerprint() = %q, want 32 lower-case hex characters", got)
			}
		})
	}
}

// S28: whatever tells two keys apart tells their fingerprints apart, and no
// text may move from one part into its neighbour unseen.
func TestFingerprintsDiffer(t *testing.T) {
	type scope = fingerprint.Scope
	key := fingerprint.Key(sentinel)
	tests := []struct {
		name  string
		scope scope
		cred  fingerprint.Credential
	}{
		{"plain", scope{Profile: "openai"}, key},
		{"another key", scope{Profile: "openai"}, fingerprint.Key(sentinel + "4")},
		{"another case", scope{Profile: "openai"}, fingerprint.Key(strings.ToLower(sentinel))},
		{"account spelled like the key", scope{Profile: "openai"}, fingerprint.Account(sentinel)},
		{"same account at another vendor", scope{Profile: "mistral"}, fingerprint.Account(sentinel)},
		{"same account at another host", scope{Profile: "openai", Host: "a"}, fingerprint.Account(sentinel)},
		{"another vendor", scope{Profile: "mistral"}, key},
		{"another host", scope{Profile: "openai", Host: "a"}, key},
		{"host without vendor", scope{Host: "openai"}, key},
		{"host runs into profile", scope{Profile: "openaia"}, key},
		{"profile runs into host", scope{Profile: "opena", Host: "ia"}, key},
		{"one header", scope{Profile: "openai", Headers: []string{"ab"}}, key},
		{"two headers of the same text", scope{Profile: "openai", Headers: []string{"a", "b"}}, key},
		{"headers in another order", scope{Profile: "openai", Headers: []string{"b", "a"}}, key},
		{"empty header", scope{Profile: "openai", Headers: []string{""}}, key},
		{"header like the host", scope{Profile: "openai", Headers: []string{"a"}}, key},
		{"pepper", scope{Profile: "openai", Pepper: fingerprint.Pepper("one")}, key},
		{"another pepper", scope{Profile: "openai", Pepper: fingerprint.Pepper("two")}, key},
	}
	seen := map[string]string{}
	for _, tt := range tests {
		fp := mustFingerprint(t, tt.scope, tt.cred)
		if other, ok := seen[fp]; ok {
			t.Errorf("%q and %q have the same fingerprint", tt.name, other)
		}
		seen[fp] = tt.name
	}
}

func TestFingerprintsAgree(t *testing.T) {
	base := fingerprint.Scope{Profile: "openai"}
	empty := fingerprint.Scope{Profile: "openai", Headers: []string{}, Pepper: fingerprint.Pepper{}}
	tests := []struct {
		name  string
		scope fingerprint.Scope
		cred  fingerprint.Credential
	}{
		{"again", base, fingerprint.Key(sentinel)},
		{"empty for nil", empty, fingerprint.Key(sentinel)},
		{"space around the key", base, fingerprint.Key(" \t" + sentinel + "\r\n")},
	}
	want := mustFingerprint(t, base, fingerprint.Key(sentinel))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := mustFingerprint(t, tt.scope, tt.cred); got != want {
				t.Errorf("Fingerprint() = %q, want %q", got, want)
			}
		})
	}
	if fingerprint.Account(" acme\n") != fingerprint.Account("acme") {
		t.Error("space around an account's name makes another account")
	}
}

func TestFingerprintErrors(t *testing.T) {
	openai := fingerprint.Scope{Profile: "openai"}
	for name, c := range map[string]fingerprint.Credential{
		"zero":          {},
		"empty key":     fingerprint.Key(" \t"),
		"empty account": fingerprint.Account(""),
	} {
		if !c.IsZero() {
			t.Errorf("%s: IsZero() = false, want true", name)
		}
		if fp, err := openai.Fingerprint(c); fp != "" || !errors.Is(err, fingerprint.ErrNoCredential) {
			t.Errorf("%s: Fingerprint() = %q, %v, want ErrNoCredential", name, fp, err)
		}
	}
	fp, err := fingerprint.Scope{}.Fingerprint(fingerprint.Key(sentinel))
	if fp != "" || err == nil || !strings.Contains(err.Error(), "Profile") || strings.Contains(err.Error(), sentinel) {
		t.Errorf("Fingerprint() of no vendor = %q, %v, want an error naming Profile", fp, err)
	}
}

// S27: no 8-byte piece of a secret is in any printed form, in text, hex,
// base64 or as a list of bytes.
func TestNothingPrintsASecret(t *testing.T) {
	cred, pepper := fingerprint.Key(sentinel), fingerprint.Pepper(sentinel)
	scope := fingerprint.Scope{Profile: "openai", Pepper: pepper}
	fp := mustFingerprint(t, scope, cred)
	type hidden struct {
		cred fingerprint.Credential // fmt cannot call methods of unexported fields
	}
	var out bytes.Buffer
	for _, v := range []any{cred, &cred, pepper, &pepper, scope, &scope, hidden{cred}, []any{cred, pepper}, map[string]any{"k": cred}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "% X", "%d", "%o", "%T", "%!"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		if err := json.NewEncoder(&out).Encode(v); err != nil {
			t.Fatal(err)
		}
		slog.New(slog.NewTextHandler(&out, nil)).Info("text", "v", v)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("json", "v", v)
	}
	fmt.Fprintln(&out, cred.String(), cred.GoString(), pepper.String(), pepper.GoString(), fp)

	printed := strings.ToLower(out.String())
	for i := 0; i+8 <= len(sentinel); i++ {
		piece := []byte(sentinel[i : i+8])
		for _, form := range []string{"%s", "%x", "% x", "%d", "%#v"} {
			text := strings.ToLower(strings.Trim(fmt.Sprintf(form, piece), "[]"))
			text = strings.TrimSuffix(strings.TrimPrefix(text, "[]byte{"), "}")
			if strings.Contains(printed, text) {
				t.Errorf("printed: %s", text)
			}
		}
	}
	if b64, _ := json.Marshal([]byte(sentinel)); strings.Contains(out.String(), string(b64)) {
		t.Errorf("printed: %s", b64)
	}
	for _, v := range []any{cred, pepper} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
			if got := fmt.Sprintf(verb, v); got != "[redacted]" {
				t.Errorf("Sprintf(%q, %T) = %q, want [redacted]", verb, v, got)
			}
		}
		if got := v.(slog.LogValuer).LogValue().String(); got != "[redacted]" {
			t.Errorf("LogValue() of %T = %q, want [redacted]", v, got)
		}
	}
}

func BenchmarkFingerprint(b *testing.B) {
	scope := fingerprint.Scope{Profile: "openai", Headers: []string{"openai-project: p-1"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := scope.Fingerprint(fingerprint.Key(sentinel)); err != nil {
			b.Fatal(err)
		}
	}
}
