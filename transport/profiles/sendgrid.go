package profiles

import (
	"regexp"

	"github.com/headway-go/headway/pause"
)

var (
	noMailCredits  = regexp.MustCompile(`(?i)^maximum credits exceeded\b`)
	tooManyBadMail = regexp.MustCompile(`(?i)\btoo many bad requests\b`)
)

// SendGrid returns the profile of SendGrid. Its limits are the account's, so
// calls name no model. Its X-RateLimit-Reset is a time and no span.
//
// The sources of its rules:
// https://www.twilio.com/docs/sendgrid/api-reference/how-to-use-the-sendgrid-v3-api
// (rate limits, errors: a 403 for too many bad requests is a block for a while),
// https://pastebin.com/gjwkzPWn (spent credits behind a 401).
func SendGrid() *Profile {
	return &Profile{
		Name:  "sendgrid",
		Hosts: []string{"api.sendgrid.com", "api.eu.sendgrid.com"},
		Texts: []string{"errors.message"},
		Rules: []Rule{
			{Status: []int{403}, Fields: []string{"errors.field"}, Values: []string{"from"}, Class: pause.ClientError}, // one sender
			{Status: []int{401, 403}, Text: noMailCredits, Class: pause.QuotaExhausted, Scope: pause.Key},
			{Status: []int{403}, Text: tooManyBadMail, Class: pause.RateLimited, Scope: pause.Key},
			{Status: []int{429}, Class: pause.RateLimited, Scope: pause.Key},
		},
	}
}
