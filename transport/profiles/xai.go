package profiles

import (
	"regexp"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
)

var teamSpent = regexp.MustCompile(`(?i)\b(available|any) credits\b|\bmonthly spending limit\b`)

// XAI returns the profile of xAI. Its code is a sentence that says less than its
// error, which is a string.
//
// The sources of its rules: https://github.com/i-am-bee/beeai-framework/issues/447
// (a bad key behind a 400), https://github.com/continuedev/continue/issues/10373
// and https://github.com/griptape-ai/griptape-nodes-engine/issues/1079 (spent
// credits behind a 429 or a 403). What is left: tokens are limited by the minute and
// requests by the second (https://docs.x.ai/developers/rate-limits); of which
// second the headers for requests speak is not said, so these are passed over.
func XAI() *Profile {
	p := compatible("xai", "api.x.ai", "*.api.x.ai")
	p.LeftHeaders = []LeftHeaders{minute(throttle.Tokens, "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens")}
	p.Rules = append(p.Rules,
		Rule{Status: []int{403, 429}, Text: teamSpent, Class: pause.QuotaExhausted, Scope: pause.Key},
	)
	return p
}
