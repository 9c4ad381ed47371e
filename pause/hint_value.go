package pause

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// number reads a whole value as a plain number: digits, perhaps a fraction,
// spaces around. No sign, exponent, hexadecimal, decimal comma, NaN or Inf. More
// digits than a float64 holds become +Inf, which scale cuts.
func number(value string) (float64, bool) {
	n, rest, ok := leadingNumber(strings.TrimSpace(value))
	return n, ok && rest == ""
}

// leadingNumber reads the number that s begins with. A dot counts only between
// digits, so that the end of a sentence stays in rest.
func leadingNumber(s string) (n float64, rest string, ok bool) {
	end := digits(s)
	if end == 0 {
		return 0, s, false
	}
	if end < len(s) && s[end] == '.' {
		if fraction := digits(s[end+1:]); fraction > 0 {
			end += 1 + fraction
		}
	}
	n, _ = strconv.ParseFloat(s[:end], 64) // the only error left is the range's, with n = +Inf
	return n, s[end:], true
}

// digits counts the decimal digits that s begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}

// scale returns n units, at most MaxHint and never zero for a positive n.
func scale(n float64, unit time.Duration) time.Duration {
	switch ns := n * float64(unit); {
	case ns >= float64(MaxHint):
		return MaxHint
	case ns > 0:
		return max(1, time.Duration(math.Round(ns)))
	}
	return 0
}

// span reads the duration that s begins with, in the forms 1.2s, 6m0s, 17ms,
// "37 seconds", "1 hour and 5 minutes". It reports false if s begins with no
// number or with one that has no unit of time.
func span(s string) (d time.Duration, rest string, ok bool) {
	for {
		next := strings.TrimLeft(s, " ")
		if ok {
			next = strings.TrimPrefix(next, "and ")
		}
		n, after, isNumber := leadingNumber(next)
		if !isNumber {
			return d, s, ok
		}
		after = strings.TrimLeft(after, " ")
		word := after[:len(after)-len(strings.TrimLeftFunc(after, unicode.IsLetter))]
		unit := unitOf(word)
		if unit == 0 {
			return d, s, ok
		}
		d = min(MaxHint, d+scale(n, unit))
		s, ok = after[len(word):], true
	}
}

// unitOf returns the unit that word names, zero if none.
func unitOf(word string) time.Duration {
	switch word {
	case "ns":
		return time.Nanosecond
	case "us", "µs", "μs": // the micro sign and the Greek letter, as in package time
		return time.Microsecond
	case "ms", "millisecond", "milliseconds":
		return time.Millisecond
	case "s", "sec", "secs", "second", "seconds":
		return time.Second
	case "m", "min", "mins", "minute", "minutes":
		return time.Minute
	case "h", "hr", "hrs", "hour", "hours":
		return time.Hour
	case "d", "day", "days":
		return 24 * time.Hour
	}
	return 0
}

// duration reads a whole value as a span.
func duration(value string) time.Duration {
	d, rest, _ := span(strings.TrimSpace(value))
	if rest != "" {
		return 0
	}
	return d
}

// reset returns how long after clock a limit is full again, zero or less if the
// value is unreadable, unknown (-1) or past. Vendors send seconds from now
// (Telnyx, Azure), epoch seconds (SendGrid), epoch milliseconds (OpenRouter), a
// duration (OpenAI, Groq) or an RFC 3339 time (Anthropic).
func reset(value string, clock time.Time) time.Duration {
	value = strings.TrimSpace(value)
	n, ok := number(value)
	switch {
	case ok && n < 1e9:
		return scale(n, time.Second)
	case ok && n <= 1e11:
		return epoch(n*1000, clock)
	case ok:
		return epoch(n, clock)
	}
	if t, err := time.Parse(time.RFC3339, value); err == nil {
		return t.Sub(clock)
	}
	return duration(value)
}

// epoch returns the time from clock to ms milliseconds after 1970, which is cut
// to a moment that time.Time still holds; Sub saturates by itself.
func epoch(ms float64, clock time.Time) time.Duration {
	return time.UnixMilli(int64(math.Ceil(min(ms, 1e17)))).Sub(clock)
}
