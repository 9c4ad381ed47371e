package profiles

import (
	"regexp"
	"time"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
)

var orgRestricted = regexp.MustCompile(`(?i)\borgani[sz]ation has been restricted\b`)

// Groq returns the profile of Groq.
//
// The sources of its rules: https://console.groq.com/docs/errors (498),
// https://console.groq.com/docs/rate-limits (limits are per model; what was read
// from a cache does not count; its headers leave requests of a day and tokens of a
// minute),
// https://kerlig.com/help (a restricted organisation behind a 400). Usage in
// streams stands at x_groq.usage.
func Groq() *Profile {
	code := []string{"error.code", "error.type"} // of Groq's own
	p := compatible("groq", "api.groq.com")
	p.Usage.CachedFree = true
	p.LeftHeaders = []LeftHeaders{
		{Unit: throttle.Requests, Window: 24 * time.Hour, Scope: pause.Model,
			Remaining: "X-Ratelimit-Remaining-Requests", Reset: "X-Ratelimit-Reset-Requests"},
		minute(throttle.Tokens, "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"),
	}
	p.Rules = append(p.Rules,
		Rule{Fields: code, Values: []string{"organization_restricted"}, Class: pause.KeyRefused, Scope: pause.Key},
		Rule{Fields: code, Values: []string{"capacity_exceeded"}, Class: pause.Overloaded, Scope: pause.Model},
		Rule{Status: []int{498}, Class: pause.Overloaded, Scope: pause.Model},
		Rule{Status: []int{400}, Text: orgRestricted, Class: pause.KeyRefused, Scope: pause.Key},
	)
	return p
}
