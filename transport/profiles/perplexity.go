package profiles

import "github.com/headway-go/headway/pause"

// Perplexity returns the profile of Perplexity, whose limits are the key's and
// not a model's: https://docs.perplexity.ai/docs/admin/rate-limits-usage-tiers. A
// search takes no tokens.
func Perplexity() *Profile {
	p := compatible("perplexity", "api.perplexity.ai")
	p.Shapes = append(p.Shapes, Shape{Ends: []string{"/search"}})
	for i := range p.Rules {
		if p.Rules[i].Class == pause.RateLimited {
			p.Rules[i].Scope = pause.Key
		}
	}
	p.Rules = append(p.Rules, Rule{Status: []int{429}, Class: pause.RateLimited, Scope: pause.Key})
	return p
}
