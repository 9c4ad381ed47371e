package profiles

import "bytes"

// splitter cuts a stream into its events, however its bytes come.
type splitter interface {
	write(b []byte)
	end()         // after the last byte
	whole() bool  // the stream said itself that it is complete
	broken() bool // something was too long, or is missing at the end
}

// events cuts an event stream into the data of its events, as
// https://html.spec.whatwg.org/multipage/server-sent-events.html has it.
type events struct {
	found func(data []byte)
	line  []byte // the beginning of a line that has not come in full
	data  []byte // of the event that has not ended
	dead  bool   // something was too long
}

func (e *events) whole() bool  { return false }
func (e *events) broken() bool { return e.dead }

func (e *events) write(b []byte) {
	for !e.dead {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			e.line = e.keep(e.line, b)
			return
		}
		line := b[:i]
		if len(e.line) > 0 {
			e.line = e.keep(e.line, line)
			line = e.line
		}
		if len(line) > maxScan { // it came in one piece, and must end the search as it does in several
			e.keep(line, nil)
			return
		}
		e.take(bytes.TrimSuffix(line, []byte("\r")))
		e.line = e.line[:0]
		b = b[i+1:]
	}
}

// take handles one whole line.
func (e *events) take(line []byte) {
	if len(line) == 0 {
		if len(e.data) > 0 {
			e.found(e.data)
		}
		e.data = e.data[:0]
		return
	}
	if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		if len(e.data) > 0 {
			e.data = e.keep(e.data, []byte("\n"))
		}
		e.data = e.keep(e.data, bytes.TrimPrefix(data, []byte(" ")))
	}
}

// end takes an event whose last blank line is missing.
func (e *events) end() {
	if !e.dead {
		e.write([]byte("\n\n"))
	}
}

// keep appends b to what is kept, or gives up if that gets too long.
func (e *events) keep(kept, b []byte) []byte {
	if e.dead || len(kept)+len(b) > maxScan {
		e.dead, e.line, e.data = true, nil, nil
		return nil
	}
	return append(kept, b...)
}

// elements cuts a JSON array into its objects and arrays: a stream of events
// without a name, such as Gemini's without alt=sse. Other elements are passed
// over.
type elements struct {
	found           func(data []byte)
	item            []byte // the beginning of an element that has not come in full
	depth           int    // 1 between elements
	quoted, escaped bool   // within a string, after a backslash
	dead            bool   // an element was too long
	closed          bool
}

func (e *elements) end()         {}
func (e *elements) whole() bool  { return e.closed }
func (e *elements) broken() bool { return e.dead || !e.closed }

func (e *elements) write(b []byte) {
	from := 0 // where the element begins that ends in b
	for i, c := range b {
		switch {
		case e.closed || e.dead:
			return
		case e.escaped:
			e.escaped = false
		case e.quoted && c == '\\':
			e.escaped = true
		case c == '"':
			e.quoted = !e.quoted
		case e.quoted:
		case c == '{' || c == '[':
			if e.depth++; e.depth == 2 {
				from = i
			}
		case c == '}' || c == ']':
			if e.depth--; e.depth == 1 {
				if e.keep(b[from : i+1]); e.dead {
					return
				}
				e.found(e.item)
				e.item = e.item[:0]
			}
			e.closed = e.depth == 0
		}
	}
	if e.depth > 1 {
		e.keep(b[from:])
	}
}

func (e *elements) keep(b []byte) {
	if len(e.item)+len(b) > maxScan {
		e.dead, e.item = true, nil
		return
	}
	e.item = append(e.item, b...)
}
