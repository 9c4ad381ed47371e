package profiles

import (
	"regexp"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
)

var (
	noCredit    = regexp.MustCompile(`(?i)credit balance is too low|reached your specified (workspace )?api usage limits`)
	orgDisabled = regexp.MustCompile(`(?i)organization has been disabled`)
	notTheKey   = regexp.MustCompile(`(?i)^cors requests are not allowed|the specified resource`)
)

// Anthropic returns the profile of Anthropic's Messages API.
//
// The sources of its rules: https://platform.claude.com/docs/en/api/errors
// (types; 529; errors inside of streams; the 401 for CORS),
// https://github.com/anthropics/claude-code/issues/66314 and 60359 (billing and a
// disabled organisation behind a 400). Usage: anthropic-sdk-go, message.go: the
// counts of message_delta are cumulative, and input_tokens leaves both cache
// counts out. https://platform.claude.com/docs/en/api/rate-limits: cache reads do
// not count against limits, nor does max_tokens, and the tokens left are rounded
// to thousands.
func Anthropic() *Profile {
	kind := []string{"error.type", "error.details.error_code"}
	return &Profile{
		Name:       "anthropic",
		Hosts:      []string{"api.anthropic.com"},
		Marks:      []string{"Anthropic-Version"},
		KeyPlaces:  []string{"X-Api-Key"},
		Model:      []Place{{Body, "model"}},
		OutputCaps: []string{"max_tokens", "max_tokens_to_sample"},
		Shapes:     []Shape{{Ends: []string{"/count_tokens", "/batches", "/files"}}}, // a batch has limits of its own
		Texts:      []string{"error.message"},
		Rules: []Rule{
			{Fields: kind, Values: []string{"enforced_spend_limit_reached", "billing_error"}, Class: pause.QuotaExhausted, Scope: pause.Key},
			{Status: []int{400}, Text: noCredit, Class: pause.QuotaExhausted, Scope: pause.Key},
			{Status: []int{400}, Text: orgDisabled, Class: pause.KeyRefused, Scope: pause.Key},
			{Status: []int{401, 403}, Text: notTheKey, Class: pause.ClientError},
			{Status: []int{401, 403}, Text: aboutModel, Class: pause.ClientError},
			{Status: []int{403}, NamesModel: true, Class: pause.ClientError},
			{Fields: kind, Values: []string{"authentication_error", "permission_error"}, Class: pause.KeyRefused, Scope: pause.Key},
			{Fields: kind, Values: []string{"overloaded_error"}, Class: pause.Overloaded, Scope: pause.Model},
			{Fields: kind, Values: []string{"rate_limit_error"}, Class: pause.RateLimited, Scope: pause.Model},
			{Status: []int{200}, Fields: kind, Values: []string{"api_error", "timeout_error"}, Class: pause.ServerError},
		},
		Usage: UsageFields{
			At:         []string{"usage", "message.usage"},
			Input:      []string{"input_tokens"},
			Output:     []string{"output_tokens"},
			Cached:     []string{"cache_read_input_tokens"},
			Written:    []string{"cache_creation_input_tokens"},
			Beside:     []string{"cache_read_input_tokens", "cache_creation_input_tokens"},
			CachedFree: true,
		},
		StreamEnds: []string{"message_stop"},
		LeftHeaders: []LeftHeaders{
			minute(throttle.Requests, "Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset"),
			thousands(throttle.Tokens, "Anthropic-Ratelimit-Tokens-"),
			thousands(throttle.InputTokens, "Anthropic-Ratelimit-Input-Tokens-"),
			thousands(throttle.OutputTokens, "Anthropic-Ratelimit-Output-Tokens-"),
		},
	}
}

// thousands returns the headers of a limit of a minute, rounded to thousands.
func thousands(unit, header string) LeftHeaders {
	l := minute(unit, header+"Remaining", header+"Reset")
	l.Rounded = 1000
	return l
}
