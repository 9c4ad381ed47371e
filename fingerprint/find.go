package fingerprint

import (
	"encoding/base64"
	"net"
	"net/http"
	"strings"
)

// Find returns the credential that a request carries, or false if it carries
// none. It reads headers and URL only, never the body, and changes nothing.
//
// The first place that holds a credential wins, and the others are not looked
// at: an extra key that the vendor does not read must not make another
// fingerprint. The places are those in first, then
//
//	Authorization, x-api-key, api-key, x-goog-api-key, xi-api-key, ?key
//
// A place is the name of a header, or "?" and the name of a query parameter. One
// that begins with "body:" is passed over: it is for those who read the body.
// Authorization leads because most vendors read nothing else. A vendor with a
// header of its own names it in first (Anthropic "x-api-key", Azure "api-key",
// Google "x-goog-api-key", "?key"), since there a gateway may have added an
// Authorization that is not the vendor's.
//
// Where a place is a plain header or query parameter, its first value is the
// key, space around it trimmed. Authorization is read like this, the scheme's
// letter case ignored:
//
//   - Bearer, Token, AccessKey: what follows the scheme. The scheme itself does
//     not count, nor does the place: a key is the same key in either.
//   - Basic: user and password together (Twilio: account SID and auth token),
//     however the base64 is padded. Neither alone is the credential: two keys
//     of one user are refused one by one. Undecodable text counts as it is.
//   - AWS4-HMAC-SHA256 and other schemes with a Signature parameter: the
//     access key id, which is the Credential parameter up to its first slash.
//     The rest changes with every request. Without a Credential parameter, and
//     for Digest, nothing is found; [Account] is for these.
//   - an unknown scheme: what follows it.
//   - one word: the word, unless it is a known scheme that lacks its key.
//
// Where the Authorization header is absent or blank, user and password in the
// URL stand for Basic, as they do in [http.Client].
//
// Keys that rotate (OAuth, Entra and session tokens) are a new credential each
// time; [Account] is for these too.
func Find(req *http.Request, first ...string) (Credential, bool) {
	for _, place := range first {
		if strings.HasPrefix(place, "body:") {
			continue
		}
		if c := at(req, place); !c.IsZero() {
			return c, true
		}
	}
	for _, place := range [...]string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Xi-Api-Key", "?key"} {
		if c := at(req, place); !c.IsZero() {
			return c, true
		}
	}
	return Credential{}, false
}

// at returns the credential at one place of a request, or zero.
func at(req *http.Request, place string) Credential {
	if name, ok := strings.CutPrefix(place, "?"); ok {
		if req.URL == nil || req.URL.RawQuery == "" {
			return Credential{}
		}
		return Key(req.URL.Query().Get(name))
	}
	value := strings.Trim(req.Header.Get(place), wireSpace)
	if !strings.EqualFold(place, "Authorization") {
		return Key(value)
	}
	if value == "" && req.URL != nil && req.URL.User != nil {
		password, _ := req.URL.User.Password()
		return basic(req.URL.User.Username() + ":" + password)
	}
	return authorization(value)
}

// authorization reads the trimmed value of an Authorization header.
func authorization(value string) Credential {
	scheme, rest := value, ""
	if i := strings.IndexAny(value, wireSpace); i >= 0 {
		scheme, rest = value[:i], strings.Trim(value[i:], wireSpace)
	}
	scheme = strings.ToLower(scheme)
	switch scheme {
	case "bearer", "token", "accesskey":
		return Key(rest)
	case "basic":
		if pair, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(rest, "=")); err == nil {
			return basic(string(pair))
		}
		return Key(rest)
	case "digest":
		return Credential{}
	}
	switch {
	case rest == "":
		return Key(value)
	case strings.Contains(strings.ToLower(rest), "signature="):
		return signed(rest)
	default:
		return Key(rest)
	}
}

// basic takes "user:password" as it is: the vendor compares every byte of it.
func basic(pair string) Credential {
	if pair == ":" {
		return Credential{}
	}
	return newCredential("basic", pair)
}

// signed finds the access key id among the parameters of a signing scheme.
//
// Form: https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-auth-using-authorization-header.html
func signed(params string) Credential {
	for param := range strings.SplitSeq(params, ",") {
		name, value, _ := strings.Cut(strings.Trim(param, wireSpace), "=")
		if strings.EqualFold(name, "Credential") {
			id, _, _ := strings.Cut(value, "/")
			return newCredential("access key id", strings.Trim(id, wireSpace))
		}
	}
	return Credential{}
}

// Headers returns the named headers that h has, for [Scope.Headers]: lines of
// "name: value" in the order of names, names in lower case, the first value of
// each with the space around it trimmed. Absent and blank headers are left out.
//
// OpenAI's are "OpenAI-Organization" and "OpenAI-Project": limits hang under
// them, and one caller's wrong one must not pause the key for all.
func Headers(h http.Header, names ...string) []string {
	var lines []string
	for _, name := range names {
		if value := strings.Trim(h.Get(name), wireSpace); value != "" {
			lines = append(lines, strings.ToLower(name)+": "+value)
		}
	}
	return lines
}

// Host returns the host that a request goes to, for [Scope.Host]: in lower
// case, without a dot at its end, and with the port unless it is the scheme's
// own. It returns "" for a request without a URL.
func Host(req *http.Request) string {
	if req.URL == nil {
		return ""
	}
	host := strings.TrimSuffix(strings.ToLower(req.URL.Hostname()), ".")
	scheme, port := strings.ToLower(req.URL.Scheme), req.URL.Port()
	if port == "" || scheme == "https" && port == "443" || scheme == "http" && port == "80" {
		return host
	}
	return net.JoinHostPort(host, port)
}
