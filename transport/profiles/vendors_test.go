package profiles_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/headway-go/headway/fingerprint"
	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/transport/profiles"
)

// The odd answers: one code with two meanings, one meaning with two statuses.
func TestMoreVendorCases(t *testing.T) {
	runCases(t, "testdata/more_cases.json", map[string]int{
		"azure-openai": 4, "bedrock": 11, "mistral": 2, "groq": 2, "openrouter": 11, "xai": 2, "deepseek": 3, "together": 2,
		"perplexity": 1, "cohere": 3, "elevenlabs": 3, "deepgram": 3, "vonage": 7, "messagebird": 2, "plivo": 1,
		"sinch": 2, "telnyx": 1, "vertex": 1, "sns": 4, "mailgun": 2, "sendgrid": 2, "whatsapp": 6,
	})
}

func TestChooseVendor(t *testing.T) {
	for _, tc := range []struct{ url, want string }{
		{"https://bedrock-runtime.eu-west-1.amazonaws.com/", "bedrock"},
		{"https://bedrock-runtime-fips.us-east-1.amazonaws.com/", "bedrock"},
		{"https://bedrock-runtime..amazonaws.com/", "openai"},
		{"https://bedrock.eu-west-1.amazonaws.com/", "openai"}, // the control plane
		{"https://bedrock-runtime.eu-west-1.amazonaws.com.example/", "openai"},
		{"https://sns.eu-west-1.amazonaws.com/", "sns"},
		{"https://sqs.eu-west-1.amazonaws.com/", "openai"},
		{"https://demo.openai.azure.com/", "azure-openai"},
		{"https://demo.cognitiveservices.azure.com/", "azure-openai"},
		{"https://openrouter.ai/", "openrouter"},
		{"https://eu-west-1.api.x.ai/", "xai"},
		{"https://eu.sms.api.sinch.com/", "sinch"},
		{"https://api.eu.mailgun.net/", "mailgun"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", tc.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := profiles.Choose(profiles.Builtin(), req); got.Name != tc.want {
			t.Errorf("Choose(%s) = %q, want %q", tc.url, got.Name, tc.want)
		}
	}
	names := map[string]bool{}
	for _, p := range profiles.Builtin() {
		if names[p.Name] || p.Name == "" || len(p.Hosts) == 0 {
			t.Errorf("profile %q comes twice, or lacks a name or hosts", p.Name)
		}
		names[p.Name] = true
		for _, r := range p.Rules {
			if (r.Scope == pause.None) == (r.Class != pause.ClientError && r.Class != pause.ServerError) {
				t.Errorf("%s: scope %v of a rule for %v", p.Name, r.Scope, r.Class)
			}
		}
	}
}

// S28: one key, one fingerprint, wherever the vendor takes it.
func TestVendorKeys(t *testing.T) {
	for _, tc := range []struct {
		name    string
		profile *profiles.Profile
		url     string
		header  http.Header
	}{
		{"Azure, beside a gateway's", profiles.Azure(), "https://demo.openai.azure.com/", http.Header{"Api-Key": {"K"}, "Authorization": {"Bearer other"}}},
		{"Azure, Entra", profiles.Azure(), "https://demo.openai.azure.com/", http.Header{"Authorization": {"Bearer K"}}},
		{"ElevenLabs", profiles.ElevenLabs(), "https://api.elevenlabs.io/", http.Header{"Xi-Api-Key": {"K"}}},
		{"Deepgram", profiles.Deepgram(), "https://api.deepgram.com/", http.Header{"Authorization": {"Token K"}}},
		{"MessageBird", profiles.MessageBird(), "https://rest.messagebird.com/", http.Header{"Authorization": {"AccessKey K"}}},
		{"Vonage, query", profiles.Vonage(), "https://rest.nexmo.com/sms/json?api_key=K&api_secret=S", nil},
		{"WhatsApp, query", profiles.WhatsApp(), "https://graph.facebook.com/v23.0/1/messages?access_token=K", nil},
		{"WhatsApp, header", profiles.WhatsApp(), "https://graph.facebook.com/v23.0/1/messages", http.Header{"Authorization": {"Bearer K"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), "POST", tc.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header = tc.header
			if got, _ := fingerprint.Find(req, tc.profile.KeyPlaces...); got != fingerprint.Key("K") {
				t.Error("Find() did not find K")
			}
		})
	}
}

