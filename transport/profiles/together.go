package profiles

import "github.com/headway-go/headway/pause"

// Together returns the profile of Together AI. Its 403 says that the prompt and
// the output asked for are too long, not that the key is refused; its 503 comes
// to callers below their rate.
//
// The sources: https://docs.together.ai/docs/error-codes and
// https://docs.together.ai/docs/serverless/rate-limits.
func Together() *Profile {
	p := compatible("together", "api.together.xyz", "api.together.ai")
	p.Rules = append(p.Rules, Rule{Status: []int{403}, Class: pause.ClientError})
	return p
}
