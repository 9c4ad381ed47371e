package vendorsim

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Dialect is how a 429 names the time to wait. The zero value is [DialectSeconds].
// Every number is rounded up to what its spelling can hold, so a client that
// obeys it is never early.
type Dialect int

const (
	DialectSeconds   Dialect = iota // Retry-After: 2
	DialectFraction                 // Retry-After: 1.200
	DialectDate                     // Retry-After: an HTTP date
	DialectMillis                   // retry-after-ms: 1200
	DialectText                     // OpenAI's "Please try again in 1.2s." and nothing else
	DialectHeaders                  // x-ratelimit-* or anthropic-ratelimit-*, on accepted calls too
	DialectRetryInfo                // Gemini's body with google.rpc.RetryInfo, at any path
	DialectUnnamed                  // nothing
)

// refusal is a limit that a call did not fit. An Amount of 0 is a scripted one.
type refusal struct {
	limit      Limit
	used, cost int64
	wait       time.Duration
	tooLarge   bool // no wait helps
}

// refuse spells a 429. Only the dialect's own place names the wait.
func refuse(q Request, now time.Time, d Dialect, r refusal) Answer {
	a := Answer{Status: http.StatusTooManyRequests, Header: http.Header{}}
	message := r.message(q.Model)
	if d == DialectText && !r.tooLarge {
		message += fmt.Sprintf(" Please try again in %v.", millis(r.wait))
	}
	kind := string(r.limit.Unit)
	if r.limit.Unit != Requests {
		kind = "tokens"
	}
	a.Body = fail(q, a.Status, message, oaError{kind, "rate_limit_exceeded"}, "rate_limit_error").Body
	if d == DialectRetryInfo {
		a.Body = geminiError(q.Model, message, r)
	}
	if r.tooLarge {
		return a
	}
	switch d {
	case DialectSeconds:
		a.Header.Set("Retry-After", strconv.FormatInt(ceilDiv(int64(r.wait), int64(time.Second)), 10))
	case DialectFraction:
		a.Header.Set("Retry-After", strconv.FormatFloat(millis(r.wait).Seconds(), 'f', 3, 64))
	case DialectDate:
		a.Header.Set("Retry-After", wholeSecond(now.Add(r.wait)).Format(http.TimeFormat))
	case DialectMillis:
		a.Header.Set("Retry-After-Ms", strconv.FormatInt(millis(r.wait).Milliseconds(), 10))
	case DialectHeaders:
		rateHeaders(a.Header, q.Shape, now, r.limit, r.used, r.wait)
	}
	return a
}

func (r refusal) message(model string) string {
	if r.limit.Amount == 0 {
		return "Rate limit reached for " + model + "."
	}
	on := fmt.Sprintf("in organization org-sim on %s: Limit %d", r.limit.name(), r.limit.capacity())
	if r.tooLarge {
		return fmt.Sprintf("Request too large for %s %s, Requested %d. The input or output must be reduced.", model, on, r.cost)
	}
	return fmt.Sprintf("Rate limit reached for %s %s, Used %d, Requested %d.", model, on, r.used, r.cost)
}

// name spells the limit as OpenAI's texts do: "tokens per min (TPM)".
func (l Limit) name() string {
	short := map[Unit]string{Requests: "RP", Tokens: "TP", InputTokens: "ITP", OutputTokens: "OTP"}[l.Unit]
	switch l.Window {
	case time.Minute:
		return string(l.Unit) + " per min (" + short + "M)"
	case 24 * time.Hour:
		return string(l.Unit) + " per day (" + short + "D)"
	}
	return fmt.Sprintf("%s per %v", l.Unit, l.Window)
}

// rateHeaders writes one unit's limit, remaining and reset: OpenAI's reset is a
// duration such as 1.2s or 6m0s, Anthropic's an RFC 3339 time.
func rateHeaders(h http.Header, shape Shape, now time.Time, l Limit, used int64, reset time.Duration) {
	name := func(part string) string { return "X-Ratelimit-" + part + "-" + string(l.Unit) }
	until := millis(reset).String()
	if shape == Anthropic {
		name = func(part string) string { return "Anthropic-Ratelimit-" + string(l.Unit) + "-" + part }
		until = wholeSecond(now.Add(reset)).Format(time.RFC3339)
	}
	h.Set(name("limit"), strconv.FormatInt(l.capacity(), 10))
	h.Set(name("remaining"), strconv.FormatInt(max(0, l.capacity()-used), 10))
	h.Set(name("reset"), until)
}

// millis rounds up to whole milliseconds.
func millis(d time.Duration) time.Duration {
	return time.Duration(ceilDiv(int64(d), int64(time.Millisecond))) * time.Millisecond
}

// wholeSecond rounds up to a whole second, in UTC.
func wholeSecond(t time.Time) time.Time {
	return t.Add(time.Second - time.Nanosecond).UTC().Truncate(time.Second)
}