// A key in the body is found, and prints as nothing of itself.
func TestKeyInBody(t *testing.T) {
	p := profiles.Vonage()
	for _, tc := range []struct {
		kind, body string
		want       fingerprint.Credential
	}{
		{"application/x-www-form-urlencoded", "api_key=K1&api_secret=S", fingerprint.Key("K1")},
		{"application/json", `{"api_secret":"S","api_key":"K1"}`, fingerprint.Key("K1")},
		{"application/json", `{"text":"a"}`, fingerprint.Credential{}},
		{"application/json", `{"api_key":`, fingerprint.Credential{}},
	} {
		got := read(t, p, "https://rest.nexmo.com/sms/json", tc.kind, tc.body)
		if got.Credential != tc.want {
			t.Errorf("Read(%s) found another key, or none", tc.body)
		}
		if text := fmt.Sprintf("%+v %#v", got, got); strings.Contains(text, "K1") {
			t.Errorf("Read() prints the key: %s", text)
		}
	}
	if !p.KeyInBody() || profiles.OpenAI().KeyInBody() {
		t.Error("KeyInBody() = false for Vonage, or true for OpenAI")
	}
}

// Codes go before what a vendor's own words and statuses say.
func TestCodesFirst(t *testing.T) {
	key := pause.Verdict{Class: pause.KeyRefused, Scope: pause.Key}
	quota := pause.Verdict{Class: pause.QuotaExhausted, Scope: pause.Key}
	for _, tc := range []struct {
		profile *profiles.Profile
		status  int
		body    string
		want    pause.Verdict
	}{
		{profiles.Together(), 403, `{"error":{"code":"invalid_api_key"}}`, key},
		{profiles.Azure(), 429, `{"error":{"code":"insufficient_quota","message":"high demand"}}`, quota},
		{profiles.Perplexity(), 429, `{"error":{"code":"insufficient_quota"}}`, quota},
		{profiles.Perplexity(), 200, `{"error":{"type":"rate_limit_error"}}`, pause.Verdict{Class: pause.RateLimited, Scope: pause.Key}}, // inside of a stream
		{profiles.Groq(), 413, `{"error":{"message":"Limit 6000, Requested 8000","code":"rate_limit_exceeded"}}`, pause.Verdict{Class: pause.ClientError}},
		{profiles.OpenRouter(), 403, `{"error":{"code":403,"message":"m is over its budget","metadata":{"resets_at":1}}}`, quota},
		{profiles.WhatsApp(), 401, `{"error":{"code":131056}}`, pause.Verdict{Class: pause.ClientError}},
	} {
		if got := tc.profile.Judge(profiles.Answer{Status: tc.status, Body: []byte(tc.body), Model: "m"}); got != tc.want {
			t.Errorf("%s: Judge(%d %s) = %+v, want %+v", tc.profile.Name, tc.status, tc.body, got, tc.want)
		}
	}
}

func TestVendorEstimates(t *testing.T) {
	long := strings.Repeat("a", 161) // two parts
	const form, document = "application/x-www-form-urlencoded", "application/json"
	for _, tc := range []struct {
		profile          *profiles.Profile
		kind, body       string
		segments, output int64
	}{
		{profiles.Vonage(), form, "from=Acme&text=" + long, 2, -1},
		{profiles.SNS(), form, "Action=Publish&Message=" + long, 2, -1},
		{profiles.Plivo(), document, `{"text":"` + long + `"}`, 2, -1},
		{profiles.Sinch(), document, `{"body":"` + long + `"}`, 2, -1},
		{profiles.Telnyx(), document, `{"text":"` + long + `"}`, 2, -1},
		{profiles.MessageBird(), document, `{"body":"` + long + `"}`, 2, -1},
		{profiles.Bedrock(), document, `{"inferenceConfig":{"maxTokens":50}}`, 0, 50},
		{profiles.Bedrock(), document, `{"max_tokens":60,"messages":[]}`, 0, 60},
		{profiles.Azure(), document, `{"max_completion_tokens":70}`, 0, 70},
		{profiles.SendGrid(), document, `{"personalizations":[]}`, 0, -1},
	} {
		got := read(t, tc.profile, "https://vendor.example/", tc.kind, tc.body)
		if got.Cost["segments"] != tc.segments || got.Output != tc.output {
			t.Errorf("%s: Read() = %+v, want %d segments, output %d", tc.profile.Name, got, tc.segments, tc.output)
		}
	}
}

