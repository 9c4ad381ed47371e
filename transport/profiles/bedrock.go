package profiles

import (
	"regexp"

	"github.com/headway-go/headway/pause"
)

var tokensPerDay = regexp.MustCompile(`(?i)\bper day\b`)

// Bedrock returns the profile of AWS Bedrock's runtime: its Converse API, and
// InvokeModel with the bodies of Anthropic and of Amazon. A model is named as in
// the path, so each id of a model, such as a region's, is one of its own. Each
// region has budgets and pauses of its own.
//
// Access key ids that rotate (ASIA...) would each be a key of their own: set the
// transport's KeyID to the account.
//
// The sources of its rules:
// https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html
// and https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModel.html
// (codes), https://github.com/langgenius/dify/issues/2829 (no access to a model),
// https://github.com/anthropics/claude-code/issues/2260 (a bad token behind a
// 403), https://github.com/minorun365/agent-book/issues/29 (a spent day). Usage:
// aws-sdk-go-v2, bedrockruntime, TokenUsage: both cache counts are outside of
// inputTokens; a stream of InvokeModel ends with what Bedrock itself counted. The
// cap of a call is held until it ends, cache reads are given back then:
// aws/agent-toolkit-for-aws, amazon-bedrock, quota-health.md.
func Bedrock() *Profile {
	code := []string{"X-Amzn-Errortype", "__type", "code"}
	return &Profile{
		Name:       "bedrock",
		Hosts:      []string{"bedrock-runtime.*.amazonaws.com", "bedrock-runtime-fips.*.amazonaws.com", "bedrock-runtime.*.amazonaws.com.cn"},
		PerHost:    true,
		Model:      []Place{{Path, "model"}},
		OutputCaps: []string{"inferenceConfig.maxTokens", "inferenceConfig.max_new_tokens", "max_tokens", "max_gen_len", "textGenerationConfig.maxTokenCount"},
		Caps:       CapsHeld,
		Copies:     []string{"imageGenerationConfig.numberOfImages"},
		Shapes: []Shape{
			{Ends: []string{"embed*/invoke", "rerank*/invoke", "/count-tokens", "/apply"}},
			{Ends: []string{"image*/invoke", "canvas*/invoke", "stability*/invoke"}, Images: true},
		},
		ErrorHeader: "X-Amzn-Errortype",
		Texts:       []string{"message", "Message"},
		Rules: []Rule{
			{Fields: code, Values: awsBadKey(), Class: pause.KeyRefused, Scope: pause.Key},
			{Fields: code, Values: []string{"ModelNotReadyException", "ServiceUnavailableException"}, Class: pause.Overloaded, Scope: pause.Model},
			{Fields: code, Values: []string{"ServiceQuotaExceededException"}, Class: pause.QuotaExhausted, Scope: pause.Model},
			{Fields: code, Values: []string{"ModelErrorException", "ModelStreamErrorException", "ModelTimeoutException", "InternalServerException"}, Class: pause.ServerError},
			{Status: []int{403}, Text: aboutModel, Class: pause.ClientError},
			{Status: []int{403}, NamesModel: true, Class: pause.ClientError},
			{Status: []int{200, 400, 429}, Fields: code, Values: awsThrottled(), Text: tokensPerDay, Class: pause.QuotaExhausted, Scope: pause.Model},
			{Fields: code, Values: awsThrottled(), Class: pause.RateLimited, Scope: pause.Model},
			{Status: []int{429}, Text: tokensPerDay, Class: pause.QuotaExhausted, Scope: pause.Model},
		},
		Usage: UsageFields{
			At:         []string{"usage", "message.usage", "metadata.usage", "amazon-bedrock-invocationMetrics"},
			Input:      []string{"inputTokens", "input_tokens", "inputTokenCount"},
			Output:     []string{"outputTokens", "output_tokens", "outputTokenCount"},
			Cached:     []string{"cacheReadInputTokens", "cache_read_input_tokens"},
			Written:    []string{"cacheWriteInputTokens", "cache_creation_input_tokens"},
			CachedFree: true,
			Beside: []string{
				"cacheReadInputTokens", "cacheWriteInputTokens",
				"cache_read_input_tokens", "cache_creation_input_tokens",
			},
		},
		StreamEnds: []string{"message_stop"},
	}
}

// awsThrottled lists the codes of AWS for a rate that is too high:
// aws-sdk-go-v2, aws/retry, standard.go.
func awsThrottled() []string {
	return []string{
		"Throttling", "ThrottlingException", "ThrottledException", "Throttled", "RequestThrottled",
		"RequestThrottledException", "TooManyRequestsException", "RequestLimitExceeded",
	}
}

// awsBadKey lists the codes of AWS for credentials that it refuses:
// https://docs.aws.amazon.com/sns/latest/api/CommonErrors.html.
func awsBadKey() []string {
	return []string{
		"UnrecognizedClientException", "UnrecognizedClient", "InvalidClientTokenId", "ExpiredTokenException",
		"ExpiredToken", "InvalidAccessKeyId", "OptInRequired",
	}
}
