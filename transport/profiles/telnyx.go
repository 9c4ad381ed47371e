package profiles

import "github.com/headway-go/headway/pause"

// Telnyx returns the profile of Telnyx's messages. A message costs "segments",
// see [Profile.Message]. Its X-Ratelimit-Reset is a span in seconds.
//
// The sources:
// https://developers.telnyx.com/development/api-fundamentals/reliability/rate-limiting
// and https://developers.telnyx.com (10009:
// bad key, 10010: no right to it, 10011: too many requests).
func Telnyx() *Profile {
	code := []string{"errors.code"}
	p := messages("telnyx", "text", []Rule{
		{Fields: code, Values: []string{"10009", "10010"}, Class: pause.KeyRefused, Scope: pause.Key},
		{Fields: code, Values: []string{"10011"}, Class: pause.RateLimited, Scope: pause.Key},
	}, "api.telnyx.com")
	p.Usage.Units = map[string]string{SegmentsUnit: "data.parts"}
	return p
}
