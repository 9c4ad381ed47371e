package profiles

import "github.com/headway-go/headway/pause"

// ElevenLabs returns the profile of ElevenLabs. Its budget is calls at one time,
// of the whole plan; spent credits come as a 401.
//
// The sources of its rules:
// https://help.elevenlabs.io/hc/en-us/articles/19572237925521 (401) and
// https://help.elevenlabs.io/hc/en-us/articles/19571824571921 (429: too many
// calls at one time, or a busy system). Its credits are characters.
func ElevenLabs() *Profile {
	status := []string{"detail.status"}
	return &Profile{
		Name:      "elevenlabs",
		Hosts:     []string{"*.elevenlabs.io"},
		Marks:     []string{"Xi-Api-Key"},
		KeyPlaces: []string{"Xi-Api-Key"},
		Model:     []Place{{Body, "model_id"}},
		Shapes:    []Shape{{Ends: []string{""}, Characters: []string{"text"}}},
		Texts:     []string{"detail.message"},
		Rules: []Rule{
			{Fields: status, Values: []string{"quota_exceeded"}, Class: pause.QuotaExhausted, Scope: pause.Key},
			{Fields: status, Values: []string{"invalid_api_key"}, Class: pause.KeyRefused, Scope: pause.Key},
			{Fields: status, Values: []string{"system_busy"}, Class: pause.Overloaded, Scope: pause.Model},
			{Fields: status, Values: []string{"too_many_concurrent_requests"}, Class: pause.RateLimited, Scope: pause.Key},
			{Status: []int{401, 403}, Text: aboutModel, Class: pause.ClientError},
			{Status: []int{429}, Class: pause.RateLimited, Scope: pause.Key},
		},
	}
}
