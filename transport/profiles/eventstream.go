package profiles

import (
	"encoding/binary"
	"encoding/json"
)

// binaryEvents cuts AWS's binary event stream into its messages, as
// https://smithy.io/2.0/aws/amazon-eventstream.html has it: the lengths of the
// whole and of its headers, a checksum, headers, payload, a checksum. Checksums
// are not looked at: a wrong one harms no count, and a wrong length ends the
// search.
type binaryEvents struct {
	found  func(data []byte)       // the payload of an event, or the vendor's own event in one
	failed func(kind, data []byte) // an exception, its kind and its payload in JSON
	kept   []byte                  // the beginning of a message that has not come in full
	last   bool                    // the event with the counts was seen
	dead   bool                    // a length was wrong, or too long
}

// Prelude and checksum, without headers and payload.
const (
	preludeBytes = 12
	emptyMessage = preludeBytes + 4
)

func (e *binaryEvents) end()         {}
func (e *binaryEvents) whole() bool  { return e.last }
func (e *binaryEvents) broken() bool { return e.dead || len(e.kept) > 0 }

func (e *binaryEvents) write(b []byte) {
	if e.dead {
		return
	}
	e.kept = append(e.kept, b...)
	rest := e.kept
	for len(rest) >= preludeBytes {
		total, headers := binary.BigEndian.Uint32(rest), binary.BigEndian.Uint32(rest[4:])
		if total < emptyMessage || total > maxScan || headers > total-emptyMessage {
			e.dead, e.kept = true, nil
			return
		}
		if uint32(len(rest)) < total {
			break
		}
		e.take(rest[preludeBytes:preludeBytes+headers], rest[preludeBytes+headers:total-4])
		rest = rest[total:]
	}
	if len(rest) < len(e.kept) {
		e.kept = e.kept[:copy(e.kept, rest)]
	}
}

// take handles one whole message. InvokeModel wraps the vendor's own events in
// base64; the counts of Converse come last.
func (e *binaryEvents) take(headers, payload []byte) {
	h := textHeaders(headers)
	switch h[":message-type"] {
	case "event":
		e.last = e.last || h[":event-type"] == "metadata"
		var chunk struct{ Bytes []byte }
		if h[":event-type"] == "chunk" && json.Unmarshal(payload, &chunk) == nil {
			payload = chunk.Bytes
		}
		e.found(payload)
	case "exception":
		e.failed([]byte(h[":exception-type"]), payload)
	case "error": // one that the API does not describe
		e.failed([]byte(h[":error-code"]), nil)
	}
}

// headerSizes are the bytes of a header's value by its type; -1 is two bytes of
// length and then the value.
var headerSizes = [...]int{0, 0, 1, 2, 4, 8, -1, -1, 8, 16}

const textHeader = 7

// textHeaders returns the headers that are texts, up to the first that is broken.
func textHeaders(b []byte) map[string]string {
	texts := map[string]string{}
	for len(b) > 0 {
		name := int(b[0]) + 1
		if len(b) <= name || int(b[name]) >= len(headerSizes) {
			break
		}
		key, kind, value := string(b[1:name]), b[name], b[name+1:]
		size := headerSizes[kind]
		if size < 0 {
			if len(value) < 2 {
				break
			}
			size, value = int(binary.BigEndian.Uint16(value)), value[2:]
		}
		if len(value) < size {
			break
		}
		if kind == textHeader {
			texts[key] = string(value[:size])
		}
		b = value[size:]
	}
	return texts
}
