package profiles

import "github.com/headway-go/headway/pause"

// Perplexity returns the profile of Perplexity, whose limits are the key's and
// not a model's: https://docs.perplexity.ai (rate limits).
func Perplexity() *Profile {
	p := compatible("perplexity", "api.perplexity.ai")
	for i := range p.Rules {
		if p.Rules[i].Class == pause.RateLimited {
			p.Rules[i].Scope = pause.Key
		}
	}
	p.Rules = append(p.Rules, Rule{Status: []int{429}, Class: pause.RateLimited, Scope: pause.Key})
	return p
}
