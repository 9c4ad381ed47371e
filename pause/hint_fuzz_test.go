package pause_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"reflect"
	"strconv"
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

// recordedAnswers calls use with the answers of the recorded cases.
func recordedAnswers(f *testing.F, use func(header map[string]string, body []byte)) {
	f.Helper()
	for _, file := range []string{"../transport/profiles/testdata/cases.json", "../transport/profiles/testdata/more_cases.json"} {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var cases []struct {
			Response struct {
				Headers map[string]string
				Body    json.RawMessage
			}
		}
		if err := json.Unmarshal(data, &cases); err != nil {
			f.Fatal(err)
		}
		for _, c := range cases {
			body := []byte(c.Response.Body)
			var text string
			if json.Unmarshal(body, &text) == nil {
				body = []byte(text) // it stands for itself
			}
			use(c.Response.Headers, body)
		}
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
	recordedAnswers(f, func(header map[string]string, _ []byte) {
		for _, value := range header {
			f.Add(value, header["Date"])
		}
	})
	f.Fuzz(func(t *testing.T, value, date string) {
		alone := map[string]pause.Hint{}
		for _, name := range []string{"Retry-After", "Retry-After-Ms", "X-Ms-Retry-After-Ms", "X-Amz-Retry-After", "Ratelimit"} {
			alone[name] = pause.ReadHint(http.Header{name: {value}, "Date": {date}}, nil, clock)
			checkHint(t, alone[name])
		}
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			want := pause.MaxHint
			if n < uint64(pause.MaxHint/time.Second) {
				want = time.Duration(n) * time.Second
			}
			if got := alone["Retry-After"]; got != (pause.Hint{Wait: want, Named: true}) {
				t.Errorf("Retry-After: %q: got %+v, want %v", value, got, want)
			}
		}
		if ms := alone["Retry-After-Ms"]; ms != alone["X-Ms-Retry-After-Ms"] || ms != alone["X-Amz-Retry-After"] {
			t.Errorf("the three headers that count milliseconds differ: %v", alone)
		}
		all := http.Header{
			"Retry-After":                            {value, date},
			"Date":                                   {date},
			"X-Ratelimit-Remaining":                  {"0"},
			"X-Ratelimit-Reset":                      {value},
			"Anthropic-Ratelimit-Requests-Reset":     {date},
			"Anthropic-Ratelimit-Requests-Remaining": {value, "0"},
		}
		before := all.Clone()
		got := pause.ReadHint(all, nil, clock)
		checkHint(t, got)
		if got.Wait < alone["Retry-After"].Wait {
			t.Errorf("%v with a second value and resets, %v without", got.Wait, alone["Retry-After"].Wait)
		}
		if !reflect.DeepEqual(all, before) {
			t.Errorf("the header became %q", all)
		}
		all.Set("Retry-After-Ms", "1234")
		if got := pause.ReadHint(all, []byte(`{"error":{"message":"retry in 9s"}}`), clock); got.Wait != 1234*time.Millisecond {
			t.Errorf("%v, want what the first source names", got.Wait)
		}
	})
}

// FuzzHintBody reads any body. How a JSON text is spaced and in how many arrays
// it is wrapped changes nothing.
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
	recordedAnswers(f, func(_ map[string]string, body []byte) { f.Add(body) })
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		hint := pause.ReadHint(nil, body, clock)
		checkHint(t, hint)
		if !bytes.Equal(body, before) {
			t.Fatal("the body was changed")
		}
		if body = bytes.TrimSpace(body); !json.Valid(body) || !bytes.ContainsAny(body[:1], `{["`) {
			return
		}
		var other bytes.Buffer
		json.Indent(&other, body, " ", "\t")
		if got := pause.ReadHint(nil, other.Bytes(), clock); got != hint {
			t.Errorf("spaced out: %v, want %v", got, hint)
		}
		if bytes.Count(body, []byte("{"))+bytes.Count(body, []byte("[")) > 60 {
			return // it may be as deep as is looked
		}
		if got := pause.ReadHint(nil, append(append([]byte("[0,"), body...), ']'), clock); body[0] != '"' && got != hint {
			t.Errorf("in an array: %v, want %v", got, hint)
		}
	})
}
