package profiles

import (
	"regexp"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
)

var (
	aboutModel = regexp.MustCompile(`(?i)\b(access to|verified to use|permission to use|not allowed to (use|access)) (the |this |that )?(requested )?model\b`)
	badKeyText = regexp.MustCompile(`(?i)^(incorrect|invalid) api key\b`)
)

// OpenAI returns the profile of OpenAI, and of the many vendors that speak its
// dialect. It is the one for hosts that no profile names, such as a gateway's.
//
// The sources of its rules:
// https://developers.openai.com/api/docs/guides/error-codes and
// https://help.openai.com/en/articles/5955604 (codes; billing has one type and
// several codes), https://github.com/openai/openai-dotnet/issues/404 (429 texts),
// https://learn.microsoft.com/azure/foundry/openai/how-to/troubleshoot-errors
// (Azure's codes, which gateways pass on). Usage: openai/openai-python, types of
// chat completions and responses. Output caps: the request types of the same. A
// 400 for a bad key is xAI's and Gemini's, in their OpenAI dialect. What is left:
// https://developers.openai.com/api/docs/guides/rate-limits; where the requests
// are a day's, their reset lies beyond the minute, and the limiter passes them over.
func OpenAI() *Profile {
	code := []string{"error.code", "error.type", "code", "response.error.code"}
	return &Profile{
		Name:         "openai",
		Hosts:        []string{"api.openai.com"},
		ScopeHeaders: []string{"OpenAI-Organization", "OpenAI-Project"},
		Model:        []Place{{Path, "deployments"}, {Body, "model"}},
		OutputCaps:   []string{"max_tokens", "max_completion_tokens", "max_output_tokens"},
		Copies:       []string{"n", "best_of"},
		Shapes:       openaiShapes(),
		Texts:        []string{"error.message", "error", "message", "response.error.message"},
		Rules: []Rule{
			{AboveLimit: true, Class: pause.ClientError},
			{Fields: code, Values: []string{
				"insufficient_quota", "credit_balance_exhausted", "organization_spend_limit_exceeded",
				"project_spend_limit_exceeded", "organization_usage_limit_exceeded",
			}, Class: pause.QuotaExhausted, Scope: pause.Key},
			{Fields: code, Values: []string{
				"model_not_found", "DeploymentNotFound", "content_filter", "context_length_exceeded",
			}, Class: pause.ClientError},
			{Fields: code, Values: []string{
				"invalid_api_key", "mismatched_organization", "no_organization", "invalid_organization",
				"unsupported_country_region_territory",
			}, Class: pause.KeyRefused, Scope: pause.Key},
			{Status: []int{400}, Text: badKeyText, Class: pause.KeyRefused, Scope: pause.Key},
			{Status: []int{400}, Fields: []string{"error.details.reason"}, Values: []string{"API_KEY_INVALID"}, Class: pause.KeyRefused, Scope: pause.Key},
			{Status: []int{401, 403}, Text: aboutModel, Class: pause.ClientError},
			{Status: []int{403}, NamesModel: true, Class: pause.ClientError},
			{Fields: code, Values: []string{"server_is_overloaded", "service_unavailable_error", "overloaded_error"}, Class: pause.Overloaded, Scope: pause.Model},
			{Status: []int{200, 429}, Fields: code, Values: []string{"rate_limit_exceeded", "rate_limit_error", "slow_down"}, Class: pause.RateLimited, Scope: pause.Model},
			{Status: []int{200}, Fields: code, Values: []string{"server_error"}, Class: pause.ServerError},
		},
		Usage: UsageFields{
			At:     []string{"usage", "response.usage", "x_groq.usage"},
			Input:  []string{"prompt_tokens", "input_tokens"},
			Output: []string{"completion_tokens", "output_tokens"},
			Total:  []string{"total_tokens"},
			Cached: []string{"prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens"},
		},
		StreamEnds: []string{"response.completed", "response.incomplete", "response.failed"},
		LeftHeaders: []LeftHeaders{
			minute(throttle.Requests, "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"),
			minute(throttle.Tokens, "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"),
		},
	}
}

// imageTokens is what a picture of medium quality takes, 1024 by 1024 pixels:
// https://developers.openai.com/api/docs/guides/image-generation.
const imageTokens = 1056

// openaiShapes are the APIs of OpenAI's dialect that do not answer text with
// text. A minute of sound is about a thousand tokens of input, and a megabyte.
func openaiShapes() []Shape {
	return []Shape{
		{Ends: []string{
			"/embeddings", "/moderations", "/rerank", "/tokenize", "/input_tokens",
			"/files", "/batches", "/uploads", "/cancel",
		}},
		{Ends: []string{"/audio/transcriptions", "/audio/translations"}, BytesPerToken: 1000, Output: DefaultOutput / 4},
		{Ends: []string{"/audio/speech"}, Output: DefaultOutput, Characters: []string{"input"}},
		{Ends: []string{"/images/generations", "/images/edits", "/images/variations"}, Output: imageTokens, Images: true},
	}
}
