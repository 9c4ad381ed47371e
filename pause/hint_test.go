package pause_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/pause"
)

// clock is the moment at which every answer of these tests is read.
var clock = time.Date(2026, time.March, 2, 10, 0, 0, 0, time.UTC)

// lines builds a header from lines such as "Retry-After: 5".
func lines(raw ...string) http.Header {
	h := http.Header{}
	for _, line := range raw {
		name, value, _ := strings.Cut(line, ":")
		h.Add(name, strings.TrimPrefix(value, " "))
	}
	return h
}

func named(d time.Duration) pause.Hint { return pause.Hint{Wait: d, Named: true} }

var (
	unnamed = pause.Hint{}
	isNow   = named(0)
)

func TestHintOfHeaders(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	tests := []struct {
		name   string
		header http.Header
		want   pause.Hint
	}{
		// S01: fractions are accepted and rounded up, never down to zero.
		{"whole seconds", lines("Retry-After: 30"), named(30 * s)},
		{"fraction", lines("Retry-After: 0.4"), named(400 * ms)},
		{"fraction above one", lines("Retry-After: 1.5"), named(1500 * ms)},
		{"fraction of zero", lines("Retry-After: 2.0"), named(2 * s)},
		{"spaces", lines("Retry-After:  2.5 "), named(2500 * ms)},
		{"three decimals stay exact", lines("Retry-After: 299.997"), named(299997 * ms)},
		{"0.067 is not 68 ms", lines("Retry-After: 0.067"), named(67 * ms)},
		{"rounded up", lines("Retry-After: 1.0001"), named(1001 * ms)},
		{"tiny but not zero", lines("Retry-After: 0.0000000000001"), named(ms)},
		{"fraction of a millisecond", lines("Retry-After-Ms: 0.2"), named(ms)},

		// S02: the three date forms of RFC 9110, relative to the Date header or now.
		{"IMF date", lines("Retry-After: Mon, 02 Mar 2026 10:00:03 GMT"), named(3 * s)},
		{"RFC 850 date", lines("Retry-After: Monday, 02-Mar-26 10:00:03 GMT"), named(3 * s)},
		{"asctime date", lines("Retry-After: Mon Mar  2 10:00:03 2026"), named(3 * s)},
		{"past date", lines("Retry-After: Mon, 02 Mar 2026 09:00:00 GMT"), isNow},
		{"date of this second", lines("Retry-After: Mon, 02 Mar 2026 10:00:00 GMT"), isNow},
		{"zero", lines("Retry-After: 0"), isNow},
		{"zero with a fraction", lines("Retry-After: 0.0"), isNow},
		{"zero milliseconds", lines("Retry-After-Ms: 0"), isNow},
		{"negative", lines("Retry-After: -1"), unnamed},
		{"empty", lines("Retry-After:"), unnamed},
		{"word", lines("Retry-After: soon"), unnamed},
		{"NaN", lines("Retry-After: NaN"), unnamed},
		{"inf", lines("Retry-After: inf"), unnamed},
		{"Infinity", lines("Retry-After: +Infinity"), unnamed},
		{"exponent", lines("Retry-After: 1e3"), unnamed},
		{"hexadecimal", lines("Retry-After: 0x10"), unnamed},
		{"decimal comma", lines("Retry-After: 1,5"), unnamed},
		{"two numbers", lines("Retry-After: 1 5"), unnamed},
		{"date with UTC", lines("Retry-After: Mon, 02 Mar 2026 10:00:03 UTC"), unnamed},
		{"two lines, longer last", lines("Retry-After: 2", "Retry-After: 7"), named(7 * s)},
		{"two lines, longer first", lines("Retry-After: 7", "Retry-After: 2"), named(7 * s)},
		{"two lines, one junk", lines("Retry-After: soon", "Retry-After: 2"), named(2 * s)},
		{"two lines, one zero", lines("Retry-After: 0", "Retry-After: 2"), named(2 * s)},
		{"no header", nil, unnamed},

		// S03: huge values saturate and never turn negative.
		{"a day", lines("Retry-After: 86400"), named(24 * time.Hour)},
		{"int64 seconds overflow a Duration", lines("Retry-After: 9999999999"), named(pause.MaxHint)},
		{"wraps to a positive Duration", lines("Retry-After: 99999999999"), named(pause.MaxHint)},
		{"beyond int64", lines("Retry-After: 99999999999999999999"), named(pause.MaxHint)},
		{"beyond float64", lines("Retry-After: " + strings.Repeat("9", 400)), named(pause.MaxHint)},
		{"year 9999", lines("Retry-After: Fri, 31 Dec 9999 23:59:59 GMT"), named(pause.MaxHint)},
		{"milliseconds beyond int64", lines("Retry-After-Ms: 99999999999999999999"), named(pause.MaxHint)},
		{"reset beyond every date", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 99999999999999999999"), named(pause.MaxHint)},
		{"sum beyond int64", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: "+strings.Repeat("364d", 400)), named(pause.MaxHint)},
		{"duration beyond int64", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 99999999999h99999999999h"), named(pause.MaxHint)},

		// S25: an absolute time is read against the vendor's clock, not this host's.
		{"date 45 s after a Date in the past", lines("Date: Mon, 02 Mar 2026 09:50:00 GMT", "Retry-After: Mon, 02 Mar 2026 09:50:45 GMT"), named(45 * s)},
		{"date 45 s after a Date in the future", lines("Date: Mon, 02 Mar 2026 10:10:00 GMT", "Retry-After: Mon, 02 Mar 2026 10:10:45 GMT"), named(45 * s)},
		{"ahead of now but not of Date", lines("Date: Mon, 02 Mar 2026 10:10:00 GMT", "Retry-After: Mon, 02 Mar 2026 10:05:00 GMT"), isNow},
		{"unreadable Date", lines("Date: yesterday", "Retry-After: Mon, 02 Mar 2026 10:00:45 GMT"), named(45 * s)},
		{"Date leaves seconds alone", lines("Date: Mon, 02 Mar 2026 09:50:00 GMT", "Retry-After: 5"), named(5 * s)},
		{"RFC 3339 reset against Date", lines("Date: Mon, 02 Mar 2026 09:50:00 GMT", "Anthropic-Ratelimit-Requests-Remaining: 0", "Anthropic-Ratelimit-Requests-Reset: 2026-03-02T09:50:19Z"), named(19 * s)},
		{"epoch reset against Date", lines("Date: Mon, 02 Mar 2026 09:50:00 GMT", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1772445025"), named(25 * s)},

		// The order of the sources.
		{"retry-after-ms first", lines("Retry-After-Ms: 350", "X-Ms-Retry-After-Ms: 400", "X-Amz-Retry-After: 500", "Retry-After: 1"), named(350 * ms)},
		{"x-ms-retry-after-ms second", lines("X-Ms-Retry-After-Ms: 400", "X-Amz-Retry-After: 500", "Retry-After: 1"), named(400 * ms)},
		{"x-amz-retry-after third", lines("X-Amz-Retry-After: 500", "Retry-After: 1"), named(500 * ms)},
		{"junk falls through", lines("Retry-After-Ms: -1", "X-Amz-Retry-After: x", "Retry-After: 1"), named(s)},
		{"zero falls through", lines("Retry-After-Ms: 0", "Retry-After: 1"), named(s)},
		{"zero falls through to a reset", lines("Retry-After: 0", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 18"), named(18 * s)},
		{"past date falls through to a reset", lines("Retry-After: Mon, 02 Mar 2026 09:00:00 GMT", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 18"), named(18 * s)},
		{"zero, then an unusable reset", lines("Retry-After: 0", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: -1"), isNow},
		{"Retry-After before a reset", lines("Retry-After: 2", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 18"), named(2 * s)},

		// Resets: only of a limit with exactly nothing left, the longest of them.
		{"seconds from now", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 18"), named(18 * s)},
		{"epoch seconds", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1772445625"), named(25 * s)},
		{"epoch milliseconds", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1772445625250"), named(25250 * ms)},
		{"epoch in the past", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1772445599"), unnamed},
		{"below 1e9 is seconds", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 999999999"), named(pause.MaxHint)},
		{"1e9 is a moment of 2001", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1000000000"), unnamed},
		{"1e11 is a second of 5138", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 100000000000"), named(pause.MaxHint)},
		{"above 1e11 is a millisecond of 1973", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 100000000001"), unnamed},
		{"minutes and seconds", lines("X-RateLimit-Remaining-Requests: 0", "X-RateLimit-Reset-Requests: 6m0s"), named(6 * time.Minute)},
		{"milliseconds", lines("X-RateLimit-Remaining-Requests: 0", "X-RateLimit-Reset-Requests: 17ms"), named(17 * ms)},
		{"fraction in a duration", lines("X-RateLimit-Remaining-Requests: 0", "X-RateLimit-Reset-Requests: 2m59.56s"), named(179560 * ms)},
		{"microseconds are rounded up", lines("X-RateLimit-Remaining-Requests: 0", "X-RateLimit-Reset-Requests: 850µs"), named(ms)},
		{"RFC 3339 with Z", lines("Anthropic-Ratelimit-Tokens-Remaining: 0", "Anthropic-Ratelimit-Tokens-Reset: 2026-03-02T10:00:19Z"), named(19 * s)},
		{"RFC 3339 with an offset", lines("Anthropic-Ratelimit-Tokens-Remaining: 0", "Anthropic-Ratelimit-Tokens-Reset: 2026-03-02T11:00:19+01:00"), named(19 * s)},
		{"older IETF draft", lines("RateLimit-Limit: 100", "RateLimit-Remaining: 0", "RateLimit-Reset: 50"), named(50 * s)},
		{"unknown reset", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: -1"), unnamed},
		{"negative duration", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: -6m0s"), unnamed},
		{"duration and junk", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 6m0s!"), unnamed},
		{"no reset", lines("X-RateLimit-Remaining: 0"), unnamed},
		{"no remaining", lines("X-RateLimit-Reset: 18"), unnamed},
		{"one remains", lines("X-RateLimit-Remaining: 1", "X-RateLimit-Reset: 18"), unnamed},
		{"remaining unknown", lines("X-RateLimit-Remaining: -1", "X-RateLimit-Reset: 18"), unnamed},
		{"remaining empty", lines("X-RateLimit-Remaining:", "X-RateLimit-Reset: 18"), unnamed},
		{"longest of two limits at zero", lines(
			"X-RateLimit-Remaining-Requests: 0", "X-RateLimit-Reset-Requests: 2s",
			"X-RateLimit-Remaining-Tokens: 0", "X-RateLimit-Reset-Tokens: 9s",
			"X-RateLimit-Remaining-Images: 3", "X-RateLimit-Reset-Images: 1h"), named(9 * s)},
		{"longest over both spellings", lines(
			"RateLimit: \"default\";r=0;t=12", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 4"), named(12 * s)},

		// RateLimit of the IETF draft.
		{"one window", lines(`RateLimit: "default";r=0;t=12`), named(12 * s)},
		{"list of windows", lines(`RateLimit: "minute";r=0;t=12, "day";r=900;t=5000, "hour"; r=0; t=30`), named(30 * s)},
		{"two lines of windows", lines(`RateLimit: "minute";r=0;t=12`, `RateLimit: "hour";r=0;t=30`), named(30 * s)},
		{"parameters in any order", lines(`RateLimit: "default";t=12;r=0`), named(12 * s)},
		{"separators in a name", lines(`RateLimit: "a;r=0;t=99,b\";r=0;t=99";r=5;t=12`), unnamed},
		{"window without t", lines(`RateLimit: "default";r=0`), unnamed},
		{"window without r", lines(`RateLimit: "default";t=12`), unnamed},
		{"negative t", lines(`RateLimit: "default";r=0;t=-12`), unnamed},
		{"escaped quote in a name", lines(`RateLimit: "a\";r=0;t=99";r=5;t=12, "b\\";r=0;t=7`), named(7 * s)},
		{"open quote", lines(`RateLimit: "default";r=0;t=12, "day`), unnamed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := pause.ReadHint(test.header, nil, clock); got != test.want {
				t.Errorf("ReadHint(%q) = %+v, want %+v", test.header, got, test.want)
			}
		})
	}
}

func TestHintOfBody(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	// say wraps a sentence the way OpenAI does.
	say := func(text string) string {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		return `{"error":{"message":` + string(quoted) + `}}`
	}
	const retryInfo = `{"error":{"code":429,"message":"Please retry in 99s.","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.074824224s"}]}}`
	tests := []struct {
		name   string
		header http.Header
		body   string
		want   pause.Hint
	}{
		{"RetryInfo before the text", nil, retryInfo, named(34075 * ms)},
		{"RetryInfo in an array", nil, "[" + retryInfo + "\n]", named(34075 * ms)},
		{"RetryInfo of hours", nil, `{"error":{"details":[{"retryDelay":"51820.638305887s"}]}}`, named(51820639 * ms)},
		{"RetryInfo of zero falls through", nil, strings.Replace(retryInfo, "34.074824224s", "0s", 1), named(99 * s)},
		{"negative RetryInfo falls through", nil, strings.Replace(retryInfo, "34.074824224s", "-3s", 1), named(99 * s)},
		{"RetryInfo that is no string", nil, strings.Replace(retryInfo, `"34.074824224s"`, `{"seconds":34}`, 1), named(99 * s)},
		{"Retry-After before RetryInfo", lines("Retry-After: 2"), retryInfo, named(2 * s)},
		{"zero Retry-After falls through to RetryInfo", lines("Retry-After: 0"), retryInfo, named(34075 * ms)},
		{"RetryInfo before a reset", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 18"), retryInfo, named(34075 * ms)},
		{"text before a reset", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 18"), say("Please try again in 1.2s."), named(1200 * ms)},
		{"text without a time falls through", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 18"), say("Please try again later."), named(18 * s)},

		{"fraction ends the sentence", nil, say("Please try again in 1.2s. Visit the site."), named(1200 * ms)},
		{"seconds", nil, say("Please try again in 20s."), named(20 * s)},
		{"minutes", nil, say("Please try again in 6m0s."), named(6 * time.Minute)},
		{"days in hours", nil, say("Please try again in 114h18m0s."), named(114*time.Hour + 18*time.Minute)},
		{"milliseconds", nil, say("Please try again in 17ms."), named(17 * ms)},
		{"retry in", nil, say("Quota exceeded.\nPlease retry in 36.429760048s."), named(36430 * ms)},
		{"retry after N seconds", nil, say("Please retry after 37 seconds."), named(37 * s)},
		{"retry after 1 second", nil, say("Please retry after 1 second."), named(s)},
		{"N minutes", nil, say("Try again in 5 minutes"), named(5 * time.Minute)},
		{"words joined", nil, say("Try again in 1 hour and 5 minutes, or write to us"), named(65 * time.Minute)},
		{"a day", nil, say("RETRY AFTER 86400 SECONDS!"), named(24 * time.Hour)},
		{"bare number", nil, say("Please retry after 30"), named(30 * s)},
		{"bare number ends the sentence", nil, say("Please retry after 30. Thanks."), named(30 * s)},
		{"longest of two", nil, say("Retry after 2s. If that fails retry after 9s."), named(9 * s)},
		{"huge", nil, say("Please try again in 99999999999999999999h."), named(pause.MaxHint)},
		{"number of something else", nil, say("Please retry after 3 attempts"), unnamed},
		{"date", nil, say("Please retry after 2026-03-02T10:00:19Z"), unnamed},
		{"time of day", nil, say("Please try again after 10:30"), unnamed},
		{"grouped thousands", nil, say("Please retry in 1,500 ms"), unnamed},
		{"negative", nil, say("Please retry in -5s"), unnamed},
		{"zero", nil, say("Please retry in 0s"), unnamed},
		{"no number", nil, say("Please try again in a few minutes"), unnamed},

		{"message on top", nil, `{"statusCode":429,"message":"Try again in 29 seconds."}`, named(29 * s)},
		{"error is a string", nil, `{"code":"x","error":"Try again in 29 seconds."}`, named(29 * s)},
		{"list of errors", nil, `{"errors":[{"code":1e999,"detail":"no"},{"detail":"Try again in 29 seconds."}]}`, named(29 * s)},
		{"list of sentences", nil, `{"code":9,"errors":["no",["Try again in 29 seconds."]]}`, named(29 * s)},
		{"list of prompts", nil, `{"errors":[{"prompts":["try again in 29s"]}]}`, unnamed},
		{"details is an object", nil, `{"error":{"details":{"error_code":"x"},"message":"Try again in 29s"}}`, named(29 * s)},
		{"blank lines first", nil, "\n\n" + say("Try again in 29s"), named(29 * s)},
		{"a string", nil, `"Try again in 29s"`, named(29 * s)},
		{"echo of the prompt", nil, `{"error":{"message":"no"},"input":"try again in 29s","metadata":{"prompt":"retry after 9s"}}`, unnamed},
		{"name of a field", nil, `{"error":{"retry after 9s":"no"}}`, unnamed},
		{"cut off after the message", nil, `{"error":{"message":"Try again in 29s","type":"tok`, named(29 * s)},
		{"cut off inside the message", nil, `{"error":{"message":"Try again in 2`, unnamed},
		{"broken after the message", nil, `{"error":{"message":"Try again in 29s"]]`, named(29 * s)},
		{"nested too deep", nil, strings.Repeat("[", 1<<16) + `"try again in 29s"`, unnamed},

		{"plain text", nil, "Too many requests. Try again in 29 seconds.\n", named(29 * s)},
		{"plain text that begins with a number", nil, "429 Too many requests, retry after 29s", named(29 * s)},
		{"page", nil, "<html><body>Try again in 29 seconds.</body></html>", unnamed},
		{"long text", nil, strings.Repeat("word ", 1000) + "try again in 29s", unnamed},
		{"binary", nil, "\x1f\x8b\x00try again in 29s", unnamed},
		{"not UTF-8", nil, "try again in 29s \xff", unnamed},
		{"empty", nil, "", unnamed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := pause.ReadHint(test.header, []byte(test.body), clock); got != test.want {
				t.Errorf("ReadHint(%q, %.200q) = %+v, want %+v", test.header, test.body, got, test.want)
			}
		})
	}
}

// TestHintOfVendorAnswers reads every recorded answer of testdata/cases.json.
func TestHintOfVendorAnswers(t *testing.T) {
	data, err := os.ReadFile("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	type expect struct {
		Class        string `json:"class"`
		RetryAfterMS *int64 `json:"retry_after_ms"`
		AlsoAccept   struct {
			RetryAfterMS []int64 `json:"retry_after_ms"`
		} `json:"also_accept"`
	}
	var cases []struct {
		ID       string    `json:"id"`
		Now      time.Time `json:"now"`
		Response struct {
			Headers map[string]string `json:"headers"`
			Body    json.RawMessage   `json:"body"`
		} `json:"response"`
		Expect expect `json:"expect"`
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if got, want := len(cases), 88; got != want {
		t.Errorf("%d cases, want %d", got, want)
	}
	// The longest pause is 5 minutes, so a longer wait need not be told apart.
	// No wait and "now" are the same in the file: null.
	const longest = 5 * 60 * 1000
	for _, test := range cases {
		t.Run(test.ID, func(t *testing.T) {
			header := http.Header{}
			for name, value := range test.Response.Headers {
				header.Set(name, value)
			}
			body := []byte(test.Response.Body)
			var verbatim string // a string in the file stands for itself, null for no body
			if json.Unmarshal(body, &verbatim) == nil {
				body = []byte(verbatim)
			}
			hint := pause.ReadHint(header, body, test.Now)
			if hint.Wait < 0 || hint.Wait > pause.MaxHint || hint.Wait > 0 && !hint.Named {
				t.Fatalf("hint %+v breaks its own rules", hint)
			}
			if test.Expect.Class == "ok" || test.Expect.Class == "client_error" {
				return // nothing waits, whatever the answer named
			}
			accept := test.Expect.AlsoAccept.RetryAfterMS
			if want := test.Expect.RetryAfterMS; want != nil {
				accept = append(accept, *want)
			} else {
				accept = append(accept, 0)
			}
			got := min(hint.Wait.Milliseconds(), longest)
			for _, want := range accept {
				if want = min(want, longest); want-1 <= got && got <= want+1 && (want == 0) == (got == 0) {
					return
				}
			}
			t.Errorf("waits %d ms, want one of %d", got, accept)
		})
	}
}
