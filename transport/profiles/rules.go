package profiles

import (
	"bytes"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/headway-go/headway/pause"
)

// Answer is a vendor's answer as far as it is needed to judge it.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte    // its beginning, not compressed; or one event of a stream
	Model  string    // the model that the request named
	Now    time.Time // when the answer came
}

// Rule gives answers a verdict. It matches if all of its conditions hold; a
// condition that is left out always does.
type Rule struct {
	// Status lists the statuses. Rules without it match errors inside of
	// answers with status 200 as well.
	Status []int

	// Fields are paths in the answer; one of their values must equal one of
	// Values, letter case ignored. Without Values any value will do that is not
	// empty.
	Fields []string
	Values []string

	// Text must match one of the values at the profile's Texts.
	Text *regexp.Regexp

	// NamesModel asks that one of the profile's Texts contains the model that
	// the request named.
	NamesModel bool

	// AboveLimit asks that one of the profile's Texts says that the request is
	// larger than the whole limit: "Limit 30000, Requested 45211".
	AboveLimit bool

	// Class and Scope are the verdict.
	Class pause.Class
	Scope pause.Scope
}

// Judge returns what an answer means: JudgeFunc's verdict, else that of the
// first rule that matches, else [ByStatus]. A body that is neither JSON nor XML
// matches no Fields and no Text. Verdicts other than OK and ClientError carry the wait that
// the answer names, if any.
func (p *Profile) Judge(a Answer) pause.Verdict {
	v := p.verdict(a)
	if v.Class == pause.OK || v.Class == pause.ClientError {
		return pause.Verdict{Class: v.Class}
	}
	if !v.Hint.Named {
		v.Hint = pause.ReadHint(a.Header, a.Body, a.Now)
	}
	if !v.Hint.Named && p.HeadersPath != "" {
		v.Hint = pause.ReadHint(p.inner(a), nil, a.Now)
	}
	return v
}

// inner returns the header at HeadersPath, as far as waits are read from it, with
// the answer's own date.
func (p *Profile) inner(a Answer) http.Header {
	header, want := http.Header{"Date": a.Header.Values("Date")}, []string(nil)
	for _, name := range []string{"Retry-After", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		want = append(want, p.HeadersPath+"."+name)
	}
	pick(bytes.NewReader(a.Body), want, func(path, value string) { header.Set(path[len(p.HeadersPath)+1:], value) })
	return header
}

func (p *Profile) verdict(a Answer) pause.Verdict {
	if p.JudgeFunc != nil {
		if v, ok := p.JudgeFunc(a); ok {
			return v
		}
	}
	words := p.words(a)
	if a.Status < 400 {
		a.Status = innerStatus(a.Status, words[p.StatusPath])
	}
	for _, r := range p.Rules {
		if r.matches(a, words, p.Texts) {
			return pause.Verdict{Class: r.Class, Scope: r.Scope}
		}
	}
	return ByStatus(a.Status)
}

// innerStatus returns the status of an error that an answer holds, or the
// answer's own.
func innerStatus(status int, inside []string) int {
	for _, s := range inside {
		if n, ok := whole(s); ok && n >= 400 && n < 600 {
			return int(n)
		}
	}
	return status
}

// words returns the values of an answer at every path that a rule looks at.
func (p *Profile) words(a Answer) map[string][]string {
	words := map[string][]string{}
	if code := a.Header.Get(p.ErrorHeader); code != "" {
		words[p.ErrorHeader] = []string{bareCode(code)}
	}
	if len(a.Body) == 0 {
		return words
	}
	want := slices.Clone(p.Texts)
	if p.StatusPath != "" {
		want = append(want, p.StatusPath)
	}
	for _, r := range p.Rules {
		for _, path := range r.Fields {
			if !slices.Contains(want, path) {
				want = append(want, path)
			}
		}
	}
	found := func(path, value string) {
		if path == "__type" {
			value = bareCode(value)
		}
		words[path] = append(words[path], value)
	}
	if bytes.HasPrefix(bytes.TrimLeft(a.Body, " \t\r\n"), []byte("<")) {
		pickXML(bytes.NewReader(a.Body), want, found)
	} else {
		pick(bytes.NewReader(a.Body), want, found)
	}
	return words
}

// bareCode returns an error's code without the name of its service before it and
// without the address behind it, as AWS's protocols spell it:
// https://smithy.io/2.0/aws/protocols/aws-restjson1-protocol.html#operation-error-serialization.
func bareCode(s string) string {
	s, _, _ = strings.Cut(s, ":")
	return s[strings.LastIndexByte(s, '#')+1:]
}

func (r *Rule) matches(a Answer, words map[string][]string, texts []string) bool {
	says := func(paths []string, ok func(string) bool) bool {
		return slices.ContainsFunc(paths, func(path string) bool {
			return slices.ContainsFunc(words[path], ok)
		})
	}
	isValue := func(s string) bool {
		return len(r.Values) == 0 || slices.ContainsFunc(r.Values, func(v string) bool { return strings.EqualFold(s, v) })
	}
	return (r.Status == nil || slices.Contains(r.Status, a.Status)) &&
		(r.Fields == nil || says(r.Fields, isValue)) &&
		(r.Text == nil || says(texts, r.Text.MatchString)) &&
		(!r.NamesModel || says(texts, func(s string) bool { return contains(s, a.Model) })) &&
		(!r.AboveLimit || says(texts, aboveLimit))
}

// contains reports whether name stands in s as a whole word.
func contains(s, name string) bool {
	if name == "" {
		return false
	}
	wordy := func(c byte) bool {
		return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_'
	}
	for {
		i := strings.Index(s, name)
		if i < 0 {
			return false
		}
		end := i + len(name)
		if (i == 0 || !wordy(s[i-1])) && (end == len(s) || !wordy(s[end])) {
			return true
		}
		s = s[i+1:]
	}
}

var limitAndRequested = regexp.MustCompile(`(?i)\blimit:? (\d+),.*\brequested:? (\d+)`)

// aboveLimit reports whether an error says that what was requested is above the
// limit itself, so that waiting cannot help.
func aboveLimit(s string) bool {
	m := limitAndRequested.FindStringSubmatch(s)
	if m == nil {
		return false
	}
	limit, ok1 := whole(m[1])
	requested, ok2 := whole(m[2])
	return ok1 && ok2 && requested > limit
}

// ByStatus returns the verdict of a status that nothing else explains.
//
// A 401 or 403 is the key's, until a rule says that it is about the model, the
// content, the resource or the recipient. 529 is Anthropic's "overloaded". A 408
// or 425 proves nothing about the key, so it counts as the server's.
func ByStatus(status int) pause.Verdict {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return pause.Verdict{Class: pause.KeyRefused, Scope: pause.Key}
	case http.StatusPaymentRequired:
		return pause.Verdict{Class: pause.QuotaExhausted, Scope: pause.Key}
	case http.StatusTooManyRequests:
		return pause.Verdict{Class: pause.RateLimited, Scope: pause.Model}
	case http.StatusServiceUnavailable, 529:
		return pause.Verdict{Class: pause.Overloaded, Scope: pause.Model}
	case http.StatusRequestTimeout, http.StatusTooEarly:
		return pause.Verdict{Class: pause.ServerError}
	}
	switch {
	case status >= 500:
		return pause.Verdict{Class: pause.ServerError}
	case status >= 400:
		return pause.Verdict{Class: pause.ClientError}
	}
	return pause.Verdict{Class: pause.OK}
}
