package profiles

import (
	"regexp"
	"time"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
)

var perMonth = regexp.MustCompile(`(?i)\bper month\b|/ ?month\b`)

// Cohere returns the profile of Cohere. Its errors are words alone; a trial key
// that has had its calls of a month gets a 429 as well. The usage is what it
// bills, which leaves out the text that it adds itself.
//
// The sources of its rules: https://docs.cohere.com/errors-reference and
// https://docs.cohere.com/docs/rate-limits (limits of a model, and of a month; the
// presets are from there, without those of embeddings, which count inputs).
// Usage: cohere-go, types.go, and for OpenAI's dialect
// https://docs.cohere.com/docs/compatibility-api.
func Cohere() *Profile {
	return &Profile{
		Name:       "cohere",
		Hosts:      []string{"api.cohere.com", "api.cohere.ai"},
		Model:      []Place{{Body, "model"}},
		OutputCaps: []string{"max_tokens", "max_completion_tokens"},
		Copies:     []string{"num_generations"},
		Shapes:     []Shape{{Ends: []string{"/embed", "/embeddings", "/embed-jobs", "/rerank", "/classify", "/tokenize", "/detokenize"}}},
		Texts:      []string{"message"},
		Rules: []Rule{
			{Status: []int{429}, Text: perMonth, Class: pause.QuotaExhausted, Scope: pause.Key},
			{Status: []int{401, 403}, Text: aboutModel, Class: pause.ClientError},
			{Status: []int{403}, NamesModel: true, Class: pause.ClientError},
		},
		Usage: UsageFields{
			At:     []string{"usage.billed_units", "meta.billed_units", "delta.usage.billed_units", "usage"},
			Input:  []string{"input_tokens", "prompt_tokens"},
			Output: []string{"output_tokens", "completion_tokens"},
		},
		StreamEnds: []string{"message-end"},
		Presets: []Preset{
			{Plan: "trial", Limits: []throttle.Limit{throttle.Per(throttle.Requests, 1000, 31*24*time.Hour)}},
			{Plan: "trial", Model: "command*", Limits: perMinute(20)},
			{Plan: "trial", Model: "rerank*", Limits: perMinute(10)},
			{Plan: "production", Model: "command-a-03*", Limits: perMinute(500)},
			{Plan: "production", Model: "command-r*", Limits: perMinute(500)},
			{Plan: "production", Model: "rerank*", Limits: perMinute(1000)},
		},
	}
}
