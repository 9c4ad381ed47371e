package profiles

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"mime"
	"slices"
	"strings"
)

// maxScan bounds what a [Scanner] keeps, in bytes.
const maxScan = 1 << 20

// Scanner watches an answer's body go by for what the vendor counted and for
// errors inside of a stream. It keeps at most 1 MiB: a longer JSON answer is
// searched in its tail only, and a longer event ends the search. A JSON answer
// that is an array is a stream too, and its elements are the events; so is AWS's
// binary event stream. It never fails.
//
// A Scanner is for one goroutine at a time.
type Scanner struct {
	profile *Profile
	answer  Answer
	tally   *tally
	stream  splitter // nil: one JSON document, as far as it is known
	gzip    bool
	begun   bool // more than white space has come
	kept    []byte
	cut     bool   // kept lacks the beginning
	ended   bool   // the last event of a stream was seen
	trouble []byte // the first error event of a stream, or a document that may be one
}

// Scan returns a scanner for the body of an answer, or nil if it can hold
// nothing of interest: it is neither JSON nor an event stream, or is compressed
// with something else than gzip at the caller's own wish, or is an event stream
// that is compressed. a.Body is not looked at.
func (p *Profile) Scan(a Answer) *Scanner {
	kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	s := &Scanner{profile: p, answer: a, tally: p.Usage.tally()}
	switch coding := strings.ToLower(a.Header.Get("Content-Encoding")); coding {
	case "", "identity":
	case "gzip", "x-gzip":
		s.gzip = true
	default:
		return nil
	}
	switch {
	case kind == "text/event-stream" && !s.gzip:
		s.stream = &events{found: s.event}
	case kind == "application/vnd.amazon.eventstream" && !s.gzip:
		s.stream = &binaryEvents{found: s.event, failed: s.exception}
	case kind == "application/json" || strings.HasSuffix(kind, "+json") || p.UsageFunc != nil && kind != "text/event-stream":
	default:
		return nil
	}
	return s
}

// Write takes the next bytes of the body. It returns len(b), nil.
func (s *Scanner) Write(b []byte) (int, error) {
	if !s.begun && s.stream == nil && !s.gzip {
		text := bytes.TrimLeft(b, " \t\r\n")
		s.begun = len(text) > 0
		if s.begun && text[0] == '[' && s.profile.UsageFunc == nil {
			s.stream = &elements{found: s.event}
		}
	}
	if s.stream != nil {
		s.stream.write(b)
		return len(b), nil
	}
	n := len(b)
	for len(b) > 0 {
		if len(s.kept) == maxScan { // keep the later half: each byte moves once or twice
			s.kept = s.kept[:copy(s.kept, s.kept[maxScan/2:])]
			s.cut = true
		}
		part := b[:min(len(b), maxScan-len(s.kept))]
		s.kept = append(s.kept, part...)
		b = b[len(part):]
	}
	return n, nil
}

// Trouble returns the first error event of a stream as an answer to judge, and
// whether there was one; after Usage also a whole document that may be an error,
// see [Profile.ReadOK].
func (s *Scanner) Trouble() (Answer, bool) {
	a := s.answer
	a.Body = s.trouble
	return a, s.trouble != nil
}

// Usage returns what the vendor counted, after the last byte; eof says that the
// body came to its own end. Final says that the count is complete. It is not for
// a stream that was cut or broken off by an error: then it is only the least
// that the call costs.
func (s *Scanner) Usage(eof bool) (u Usage, final, ok bool) {
	if s.gzip {
		if s.cut {
			return Usage{}, false, false
		}
		plain := Gunzip(s.kept, maxScan)
		s.gzip, s.kept = false, nil
		s.Write(plain)
	}
	if s.stream != nil {
		s.stream.end()
		u, ok = s.tally.usage()
		whole := eof || s.ended || s.stream.whole()
		return u, ok && whole && s.trouble == nil && !s.stream.broken(), ok
	}
	if s.profile.ReadOK && s.answer.Status < 400 && !s.cut && (eof || s.complete()) {
		s.trouble = s.kept
	}
	if f := s.profile.UsageFunc; f != nil && !s.cut {
		if units, ok := f(s.answer.Header, s.kept); ok {
			whole := eof || s.complete()
			return Usage{Units: positive(units)}, whole, true
		}
	}
	if s.scanDocument() != nil {
		return Usage{}, false, false // a broken document counts nothing
	}
	u, ok = s.tally.usage()
	return u, ok, ok
}

// complete reports whether the kept bytes are a whole document: who decodes JSON
// does not read on to the body's end.
func (s *Scanner) complete() bool { return pick(bytes.NewReader(s.kept), nil, nil) == nil }

// scanDocument reads the counts of a JSON answer. It errs if that is incomplete.
func (s *Scanner) scanDocument() error {
	if !s.cut {
		return pickAll(bytes.NewReader(s.kept), s.tally.paths, s.tally.count)
	}
	// The beginning is gone: begin with the last key that may hold the counts.
	last := -1
	for _, at := range s.tally.fields.At {
		last = max(last, bytes.LastIndex(s.kept, append(quoted(at), ':')))
	}
	if last < 0 || !bytes.HasSuffix(bytes.TrimRight(s.kept, " \t\r\n"), []byte("}")) {
		return errSyntax
	}
	doc := io.MultiReader(strings.NewReader("{"), bytes.NewReader(s.kept[last:]))
	return pickAll(doc, s.tally.paths, s.tally.count)
}

// event takes the data of one event of a stream.
func (s *Scanner) event(data []byte) {
	if bytes.Equal(data, []byte("[DONE]")) {
		s.ended = true
		return
	}
	holds := func(word string) bool { return bytes.Contains(data, []byte(`"`+word+`"`)) }
	if !holds("error") && !s.profile.Usage.mentions(data) && !slices.ContainsFunc(s.profile.StreamEnds, holds) {
		return // most events: nothing to read
	}
	failed := false
	paths := append([]string{"type", "error", "error.type", "error.code", "error.message", "response.error.code"}, s.tally.paths...)
	pickAll(bytes.NewReader(data), paths, func(path, value string, k kind) {
		switch {
		case path == "type" && value != "error":
			s.ended = s.ended || slices.Contains(s.profile.StreamEnds, value)
		case path == "type" || strings.Contains(path, "error"):
			failed = true
		default:
			s.tally.count(path, value, k)
		}
	})
	if failed && s.trouble == nil {
		s.trouble = bytes.Clone(data)
	}
}

// exception takes an exception of AWS's binary stream. Its kind goes where AWS's
// JSON errors have theirs.
func (s *Scanner) exception(kind, data []byte) {
	if s.trouble != nil {
		return
	}
	name, _ := json.Marshal(map[string]string{"__type": string(kind)})
	s.trouble = slices.Concat([]byte("["), name, []byte(","), data, []byte("]"))
}

// positive returns the units that a function of the caller's counted, without
// those that cannot be.
func positive(units map[string]int64) map[string]int64 {
	good := map[string]int64{}
	for unit, n := range units {
		if n >= 0 && n <= maxWhole {
			good[unit] = n
		}
	}
	return good
}

// Gunzip returns the beginning of what b was before it was compressed, at most
// limit bytes. It returns what it can of data that is cut off, and b itself if
// that is no gzip.
func Gunzip(b []byte, limit int64) []byte {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return b
	}
	plain, _ := io.ReadAll(io.LimitReader(r, limit))
	return plain
}
