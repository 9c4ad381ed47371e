package profiles_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport/profiles"
)

// What vendors were recorded to send, and what it says of which limit.
func TestLeft(t *testing.T) {
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC) // epoch 1772445600
	left := func(unit string, window time.Duration, units int64, reset time.Duration) throttle.Left {
		return throttle.Left{Unit: unit, Window: window, Scope: pause.Model, Units: units, Reset: reset}
	}
	const minute, day = time.Minute, 24 * time.Hour
	for _, tc := range []struct {
		name    string
		profile *profiles.Profile
		header  map[string]string
		want    []throttle.Left
	}{
		{"OpenAI", profiles.OpenAI(), map[string]string{
			"X-RateLimit-Limit-Requests": "5000", "X-RateLimit-Remaining-Requests": "4999", "X-RateLimit-Reset-Requests": "12ms",
			"X-RateLimit-Remaining-Tokens": "159976", "X-RateLimit-Reset-Tokens": "6m0s",
		}, []throttle.Left{left("requests", minute, 4999, 12*time.Millisecond), left("tokens", minute, 159976, 6*minute)}},
		{"OpenAI, spaces, no reset", profiles.OpenAI(), map[string]string{"X-RateLimit-Remaining-Tokens": " 7 "},
			[]throttle.Left{left("tokens", minute, 7, 0)}},
		{"OpenAI, no counts", profiles.OpenAI(), map[string]string{
			"X-RateLimit-Remaining-Requests": "-1", "X-RateLimit-Remaining-Tokens": "12.5",
		}, nil},
		{"OpenAI, more no counts", profiles.OpenAI(), map[string]string{
			"X-RateLimit-Remaining-Requests": "99999999999999999999", "X-RateLimit-Remaining-Tokens": "",
		}, nil},
		{"nothing", profiles.OpenAI(), nil, nil},
		{"epoch seconds", profiles.OpenAI(), map[string]string{"X-RateLimit-Remaining-Tokens": "0", "X-RateLimit-Reset-Tokens": "1772445630"},
			[]throttle.Left{left("tokens", minute, 0, 30*time.Second)}},
		{"epoch milliseconds", profiles.OpenAI(), map[string]string{"X-RateLimit-Remaining-Tokens": "0", "X-RateLimit-Reset-Tokens": "1772445600250"},
			[]throttle.Left{left("tokens", minute, 0, 250*time.Millisecond)}},
		{"past", profiles.OpenAI(), map[string]string{"X-RateLimit-Remaining-Tokens": "3", "X-RateLimit-Reset-Tokens": "1772445599"},
			[]throttle.Left{left("tokens", minute, 3, 0)}},
		{"unreadable reset", profiles.OpenAI(), map[string]string{"X-RateLimit-Remaining-Tokens": "3", "X-RateLimit-Reset-Tokens": "soon"},
			[]throttle.Left{left("tokens", minute, 3, 0)}},
		{"Azure", profiles.Azure(), map[string]string{ // its requests are not a minute's
			"X-RateLimit-Remaining-Requests": "79", "X-RateLimit-Remaining-Tokens": "61353", "X-RateLimit-Reset-Tokens": "26",
		}, []throttle.Left{left("tokens", minute, 61353, 26*time.Second)}},
		{"Azure does not count", profiles.Azure(), map[string]string{"X-RateLimit-Remaining-Tokens": "-1", "X-RateLimit-Reset-Tokens": "0"}, nil},
		{"Anthropic", profiles.Anthropic(), map[string]string{
			"anthropic-ratelimit-requests-remaining": "49", "anthropic-ratelimit-requests-reset": "2026-03-02T10:00:01Z",
			"anthropic-ratelimit-tokens-remaining": "37000", "anthropic-ratelimit-tokens-reset": "2026-03-02T10:00:06Z",
			"anthropic-ratelimit-input-tokens-remaining": "29000", "anthropic-ratelimit-input-tokens-reset": "2026-03-02T11:00:02+01:00",
			"anthropic-ratelimit-output-tokens-remaining": "8000", "anthropic-ratelimit-output-tokens-reset": "2026-03-02T09:59:59Z",
		}, []throttle.Left{
			left("requests", minute, 49, time.Second), left("tokens", minute, 37500, 6*time.Second),
			left("input_tokens", minute, 29500, 2*time.Second), left("output_tokens", minute, 8500, 0),
		}},
		{"Anthropic, a subscription's", profiles.Anthropic(), map[string]string{"anthropic-ratelimit-unified-remaining": "5"}, nil},
		{"Groq", profiles.Groq(), map[string]string{
			"x-ratelimit-remaining-requests": "14370", "x-ratelimit-reset-requests": "2m59.56s",
			"x-ratelimit-remaining-tokens": "17997", "x-ratelimit-reset-tokens": "7.66s",
		}, []throttle.Left{left("requests", day, 14370, 179560*time.Millisecond), left("tokens", minute, 17997, 7660*time.Millisecond)}},
		{"Mistral", profiles.Mistral(), map[string]string{
			"x-ratelimit-remaining-req-minute": "59", "x-ratelimit-remaining-tokens-minute": "47196", "x-ratelimit-remaining-tokens-month": "3950246",
		}, []throttle.Left{left("requests", minute, 59, 0), left("tokens", minute, 47196, 0)}},
		{"Together", profiles.Together(), map[string]string{
			"x-ratelimit-remaining": "9", "x-ratelimit-reset": "1", "x-tokenlimit-remaining": "2999", "x-ratelimit-remaining-dynamic": "3",
		}, []throttle.Left{left("requests", time.Second, 9, time.Second), left("tokens", time.Second, 2999, 0)}},
		{"xAI", profiles.XAI(), map[string]string{"x-ratelimit-remaining-requests": "7", "x-ratelimit-remaining-tokens": "1999990"},
			[]throttle.Left{left("tokens", minute, 1999990, 0)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.profile.Left(header(tc.header), now); !slices.Equal(got, tc.want) {
				t.Errorf("Left() = %+v, want %+v", got, tc.want)
			}
		})
	}
}

// A reset that is a time counts by the vendor's own clock.
func TestLeftByVendorsClock(t *testing.T) {
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	h := header(map[string]string{
		"Anthropic-Ratelimit-Requests-Remaining": "1", "Anthropic-Ratelimit-Requests-Reset": "2026-03-02T10:10:04Z",
		"Date": now.Add(10 * time.Minute).Format(http.TimeFormat),
	})
	if got := profiles.Anthropic().Left(h, now); len(got) != 1 || got[0].Reset != 4*time.Second {
		t.Errorf("Left() = %+v, want a reset in 4s", got)
	}
}

// OpenAI's headers mean something only where a vendor says so: one that speaks
// its dialect does not inherit them.
func TestLeftIsNotInherited(t *testing.T) {
	h := header(map[string]string{
		"X-RateLimit-Remaining-Requests": "1", "X-RateLimit-Remaining-Tokens": "2", "X-RateLimit-Remaining": "3", "X-RateLimit-Reset": "4",
	})
	speaks := map[string]bool{"openai": true, "azure-openai": true, "groq": true, "xai": true, "together": true}
	for _, p := range profiles.Builtin() {
		if got := p.Left(h, time.Now()); (len(got) > 0) != speaks[p.Name] {
			t.Errorf("%s: Left() = %+v", p.Name, got)
		}
	}
}
