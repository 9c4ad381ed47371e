package pause

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	maxText  = 1 << 10 // bytes; a longer body that is no JSON is a page, not a message
	maxDepth = 64      // of a JSON body; no vendor nests errors deeper
)

// retryInfo reads error.details[].retryDelay; the field's name is Google's
// alone, so its place and its "@type" are not checked. An answer of
// streamGenerateContent without alt=sse is an array, which changes nothing here.
func (a answer) retryInfo() (wait time.Duration) {
	for key, value := range jsonStrings(a.body) {
		if key == "retryDelay" {
			wait = max(wait, duration(value))
		}
	}
	return wait
}

// message reads the text of an error: in JSON the fields that vendors put it in,
// otherwise the body itself if it is short plain text.
func (a answer) message() (wait time.Duration) {
	body := bytes.TrimSpace(a.body)
	if len(body) == 0 {
		return 0
	}
	switch body[0] {
	case '{', '[', '"':
		for key, value := range jsonStrings(body) {
			if isMessage(key) {
				wait = max(wait, textWait(value))
			}
		}
		return wait
	case '<': // a page or XML
		return 0
	}
	if len(body) > maxText || !isText(body) {
		return 0
	}
	return textWait(string(body))
}

// isMessage tells the fields that hold a vendor's own words from those that may
// echo the caller's. The empty key is a body that is one string.
func isMessage(key string) bool {
	switch key {
	case "", "message", "error", "errors", "detail", "details", "description", "title",
		"msg", "err_msg", "error_description", "error-text", "raw":
		return true
	}
	return false
}

func isText(body []byte) bool {
	control := func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }
	return utf8.Valid(body) && !bytes.ContainsFunc(body, control)
}

// textWait returns the longest wait that a sentence names, zero if none.
func textWait(text string) (wait time.Duration) {
	text = strings.ToLower(text)
	for _, phrase := range [...]string{"try again in ", "try again after ", "retry in ", "retry after "} {
		_, rest, found := strings.Cut(text, phrase)
		for found {
			wait = max(wait, spoken(rest))
			_, rest, found = strings.Cut(rest, phrase)
		}
	}
	return wait
}

// spoken reads the wait that s begins with: a span, or seconds if a bare number
// ends its sentence. A date, "3 attempts" and "1,500" are none.
func spoken(s string) time.Duration {
	if d, _, ok := span(s); ok {
		return d
	}
	n, after, ok := leadingNumber(s)
	rest := strings.TrimLeft(after, `.,;:!)"'`)
	stops := len(rest) < len(after)
	if ok && (rest == "" || rest[0] == '\n' || stops && rest[0] == ' ') {
		return scale(n, time.Second)
	}
	return 0
}

// jsonStrings yields every string of a JSON text with the name of the field that
// holds it; an element of an array has the name of the array's field. It goes
// token by token, so that of a body that is cut off the whole strings still count.
func jsonStrings(body []byte) iter.Seq2[string, string] {
	type level struct {
		key    string
		object bool
		named  bool // in an object: key belongs to the value that comes next
	}
	return func(yield func(key, value string) bool) {
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.UseNumber() // a number out of range is no error
		levels := []level{{}}
		for len(levels) <= maxDepth {
			token, err := dec.Token()
			if err != nil {
				return
			}
			top := &levels[len(levels)-1]
			switch t := token.(type) {
			case json.Delim:
				if t == '{' || t == '[' {
					top.named = false
					levels = append(levels, level{key: top.key, object: t == '{'})
				} else {
					levels = levels[:len(levels)-1]
				}
				continue
			case string:
				if top.object && !top.named {
					top.key, top.named = t, true
					continue
				}
				if !yield(top.key, t) {
					return
				}
			}
			top.named = false
		}
	}
}
