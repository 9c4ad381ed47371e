package profiles

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// scan shows a body to a scanner in pieces, and says all that it learned.
func scan(t *testing.T, p *Profile, header http.Header, body, lengths []byte, eof bool) (u Usage, final, ok bool, trouble string) {
	s := p.Scan(Answer{Status: 200, Header: header})
	if s == nil {
		return Usage{}, false, false, ""
	}
	cuts(body, lengths, func(b []byte) {
		before := string(b)
		if n, err := s.Write(b); n != len(b) || err != nil || string(b) != before {
			t.Fatalf("%s: Write() = %d, %v of %d bytes, or changed them", p.Name, n, err, len(b))
		}
		kept := len(s.kept) + len(s.trouble)
		switch s := s.stream.(type) {
		case *events:
			kept += len(s.line) + len(s.data)
		case *elements:
			kept += len(s.item)
		}
		if kept > 3*maxScan || len(s.kept) > maxScan {
			t.Fatalf("%s: %d bytes are kept", p.Name, kept)
		}
	})
	u, final, ok = s.Usage(eof)
	a, found := s.Trouble()
	if found {
		trouble = "found " + string(a.Body)
	}
	for unit, n := range u.Units {
		if n < 0 || n > maxWhole {
			t.Fatalf("%s: counted %d %s", p.Name, n, unit)
		}
	}
	if n := u.Cost()["tokens"]; n < 0 || n > 10*maxTokens || u.Input < 0 || u.Output < 0 || u.Cached < 0 || !ok && n != 0 || final && !ok {
		t.Fatalf("%s: counted %+v, final %v, %v", p.Name, u, final, ok)
	}
	return u, final, ok, trouble
}

// FuzzScanner: whatever the body and however it comes, a scanner counts the same,
// nothing that is no count, and keeps little.
func FuzzScanner(f *testing.F) {
	const doc, sse = "application/json", "text/event-stream; charset=utf-8"
	lengths := []byte{1, 0, 5}
	add := func(kind string, body, lengths []byte, grow uint16, eof bool) {
		for i := 0; i < 28 && grow == 0 || i == 0; i += 14 {
			f.Add(byte(i+len(body)), kind, body, lengths, grow, eof)
		}
	}
	for _, body := range []string{
		`{"usage":{"prompt_tokens":7,"completion_tokens":3}}`, `[{"usageMetadata":{"promptTokenCount":8,"thoughtsTokenCount":2}},{"a":"]}\\\"["}]`,
		`{"num_segments":"3","usage":{"prompt_tokens":1e99,"total_tokens":9007199254740991,"x":"\\\""}}`, "\n [", `{"usage":{"prompt_tokens":7}`,
	} {
		add(doc, []byte(body), lengths, uint16(0), true)
		add(doc+" gzip", zipped([]byte(body)), lengths, uint16(0), true)
	}
	for _, body := range []string{
		"data: {\"usage\":{\"prompt_tokens\":-1}}\r\n\r\ndata: [DONE]\n\n", "data: {\"error\":{\"code\":1}}\n\ndata: {\"usage\":\ndata: {\"prompt_tokens\":7}}",
		"data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":25}}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
	} {
		add(sse, []byte(body), lengths, uint16(0), false)
	}
	add(doc, []byte(`{"data":"","usage":{"prompt_tokens":7}}`), []byte{200, 0}, uint16(65518), true) // few are so long: each takes milliseconds
	for _, s := range seeds(f) {
		add(s.header.Get("Content-Type"), []byte(s.body), lengths, uint16(0), true)
	}
	list := everyProfile()
	f.Fuzz(func(t *testing.T, which byte, kind string, body, lengths []byte, grow uint16, eof bool) {
		kind, compressed := strings.CutSuffix(kind, " gzip")
		header := http.Header{"Content-Type": {kind}}
		if compressed {
			header.Set("Content-Encoding", "gzip")
		}
		body = []byte(grown(string(body), grow))
		p := list[int(which)%len(list)] // all of them take too long for each
		u, final, ok, trouble := scan(t, p, header, body, nil, eof)
		u2, final2, ok2, trouble2 := scan(t, p, header, body, lengths, eof)
		if !reflect.DeepEqual(u, u2) || final != final2 || ok != ok2 || trouble != trouble2 {
			t.Fatalf("%s: whole: %+v %v %v %.200q, in pieces: %+v %v %v %.200q", p.Name, u, final, ok, trouble, u2, final2, ok2, trouble2)
		}
	})
}

