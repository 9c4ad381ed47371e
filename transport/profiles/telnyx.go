package profiles

import "github.com/headway-go/headway/pause"

// Telnyx returns the profile of Telnyx's messages. A message costs "segments",
// see [Profile.Message]. Its X-Ratelimit-Reset is a span in seconds.
//
// The sources:
// https://developers.telnyx.com/development/api-fundamentals/reliability/rate-limiting
// and https://developers.telnyx.com (10009:
// bad key, 10010: no right to it, 10011: too many requests). Its headers do not say
// of which window they leave requests. Preset, of an account, above which messages
// are queued: https://developers.telnyx.com/docs/messaging/messages/rate-limiting.
func Telnyx() *Profile {
	code := []string{"errors.code"}
	p := messages("telnyx", "text", []Rule{
		{Fields: code, Values: []string{"10009", "10010"}, Class: pause.KeyRefused, Scope: pause.Key},
		{Fields: code, Values: []string{"10011"}, Class: pause.RateLimited, Scope: pause.Key},
	}, "api.telnyx.com")
	p.Presets = []Preset{{Plan: "sms", Limits: perSecond(50)}}
	p.Usage.Units = map[string]string{SegmentsUnit: "data.parts"}
	return p
}
