package profiles

import (
	"regexp"
	"slices"

	"github.com/headway-go/headway/pause"
)

var (
	dayQuota  = regexp.MustCompile(`PerDay|\blimit: 0\b`)
	notServed = regexp.MustCompile(`(?i)free tier is not available|location is not supported`)
)

// Gemini returns the profile of the Gemini API of AI Studio, in its own dialect,
// in OpenAI's (/v1beta/openai/) and in that of the Interactions API.
//
// A model is named as in the path, "gemini-2.5-flash" or "tunedModels/mine". A
// spent day of one model is that model's alone; a short retryDelay beside it
// does not make it a rate limit. So is a limit of 0: the model is not in the plan.
//
// The sources of its rules: https://ai.google.dev/gemini-api/docs/troubleshooting
// (statuses; 403 of a tuned model), google/api/error_reason.proto (reasons),
// google-gemini/gemini-cli, googleQuotaErrors.ts (day quotas, limit 0),
// https://discuss.ai.google.dev/t/183654 (402). Usage: google.golang.org/genai,
// types.go: thoughts are outside of the candidates, the cache is inside of the
// prompt, and every chunk of a stream repeats the counts; limits count the cache
// too: https://ai.google.dev/gemini-api/docs/caching. Interactions:
// https://ai.google.dev/gemini-api/docs/tokens. Its limits of tokens are of
// input_tokens: https://ai.google.dev/gemini-api/docs/rate-limits.
func Gemini() *Profile {
	reason := []string{"error.details.reason"}
	return &Profile{
		Name:      "gemini",
		Hosts:     []string{"generativelanguage.googleapis.com"},
		Marks:     []string{"X-Goog-Api-Key"},
		KeyPlaces: []string{"X-Goog-Api-Key", "?key"},
		Model:     []Place{{Resource, "models"}, {Resource, "tunedModels"}, {Body, "model"}},
		TrimModel: "models/",
		OutputCaps: []string{
			"generationConfig.maxOutputTokens", "generation_config.max_output_tokens",
			"max_tokens", "max_completion_tokens", "max_output_tokens",
		},
		Shapes: []Shape{
			{Ends: []string{"/images/generations", "imagen*:predict"}, Output: imageTokens, Images: true},
			{Ends: []string{
				":embedContent", ":batchEmbedContents", ":asyncBatchEmbedContent", ":countTokens", ":predict", "/embeddings",
				"count-tokens*:rawPredict", "/cachedContents", "/files",
			}},
		},
		Copies:     []string{"generationConfig.candidateCount", "generation_config.candidate_count", "parameters.sampleCount", "n"},
		Texts:      []string{"error.message", "error.details.violations.quotaId"},
		StatusPath: "error.code",
		Rules: []Rule{
			{Fields: reason, Values: []string{"BILLING_DISABLED"}, Class: pause.QuotaExhausted, Scope: pause.Key},
			{Fields: reason, Values: []string{
				"API_KEY_INVALID", "API_KEY_SERVICE_BLOCKED", "API_KEY_HTTP_REFERRER_BLOCKED",
				"API_KEY_IP_ADDRESS_BLOCKED", "API_KEY_ANDROID_APP_BLOCKED", "API_KEY_IOS_APP_BLOCKED",
				"CONSUMER_INVALID", "CONSUMER_SUSPENDED", "SERVICE_DISABLED", "USER_PROJECT_DENIED",
				"ACCESS_TOKEN_EXPIRED",
			}, Class: pause.KeyRefused, Scope: pause.Key},
			{Status: []int{400}, Text: notServed, Class: pause.KeyRefused, Scope: pause.Key},
			{Status: []int{403}, NamesModel: true, Class: pause.ClientError},
			{Status: []int{429}, Text: dayQuota, Class: pause.QuotaExhausted, Scope: pause.Model},
			{Fields: []string{"error.code"}, Values: []string{"payment_required"}, Class: pause.QuotaExhausted, Scope: pause.Key},
			{Fields: []string{"error.code"}, Values: []string{"quota_exceeded"}, Class: pause.QuotaExhausted, Scope: pause.Model},
		},
		Usage: UsageFields{
			At:       []string{"usageMetadata", "usage", "interaction.usage"},
			Input:    []string{"promptTokenCount", "prompt_tokens", "total_input_tokens"},
			Output:   []string{"candidatesTokenCount", "completion_tokens", "total_output_tokens"},
			Total:    []string{"totalTokenCount", "total_tokens"},
			Cached:   []string{"cachedContentTokenCount", "prompt_tokens_details.cached_tokens", "total_cached_tokens"},
			Beside:   []string{"toolUsePromptTokenCount", "total_tool_use_tokens"},
			Thoughts: []string{"thoughtsTokenCount", "total_thought_tokens"},
		},
	}
}

// Vertex returns the profile of Vertex AI: Gemini's dialect, and Anthropic's for
// its models under rawPredict. Each region has budgets and pauses of its own.
//
// Its OAuth tokens rotate, and every token would be a key of its own: set the
// transport's KeyID to the project.
//
// Under endpoints/openapi the body names the model, "google/gemini-2.5-flash":
// https://cloud.google.com/vertex-ai/generative-ai/docs/start/openai. Aliases make
// it one with "gemini-2.5-flash" of the other paths.
//
// The sources beyond Gemini's: google/api/error_reason.proto
// (IAM_PERMISSION_DENIED names the resource) and anthropic-sdk-go, vertex.go
// (paths). Its :predict embeds text, but for the models named imagen.
func Vertex() *Profile {
	p, partner := Gemini(), Anthropic()
	p.Name = "vertex"
	p.Hosts = []string{"aiplatform.googleapis.com", "*-aiplatform.googleapis.com"}
	p.PerHost = true
	p.Marks = nil
	p.Model = []Place{{Resource, "models"}, {Resource, "endpoints"}, {Body, "model"}}
	p.Usage.At = append(p.Usage.At, "message.usage")
	p.Usage.Input = append(p.Usage.Input, partner.Usage.Input...)
	p.Usage.Output = append(p.Usage.Output, partner.Usage.Output...)
	p.Usage.Cached = append(p.Usage.Cached, partner.Usage.Cached...)
	p.Usage.Written = partner.Usage.Written
	p.Usage.Beside = append(p.Usage.Beside, partner.Usage.Beside...)
	p.StreamEnds = partner.StreamEnds
	p.Rules = slices.Concat(p.Rules, partner.Rules)
	return p
}
