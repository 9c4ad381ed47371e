package profiles

import (
	"regexp"

	"github.com/headway-go/headway/pause"
)

var onResource = regexp.MustCompile(`(?i)\bnot authorized to perform\b.*\bon resource\b`)

// SNS returns the profile of AWS SNS. Its rates are an account's in a region, so
// calls name no model, and each region has budgets and pauses of its own. A
// message costs "segments", see [Profile.Message]. Its errors are XML.
//
// Access key ids that rotate (ASIA...) would each be a key of their own: set the
// transport's KeyID to the account.
//
// The sources of its rules: botocore, data/sns/2010-03-31/service-2.json (codes)
// and https://docs.aws.amazon.com/sns/latest/api/CommonErrors.html. Preset, of text
// messages of one type: https://docs.aws.amazon.com/general/latest/gr/sns.html.
func SNS() *Profile {
	code := []string{"Error.Code", "X-Amzn-Errortype", "__type"}
	return &Profile{
		Name:        "sns",
		Hosts:       []string{"sns.*.amazonaws.com", "sns-fips.*.amazonaws.com", "sns.*.amazonaws.com.cn"},
		PerHost:     true,
		Message:     []string{"Message"},
		ErrorHeader: "X-Amzn-Errortype",
		Texts:       []string{"Error.Message", "message"},
		Rules: []Rule{
			{Fields: code, Values: []string{"OptedOut", "EndpointDisabled", "InvalidParameter", "NotFound"}, Class: pause.ClientError},
			{Fields: code, Values: awsBadKey(), Class: pause.KeyRefused, Scope: pause.Key},
			{Fields: code, Values: append(awsThrottled(), "KMSThrottling"), Class: pause.RateLimited, Scope: pause.Key},
			{Status: []int{403}, Text: onResource, Class: pause.ClientError},
			{Status: []int{429}, Class: pause.RateLimited, Scope: pause.Key},
		},
		Presets: []Preset{{Plan: "sms", Limits: perSecond(20)}},
	}
}
