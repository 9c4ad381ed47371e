package profiles

// Plivo returns the profile of Plivo's messages. A message costs "segments", see
// [Profile.Message]; the answer does not count them.
//
// The source: https://docs.plivo.com/messaging/api/response (statuses).
func Plivo() *Profile {
	p := messages("plivo", "text", nil, "api.plivo.com")
	p.Recipients = []string{"dst"}
	return p
}