func TestWhatsAppNumbers(t *testing.T) {
	p := profiles.WhatsAppNumbers()
	for url, want := range map[string]string{
		"https://graph.facebook.com/v23.0/100000000000001/messages": "100000000000001",
		"https://graph.facebook.com/messages":                       "",
		"messages":                                                  "",
		"https://graph.facebook.com/v23.0/100000000000001/media":    "",
	} {
		if got := read(t, p, url, "application/json", `{}`).Model; got != want {
			t.Errorf("Read(%s).Model = %q, want %q", url, got, want)
		}
	}
	for body, want := range map[string]pause.Verdict{
		`{"error":{"code":130429}}`: {Class: pause.RateLimited, Scope: pause.Model},
		`{"error":{"code":80007}}`:  {Class: pause.RateLimited, Scope: pause.Key},
		`{"error":{"code":131056}}`: {Class: pause.ClientError},
	} {
		if got := p.Judge(profiles.Answer{Status: 400, Body: []byte(body)}); got != want {
			t.Errorf("Judge(%s) = %+v, want %+v", body, got, want)
		}
	}
}

func TestAzureGateway(t *testing.T) {
	a := profiles.Answer{Status: 403, Body: []byte(`{"statusCode":403,"message":"Out of call volume quota. Quota will be replenished in 02:10:31."}`)}
	if got, want := profiles.Azure().Judge(a).Class, pause.QuotaExhausted; got != want {
		t.Errorf("Class = %v, want %v", got, want)
	}
}

func TestXMLErrors(t *testing.T) {
	key, limited := pause.KeyRefused, pause.RateLimited
	for _, tc := range []struct {
		name, body string
		want       pause.Class
	}{
		{"code", `<E><Error><Code>Throttled</Code></Error></E>`, limited},
		{"namespaces and attributes", `<a:E xmlns:a="x"><a:Error b="c"><a:Code>Throttled</a:Code></a:Error></a:E>`, limited},
		{"as data, after a comment", `<E><Error><Code><!-- c --><![CDATA[Throttled]]></Code></Error></E>`, limited},
		{"cut off behind the code", `<E><Error><Code>Throttled</Code><Mess`, limited},
		{"at another place", `<E><Code>Throttled</Code></E>`, key},
		{"outermost", `<Error><Code>Throttled</Code></Error>`, key},
		{"in the message's words", `<E><Error><Message>Code Throttled</Message></Error></E>`, key},
		{"too deep", strings.Repeat("<a>", 1000) + `<Error><Code>Throttled</Code>`, key},
		{"ends before it begins", `</E></E><E><Error><Code>Throttled</Code></Error></E>`, key},
		{"entity of its own", `<!DOCTYPE E [<!ENTITY a "Throttled">]><E><Error><Code>&a;</Code></Error></E>`, key},
		{"page", `<html><body>Throttled</body></html>`, key},
		{"empty", ` < `, key},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := profiles.SNS().Judge(profiles.Answer{Status: 403, Body: []byte(tc.body)}); got.Class != tc.want {
				t.Errorf("Class = %v, want %v", got.Class, tc.want)
			}
		})
	}
}

func TestErrorHeader(t *testing.T) {
	for name, header := range map[string]string{
		"bare": "ThrottlingException", "address": "ThrottlingException:http://internal.example/coral/",
		"namespace": "aws.demo#ThrottlingException", "letter case": "throttlingexception",
	} {
		a := profiles.Answer{Status: 400, Header: http.Header{"X-Amzn-Errortype": {header}}}
		want := pause.Verdict{Class: pause.RateLimited, Scope: pause.Model}
		if got := profiles.Bedrock().Judge(a); got != want {
			t.Errorf("%s: Judge() = %+v, want %+v", name, got, want)
		}
		if got := profiles.OpenAI().Judge(a).Class; got != pause.ClientError {
			t.Errorf("%s: OpenAI's Judge() = %v, want the header passed over", name, got)
		}
	}
}
