package profiles

import (
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestPick(t *testing.T) {
	paths := []string{"a", "b.c", "d"}
	long := strings.Repeat(`\\\"x`, maxValue)
	for _, tc := range []struct {
		name, doc string
		want      []string
		broken    bool
	}{
		{"flat", `{"a":"1","d":2}`, []string{"a=1", "d=2"}, false},
		{"literals", `{"a":true,"d":-1.5e3,"b":{"c":null}}`, []string{"a=true", "d=-1.5e3"}, false},
		{"nested", `{"b":{"x":{"c":0},"c":"1"},"c":"2"}`, []string{"b.c=1"}, false},
		{"arrays are looked through", `[{"b":[{"c":1},{"c":[2,3]}]},4]`, []string{"b.c=1", "b.c=2", "b.c=3"}, false},
		{"twice", `{"a":1,"a":2}`, []string{"a=1", "a=2"}, false},
		{"escapes", `{"\u0061":"x\n\"\\","d":"\ud83d\ude00"}`, []string{"a=x\n\"\\", "d=😀"}, false},
		{"string that ends in backslashes", `{"x":"\\","a":"\\\\","d":1}`, []string{`a=\\`, "d=1"}, false},
		{"skipped value full of brackets", `{"x":["]}",{"y":"{"}],"a":1}`, []string{"a=1"}, false},
		{"long value", `{"a":"` + long + `","d":1}`, []string{"d=1"}, false},
		{"long value skipped", `{"x":"` + long + `","d":1}`, []string{"d=1"}, false},
		{"long key", `{"` + long + `":3,"d":1}`, []string{"d=1"}, false},
		{"empty key", `{"":{"a":1},"d":1}`, []string{"d=1"}, false},
		{"object where a value is wanted", `{"a":{"a":1}}`, nil, false},
		{"spaces", " {\n\"a\" :\t1 , \"d\":2 }\r\n", []string{"a=1", "d=2"}, false},
		{"cut in a value", `{"a":1,"d":"2`, []string{"a=1"}, true},
		{"cut in a key", `{"a":1,"d`, []string{"a=1"}, true},
		{"cut in a skipped value", `{"a":1,"x":{"y":[`, []string{"a=1"}, true},
		{"no document", `model=a`, nil, false},
		{"no colon", `{"a" 1}`, nil, true},
		{"page", `<html>`, nil, true},
		{"empty", ``, nil, true},
		{"deep", strings.Repeat("[", 1<<20), nil, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tc.doc), iotest.OneByteReader(strings.NewReader(tc.doc))} {
				var got []string
				err := pick(r, paths, func(path, value string) { got = append(got, path+"="+value) })
				if !slices.Equal(got, tc.want) || (err != nil) != tc.broken {
					t.Errorf("pick() = %.100q, error %v, want %q, broken %v", got, err, tc.want, tc.broken)
				}
			}
		})
	}
}
