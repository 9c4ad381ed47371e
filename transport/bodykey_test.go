package transport

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/headway-go/headway/transport/profiles"
)

// A vendor whose key stands in the body: one key, one fingerprint, wherever it
// stands, and the body goes out as it came.
func TestKeyInBody(t *testing.T) {
	const secret = "S3CR3T"
	tr := &Transport{reserve: (&book{}).reserve}
	request := func(url, kind, body string, again bool) *http.Request {
		req, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", kind)
		if !again {
			req.GetBody = nil
		}
		return req
	}
	const sms, form, document = "https://rest.nexmo.com/sms/json", "application/x-www-form-urlencoded", "application/json"
	want, err := tr.Fingerprint(request(sms+"?api_key=K1&api_secret="+secret, form, "", true))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, url, kind, body string
		again, same           bool
	}{
		{"form", sms, form, "api_key=K1&api_secret=" + secret + "&text=a", true, true},
		{"form, body comes once", sms, form, "api_key=K1&api_secret=" + secret, false, true},
		{"JSON", sms, document, `{"text":"a","api_key":"K1","api_secret":"` + secret + `"}`, true, true},
		{"another key", sms, document, `{"api_key":"K2"}`, true, false},
		{"before the query", sms + "?api_key=K2", document, `{"api_key":"K1"}`, true, true},
		{"deeper is no key", sms + "?api_key=K1", document, `{"a":{"api_key":"K2"}}`, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			req := request(tc.url, tc.kind, tc.body, tc.again)
			if tc.again {
				if got, err := tr.Fingerprint(req); err != nil || (got == want) != tc.same {
					t.Errorf("Fingerprint() = %q, %v, want %q: %v", got, err, want, tc.same)
				}
			}
			c, err := tr.read(req)
			if err != nil {
				t.Fatal(err)
			}
			if (c.ask.Key == want) != tc.same {
				t.Errorf("Key = %q, want %q: %v", c.ask.Key, want, tc.same)
			}
			if sent, err := io.ReadAll(c.out.Body); err != nil || string(sent) != tc.body {
				t.Errorf("sent %q, %v, want %q", sent, err, tc.body)
			}
			if text := fmt.Sprintf("%+v", c.ask); strings.Contains(text, "K1") || strings.Contains(text, secret) {
				t.Error("the call holds the key")
			}
		})
	}
	if _, err := tr.read(request(sms, form, "text=a", true)); !errors.Is(err, ErrNoCredential) {
		t.Errorf("read() without a key = %v, want ErrNoCredential", err)
	}
	if _, err := tr.Fingerprint(request(sms, form, "api_key=K1", false)); !errors.Is(err, ErrNoCredential) {
		t.Errorf("Fingerprint() of a body that comes once = %v, want ErrNoCredential", err)
	}
}

// A body is read for the key only where the profile says so.
func TestKeyInBodyIsAsked(t *testing.T) {
	tr := &Transport{reserve: (&book{}).reserve, Profile: profiles.Twilio()}
	if _, err := tr.read(post(t, "https://api.twilio.com/", `{"api_key":"K1"}`)); !errors.Is(err, ErrNoCredential) {
		t.Errorf("read() = %v, want ErrNoCredential", err)
	}
}

// Nothing else of the body may be needed: it is read for the key all the same.
func TestKeyInBodyAlone(t *testing.T) {
	p := profiles.Generic("acme")
	p.KeyPlaces = []string{"body:auth.key"}
	tr := &Transport{reserve: (&book{}).reserve, Profile: p, Model: "m", Cost: map[string]int64{"requests": 1, "tokens": 1}}
	if _, err := tr.read(post(t, "https://acme.example/", `{"auth":{"key":"K1"}}`)); err != nil {
		t.Error(err)
	}
}
