package fingerprint_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/headway-go/headway/fingerprint"
)

// recordedRequests calls use with the requests of the recorded cases.
func recordedRequests(f *testing.F, use func(address string, header map[string]string)) {
	f.Helper()
	for _, file := range []string{"../transport/profiles/testdata/cases.json", "../transport/profiles/testdata/more_cases.json"} {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var cases []struct {
			Request struct {
				URL     string
				Headers map[string]string
			}
		}
		if err := json.Unmarshal(data, &cases); err != nil {
			f.Fatal(err)
		}
		for _, c := range cases {
			use(c.Request.URL, c.Request.Headers)
		}
	}
}

// FuzzFind: whatever a request carries at any place, Find changes nothing, finds
// the same again, and nothing of what it found can be printed.
func FuzzFind(f *testing.F) {
	f.Add("Authorization", "Bearer sk-K", "https://h/?key=K", "?key")
	f.Add("X-Api-Key", " K ", "https://u:p@h/", "")
	f.Add("X-My-Key", "K", "https://h/?key=%zz&key=2;3", "x-my-key")
	f.Add("Authorization", "AWS4-HMAC-SHA256 Credential=AKIA1/d/r/s/aws4_request, SignedHeaders=host, Signature=00", "//h", "?")
	recordedRequests(f, func(address string, header map[string]string) {
		for name, value := range header {
			f.Add(name, value, address, name)
		}
	})
	scope := fingerprint.Scope{Profile: "p", Pepper: fingerprint.Pepper("pepper and salt")}
	f.Fuzz(func(t *testing.T, name, value, address, first string) {
		u, err := url.Parse(address)
		if err != nil {
			return
		}
		req := &http.Request{URL: u, Header: http.Header{}}
		req.Header.Set(name, value)
		header, was := req.Header.Clone(), u.String()
		c, ok := fingerprint.Find(req, first)
		if again, ok2 := fingerprint.Find(req, first); again != c || ok2 != ok || ok == c.IsZero() {
			t.Fatalf("Find() = %v, and then %v", ok, ok2)
		}
		if u.String() != was || !reflect.DeepEqual(req.Header, header) {
			t.Fatal("Find() changed the request")
		}
		id, err := scope.Fingerprint(c)
		if ok != (err == nil) || ok && (len(id) != 32 || strings.Trim(id, "0123456789abcdef") != "") {
			t.Fatalf("Fingerprint() = %q, %v", id, err)
		}
		if secret := strings.TrimSpace(value); err != nil && len(secret) > 20 && strings.Contains(err.Error(), secret) {
			t.Fatal("the error holds the credential")
		}
		text, _ := json.Marshal(struct{ C any }{c})
		for _, printed := range []string{fmt.Sprint(c), fmt.Sprintf("%+v|%#v|%x|%q|%d|%s", c, &c, c, c, c, []any{c}), fmt.Sprintf("%+v", struct{ C fingerprint.Credential }{c}), string(text)} {
			if bare := strings.ReplaceAll(printed, "[redacted]", ""); strings.Trim(bare, `|{}[]&:"C `) != "" {
				t.Fatalf("printed as %q", printed)
			}
		}
		if host := fingerprint.Host(req); strings.ToLower(host) != host {
			t.Fatalf("Host() = %q", host)
		}
	})
}

