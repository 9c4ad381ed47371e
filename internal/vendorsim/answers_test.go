package vendorsim_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
)

// S01, S02: each dialect names the vendor's own time, rounded up, in its place
// only. The second call comes 1.5009995 s before it would fit.
func TestDialects(t *testing.T) {
	tests := []struct {
		dialect               vendorsim.Dialect
		path                  string
		header, value, inBody string
	}{
		{vendorsim.DialectSeconds, chat, "Retry-After", "2", ""},
		{vendorsim.DialectFraction, chat, "Retry-After", "1.501", ""},
		{vendorsim.DialectDate, chat, "Retry-After", "Mon, 02 Mar 2026 10:01:01 GMT", ""},
		{vendorsim.DialectMillis, chat, "Retry-After-Ms", "1501", ""},
		{vendorsim.DialectText, responses, "", "", "requests per min (RPM): Limit 1, Used 1, Requested 1. Please try again in 1.501s."},
		{vendorsim.DialectHeaders, chat, "X-Ratelimit-Reset-Requests", "1.501s", ""},
		{vendorsim.DialectHeaders, messages, "Anthropic-Ratelimit-Requests-Reset", "2026-03-02T10:01:01Z", ""},
		{vendorsim.DialectRetryInfo, chat, "", "", `"retryDelay":"1.500999500s"`},
		{vendorsim.DialectUnnamed, messages, "", "", `"type":"rate_limit_error"`},
	}
	places := []string{"Retry-After", "Retry-After-Ms", "X-Ratelimit-Reset-Requests", "Anthropic-Ratelimit-Requests-Reset"}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.dialect, tt.path), func(t *testing.T) {
			c := newClock()
			c.add(400 * time.Microsecond) // dates are rounded up too
			v := vendorsim.Run(t, vendorsim.Config{Now: c.Now, Dialect: tt.dialect, Models: map[string][]vendorsim.Limit{
				"m": {perMinute(vendorsim.Requests, 1)},
			}})
			post(t, v, tt.path, body("m", ""))
			c.add(time.Minute - 1500999500*time.Nanosecond)
			r := post(t, v, tt.path, body("m", ""))
			if r.status != 429 || !strings.Contains(r.body, tt.inBody) {
				t.Errorf("%d %s, want 429 with %q", r.status, r.body, tt.inBody)
			}
			for _, place := range places {
				want := ""
				if place == tt.header {
					want = tt.value
				}
				if got := r.header.Get(place); got != want {
					t.Errorf("%s: %q, want %q", place, got, want)
				}
			}
			if strings.Contains(r.body, "try again in") != (tt.dialect == vendorsim.DialectText) {
				t.Errorf("the text names a time, or does not: %s", r.body)
			}
			if got := r.header.Get("Date"); got != "Mon, 02 Mar 2026 10:00:58 GMT" {
				t.Errorf("Date %q is not the vendor's clock", got)
			}
		})
	}
}

