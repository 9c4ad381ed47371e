package profiles

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// splitAll cuts a stream into its events. It fails if more is kept than allowed.
func splitAll(t *testing.T, stream string, lengths []byte, build func(found func([]byte)) splitter) (all []string, whole, broken bool) {
	s := build(func(data []byte) {
		if len(data) > maxScan {
			t.Fatalf("an event of %d bytes", len(data))
		}
		all = append(all, string(data))
	})
	cuts([]byte(stream), lengths, func(b []byte) {
		before := string(b)
		s.write(b)
		if string(b) != before {
			t.Fatal("the stream was changed")
		}
		kept := 0
		switch s := s.(type) {
		case *events:
			kept = max(len(s.line), len(s.data))
		case *elements:
			kept = len(s.item)
		}
		if kept > maxScan {
			t.Fatalf("%d bytes are kept", kept)
		}
	})
	s.end()
	return all, s.whole(), s.broken()
}

// grown puts a long run into the middle of s, for a few values of grow only: it
// makes a stream that is longer than what is kept.
func grown(s string, grow uint16) string {
	if grow < 65515 {
		return s
	}
	half := len(s) / 2
	return s[:half] + strings.Repeat("x", int(grow-65500)<<16) + s[half:]
}

// FuzzEvents: the events of a stream are what its lines say, however it is cut.
func FuzzEvents(f *testing.F) {
	for _, stream := range []string{
		"data: a\n\ndata: b\ndata:c\n\n", "data: a\r\n\r\ndata:\r\n\r\n", ": comment\nevent: x\ndata: a", "data\n\ndata:  a\n\n\n\n", "\n\ndata: \n\n",
		"data: [DONE]\n\n", "data: a\r\r\n\n",
	} {
		f.Add(stream, []byte{1}, uint16(0))
	}
	f.Add("data: a\n\ndata: b\n\n", []byte{200, 0}, uint16(65518)) // few are so long: each takes milliseconds
	for _, s := range seeds(f) {
		if strings.HasPrefix(s.body, "data:") || strings.HasPrefix(s.body, "event:") {
			f.Add(s.body, []byte{5}, uint16(0))
		}
	}
	f.Fuzz(func(t *testing.T, stream string, lengths []byte, grow uint16) {
		stream = grown(stream, grow)
		build := func(found func([]byte)) splitter { return &events{found: found} }
		got, whole, broken := splitAll(t, stream, nil, build)
		again, whole2, broken2 := splitAll(t, stream, lengths, build)
		if !slices.Equal(got, again) || whole != whole2 || broken != broken2 {
			t.Fatalf("whole: %.200q %v %v, in pieces: %.200q %v %v", got, whole, broken, again, whole2, broken2)
		}
		if broken != (len(stream) > maxScan && broken) {
			t.Fatal("a short stream is broken")
		}
		if broken {
			return
		}
		var want, data []string
		for line := range strings.SplitSeq(stream+"\n\n", "\n") {
			line = strings.TrimSuffix(line, "\r")
			if value, ok := strings.CutPrefix(line, "data:"); ok {
				if value = strings.TrimPrefix(value, " "); value != "" || len(data) > 0 {
					data = append(data, value)
				}
			} else if line == "" {
				if len(data) > 0 {
					want = append(want, strings.Join(data, "\n"))
				}
				data = nil
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("events %q, want %q", got, want)
		}
	})
}

// FuzzElements: the elements of a JSON array are those that encoding/json finds,
// however it is cut.
func FuzzElements(f *testing.F) {
	for _, stream := range []string{
		`[{"a":1},{"b":"]}\\\"["} , [2,[3]] ,4,"x",null]`, `[]`, " [ {}\n,\n{} ] ", `[{"a":1},`, `[{]}`, `[1,2]trailing`, `["\`, `[[[`, `[{"a":"\u005d"}]`,
	} {
		f.Add(stream, []byte{1}, uint16(0))
	}
	f.Add(`[{"a":1},{"b":""},{"c":2}]`, []byte{200, 0}, uint16(65518)) // few are so long: each takes milliseconds
	for _, s := range seeds(f) {
		if strings.HasPrefix(s.body, "[") || strings.HasPrefix(s.body, "{") {
			f.Add("["+s.body+","+s.body+"]", []byte{5}, uint16(0))
		}
	}
	f.Fuzz(func(t *testing.T, stream string, lengths []byte, grow uint16) {
		stream = grown(stream, grow)
		if !strings.HasPrefix(strings.TrimLeft(stream, " \t\r\n"), "[") {
			return // never split so
		}
		build := func(found func([]byte)) splitter { return &elements{found: found} }
		got, whole, broken := splitAll(t, stream, nil, build)
		again, whole2, broken2 := splitAll(t, stream, lengths, build)
		if !slices.Equal(got, again) || whole != whole2 || broken != broken2 {
			t.Fatalf("whole: %.200q %v %v, in pieces: %.200q %v %v", got, whole, broken, again, whole2, broken2)
		}
		var items []json.RawMessage
		if json.Unmarshal([]byte(stream), &items) != nil || len(stream) > maxScan {
			return
		}
		if !whole || broken {
			t.Fatal("a whole array is not told as one")
		}
		items = slices.DeleteFunc(items, func(item json.RawMessage) bool { return !bytes.ContainsAny(item[:1], "{[") })
		if len(items) != len(got) {
			t.Fatalf("%d elements, want %d", len(got), len(items))
		}
		for i, item := range items {
			if string(item) != got[i] {
				t.Fatalf("element %q, want %q", got[i], item)
			}
		}
	})
}