// FuzzPlaceOfKey: a key is the same key wherever it stands, and however it is
// escaped on the way.
func FuzzPlaceOfKey(f *testing.F) {
	for _, key := range []string{"K", "sk-proj-INVENTED", "a b", "a&b=c;d", "%41", "ü", "Bearer", "a=signature=b", "\x00", "k\tk", "a,Credential=b/c"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		want := fingerprint.Key(key)
		found := func(address, name, value string, first ...string) fingerprint.Credential {
			u, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			req := &http.Request{URL: u, Header: http.Header{}}
			if name != "" {
				req.Header.Set(name, value)
			}
			c, _ := fingerprint.Find(req, first...)
			return c
		}
		for _, name := range []string{"X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Xi-Api-Key"} {
			if found("https://h/", name, " "+key) != want {
				t.Fatalf("%s: another key", name)
			}
		}
		for _, scheme := range []string{"Bearer ", "bearer\t", "TOKEN  ", "AccessKey "} {
			if found("https://h/", "Authorization", scheme+key) != want {
				t.Fatalf("%q: another key", scheme)
			}
		}
		if found("https://h/?a=b&key="+url.QueryEscape(key), "", "") != want || found("https://h/?t="+url.QueryEscape(key)+"&key=other", "", "", "?t") != want && !want.IsZero() {
			t.Fatal("query: another key")
		}
		if account := fingerprint.Account(key); !want.IsZero() && account == want {
			t.Fatal("an account is a key")
		}
	})
}

// FuzzSigned: a signed request is known by its access key id alone, whatever its
// other parameters, and by nothing else.
func FuzzSigned(f *testing.F) {
	f.Add("AKIA1", "20260302/us-east-1/bedrock/aws4_request", "host;x-amz-date", "00ff", true)
	f.Add("AKIA1", "", "", "", false)
	f.Add("a b", "x=y", "a=b", "credential=AKIA2/", true)
	f.Add("", "/", "", "0", false)
	f.Fuzz(func(t *testing.T, id, rest, headers, signature string, first bool) {
		if strings.ContainsAny(id+rest+headers+signature, ",\x00") || strings.Contains(id, "/") {
			return
		}
		of := func(id, rest, signature string) (fingerprint.Credential, bool) {
			parts := []string{"Credential=" + id + "/" + rest, " SignedHeaders=" + headers, "Signature=" + signature}
			if !first {
				parts[0], parts[2] = parts[2], parts[0]
			}
			req := &http.Request{Header: http.Header{"Authorization": {"AWS4-HMAC-SHA256 " + strings.Join(parts, ",")}}}
			return fingerprint.Find(req)
		}
		a, ok := of(id, rest, signature)
		if ok != (strings.Trim(id, " \t\r\n") != "") {
			t.Fatalf("Find() of the id %q: %v", id, ok)
		}
		if b, _ := of(id, "2030/"+rest, signature+"11"); a != b {
			t.Fatal("another signature is another credential")
		}
		if c, _ := of(id+"x", rest, signature); a == c {
			t.Fatal("another id is the same credential")
		}
		if ok && a == fingerprint.Key(id) {
			t.Fatal("an access key id is not a key")
		}
	})
}

// FuzzBasic: user and password are one credential, the same in the URL as in the
// header, and each of them counts.
func FuzzBasic(f *testing.F) {
	f.Add("AC1", "secret")
	f.Add("", "")
	f.Add("a b", "se:cr et\u00fc")
	f.Add("\xff", "\x00")
	f.Fuzz(func(t *testing.T, user, password string) {
		of := func(user, password string) (header, address fingerprint.Credential) {
			req := &http.Request{URL: &url.URL{Scheme: "https", Host: "h"}, Header: http.Header{}}
			req.SetBasicAuth(user, password)
			header, _ = fingerprint.Find(req)
			u, err := url.Parse((&url.URL{Scheme: "https", Host: "h", User: url.UserPassword(user, password)}).String())
			if err != nil {
				t.Fatal(err)
			}
			address, _ = fingerprint.Find(&http.Request{URL: u})
			return header, address
		}
		header, address := of(user, password)
		if header != address || header.IsZero() != (user == "" && password == "") {
			t.Fatalf("header and URL differ: %v, found %v", header != address, !header.IsZero())
		}
		if other, _ := of(user, password+"x"); other == header {
			t.Fatal("another password is the same credential")
		}
		if other, _ := of(user+"x", password); other == header && !strings.Contains(user+password, ":") {
			t.Fatal("another user is the same credential")
		}
	})
}
