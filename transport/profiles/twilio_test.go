package profiles_test

import (
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/transport/profiles"
)

func TestSegments(t *testing.T) {
	r := strings.Repeat
	for _, tc := range []struct {
		name, text string
		want       int64
	}{
		{"empty", "", 1},
		{"160 characters", r("a", 160), 1},
		{"161", r("a", 161), 2},
		{"two full parts", r("a", 306), 2},
		{"one more", r("a", 307), 3},
		{"accents of the alphabet", r("é", 160), 1},
		{"80 that count two", r("€", 80), 1},
		{"81 that count two", r("€", 81), 2},
		{"a pair is not split over the parts", r("a", 152) + "{" + r("a", 152), 3},
		{"the same without it", r("a", 152) + "ab" + r("a", 152), 2},
		{"form feed counts two", "\f" + r("a", 159), 2},
		{"UCS-2, 70", r("ж", 70), 1},
		{"UCS-2, 71", r("ж", 71), 2},
		{"UCS-2, two full parts", r("ж", 134), 2},
		{"UCS-2, one more", r("ж", 135), 3},
		{"one quote turns it all", r("a", 70) + "’", 2},
		{"€ counts one in UCS-2", r("€", 69) + "ж", 1},
		{"emoji counts two", r("😀", 35), 1},
		{"36 emoji", r("😀", 36), 2},
		{"emoji is not split", r("😀", 67), 3},
		{"no UTF-8", "\xff", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := profiles.Segments(tc.text); got != tc.want {
				t.Errorf("Segments() = %d, want %d", got, tc.want)
			}
		})
	}
}

// A message costs its segments for each who gets it.
func TestRecipients(t *testing.T) {
	long := strings.Repeat("a", 161)
	for _, tc := range []struct {
		name       string
		profile    *profiles.Profile
		kind, body string
		segments   int64
	}{
		{"Sinch", profiles.Sinch(), "application/json", `{"from":"1","to":["2","3","4"],"body":"` + long + `"}`, 6},
		{"Sinch, nobody", profiles.Sinch(), "application/json", `{"to":[],"body":"hi"}`, 1},
		{"Plivo", profiles.Plivo(), "application/json", `{"src":"1","dst":"2<3<4","text":"hi"}`, 3},
		{"MessageBird", profiles.MessageBird(), "application/json", `{"recipients":["2","3"],"body":"hi"}`, 2},
		{"MessageBird, form", profiles.MessageBird(), "application/x-www-form-urlencoded", "recipients=2,3,4&body=" + long, 6},
		{"MessageBird, a picture", profiles.MessageBird(), "application/json", `{"recipients":["2","3"]}`, 2},
		{"MessageBird, no body", profiles.MessageBird(), "application/json", "", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := read(t, tc.profile, "https://sms.example/", tc.kind, tc.body).Cost; got["segments"] != tc.segments {
				t.Errorf("Read().Cost = %v, want %d segments", got, tc.segments)
			}
		})
	}
}

func TestTwilioRequests(t *testing.T) {
	const messages, form = "https://api.twilio.com/2010-04-01/Accounts/AC1/Messages.json", "application/x-www-form-urlencoded"
	sender := profiles.Twilio()
	sender.Model = []profiles.Place{{profiles.Body, "MessagingServiceSid"}, {profiles.Body, "From"}}
	for _, tc := range []struct {
		name, body string
		segments   int64
		model      string // with the sender as the model
	}{
		{"hello", "To=%2B1&From=%2B2&Body=hello", 1, "+2"},
		{"two parts", "From=%2B2&Body=" + strings.Repeat("a", 161), 2, "+2"},
		{"service before number", "From=%2B2&MessagingServiceSid=MG1&Body=" + url.QueryEscape(strings.Repeat("ж", 71)), 2, "MG1"},
		{"template", "To=%2B1&MessagingServiceSid=MG1&ContentSid=HX1", 1, "MG1"},
		{"no body", "", 0, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := read(t, profiles.Twilio(), messages, form, tc.body)
			if got.Cost["segments"] != tc.segments || len(got.Cost) != 1 || got.Model != "" {
				t.Errorf("Read() = %+v, want %d segments and no model", got, tc.segments)
			}
			if got := read(t, sender, messages, form, tc.body).Model; got != tc.model {
				t.Errorf("Read().Model = %q, want %q", got, tc.model)
			}
		})
	}
	owns := profiles.Twilio().Owns
	if !owns("api.twilio.com") || !owns("api.dublin.ie1.twilio.com") || owns("twilio.com.example") {
		t.Error("Owns() does not know Twilio's hosts")
	}
	list := profiles.Generic("sms") // a body in JSON, longer than a text in a form
	list.Message = []string{"text", "body"}
	if got := read(t, list, "https://sms.example/", "application/json", `{"body":"`+strings.Repeat(`\ud83d\ude00`, 1600)+`"}`); got.Cost["segments"] != 49 {
		t.Errorf("Read() = %+v, want 49 segments", got)
	}
}

func TestTwilioAnswers(t *testing.T) {
	for _, tc := range []struct {
		status int
		body   string
		want   pause.Verdict
	}{
		{429, `{"code":20429,"status":429}`, pause.Verdict{Class: pause.RateLimited, Scope: pause.Key}},
		{429, ``, pause.Verdict{Class: pause.RateLimited, Scope: pause.Key}},
		{429, `{"code":60203}`, pause.Verdict{Class: pause.ClientError}},
		{429, `{"code":"60202"}`, pause.Verdict{Class: pause.ClientError}},
		{429, `{"code":21611}`, pause.Verdict{Class: pause.ClientError}},
		{400, `{"code":21610}`, pause.Verdict{Class: pause.ClientError}},
		{403, `{"code":21408}`, pause.Verdict{Class: pause.ClientError}},
		{401, `{"code":20003,"httpStatusCode":401,"userError":true}`, pause.Verdict{Class: pause.KeyRefused, Scope: pause.Key}},
		{403, `{"code":20003}`, pause.Verdict{Class: pause.KeyRefused, Scope: pause.Key}},
		{503, ``, pause.Verdict{Class: pause.Overloaded, Scope: pause.Model}},
		{201, `{"error_code":null,"num_segments":"2"}`, pause.Verdict{}},
	} {
		if got := profiles.Twilio().Judge(profiles.Answer{Status: tc.status, Body: []byte(tc.body)}); got != tc.want {
			t.Errorf("Judge(%d %s) = %+v, want %+v", tc.status, tc.body, got, tc.want)
		}
	}
	for body, want := range map[string]int64{
		`{"num_segments":"2"}`: 2, `{"num_segments":3}`: 3, `{"num_segments":"0"}`: 0, `{"num_segments":"-2"}`: 0,
		`{"num_segments":"2.5"}`: 0, `{"num_segments":null}`: 0, `{"num_segments":"1e9"}`: 0, `{"x":{"num_segments":"9"}}`: 0,
		`{"num_segments":{"num_segments":4}}`: 0, `{"num_segments":"2"`: 0,
	} {
		s := profiles.Twilio().Scan(answer("application/json"))
		io.WriteString(s, body)
		u, final, ok := s.Usage(true)
		if u.Units["segments"] != want || ok != (want > 0) || final != ok || ok && len(u.Cost()) != 1 {
			t.Errorf("Usage() of %s = %+v, %v, %v, want %d segments", body, u, final, ok, want)
		}
	}
}
