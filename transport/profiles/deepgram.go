package profiles

import "github.com/headway-go/headway/pause"

// Deepgram returns the profile of Deepgram. Its model stands in the URL's query;
// its budget is calls at one time, of the whole project.
//
// The sources of its rules: https://developers.deepgram.com/reference/errors,
// https://developers.deepgram.com/docs/working-with-concurrency-rate-limits and
// https://github.com/orgs/deepgram/discussions/1599 (a 403 about one model). It
// bills speech by the characters of its text, and nothing by tokens.
func Deepgram() *Profile {
	code := []string{"err_code"}
	return &Profile{
		Name:  "deepgram",
		Hosts: []string{"api.deepgram.com", "api.eu.deepgram.com"},
		Model: []Place{{Query, "model"}},
		Shapes: []Shape{
			{Ends: []string{"/speak"}, Characters: []string{"text"}},
			{Ends: []string{""}},
		},
		Texts: []string{"err_msg"},
		Rules: []Rule{
			{Fields: code, Values: []string{"ASR_PAYMENT_REQUIRED"}, Class: pause.QuotaExhausted, Scope: pause.Key},
			{Fields: code, Values: []string{"INVALID_AUTH"}, Class: pause.KeyRefused, Scope: pause.Key},
			{Fields: code, Values: []string{"TOO_MANY_REQUESTS"}, Class: pause.RateLimited, Scope: pause.Key},
			{Status: []int{401, 403}, Text: aboutModel, Class: pause.ClientError},
			{Status: []int{403}, NamesModel: true, Class: pause.ClientError},
			{Status: []int{429}, Class: pause.RateLimited, Scope: pause.Key},
		},
	}
}
