package fingerprint_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/headway-go/headway/fingerprint"
)

// request builds a request from header lines "Name: value".
func request(t *testing.T, rawURL string, lines ...string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", rawURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		req.Header.Add(name, value)
	}
	return req
}

const vendorURL = "https://api.example.com/v1/x"

func aws(id, date, signature string) string {
	return "Authorization: AWS4-HMAC-SHA256 Credential=" + id + "/" + date +
		"/us-east-1/bedrock/aws4_request, SignedHeaders=host;x-amz-date, Signature=" + signature
}

// Requests of one group have one credential, and no two groups share one.
func TestFind(t *testing.T) {
	type one struct {
		name  string
		url   string
		first []string
		lines []string
	}
	groups := []struct {
		name  string
		cases []one
	}{
		{"K", []one{ // S28: one key, one fingerprint
			{name: "bearer", lines: []string{"Authorization: Bearer K"}},
			{name: "bearer in lower case", lines: []string{"authorization: bearer K"}},
			{name: "spaces", lines: []string{"Authorization:   BEARER \t K  "}},
			{name: "token", lines: []string{"Authorization: Token K"}},
			{name: "access key", lines: []string{"Authorization: AccessKey K"}},
			{name: "unknown scheme", lines: []string{"Authorization: App  K"}},
			{name: "no scheme", lines: []string{"Authorization:  K"}},
			{name: "x-api-key", lines: []string{"x-api-key: K "}},
			{name: "a place in the body is passed over", first: []string{"body:api_key", "?api_key"}, url: vendorURL + "?api_key=K"},
			{name: "api-key", lines: []string{"api-key: K"}},
			{name: "x-goog-api-key", lines: []string{"x-goog-api-key: K"}},
			{name: "xi-api-key", lines: []string{"xi-api-key: K"}},
			{name: "query", url: vendorURL + "?alt=sse&key=K"},
			{name: "query, escaped", url: vendorURL + "?key=%4B+"},
			{name: "Authorization before key headers", lines: []string{"Authorization: Bearer K", "x-api-key: other", "api-key: o2", "x-goog-api-key: o3", "xi-api-key: o4"}},
			{name: "Authorization before query", url: vendorURL + "?key=other", lines: []string{"Authorization: Bearer K"}},
			{name: "x-api-key before api-key", lines: []string{"api-key: other", "x-api-key: K"}},
			{name: "api-key before x-goog-api-key", lines: []string{"x-goog-api-key: other", "api-key: K"}},
			{name: "x-goog-api-key before xi-api-key", lines: []string{"xi-api-key: other", "x-goog-api-key: K"}},
			{name: "xi-api-key before query", url: vendorURL + "?key=other", lines: []string{"xi-api-key: K"}},
			{name: "vendor's own header first", first: []string{"x-api-key"}, lines: []string{"Authorization: Bearer other", "x-api-key: K"}},
			{name: "vendor's own query first", first: []string{"x-goog-api-key", "?key"}, url: vendorURL + "?key=K", lines: []string{"Authorization: Bearer other"}},
			{name: "vendor's own header absent", first: []string{"x-api-key", "?key", ""}, lines: []string{"Authorization: Bearer K"}},
			{name: "header nobody knows", first: []string{"x-my-key"}, lines: []string{"X-My-Key: K", "Authorization: Bearer other"}},
			{name: "scheme without a key is passed over", lines: []string{"Authorization: Bearer ", "x-api-key: K"}},
			{name: "signature without a key id is passed over", lines: []string{"Authorization: HMAC-SHA256 SignedHeaders=date&Signature=00", "x-api-key: K"}},
			{name: "blank header is passed over", lines: []string{"x-api-key:  ", "api-key: K"}},
			{name: "first of two lines", lines: []string{"x-api-key: K", "x-api-key: other"}},
		}},
		{"other", []one{{name: "bearer", lines: []string{"Authorization: Bearer other"}}}},
		{"k, not K", []one{{name: "bearer", lines: []string{"Authorization: Bearer k"}}}},
		{"K with a piece after it", []one{{name: "bearer", lines: []string{"Authorization: Bearer K 2"}}}},
		{"AC1:secret", []one{
			{name: "basic", lines: []string{"Authorization: Basic QUMxOnNlY3JldA=="}},
			{name: "basic without padding", lines: []string{"Authorization: basic  QUMxOnNlY3JldA"}},
			{name: "userinfo", url: "https://AC1:secret@api.example.com/"},
		}},
		{"AC1:secret as a bearer token", []one{{name: "bearer", lines: []string{"Authorization: Bearer AC1:secret"}}}},
		{"AC1: with another password", []one{{name: "basic", lines: []string{"Authorization: Basic QUMxOm90aGVy"}}}},
		{"AC1 without a password", []one{
			{name: "basic", lines: []string{"Authorization: Basic QUMxOg=="}},
			{name: "userinfo", url: "https://AC1@api.example.com/"},
			{name: "userinfo, blank header", url: "https://AC1@api.example.com/", lines: []string{"Authorization: "}},
		}},
		{"basic, undecodable", []one{{name: "basic", lines: []string{"Authorization: Basic !!!"}}}},
		{"header before userinfo", []one{{name: "both", url: "https://AC1:secret@api.example.com/", lines: []string{"Authorization: Bearer H"}}}},
		{"AKIA1", []one{
			{name: "signature", lines: []string{aws("AKIA1", "20260302", "00ff")}},
			{name: "another day and signature", lines: []string{aws("AKIA1", "20260303", "11ee")}},
			{name: "no spaces", lines: []string{strings.ReplaceAll(aws("AKIA1", "20260302", "22dd"), ", ", ",")}},
			{name: "another signing scheme", lines: []string{"Authorization: TC3-HMAC-SHA256 Credential=AKIA1/2026-03-02/sms/tc3_request, SignedHeaders=host, Signature=00"}},
		}},
		{"AKIA2", []one{{name: "signature", lines: []string{aws("AKIA2", "20260302", "00ff")}}}},
		{"AKIA1 as a bearer token", []one{{name: "bearer", lines: []string{"Authorization: Bearer AKIA1"}}}},
		{"unknown scheme, slash and equals in its key", []one{{name: "opaque", lines: []string{"Authorization: Key credential=a/b"}}}},
		{"unknown scheme, another tail", []one{{name: "opaque", lines: []string{"Authorization: Key credential=a/c"}}}},
	}
	owner := map[fingerprint.Credential]string{}
	for _, g := range groups {
		for _, c := range g.cases {
			t.Run(g.name+"/"+c.name, func(t *testing.T) {
				if c.url == "" {
					c.url = vendorURL
				}
				got, ok := fingerprint.Find(request(t, c.url, c.lines...), c.first...)
				if !ok || got.IsZero() {
					t.Fatal("Find() found nothing")
				}
				if g.name == "K" && got != fingerprint.Key("K") {
					t.Error("Find() found something else than K")
				}
				if was, seen := owner[got]; seen && was != g.name {
					t.Errorf("Find() found what %q has", was)
				}
				owner[got] = g.name
			})
		}
	}
	if got, want := len(owner), len(groups); got != want {
		t.Errorf("%d credentials in %d groups", got, want)
	}
}

