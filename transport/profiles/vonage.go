package profiles

import (
	"bytes"
	"net/http"
	"regexp"

	"github.com/headway-go/headway/pause"
)

var lowBalance = regexp.MustCompile(`(?i)\b(low balance|out of credit|quota exceeded)\b`)

// Vonage returns the profile of Vonage. Its SMS API answers with status 200
// whatever happened, and says in messages.status what did, part by part; of
// several the one that concerns most calls counts. Its limits are the account's,
// so calls name no model. A message costs "segments", see [Profile.Message].
//
// The key is looked for in the body and in the URL's query, as api_key, and in
// Authorization. Where a JWT that rotates stands for it, set the transport's KeyID
// to the account.
//
// The sources of its rules:
// https://developer.vonage.com/messaging/sms/guides/troubleshooting-sms and
// https://developer.vonage.com/api-errors (newer APIs: no credit is a 403). Preset,
// in requests and not in parts:
// https://api.support.vonage.com/hc/en-us/articles/203993598.
func Vonage() *Profile {
	status := []string{"messages.status"}
	return &Profile{
		Name:      "vonage",
		Hosts:     []string{"*.nexmo.com", "*.vonage.com"},
		KeyPlaces: []string{"body:api_key", "?api_key"},
		Message:   []string{"text"},
		Texts:     []string{"title", "detail"},
		ReadOK:    true,
		Rules: []Rule{
			{Fields: status, Values: []string{"4", "8"}, Class: pause.KeyRefused, Scope: pause.Key},
			{Fields: status, Values: []string{"9"}, Class: pause.QuotaExhausted, Scope: pause.Key},
			{Fields: status, Values: []string{"1", "10"}, Class: pause.RateLimited, Scope: pause.Key},
			{Fields: status, Values: []string{"5"}, Class: pause.ServerError},
			{Fields: status, Values: []string{
				"2", "3", "6", "7", "11", "12", "14", "15", "22", "23", "29", "33", // this message
			}, Class: pause.ClientError},
			{Status: []int{403}, Text: lowBalance, Class: pause.QuotaExhausted, Scope: pause.Key},
			{Status: []int{429}, Class: pause.RateLimited, Scope: pause.Key},
		},
		UsageFunc: vonageSent,
		Presets:   []Preset{{Plan: "default", Limits: perSecond(30)}},
	}
}

// vonageSent counts the parts that went out.
func vonageSent(_ http.Header, body []byte) (map[string]int64, bool) {
	sent := int64(0)
	pick(bytes.NewReader(body), []string{"messages.status"}, func(_, status string) {
		if status == "0" {
			sent++
		}
	})
	return map[string]int64{SegmentsUnit: sent}, sent > 0
}
