package profiles

import "github.com/headway-go/headway/pause"

// messages returns the profile of a vendor of text messages whose statuses say
// what they mean, and whose limits are the account's: calls name no model. Text
// is the path of a message's text. Rules go before the one for a 429.
func messages(name, text string, rules []Rule, hosts ...string) *Profile {
	return &Profile{
		Name:    name,
		Hosts:   hosts,
		Message: []string{text},
		Rules:   append(rules, Rule{Status: []int{429}, Class: pause.RateLimited, Scope: pause.Key}),
	}
}