func TestFindNothing(t *testing.T) {
	tests := []struct {
		name  string
		url   string
		lines []string
	}{
		{name: "no header"},
		{name: "other headers and parameters", url: vendorURL + "?api=K&key=", lines: []string{"Accept: text/plain"}},
		{name: "blank", lines: []string{"Authorization:   ", "x-api-key: \t"}},
		{name: "bearer alone", lines: []string{"Authorization: Bearer"}},
		{name: "token alone", lines: []string{"Authorization: token "}},
		{name: "access key alone", lines: []string{"Authorization: AccessKey"}},
		{name: "basic alone", lines: []string{"Authorization: Basic"}},
		{name: "basic, padding only", lines: []string{"Authorization: Basic =="}},
		{name: "basic, colon only", lines: []string{"Authorization: Basic Og=="}},
		{name: "userinfo, empty", url: "https://:@api.example.com/"},
		{name: "digest", lines: []string{`Authorization: Digest username="u", response="00"`}},
		{name: "signature without a key id", lines: []string{"Authorization: HMAC-SHA256 SignedHeaders=date;host&Signature=00"}},
		{name: "signature with an empty key id", lines: []string{aws("", "20260302", "00")}},
		{name: "oauth 1", lines: []string{`Authorization: OAuth oauth_consumer_key="c", oauth_signature="s"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.url == "" {
				tt.url = vendorURL
			}
			if c, ok := fingerprint.Find(request(t, tt.url, tt.lines...)); ok || !c.IsZero() {
				t.Error("Find() found a credential, want none")
			}
		})
	}
	if _, ok := fingerprint.Find(&http.Request{}); ok {
		t.Error("Find() found a credential in the zero request")
	}
}

// Find's Basic credential is the one that net/http itself sends.
func TestFindBasicLikeNetHTTP(t *testing.T) {
	header := request(t, vendorURL)
	header.SetBasicAuth("AC 1", "se:cr et\u00fc")
	inURL := request(t, vendorURL)
	inURL.URL.User = url.UserPassword("AC 1", "se:cr et\u00fc")
	a, ok := fingerprint.Find(header)
	b, ok2 := fingerprint.Find(inURL)
	if !ok || !ok2 || a != b {
		t.Errorf("header and userinfo differ (found %v, %v)", ok, ok2)
	}
}

func TestFindChangesNothing(t *testing.T) { // S07
	req := request(t, "https://u:p@api.example.com/?key=q", "Authorization:  Bearer  K ", "api-key: x")
	header, address := req.Header.Clone(), req.URL.String()
	fingerprint.Find(req, "x-none", "?none")
	if req.URL.String() != address || len(req.Header) != len(header) || req.Header.Get("Authorization") != header.Get("Authorization") {
		t.Error("Find() changed the request")
	}
}

func TestHeaders(t *testing.T) {
	names := []string{"OpenAI-Organization", "OpenAI-Project"}
	tests := []struct {
		name  string
		lines []string
		want  []string
	}{
		{name: "none", lines: []string{"Authorization: Bearer K"}},
		{name: "blank", lines: []string{"OpenAI-Project:  "}},
		{name: "one", lines: []string{"openai-project:  p-1 "}, want: []string{"openai-project: p-1"}},
		{name: "order of names", lines: []string{"OpenAI-Project: p-1", "OpenAI-Organization: Org"}, want: []string{"openai-organization: Org", "openai-project: p-1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := fingerprint.Headers(request(t, vendorURL, tt.lines...).Header, names...); !slices.Equal(got, tt.want) {
				t.Errorf("Headers() = %q, want %q", got, tt.want)
			}
		})
	}
	if got := fingerprint.Headers(nil, names...); got != nil {
		t.Errorf("Headers(nil) = %q, want nil", got)
	}
}

func TestHost(t *testing.T) {
	tests := []struct{ name, url, want string }{
		{"plain", "https://gw.example.com/v1", "gw.example.com"},
		{"upper case and dot", "HTTPS://GW.Example.com./v1", "gw.example.com"},
		{"own port of https", "https://gw.example.com:443/", "gw.example.com"},
		{"own port of http", "http://gw.example.com:80/", "gw.example.com"},
		{"other port", "https://gw.example.com:8443/", "gw.example.com:8443"},
		{"port of the other scheme", "http://gw.example.com:443/", "gw.example.com:443"},
		{"empty port", "https://gw.example.com:/", "gw.example.com"},
		{"ipv6", "http://[::1]:8080/", "[::1]:8080"},
		{"userinfo stays out", "https://u:p@gw.example.com/", "gw.example.com"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := fingerprint.Host(request(t, tt.url)); got != tt.want {
				t.Errorf("Host() = %q, want %q", got, tt.want)
			}
		})
	}
	if got := fingerprint.Host(&http.Request{}); got != "" {
		t.Errorf("Host() of the zero request = %q, want empty", got)
	}
}

func FuzzCredential(f *testing.F) {
	for _, v := range []string{"", "Bearer K", "bearer  K ", "Basic QUMxOnNlY3JldA==", "Basic Og==", "Digest a=b", "\t", "K",
		"AWS4-HMAC-SHA256 Credential=AKIA1/d/r/s/aws4_request, SignedHeaders=host, Signature=00", "X Signature=,Credential=/"} {
		f.Add(v, "", "key=K")
		f.Add(v, "K", "")
	}
	scope := fingerprint.Scope{Profile: "p"}
	f.Fuzz(func(t *testing.T, authorization, apiKey, query string) {
		req := &http.Request{
			Header: http.Header{"Authorization": {authorization}, "X-Api-Key": {apiKey}},
			URL:    &url.URL{Scheme: "https", Host: "h", RawQuery: query},
		}
		c, ok := fingerprint.Find(req)
		fp, err := scope.Fingerprint(c)
		if ok == c.IsZero() || ok != (err == nil) || ok != (len(fp) == 32) {
			t.Fatalf("Find() ok = %v, zero = %v; Fingerprint() = %q, %v", ok, c.IsZero(), fp, err)
		}
		req.Header["Authorization"] = []string{" \t" + authorization + " \r\n"}
		if again, _ := fingerprint.Find(req); again != c {
			t.Fatal("space around the header makes another credential")
		}
		delete(req.Header, "X-Api-Key")
		req.URL.RawQuery = ""
		if alone, ok := fingerprint.Find(req); ok && alone != c {
			t.Fatal("an extra key beside Authorization makes another credential")
		}
	})
}
