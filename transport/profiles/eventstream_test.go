package profiles_test

import (
	"encoding/base64"
	"encoding/binary"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/transport/profiles"
)

// message is one message of AWS's binary event stream, without its checksums.
// Headers are names and texts in turn.
func message(payload string, headers ...string) string {
	var h []byte
	for i := 0; i < len(headers); i += 2 {
		h = append(h, byte(len(headers[i])))
		h = append(h, headers[i]...)
		h = binary.BigEndian.AppendUint16(append(h, 7), uint16(len(headers[i+1])))
		h = append(h, headers[i+1]...)
	}
	m := binary.BigEndian.AppendUint32(nil, uint32(16+len(h)+len(payload)))
	m = append(binary.BigEndian.AppendUint32(m, uint32(len(h))), "crc."...)
	m = append(append(m, h...), payload...)
	return string(append(m, "crc."...))
}

func awsEvent(kind, payload string) string {
	return message(payload, ":message-type", "event", ":event-type", kind, ":content-type", "application/json")
}

func awsChunk(event string) string {
	return awsEvent("chunk", `{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(event))+`","p":"abcd"}`)
}

func awsException(kind, payload string) string {
	return message(payload, ":content-type", "application/json", ":message-type", "exception", ":exception-type", kind)
}

// scanAWS shows a stream to a scanner, so many bytes at a time.
func scanAWS(stream string, step int) *profiles.Scanner {
	s := profiles.Bedrock().Scan(profiles.Answer{Status: 200, Header: http.Header{"Content-Type": {"application/vnd.amazon.eventstream"}}})
	for len(stream) > 0 {
		n := min(step, len(stream))
		s.Write([]byte(stream[:n]))
		stream = stream[n:]
	}
	return s
}

func TestBinaryEventStream(t *testing.T) {
	const usage = `{"usage":{"inputTokens":7,"outputTokens":5,"cacheReadInputTokens":2,"cacheWriteInputTokens":1,"totalTokens":15},"metrics":{"latencyMs":1}}`
	converse := awsEvent("messageStart", `{"role":"assistant"}`) + awsEvent("contentBlockDelta", `{"delta":{"text":"usage"}}`) + awsEvent("messageStop", `{"stopReason":"end_turn"}`)
	invoke := awsChunk(`{"type":"message_start","message":{"usage":{"input_tokens":7,"output_tokens":1,"cache_read_input_tokens":2}}}`) +
		awsChunk(`{"type":"message_delta","usage":{"output_tokens":5}}`)
	for _, tc := range []struct {
		name, stream string
		eof          bool
		want         units // nil: nothing was counted
		final        bool
		trouble      pause.Class
	}{
		{"converse", converse + awsEvent("metadata", usage), true, units{"input_tokens": 8, "output_tokens": 5}, true, pause.OK},
		{"closed after the counts", converse + awsEvent("metadata", usage), false, units{"input_tokens": 8, "output_tokens": 5}, true, pause.OK},
		{"cut before the counts", converse, false, nil, false, pause.OK},
		{"invoke, Anthropic", invoke + awsChunk(`{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":7,"outputTokenCount":5}}`), true,
			units{"input_tokens": 7, "output_tokens": 5}, true, pause.OK},
		{"invoke, cut", invoke, false, units{"input_tokens": 7, "output_tokens": 5}, false, pause.OK},
		{"invoke, another's", awsChunk(`{"outputText":"a","amazon-bedrock-invocationMetrics":{"inputTokenCount":3,"outputTokenCount":4}}`), true,
			units{"input_tokens": 3, "output_tokens": 4}, true, pause.OK},
		{"throttled", converse + awsException("throttlingException", `{"message":"Too many tokens, please wait before trying again."}`), true,
			nil, false, pause.RateLimited},
		{"throttled after counts", invoke + awsException("throttlingException", `{"message":"slow down"}`), true,
			units{"input_tokens": 7, "output_tokens": 5}, false, pause.RateLimited},
		{"a spent day", awsException("throttlingException", `{"message":"Too many tokens per day, please wait before trying again."}`), true, nil, false, pause.QuotaExhausted},
		{"no capacity", awsException("serviceUnavailableException", `{}`), true, nil, false, pause.Overloaded},
		{"the model broke", awsException("modelStreamErrorException", `{"originalStatusCode":500}`), true, nil, false, pause.ServerError},
		{"an error without a payload", message("", ":message-type", "error", ":error-code", "ThrottlingException"), true, nil, false, pause.RateLimited},
		{"an exception without JSON", awsException("throttlingException", `<a>`), true, nil, false, pause.RateLimited},
		{"a message is cut", converse + awsEvent("metadata", usage) + converse[:9], true, units{"input_tokens": 8, "output_tokens": 5}, false, pause.OK},
		{"a length is wrong", converse + "\x00\x00\x00\x05\x00\x00\x00\x00" + awsEvent("metadata", usage), true, nil, false, pause.OK},
		{"headers longer than all", "\x00\x00\x00\x20\x00\x00\x00\x11crc." + awsEvent("metadata", usage), true, nil, false, pause.OK},
		{"a message longer than a MiB", awsEvent("contentBlockDelta", strings.Repeat("a", 1<<20)) + awsEvent("metadata", usage), true, nil, false, pause.OK},
		{"an unknown kind of header", message(usage, ":message-type", "event") + string([]byte{0, 0, 0, 19, 0, 0, 0, 3, 'c', 'r', 'c', '.', 1, 'a', 99, 'c', 'r', 'c', '.'}), true,
			units{"input_tokens": 8, "output_tokens": 5}, true, pause.OK},
		{"a header longer than the headers", string([]byte{0, 0, 0, 21, 0, 0, 0, 5, 'c', 'r', 'c', '.', 1, 'a', 7, 0, 99, 'c', 'r', 'c', '.'}) + awsEvent("metadata", usage), true,
			units{"input_tokens": 8, "output_tokens": 5}, true, pause.OK},
		{"a page", "<html>" + strings.Repeat(" ", 64), true, nil, false, pause.OK},
		{"empty", "", true, nil, false, pause.OK},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, step := range []int{1, 7, 1 << 21} {
				s := scanAWS(tc.stream, step)
				class := pause.OK
				if a, ok := s.Trouble(); ok {
					class = profiles.Bedrock().Judge(a).Class
				}
				if class != tc.trouble {
					t.Errorf("%d at a time: trouble is %v, want %v", step, class, tc.trouble)
				}
				u, final, ok := s.Usage(tc.eof)
				if ok != (tc.want != nil) || final != tc.final {
					t.Fatalf("%d at a time: Usage() = %+v, %v, %v, want %v, final %v", step, u, final, ok, tc.want, tc.final)
				}
				for unit, n := range tc.want {
					if u.Cost()[unit] != n {
						t.Errorf("%d at a time: Cost() = %v, want %v", step, u.Cost(), tc.want)
					}
				}
			}
		})
	}
}

