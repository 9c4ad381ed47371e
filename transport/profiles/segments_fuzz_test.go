package profiles

import (
	"strings"
	"testing"
	"unicode/utf16"
)

// FuzzSegments counts the parts of a message a second time, by laying them out
// unit by unit.
func FuzzSegments(f *testing.F) {
	for _, text := range []string{
		"", "a", strings.Repeat("a", 160), strings.Repeat("a", 161), strings.Repeat("€", 80), strings.Repeat("€", 81), strings.Repeat("a", 152) + "€a" + strings.Repeat("b", 10),
		strings.Repeat("я", 70), strings.Repeat("я", 71), strings.Repeat("😀", 35), strings.Repeat("я", 66) + "😀" + strings.Repeat("я", 9), "\xff", "\r\n\f`",
		strings.Repeat("a", 152) + "€" + strings.Repeat("a", 151) + "€", strings.Repeat("я", 66) + "😀" + strings.Repeat("я", 65) + "😀", "\ufffd\ud7ff",
	} {
		f.Add(text, 1)
		f.Add(text, 7)
	}
	f.Fuzz(func(t *testing.T, text string, times int) {
		text = strings.Repeat(text, 1+int(uint(times)%16))
		got := Segments(text)
		if want := int64(layOut(text)); got != want {
			t.Fatalf("Segments(%q) = %d, want %d", text, got, want)
		}
		if more := Segments(text + "a"); more < got || more > got+1 {
			t.Fatalf("%d segments, and %d with one letter more", got, more)
		}
	})
}

// layOut fills parts with the units of a message: septets, of which one may be
// an escape, or UTF-16.
func layOut(text string) int {
	const escape = 0x1b
	var units []uint16
	alone, part := 160, 153
	runes := []rune(text)
	for _, r := range runes {
		switch {
		case strings.ContainsRune(gsmExtended, r):
			units = append(units, escape, 0)
		case strings.ContainsRune(gsm, r):
			units = append(units, 0)
		default:
			alone, part = 70, 67
		}
	}
	if part == 67 {
		units = utf16.Encode(runes)
	}
	if len(units) <= alone {
		return 1
	}
	parts := 0
	for len(units) > 0 {
		n := min(part, len(units))
		if last := units[n-1]; n < len(units) && (last == escape && part == 153 || last >= 0xd800 && last < 0xdc00) {
			n-- // the two belong together
		}
		units = units[n:]
		parts++
	}
	return parts
}
