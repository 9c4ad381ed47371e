package profiles

// DeepSeek returns the profile of DeepSeek. Its budget is calls at one time, of
// an account and a model. Under load it sends blank lines before a JSON answer
// and comments in a stream.
//
// The sources: https://api-docs.deepseek.com/quick_start/error_codes (402 is an
// empty balance) and https://api-docs.deepseek.com/quick_start/rate_limit. Usage:
// prompt_cache_hit_tokens is inside of prompt_tokens.
func DeepSeek() *Profile {
	p := compatible("deepseek", "api.deepseek.com")
	p.Usage.Cached = append(p.Usage.Cached, "prompt_cache_hit_tokens")
	return p
}
