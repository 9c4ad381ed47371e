package profiles_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport/profiles"
)

// Every preset goes into a limiter as it is, and a call of the vendor's kind fits
// under it, a text message of 25 parts in the background included.
func TestPresets(t *testing.T) {
	plans := 0
	for _, p := range append(profiles.Builtin(), profiles.WhatsAppNumbers()) {
		for _, set := range p.Presets {
			plans++
			key, models, err := p.Limits(set.Plan)
			if err != nil {
				t.Fatal(err)
			}
			limiter, err := throttle.New(throttle.Config{Key: key, Models: models})
			if err != nil {
				t.Errorf("%s, %s: %v", p.Name, set.Plan, err)
				continue
			}
			call := throttle.Call{Key: strings.Repeat("0", 32), Model: strings.ReplaceAll(set.Model, "*", "a"), Lane: lanes.Background,
				Cost: throttle.Cost{throttle.Requests: 1, "segments": 25}}
			if call.Model == "" {
				call.Model = throttle.NoModel
			}
			if _, err := limiter.Reserve(t.Context(), call); err != nil {
				t.Errorf("%s, %s: %v", p.Name, set.Plan, err)
			}
			if err := limiter.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	if plans < 10 {
		t.Errorf("%d presets, want those of Twilio, Vonage, WhatsApp, SNS, Telnyx, Cohere and OpenRouter", plans)
	}
}

func TestLimits(t *testing.T) {
	for _, tc := range []struct {
		profile *profiles.Profile
		plan    string
		key     string
		models  string
		err     string
	}{
		{profiles.Twilio(), "us-long-code", "[]", "map[*:[60 segments per 1m0s]]", ""},
		{profiles.Vonage(), "default", "[30 requests per 1s]", "map[]", ""},
		{profiles.WhatsApp(), "business-app", "[20 requests per 1s]", "map[]", ""},
		{profiles.WhatsAppNumbers(), "default", "[]", "map[*:[80 requests per 1s]]", ""},
		{profiles.SNS(), "sms", "[20 requests per 1s]", "map[]", ""},
		{profiles.OpenRouter(), "free", "[20 requests per 1m0s 50 requests per 24h0m0s]", "map[]", ""},
		{profiles.Cohere(), "trial", "[1000 requests per 744h0m0s]",
			"map[command*:[20 requests per 1m0s] rerank*:[10 requests per 1m0s]]", ""},
		{profiles.Cohere(), "gold", "[]", "map[]", `profiles: cohere: no plan "gold", there is "trial", "production"`},
		{profiles.Twilio(), "", "[]", "map[]", `profiles: twilio: no plan "", there is "us-long-code", "us-short-code"`},
		{profiles.OpenAI(), "tier-1", "[]", "map[]", `profiles: openai: no plan "tier-1", there is none`},
	} {
		key, models, err := tc.profile.Limits(tc.plan)
		if fmt.Sprint(key) != tc.key || fmt.Sprint(models) != tc.models || tc.err == "" != (err == nil) || err != nil && err.Error() != tc.err {
			t.Errorf("%s: Limits(%q) = %v, %v, %v, want %s, %s, %q", tc.profile.Name, tc.plan, key, models, err, tc.key, tc.models, tc.err)
		}
	}
}

// A sender that may send one segment a second sends them one by one.
func TestPaced(t *testing.T) {
	_, models, _ := profiles.Twilio().Limits("us-long-code")
	want := throttle.Limit{Unit: "segments", Amount: 60, Window: time.Minute, Shape: throttle.Bucket, Burst: 1}
	if got := models["*"]; len(got) != 1 || got[0] != want {
		t.Errorf("Limits() = %+v, want %+v", got, want)
	}
}

// What Limits returns is the caller's: a change does not reach the profile.
func TestLimitsAreTheCallersOwn(t *testing.T) {
	p := profiles.Vonage()
	key, _, _ := p.Limits("default")
	key[0].Amount = 1
	if key, _, _ := p.Limits("default"); key[0].Amount != 30 {
		t.Errorf("Amount = %d, want 30", key[0].Amount)
	}
}

// A sender of Twilio's sends one segment a second; each has a budget of its own.
func ExampleProfile_Limits() {
	ctx := context.Background()
	vendor := profiles.Twilio()
	vendor.Model = []profiles.Place{{In: profiles.Body, Name: "From"}} // the transport takes it from each request
	key, models, err := vendor.Limits("us-long-code")
	if err != nil {
		fmt.Println(err)
		return
	}
	limiter, err := throttle.New(throttle.Config{Key: key, Models: models})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close(ctx)
	send := func(from string) {
		_, err := limiter.Reserve(ctx, throttle.Call{
			Key: "0123456789abcdef0123456789abcdef", Model: from, Cost: throttle.Cost{"requests": 1, "segments": 1},
		})
		fmt.Println(from, err == nil)
	}
	send("+15005550006")
	send("+15005550006")
	send("+15005550007")
	// Output:
	// +15005550006 true
	// +15005550006 false
	// +15005550007 true
}
