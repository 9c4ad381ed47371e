package profiles

import "github.com/headway-go/headway/pause"

// Twilio returns the profile of Twilio. Its limits are the account's, so calls
// name no model. To keep limits per sender as well, make the sender the model:
//
//	p := profiles.Twilio()
//	p.Model = []profiles.Place{{profiles.Body, "MessagingServiceSid"}, {profiles.Body, "From"}}
//
// A message costs "segments", see [Profile.Message]. A 429 of the account is
// free: such requests "were not processed". The other 429s are about one
// recipient, one verification or one sender's queue, and pause nothing.
//
// The sources of its rules: https://www.twilio.com/docs/api/errors and its pages
// 20429, 20003, 20005, 21611, 60202, 60203, 60212. Usage:
// https://www.twilio.com/docs/messaging/api/message-resource: num_segments is a
// string, and "0" until a messaging service has chosen its sender. Presets, each of
// one sender, above which Twilio queues messages up to ten hours and then fails
// them: https://www.twilio.com/docs/api/errors/30001.
func Twilio() *Profile {
	code := []string{"code"}
	return &Profile{
		Name:    "twilio",
		Hosts:   []string{"*.twilio.com"},
		Message: []string{"Body"},
		Texts:   []string{"message"},
		Free:    []int{429},
		Rules: []Rule{
			{Fields: code, Values: []string{"20003", "20005"}, Class: pause.KeyRefused, Scope: pause.Key},
			{Fields: code, Values: []string{
				"21211", "21408", "21610", "21612", "21614", // the recipient
				"60200", "60202", "60203", "60212", "60410", // one recipient's verifications
				"21611", // one sender's queue
			}, Class: pause.ClientError},
			{Fields: code, Values: []string{"20429"}, Class: pause.RateLimited, Scope: pause.Key},
			{Status: []int{429}, Class: pause.RateLimited, Scope: pause.Key},
		},
		Usage: UsageFields{Units: map[string]string{"segments": "num_segments"}},
		Presets: []Preset{
			{Plan: "us-long-code", Model: "*", Limits: paced(SegmentsUnit, 1)},
			{Plan: "us-short-code", Model: "*", Limits: paced(SegmentsUnit, 100)},
		},
	}
}
