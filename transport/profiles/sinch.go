package profiles

// Sinch returns the profile of Sinch's SMS and Conversation APIs. Its SMS API
// takes messages above the rate and queues them, so being late is the usual sign
// of it, not a 429. A message costs "segments", see [Profile.Message].
//
// The source: https://developers.sinch.com/docs/sms
// (402, 429; a 401 may be without a body).
func Sinch() *Profile {
	p := messages("sinch", "body", nil, "*.api.sinch.com")
	p.Recipients = []string{"to"}
	return p
}