func TestRateHeadersOnAcceptedCalls(t *testing.T) {
	c := newClock()
	v := vendorsim.Run(t, vendorsim.Config{
		Now: c.Now, Dialect: vendorsim.DialectHeaders,
		Usage: func(vendorsim.Request) (in, out int64) { return 30, 12 },
		Key:   []vendorsim.Limit{perMinute(vendorsim.Requests, 5)},
		Models: map[string][]vendorsim.Limit{"m": {
			perMinute(vendorsim.Requests, 9), perMinute(vendorsim.Tokens, 100), perMinute(vendorsim.OutputTokens, 50),
		}},
	})
	h := post(t, v, chat, body("m", "")).header
	for name, want := range map[string]string{
		"X-Ratelimit-Limit-Requests": "5", "X-Ratelimit-Remaining-Requests": "4", // the tightest of the two
		"X-Ratelimit-Remaining-Tokens": "58", "X-Ratelimit-Reset-Tokens": "1m0s",
		"X-Ratelimit-Remaining-Output-Tokens": "38",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestShapes(t *testing.T) {
	usage := func(vendorsim.Request) (in, out int64) { return 30, 12 }
	v := vendorsim.Run(t, vendorsim.Config{Usage: usage, Chunks: 3})
	const withUsage = `,"stream":true,"stream_options":{"include_usage":true}`
	tests := []struct {
		name, path, more string
		want, not        []string
		frames           int
	}{
		{"chat", chat, "", []string{`"object":"chat.completion"`, `"prompt_tokens":30`, `"completion_tokens":12`, `"total_tokens":42`}, nil, 0},
		{"responses", responses, "", []string{`"object":"response"`, `"input_tokens":30`, `"output_tokens":12`}, nil, 0},
		{"messages", messages, "", []string{`"type":"message"`, `"input_tokens":30`, `"output_tokens":12`}, nil, 0},
		{"chat stream", chat, `,"stream":true`, []string{"data: [DONE]\n\n"}, []string{"usage"}, 5},
		{"chat stream, usage", chat, withUsage, []string{`"usage":null`, `"choices":[],"created":0`, `"total_tokens":42`}, nil, 6},
		{"responses stream", responses, `,"stream":true`, []string{"event: response.created\n", `"output_tokens":12`}, nil, 5},
		{"messages stream", messages, `,"stream":true`, []string{
			"event: message_start\n", `"input_tokens":30,"output_tokens":1}`, `"usage":{"output_tokens":6}`, `"usage":{"output_tokens":12}`, "event: message_stop\n",
		}, nil, 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := post(t, v, tt.path, body("m", tt.more))
			wantType := "application/json"
			if tt.frames > 0 {
				wantType = "text/event-stream; charset=utf-8"
			}
			if got := r.header.Get("Content-Type"); r.status != 200 || got != wantType {
				t.Errorf("%d %s, want 200 %s", r.status, got, wantType)
			}
			if got := strings.Count(r.body, "\n\n"); got != tt.frames {
				t.Errorf("%d events, want %d: %s", got, tt.frames, r.body)
			}
			for _, want := range tt.want {
				if !strings.Contains(r.body, want) {
					t.Errorf("no %s in %s", want, r.body)
				}
			}
			for _, not := range tt.not {
				if strings.Contains(r.body, not) {
					t.Errorf("%s in %s", not, r.body)
				}
			}
		})
	}
}

// S10: an event is on the wire while the next is still to come.
func TestStreamIsFlushed(t *testing.T) {
	v := vendorsim.Run(t, vendorsim.Config{})
	v.Script("m", vendorsim.Answer{Events: []string{"data: one\r\n\r\n", "data: two\r\n\r\n"}, Gap: time.Hour})
	req, err := http.NewRequestWithContext(bounded(t), http.MethodPost, v.URL()+chat, strings.NewReader(body("m", "")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer test-key-1")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(res.Body).ReadString('\n'); line != "data: one\r\n" || err != nil {
		t.Errorf("first line %q, %v", line, err)
	}
	if a := v.Arrivals()[0]; a.Status != 200 || !a.Answered.IsZero() {
		t.Errorf("arrival %+v, want open with 200", a)
	}
	res.Body.Close() // the caller leaves: the vendor notices
	if err := v.Await(bounded(t), 1, vendorsim.Filter{Match: func(a vendorsim.Arrival) bool { return a.Broken }}); err != nil {
		t.Error(err)
	}
}

func TestReadyAnswers(t *testing.T) {
	v := vendorsim.Run(t, vendorsim.Config{})
	tests := []struct {
		name              string
		answer            vendorsim.Answer
		status            int
		openAI, anthropic string
	}{
		{"rate limited", vendorsim.RateLimited(1200*time.Millisecond, vendorsim.DialectFraction), 429, "rate_limit_exceeded", "rate_limit_error"},
		{"overloaded", vendorsim.Overloaded529(), 529, "server_is_overloaded", "overloaded_error"},
		{"key refused", vendorsim.KeyRefused401(), 401, "invalid_api_key", "authentication_error"},
		{"quota", vendorsim.Quota429(), 429, "insufficient_quota", "enforced_spend_limit_reached"},
		{"server error", vendorsim.ServerError500(), 500, "server_error", "api_error"},
		{"model forbidden", vendorsim.ModelForbidden403(), 403, "model_not_found", "permission_error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v.Script("m", tt.answer, tt.answer)
			for path, want := range map[string]string{chat: tt.openAI, messages: tt.anthropic} {
				r := post(t, v, path, body("m", ""))
				if r.status != tt.status || !strings.Contains(r.body, `"`+want+`"`) || strings.Contains(r.body, "test-key") {
					t.Errorf("%s: %d %s, want %d %s", path, r.status, r.body, tt.status, want)
				}
				wait := ""
				if tt.name == "rate limited" {
					wait = "1.200"
				}
				if got := r.header.Get("Retry-After"); got != wait {
					t.Errorf("%s: Retry-After %q, want %q", path, got, wait)
				}
			}
		})
	}
	if r := post(t, v, chat, body("m", "")); r.status != 200 {
		t.Errorf("after the scripts: %d", r.status)
	}
	if got := v.Refused(); got != 4 {
		t.Errorf("refused %d, want 4", got)
	}
}

func TestScriptOrderAndLimits(t *testing.T) {
	v := vendorsim.Run(t, vendorsim.Config{Models: map[string][]vendorsim.Limit{"m": {perMinute(vendorsim.Requests, 2)}}})
	v.Script("", vendorsim.Answer{Status: 503, Body: "any"})
	v.Script("m", vendorsim.Answer{Status: 500}, vendorsim.Answer{Status: 201, Body: "two", Header: http.Header{"X-A": {"1", "2"}}})
	v.Script("m", vendorsim.Answer{Body: "three"}, vendorsim.Answer{Body: "four"})
	if r := post(t, v, chat, body("m", "")); r.status != 500 || r.body != "" {
		t.Errorf("first: %+v", r)
	}
	if r := post(t, v, chat, body("m", "")); r.status != 201 || r.body != "two" || len(r.header["X-A"]) != 2 {
		t.Errorf("second: %+v", r)
	}
	if r := post(t, v, chat, body("m", "")); r.status != 200 || r.body != "three" {
		t.Errorf("third: %+v", r)
	}
	if r := post(t, v, chat, body("m", "")); r.status != 429 {
		t.Errorf("a scripted success does not pass the limit: %+v", r)
	}
	if err := v.SetLimits("m"); err != nil {
		t.Fatal(err)
	}
	if r := post(t, v, chat, body("m", "")); r.body != "four" {
		t.Errorf("the script waited for the limit: %+v", r)
	}
	if r := post(t, v, chat, body("m", "")); r.body != "any" {
		t.Errorf("the script of every model: %+v", r)
	}
	if got := v.Count(vendorsim.Filter{Accepted: true}); got != 3 {
		t.Errorf("%d accepted, want 3", got)
	}
}

func TestCut(t *testing.T) {
	tests := []struct {
		name   string
		answer vendorsim.Answer
		stream bool
		got    int // bytes of body
		status int
		err    error
	}{
		{"before any answer", vendorsim.Answer{Cut: vendorsim.CutBefore}, false, 0, 0, io.EOF},
		{"in the JSON", vendorsim.Answer{Cut: 10}, false, 10, 200, io.ErrUnexpectedEOF},
		{"in an error", vendorsim.Answer{Status: 500, Body: "0123456789", Cut: 4}, false, 4, 500, io.ErrUnexpectedEOF},
		{"in a stream", vendorsim.Answer{Events: []string{"01234\n\n", "01234\n\n"}, Cut: 9}, true, 9, 200, io.ErrUnexpectedEOF},
		{"at the end of a stream", vendorsim.Answer{Events: []string{"01234\n\n"}, Cut: 7}, true, 7, 200, io.ErrUnexpectedEOF},
		{"longer than the answer", vendorsim.Answer{Body: "0123", Cut: 5}, false, 4, 200, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := vendorsim.Run(t, vendorsim.Config{})
			v.Script("m", tt.answer)
			r, err := try(t, v, chat, body("m", ""))
			if r.status != tt.status || len(r.body) != tt.got || !errors.Is(err, tt.err) {
				t.Errorf("status %d, %d bytes, error %v; want %d, %d, %v", r.status, len(r.body), err, tt.status, tt.got, tt.err)
			}
			ended := vendorsim.Filter{Match: func(a vendorsim.Arrival) bool { return !a.Answered.IsZero() && a.Broken == (tt.err != nil) }}
			if err := v.Await(bounded(t), 1, ended); err != nil {
				t.Fatal(err)
			}
			if got := v.Arrivals()[0].Status; len(v.Arrivals()) != 1 || got != tt.status {
				t.Errorf("%d arrivals, status %d, want 1, %d", len(v.Arrivals()), got, tt.status)
			}
		})
	}
}
