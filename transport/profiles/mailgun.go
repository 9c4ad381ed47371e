package profiles

import "github.com/headway-go/headway/pause"

// Mailgun returns the profile of Mailgun. Its limits are the account's, so calls
// name no model. It documents a refused key as a 403 as well.
//
// The source: https://documentation.mailgun.com (responses).
func Mailgun() *Profile {
	return &Profile{
		Name:  "mailgun",
		Hosts: []string{"api.mailgun.net", "api.eu.mailgun.net"},
		Texts: []string{"message"},
		Rules: []Rule{{Status: []int{429}, Class: pause.RateLimited, Scope: pause.Key}},
	}
}
