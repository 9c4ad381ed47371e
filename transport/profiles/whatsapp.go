package profiles

import "github.com/headway-go/headway/pause"

// WhatsApp returns the profile of Meta's WhatsApp Cloud API. Calls name no model,
// and the throughput of one phone number pauses the token; where several numbers
// send with one token, use [WhatsAppNumbers].
//
// Meta's code decides, since one code comes with several statuses. Errors that
// come later by webhook are not seen.
//
// The sources of its rules:
// https://developers.facebook.com/documentation/business-messaging/whatsapp/support/error-codes/
// and https://docs.ycloud.com/reference-link/whatsapp-errors (131056 is about one
// sender and one recipient). Presets, of one number, which counts what comes in as
// well: https://developers.facebook.com/documentation/business-messaging/whatsapp/throughput.
func WhatsApp() *Profile {
	code := []string{"error.code"}
	return &Profile{
		Name:      "whatsapp",
		Hosts:     []string{"graph.facebook.com"},
		KeyPlaces: []string{"Authorization", "?access_token"},
		Texts:     []string{"error.message"},
		Rules: []Rule{
			{Fields: code, Values: []string{"0", "190", "368", "131031"}, Class: pause.KeyRefused, Scope: pause.Key},
			{Fields: code, Values: []string{"131042"}, Class: pause.QuotaExhausted, Scope: pause.Key},
			{Fields: code, Values: []string{
				"130472", "131026", "131030", "131047", "131049", "131050", "131056", // the recipient
				"33", "100", "131008", "131009", "131051", // the message
			}, Class: pause.ClientError},
			{Fields: code, Values: []string{"4", "80007"}, Class: pause.RateLimited, Scope: pause.Key},
			{Fields: code, Values: []string{"130429"}, Class: pause.RateLimited, Scope: pause.Key},
			{Fields: code, Values: []string{"2", "131016", "131057"}, Class: pause.Overloaded, Scope: pause.Model},
			{Fields: code, Values: []string{"1", "131000"}, Class: pause.ServerError},
			{Status: []int{429}, Class: pause.RateLimited, Scope: pause.Key},
		},
		Presets: []Preset{
			{Plan: "default", Limits: perSecond(80)},
			{Plan: "business-app", Limits: perSecond(20)},
			{Plan: "upgraded", Limits: perSecond(1000)},
		},
	}
}

// WhatsAppNumbers returns the profile of [WhatsApp] with the phone number that
// sends as the model: its id, which is in the path. Throughput is then one
// number's own.
func WhatsAppNumbers() *Profile {
	p := WhatsApp()
	p.Model = []Place{{Before, "messages"}}
	for i := range p.Presets {
		p.Presets[i].Model = "*"
	}
	own := Rule{Fields: []string{"error.code"}, Values: []string{"130429"}, Class: pause.RateLimited, Scope: pause.Model}
	p.Rules = append([]Rule{own}, p.Rules...)
	return p
}