// FuzzBinaryEventStream: no stream makes a scanner fail, and it counts the same
// however its bytes come.
func FuzzBinaryEventStream(f *testing.F) {
	f.Add([]byte(awsEvent("metadata", `{"usage":{"inputTokens":7,"outputTokens":5}}`)))
	f.Add([]byte(awsChunk(`{"type":"message_delta","usage":{"output_tokens":5}}`) + awsException("throttlingException", `{"message":"a"}`)))
	f.Add([]byte(message("", ":message-type", "error")[:20]))
	f.Fuzz(func(t *testing.T, stream []byte) {
		whole, bytes := scanAWS(string(stream), max(1, len(stream))), scanAWS(string(stream), 1)
		a, failed := whole.Trouble()
		if b, alike := bytes.Trouble(); failed != alike || string(a.Body) != string(b.Body) {
			t.Fatalf("Trouble() = %s, %v at once, and %s, %v byte by byte", a.Body, failed, b.Body, alike)
		}
		if failed {
			profiles.Bedrock().Judge(a)
		}
		u1, final1, ok1 := whole.Usage(true)
		u2, final2, ok2 := bytes.Usage(true)
		if ok1 != ok2 || final1 != final2 || !maps.Equal(u1.Cost(), u2.Cost()) || !reflect.DeepEqual(u1, u2) {
			t.Fatalf("Usage() = %+v, %v, %v at once, and %+v, %v, %v byte by byte", u1, final1, ok1, u2, final2, ok2)
		}
	})
}
