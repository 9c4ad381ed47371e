package profiles

import (
	"regexp"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
)

var (
	azureBusy  = regexp.MustCompile(`(?i)\bhigh demand\b|\bsystem capacity\b`)
	azureQuota = regexp.MustCompile(`(?i)\bquota\b.*\b(exceeded|replenished)\b`)
)

// Azure returns the profile of Azure OpenAI. Its model is the deployment, in the
// path or, under /openai/v1/, in the body. Each resource, which is a host, has
// budgets and pauses of its own.
//
// Its Entra tokens rotate, and every token would be a key of its own: set the
// transport's KeyID to the resource.
//
// The sources of its rules:
// https://learn.microsoft.com/azure/foundry/openai/how-to/troubleshoot-errors
// (high demand behind a 429) and
// https://learn.microsoft.com/azure/api-management/azure-openai-token-limit-policy
// (a spent quota behind a 403). Waits: azcore, internal/shared: retry-after-ms
// goes before Retry-After. Tokens are counted when a call comes, its caps in
// full: https://learn.microsoft.com/answers/questions/1689036. Requests are counted
// in parts of a minute, and no header says in which, so only its tokens are
// believed; where it does not count them it sends -1:
// https://github.com/openai/openai-dotnet/issues/838.
func Azure() *Profile {
	p := compatible("azure-openai", "*.openai.azure.com", "*.cognitiveservices.azure.com", "*.services.ai.azure.com")
	p.PerHost = true
	p.KeyPlaces = []string{"Api-Key"}
	p.Caps = CapsCharged
	p.LeftHeaders = []LeftHeaders{minute(throttle.Tokens, "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens")}
	p.Rules = append(p.Rules,
		Rule{Status: []int{429}, Text: azureBusy, Class: pause.Overloaded, Scope: pause.Model},
		Rule{Status: []int{403}, Text: azureQuota, Class: pause.QuotaExhausted, Scope: pause.Key},
	)
	return p
}
