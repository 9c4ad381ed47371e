package profiles

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

const (
	maxKey   = 256      // a longer key is no key that a path names
	maxValue = 32 << 10 // a longer value is passed over
	maxDepth = 32       // wanted values nested deeper are passed over
)

// pick reads one JSON document and calls found with every string, number and
// boolean at one of the paths, in the document's order. It needs memory for one
// value only, however long the document is, and does not check what it skips.
// The error is nil if the document came to its end.
func pick(r io.Reader, paths []string, found func(path, value string)) error {
	return pickAll(r, paths, func(path, value string, k kind) {
		if k != nested {
			found(path, value)
		}
	})
}

// pickAll is pick for those who mind what stands at a path.
func pickAll(r io.Reader, paths []string, found func(path, value string, k kind)) error {
	p := picker{r: bufio.NewReader(r), paths: paths, found: found}
	return p.value("", 0)
}

// pickText is pick for those who mind what of the document is no text.
func pickText(r io.Reader, paths []string, found func(path, value string)) mediaCount {
	p := picker{r: bufio.NewReader(r), paths: paths, found: func(path, value string, k kind) {
		if k != nested {
			found(path, value)
		}
	}}
	_ = p.value("", 0) // what came before an error is all there is
	return p.mediaCount
}

// mediaCount is what of a JSON document is in base64: a string that begins with
// 1 KiB of its alphabet, which no text does.
type mediaCount struct {
	media, mediaBytes int64
	inMedia           bool // the document ended within one
}

const mediaHead = 1 << 10

// kind is what stands at a path.
type kind int

const (
	literal kind = iota // a number or a boolean
	text                // a string
	nested              // an object or array, whose value is ""; what is in an array follows
)

type picker struct {
	r     *bufio.Reader
	paths []string
	found func(path, value string, k kind)
	mediaCount
}

var errSyntax = errors.New("profiles: not a JSON document")

// leads reports whether a wanted path lies below path, and hits whether it is one.
func (p *picker) leads(path string) (leads, hits bool) {
	for _, want := range p.paths {
		rest, ok := strings.CutPrefix(want, path)
		leads = leads || ok && (path == "" || strings.HasPrefix(rest, "."))
		hits = hits || ok && rest == "" && path != ""
	}
	return leads, hits
}

func (p *picker) value(path string, depth int) error {
	c, err := p.next()
	if err != nil {
		return err
	}
	leads, hits := p.leads(path)
	if hits && (c == '{' || c == '[') {
		p.found(path, "", nested)
	}
	switch c {
	case '{':
		if leads && depth < maxDepth {
			return p.object(path, depth+1)
		}
		return p.skip()
	case '[':
		if (leads || hits) && depth < maxDepth {
			return p.array(path, depth+1)
		}
		return p.skip()
	case '"':
		if !hits {
			_, err := p.text(-1)
			return err
		}
		s, err := p.text(maxValue)
		if err == nil && s != "" {
			p.found(path, s, text)
		}
		return err
	}
	p.r.UnreadByte()
	s, err := p.literal()
	if hits && s != "" && s != "null" {
		p.found(path, s, literal)
	}
	return err
}

func (p *picker) object(path string, depth int) error {
	for {
		c, err := p.next()
		switch {
		case err != nil:
			return err
		case c == '}':
			return nil
		case c == ',':
			continue
		case c != '"':
			return errSyntax
		}
		key, err := p.text(maxKey)
		if err != nil {
			return err
		}
		if c, err = p.next(); err != nil {
			return err
		}
		if c != ':' {
			return errSyntax
		}
		if key == "" {
			key = "\x00" // none that a path names
		}
		if path != "" {
			key = path + "." + key
		}
		if err := p.value(key, depth); err != nil {
			return err
		}
	}
}

func (p *picker) array(path string, depth int) error {
	for {
		c, err := p.next()
		switch {
		case err != nil:
			return err
		case c == ']':
			return nil
		case c == ',':
			continue
		}
		p.r.UnreadByte()
		if err := p.value(path, depth); err != nil {
			return err
		}
	}
}

// skip passes over the rest of an object or array whose first byte was read.
func (p *picker) skip() error {
	for depth := 1; depth > 0; {
		c, err := p.next()
		if err != nil {
			return err
		}
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			if _, err := p.text(-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// text reads the rest of a string whose first quote was read, and returns it
// decoded, or "" if it is longer than limit.
func (p *picker) text(limit int) (string, error) {
	kept, slashes := []byte{'"'}, 0 // slashes is the run of them just before here
	head, size, coded := 0, int64(0), true
	defer func() {
		if coded && head == mediaHead {
			p.media, p.mediaBytes = p.media+1, p.mediaBytes+size
		}
	}()
	for {
		part, err := p.r.ReadSlice('"')
		n := min(len(part), mediaHead-head)
		coded = coded && (n == 0 || base64ish(part[:n]))
		head, size = head+n, size+int64(len(part))
		if err != nil && err != bufio.ErrBufferFull {
			p.inMedia = coded && head == mediaHead
			return "", err
		}
		if limit >= 0 && len(kept)+len(part) <= limit+2 {
			kept = append(kept, part...)
		} else {
			limit = -1 // too long: keep no more of it
		}
		if err == nil {
			part = part[:len(part)-1]
		}
		before := len(bytes.TrimRight(part, `\`))
		if before > 0 {
			slashes = 0
		}
		slashes += len(part) - before
		if err == nil && slashes%2 == 0 {
			break
		}
		if err == nil {
			slashes = 0 // the quote was escaped
		}
	}
	if limit < 0 {
		return "", nil
	}
	if bytes.IndexByte(kept, '\\') < 0 {
		return string(kept[1 : len(kept)-1]), nil
	}
	var s string
	if json.Unmarshal(kept, &s) != nil {
		return "", nil
	}
	return s, nil
}

// literal reads a number, true, false or null.
func (p *picker) literal() (string, error) {
	var kept []byte
	for {
		c, err := p.r.ReadByte()
		if err == io.EOF && len(kept) > 0 {
			return string(kept), nil
		}
		if err != nil {
			return "", err
		}
		if !strings.ContainsRune("+-.", rune(c)) && (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') {
			p.r.UnreadByte()
			if len(kept) == 0 {
				return "", errSyntax
			}
			return string(kept), nil
		}
		if kept = append(kept, c); len(kept) > maxKey {
			return "", errSyntax
		}
	}
}

// next returns the next byte that is no white space.
func (p *picker) next() (byte, error) {
	for {
		c, err := p.r.ReadByte()
		if err != nil || c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c, err
		}
	}
}

// base64ish reports whether b may be base64, in either alphabet, or the "data:"
// address before it. Some encoders write its slashes with a backslash before them.
func base64ish(b []byte) bool {
	for _, c := range b {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '+' || c > '9') && strings.IndexByte("=_:;\\\"", c) < 0 {
			return false
		}
	}
	return true
}
