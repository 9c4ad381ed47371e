package profiles

import (
	"regexp"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
)

var tierFull = regexp.MustCompile(`(?i)^service tier capacity exceeded\b`)

// Mistral returns the profile of Mistral. Its errors have no object around them.
//
// The sources of its rules: https://docs.mistral.ai (error glossary; completion_args
// are those of its conversations),
// https://github.com/continuedev/continue/issues/6185 and
// https://github.com/BerriAI/litellm/pull/25078 (a full tier, behind a 503 or a
// 429). Its headers name their window, and were recorded in public code: a minute of
// one model. What is left of a month of tokens is not read: it is no fixed time.
func Mistral() *Profile {
	p := compatible("mistral", "api.mistral.ai", "codestral.mistral.ai")
	p.OutputCaps = append(p.OutputCaps, "completion_args.max_tokens")
	p.Shapes = append([]Shape{{Ends: []string{"/classifications", "/ocr"}}}, p.Shapes...)
	p.LeftHeaders = []LeftHeaders{
		minute(throttle.Requests, "X-Ratelimit-Remaining-Req-Minute", ""),
		minute(throttle.Tokens, "X-Ratelimit-Remaining-Tokens-Minute", ""),
	}
	p.Rules = append(p.Rules,
		Rule{Status: []int{429}, Text: tierFull, Class: pause.Overloaded, Scope: pause.Model},
	)
	return p
}
