package pause

import (
	"net/http"
	"strings"
	"time"
)

// MaxHint is the longest wait a [Hint] carries; whatever a vendor names beyond
// it, such as 9999999999 seconds, is cut to it before any multiplication could
// overflow. How much of a named wait is obeyed is for the policy to say.
const MaxHint = 365 * 24 * time.Hour

// answer is what the sources of a wait look at.
type answer struct {
	header http.Header
	body   []byte
	// clock is the vendor's time at which the answer was written, so that a
	// wrong clock on this host does not bend the dates in it.
	clock time.Time
}

// ReadHint returns the wait that a vendor's answer names, whatever its status.
// The sources, the first that names a positive wait wins:
//
//  1. the headers retry-after-ms, x-ms-retry-after-ms and x-amz-retry-after, in
//     this order, all in milliseconds (openai-python, azcore, aws-sdk-go-v2);
//  2. Retry-After: seconds, also with a fraction, or any of the three HTTP date
//     forms (RFC 9110, 10.2.3);
//  3. google.rpc.RetryInfo.retryDelay in the body (Gemini, Vertex AI);
//  4. "try again in", "retry in" or "retry after" and a time, in the body's
//     message (OpenAI, Azure, Groq, Gemini);
//  5. the reset of a limit of which exactly 0 remains: x-ratelimit-*,
//     anthropic-ratelimit-*-*, RateLimit-Remaining and -Reset, RateLimit
//     (draft-ietf-httpapi-ratelimit-headers: Retry-After goes before these).
//
// Within one source the longest wait wins. What cannot be used (negative, not a
// number, not finite, unreadable, empty) falls through to the next source, and
// so do zero and a moment that is past; if a header of the first two sources
// said one of these and no source names a positive wait, the hint is a named
// zero: the vendor says "now".
//
// The wait is rounded up to whole milliseconds. Dates are read against the
// answer's own Date header; now stands in where that is missing. The header has
// canonical names, as net/http delivers it, and may be nil. The body may be nil,
// cut off anywhere or no JSON at all; the work is linear in its size, which the
// caller bounds. ReadHint keeps and changes neither, and never blocks.
func ReadHint(header http.Header, body []byte, now time.Time) Hint {
	a := answer{header: header, body: body, clock: clockOf(header, now)}
	// A source returns its longest wait and whether it said "now".
	sources := [...]func(answer) (wait time.Duration, saysNow bool){
		func(a answer) (time.Duration, bool) { return a.milliseconds("Retry-After-Ms") },
		func(a answer) (time.Duration, bool) { return a.milliseconds("X-Ms-Retry-After-Ms") },
		func(a answer) (time.Duration, bool) { return a.milliseconds("X-Amz-Retry-After") },
		answer.retryAfter,
		func(a answer) (time.Duration, bool) { return a.retryInfo(), false },
		func(a answer) (time.Duration, bool) { return a.message(), false },
		func(a answer) (time.Duration, bool) { return max(a.resets(), a.windows()), false },
	}
	var hint Hint
	for _, source := range sources {
		wait, saysNow := source(a)
		if wait > 0 {
			return Hint{Wait: roundUp(min(wait, MaxHint)), Named: true}
		}
		hint.Named = hint.Named || saysNow
	}
	return hint
}

// clockOf is the vendor's clock, as far as the answer tells it.
func clockOf(header http.Header, now time.Time) time.Time {
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		return date
	}
	return now
}

// ReadReset returns how long it is until a limit is whole again, by the header
// of this name in any of the forms that vendors use, 0 to [MaxHint]; 0 if it does
// not say, or says a time that is past.
func ReadReset(header http.Header, name string, now time.Time) time.Duration {
	return min(max(0, reset(header.Get(name), clockOf(header, now))), MaxHint)
}

// roundUp rounds a positive wait up to whole milliseconds.
func roundUp(wait time.Duration) time.Duration {
	return (wait + time.Millisecond - 1).Truncate(time.Millisecond)
}

// milliseconds reads one of the headers that count milliseconds.
func (a answer) milliseconds(name string) (wait time.Duration, saysNow bool) {
	for _, value := range a.header.Values(name) {
		if n, ok := number(value); ok {
			wait = max(wait, scale(n, time.Millisecond))
			saysNow = saysNow || n == 0
		}
	}
	return wait, saysNow
}

// retryAfter reads Retry-After in both its forms.
func (a answer) retryAfter() (wait time.Duration, saysNow bool) {
	for _, value := range a.header.Values("Retry-After") {
		if n, ok := number(value); ok {
			wait = max(wait, scale(n, time.Second))
			saysNow = saysNow || n == 0
		} else if date, err := http.ParseTime(strings.TrimSpace(value)); err == nil {
			left := date.Sub(a.clock)
			wait = max(wait, left)
			saysNow = saysNow || left <= 0
		}
	}
	return wait, saysNow
}

// resets reads the limits that come as a pair of headers, one with "Remaining"
// in its name and one with "Reset" in the same place, whatever stands around
// them; vendors name the limit before, after or not at all.
func (a answer) resets() (wait time.Duration) {
	for name, remaining := range a.header {
		if !strings.Contains(name, "Remaining") || !anyZero(remaining) {
			continue
		}
		for _, value := range a.header.Values(strings.Replace(name, "Remaining", "Reset", 1)) {
			wait = max(wait, reset(value, a.clock))
		}
	}
	return wait
}

func anyZero(values []string) bool {
	for _, value := range values {
		if n, ok := number(value); ok && n == 0 {
			return true
		}
	}
	return false
}

// windows reads the IETF's RateLimit field, a list such as
// `"minute";r=0;t=12, "day";r=900;t=5000`: r remains, t seconds are left. A
// line with an open quote is ignored, as the draft demands of malformed fields;
// a parameter that is no plain number counts as absent.
func (a answer) windows() (wait time.Duration) {
	for _, line := range a.header.Values("RateLimit") {
		line, ok := withoutQuoted(line)
		if !ok {
			continue
		}
		for member := range strings.SplitSeq(line, ",") {
			remaining, left := -1.0, 0.0
			for parameter := range strings.SplitSeq(member, ";") {
				name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
				n, ok := number(value)
				switch {
				case ok && name == "r":
					remaining = n
				case ok && name == "t":
					left = n
				}
			}
			if remaining == 0 {
				wait = max(wait, scale(left, time.Second))
			}
		}
	}
	return wait
}

// withoutQuoted cuts the quoted names out of a structured field, since they may
// hold any separator. It reports whether every quote was closed.
func withoutQuoted(line string) (string, bool) {
	var out strings.Builder
	quoted := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted:
			out.WriteByte(c)
		}
	}
	return out.String(), !quoted
}
