package profiles

import (
	"regexp"
	"slices"
	"time"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
)

// freeDay is how a spent day of the free models is worded. Not all answers have
// a code for it: https://github.com/Gitlawb/openclaude/issues/936.
var freeDay = regexp.MustCompile(`free-models-per-day`)

// OpenRouter returns the profile of OpenRouter. An error that comes once
// generation has begun stands inside of an answer with status 200, with its own
// status in error.code.
//
// A spent day of the free models closes the model that met it: the paid ones go
// on. Its reset stands in error.metadata.headers.
//
// Of its 402s one is over when running calls end, one is about a single request,
// and the rest are about money. A 403 that names reasons is about content.
//
// The sources of its rules:
// https://openrouter.ai/docs/api_reference/errors-and-debugging and
// https://www.developersdigest.tech/errors/api/openrouter (the kinds of 402 and
// 403). Usage: https://openrouter.ai/docs/use-cases/usage-accounting (what was
// written to a cache is inside of the prompt). Presets, of an account that calls
// models whose name ends in ":free" and no others, before and after it has bought 10
// credits: https://openrouter.ai/docs/api_reference/limits.
func OpenRouter() *Profile {
	kind := []string{"error.metadata.error_type", "error.metadata.limit_source"}
	p := compatible("openrouter", "openrouter.ai")
	p.ReadOK = true
	p.StatusPath = "error.code"
	p.HeadersPath = "error.metadata.headers"
	p.Usage.Written = []string{"prompt_tokens_details.cache_write_tokens"}
	p.Presets = []Preset{{Plan: "free", Limits: freeModels(50)}, {Plan: "free-with-credits", Limits: freeModels(1000)}}
	p.Rules = slices.Concat([]Rule{
		{Fields: kind, Values: []string{"weight_exceeds_budget"}, Class: pause.ClientError},
		{Fields: kind, Values: []string{"in_flight_budget_exhausted", "openrouter_in_flight_budget"}, Class: pause.RateLimited, Scope: pause.Key},
		{Fields: kind, Values: []string{"payment_required", "openrouter_credits", "openrouter_key_limit"}, Class: pause.QuotaExhausted, Scope: pause.Key},
		{Fields: kind, Values: []string{"openrouter_free_tier_daily"}, Class: pause.QuotaExhausted, Scope: pause.Model},
		{Status: []int{429}, Text: freeDay, Class: pause.QuotaExhausted, Scope: pause.Model},
		{Status: []int{403}, Fields: []string{"error.metadata.reasons", "error.metadata.flagged_input"}, Class: pause.ClientError},
		{Status: []int{403}, Fields: []string{"error.metadata.resets_at"}, Class: pause.QuotaExhausted, Scope: pause.Key},
	}, p.Rules)
	return p
}

// freeModels are the limits of OpenRouter's free models: of a minute, and of a day
// in UTC.
func freeModels(aDay int64) []throttle.Limit {
	return append(perMinute(20), throttle.Limit{Unit: throttle.Requests, Amount: aDay, Window: 24 * time.Hour, Shape: throttle.Fixed})
}
