package main

import (
	"bytes"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/transport"
	"github.com/headway-go/headway/transport/profiles"
)

// judgedBytes is how much of an answer the transport reads to judge it.
const judgedBytes = 64 << 10

// meaning is what Headway makes of an exchange. Nil is none.
type meaning struct {
	Vendor       string           `json:"vendor"` // the profile that read it
	Class        string           `json:"class"`
	Scope        *string          `json:"scope"`
	RetryAfterMS *int64           `json:"retry_after_ms"` // what the answer named, before defaults and caps
	Model        *string          `json:"model"`
	Usage        map[string]int64 `json:"usage"` // by unit, tokens apart
	Fingerprint  *string          `json:"fingerprint"`
	Rule         string           `json:"rule"`

	partial bool // the usage is only the least that the call took
}

// meaning reads the exchange as the transport reads a call.
func (x *exchange) meaning() meaning {
	p := x.profile()
	m := meaning{Vendor: p.Name}
	model := p.Read(x.req, bytes.NewReader(x.sent)).Model
	if model != "" {
		m.Model = &model
	}
	if id, err := (&transport.Transport{Profile: p}).Fingerprint(x.req); err == nil {
		m.Fingerprint = &id
	}
	a := profiles.Answer{Status: x.status, Header: x.header, Model: model, Now: x.now}
	scanner := p.Scan(a)
	if x.status >= 400 || p.ReadOK && isJSON(x.header) {
		a.Body = x.body[:min(len(x.body), judgedBytes)]
	}
	v := p.Judge(a)
	if scanner != nil {
		scanner.Write(x.body)
		if inside, ok := scanner.Trouble(); ok {
			if w := p.Judge(inside); v.Class == pause.OK || pauses(w) {
				v, a = w, inside
			}
		}
		usage, final, ok := scanner.Usage(true)
		if ok {
			m.Usage, m.partial = counts(usage), !final
		}
	}
	m.Class = v.Class.String()
	if v.Scope != pause.None {
		scope := v.Scope.String()
		m.Scope = &scope
	}
	if v.Hint.Wait > 0 {
		ms := v.Hint.Wait.Milliseconds() // it is whole
		m.RetryAfterMS = &ms
	}
	m.Rule = decider(p, a)
	return m
}

// profile returns the profile that the exchange names, else the one that the
// transport would choose.
func (x *exchange) profile() *profiles.Profile {
	list := profiles.Builtin()
	if i := slices.IndexFunc(list, func(p *profiles.Profile) bool { return p.Name == x.vendor }); i >= 0 {
		return list[i]
	}
	return profiles.Choose(list, x.req)
}

func pauses(v pause.Verdict) bool { return v.Class != pause.OK && v.Class != pause.ClientError }

func isJSON(h http.Header) bool {
	kind, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return kind == "application/json" || strings.HasSuffix(kind, "+json")
}

// counts spells out what a vendor counted.
func counts(u profiles.Usage) map[string]int64 {
	units := map[string]int64{}
	maps.Copy(units, u.Units)
	if u.Input+u.Output > 0 {
		delete(units, "tokens") // they are the sum of these
		units["input_tokens"], units["output_tokens"] = u.Input, u.Output
	}
	if u.Cached > 0 {
		units["cached_input_tokens"] = u.Cached
	}
	return units
}
