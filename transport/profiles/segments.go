package profiles

import (
	"strings"
	"unicode/utf16"
)

// The alphabet of 3GPP TS 23.038, 6.2.1, and the characters of its extension,
// which take two places. A message that has any other character goes as UCS-2.
const (
	gsm         = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
	gsmExtended = "\f^{}\\[~]|€"
)

// Segments returns the parts that a text message takes on the air, at least 1:
// one of 160 characters, or several of 153 each (3GPP TS 23.040); 70 and 67 if
// one character is outside of the GSM alphabet. A character that takes two
// places is never split.
func Segments(text string) int64 {
	alone, part, width := 160, 153, gsmWidth
	for _, r := range text {
		if gsmWidth(r) == 0 {
			alone, part, width = 70, 67, utf16.RuneLen
			break
		}
	}
	total, used, parts := 0, 0, int64(1)
	for _, r := range text {
		w := width(r)
		if used+w > part {
			parts, used = parts+1, 0
		}
		total, used = total+w, used+w
	}
	if total <= alone {
		return 1
	}
	return parts
}

// gsmWidth returns the places of a character in the GSM alphabet, 0 for none.
func gsmWidth(r rune) int {
	switch {
	case strings.ContainsRune(gsm, r):
		return 1
	case strings.ContainsRune(gsmExtended, r):
		return 2
	}
	return 0
}
