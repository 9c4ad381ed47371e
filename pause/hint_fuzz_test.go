package pause_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/headway-go/headway/pause"
)

// checkHint asserts what every hint promises, whatever it was read from.
func checkHint(t *testing.T, hint pause.Hint) {
	t.Helper()
	if hint.Wait < 0 || hint.Wait > pause.MaxHint {
		t.Errorf("wait %v is not in 0..%v", hint.Wait, pause.MaxHint)
	}
	if hint.Wait > 0 && !hint.Named {
		t.Errorf("wait %v is not named", hint.Wait)
	}
	if hint.Wait%time.Millisecond != 0 {
		t.Errorf("wait %v is not in whole milliseconds", hint.Wait)
	}
}

// FuzzHintHeader puts any text where a vendor puts a wait, a date or a reset.
func FuzzHintHeader(f *testing.F) {
	for _, value := range []string{
		"", "0", "30", "0.4", " 2.5 ", "-1", "-0", "soon", "NaN", "inf", "1e3", "0x10", "1,5", ".5", "5.",
		"86400", "9999999999", "99999999999", "99999999999999999999", "1772445625", "1772445625250",
		"Mon, 02 Mar 2026 10:00:03 GMT", "Monday, 02-Mar-26 10:00:03 GMT", "Mon Mar  2 10:00:03 2026",
		"Fri, 31 Dec 9999 23:59:59 GMT", "2026-03-02T10:00:19Z", "2026-03-02T11:00:19+01:00",
		"0001-01-01T00:00:00Z", "6m0s", "17ms", "2m59.56s", "850µs", "99999999999h99999999999h",
		`"default";r=0;t=12`, `"a\";r=0;t=99, "b";t=1;r=0`,
	} {
		f.Add(value, value)
		f.Add(value, "Mon, 02 Mar 2026 09:50:00 GMT")
	}
	f.Fuzz(func(t *testing.T, value, date string) {
		for _, name := range []string{"Retry-After", "Retry-After-Ms", "X-Ms-Retry-After-Ms", "X-Amz-Retry-After", "Ratelimit"} {
			checkHint(t, pause.ReadHint(http.Header{name: {value}, "Date": {date}}, nil, clock))
		}
		checkHint(t, pause.ReadHint(http.Header{
			"Retry-After":                            {value, date},
			"Date":                                   {date},
			"X-Ratelimit-Remaining":                  {"0"},
			"X-Ratelimit-Reset":                      {value},
			"Anthropic-Ratelimit-Requests-Reset":     {date},
			"Anthropic-Ratelimit-Requests-Remaining": {value, "0"},
		}, nil, clock))
	})
}

// FuzzHintBody reads any body.
func FuzzHintBody(f *testing.F) {
	for _, body := range []string{
		"", "null", "{}", "[]", "{", `{"error":`, `"retry in 5s"`, "429 retry after 5s", "<html>retry in 5s",
		`{"error":{"message":"Please try again in 114h18m0s."}}`,
		`{"error":{"message":"Please retry after 1 hour and 5 minutes`,
		`[{"error":{"message":"Please retry in 36.4s.","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"36s"}]}}]`,
		`{"details":[{"retryDelay":"99999999999999999999s"},{"retryDelay":"-1s"},{"retryDelay":7}]}`,
		`{"a":{"a":[[{"message":"retry in 0.0000001ms"}]],"retryDelay":{}},"error":"try again after 5.5.5"}`,
		"data: {\"error\":{\"message\":\"try again in 20s\"}}\n\n",
		"[[[[[[[[", "\x1f\x8b\x00", "retry in \xc2\xb5", `{"message":"retry in 5 \u00b5s"} {"message":1e999}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		checkHint(t, pause.ReadHint(nil, body, clock))
	})
}