// nest returns the JSON document that has value at path.
func nest(path, value string) string {
	keys := strings.Split(path, ".")
	for i := len(keys) - 1; i >= 0; i-- {
		value = strconv.Quote(keys[i]) + ":" + value
		value = "{" + value + "}"
	}
	return value
}

// FuzzTally: a value at a counter's place counts if it is a plain whole number,
// and otherwise nothing of the answer does.
func FuzzTally(f *testing.F) {
	for _, value := range []string{"0", "7", "-0", "-7", "7.0", "1e3", "9007199254740991", "9007199254740993", "1000000000", `"7"`, "[7]", `{"n":7}`, "null", "true", "007", " 7\n", "7,7", "[]"} {
		f.Add(value, int64(5))
	}
	list := everyProfile()
	f.Fuzz(func(t *testing.T, value string, output int64) {
		output = 1 + int64(uint64(output)%1000)
		if !json.Valid([]byte(value)) {
			return
		}
		input, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
		counts := err == nil && input <= maxTokens
		void := strings.TrimSpace(value) == "null" || emptied(value) // as if it were not there
		for _, p := range list {
			fields := p.Usage
			if len(fields.At) == 0 || len(fields.Input) == 0 || len(fields.Output) == 0 {
				continue
			}
			doc := nest(fields.At[0], "{"+strconv.Quote(fields.Output[0])+":"+strconv.FormatInt(output, 10)+","+strconv.Quote(fields.Input[0])+":"+value+"}")
			if strings.Contains(fields.Input[0]+fields.Output[0], ".") {
				continue
			}
			u, _, ok, _ := scan(t, p, http.Header{"Content-Type": {"application/json"}}, []byte(doc), []byte{3}, true)
			switch {
			case counts && (!ok || u.Input != int64(input) || u.Output != output):
				t.Fatalf("%s: %s counts %+v, %v", p.Name, doc, u, ok)
			case !counts && !void && ok && u.Input+u.Output > 0:
				t.Fatalf("%s: %s counts %+v", p.Name, doc, u)
			}
		}
	})
}

// emptied reports whether a value is an empty string, which names nothing.
func emptied(value string) bool { return strings.TrimSpace(value) == `""` }

// FuzzGunzip: what is returned is bounded, and the beginning of what was
// compressed, as far as it came.
func FuzzGunzip(f *testing.F) {
	f.Add([]byte("hello"), 3, 5)
	f.Add([]byte("\x1f\x8b"), 1000, 0)
	f.Add(zipped(bytes.Repeat([]byte(" "), 1<<16)), 100, 9)
	f.Add(append(zipped([]byte("a")), zipped([]byte("b"))...), 1, 1)
	f.Fuzz(func(t *testing.T, b []byte, cut, limit int) {
		limit = int(uint(limit) % (1 << 17))
		before := bytes.Clone(b)
		got := Gunzip(b, int64(limit))
		if len(got) > limit && !bytes.Equal(got, b) || !bytes.Equal(b, before) {
			t.Fatalf("%d bytes, want at most %d", len(got), limit)
		}
		packed := zipped(b)
		if got := Gunzip(packed, int64(limit)); !bytes.Equal(got, b[:min(len(b), limit)]) {
			t.Fatalf("%d bytes of %d, limit %d", len(got), len(b), limit)
		}
		packed = packed[:uint(cut)%uint(len(packed))]
		if got := Gunzip(packed, int64(limit)); !bytes.HasPrefix(b, got) && !bytes.Equal(got, packed) {
			t.Fatalf("%d bytes that were not compressed", len(got))
		}
	})
}
