package profiles

import (
	"time"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
)

// Together returns the profile of Together AI. Its 403 says that the prompt and
// the output asked for are too long, not that the key is refused; its 503 comes
// to callers below their rate.
//
// The sources: https://docs.together.ai/docs/error-codes and
// https://docs.together.ai/docs/serverless/rate-limits. What is left, of a second:
// https://docs.together.ai/docs/rate-limits.
func Together() *Profile {
	p := compatible("together", "api.together.xyz", "api.together.ai")
	p.LeftHeaders = []LeftHeaders{
		{Unit: throttle.Requests, Window: time.Second, Scope: pause.Model, Remaining: "X-Ratelimit-Remaining", Reset: "X-Ratelimit-Reset"},
		{Unit: throttle.Tokens, Window: time.Second, Scope: pause.Model, Remaining: "X-Tokenlimit-Remaining"},
	}
	p.Rules = append(p.Rules, Rule{Status: []int{403}, Class: pause.ClientError})
	return p
}
