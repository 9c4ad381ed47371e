package profiles

import (
	"bytes"
	"net/http"

	"github.com/headway-go/headway/pause"
)

// MessageBird returns the profile of MessageBird's SMS API. A message costs
// "segments", see [Profile.Message].
//
// The sources: messagebird/go-rest-api, error.go and sms/message.go;
// https://developers.messagebird.com/api/#api-errors (2: refused, 25: balance).
func MessageBird() *Profile {
	code := []string{"errors.code"}
	p := messages("messagebird", "body", []Rule{
		{Fields: code, Values: []string{"2"}, Class: pause.KeyRefused, Scope: pause.Key},
		{Fields: code, Values: []string{"25"}, Class: pause.QuotaExhausted, Scope: pause.Key},
	}, "rest.messagebird.com")
	p.Recipients = []string{"recipients"}
	p.UsageFunc = messageParts
	return p
}

// messageParts counts the parts of a message to all of its recipients.
func messageParts(_ http.Header, body []byte) (map[string]int64, bool) {
	parts := int64(0)
	pick(bytes.NewReader(body), []string{"recipients.items.messagePartCount"}, func(_, value string) {
		if n, ok := whole(value); ok && n <= maxTokens {
			parts += n
		}
	})
	return map[string]int64{SegmentsUnit: parts}, parts > 0
}
