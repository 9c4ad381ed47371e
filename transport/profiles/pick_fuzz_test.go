package profiles

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzPick: what is picked from a JSON document is what encoding/json finds at
// the paths, in order. What is picked from any other bytes does not depend on how
// they come, and what is picked from their beginning is the beginning of it.
func FuzzPick(f *testing.F) {
	for _, doc := range []string{
		`{"a":"1","b":{"c":[1,{"c":2},[3,true]]},"d":null}`, `{"\u0061":"x\n\"\\","d":"\ud83d\ude00"}`, `[{"b.c":1},{"":{"a":1}},4]`,
		`{"x":["]}",{"y":"{"}],"a":-1.5e3}`, `{"a":{"b":[]},"a":[[]],"d":""}`, `{"a" 1}`, `{"a":"x`, `model=a`, "\xff", `{"d":"` + "\xc3" + `"}`,
	} {
		f.Add(doc)
	}
	for _, s := range seeds(f) {
		f.Add(s.body)
	}
	paths := []string{"a", "b.c", "a.b", "d", "error", "error.code", "error.message", "model", "usage.prompt_tokens"}
	f.Fuzz(func(t *testing.T, doc string) {
		pickFrom := func(r io.Reader) (all []string, err error) {
			err = pickAll(r, paths, func(path, value string, k kind) {
				if len(value) > maxValue || !slices.Contains(paths, path) || k != nested && value == "" {
					t.Fatalf("found %d bytes at %q", len(value), path)
				}
				all = append(all, finding(path, value, k))
			})
			return all, err
		}
		got, gotErr := pickFrom(strings.NewReader(doc))
		for how, r := range readers(doc) {
			if again, err := pickFrom(r()); !slices.Equal(again, got) || (err == nil) != (gotErr == nil) {
				t.Fatalf("%s: %q, %v, want %q, %v", how, again, err, got, gotErr)
			}
		}
		half, _ := pickFrom(strings.NewReader(doc[:len(doc)/2]))
		if whole := max(len(half)-1, 0); len(half) > len(got)+1 || !slices.Equal(half[:whole], got[:min(whole, len(got))]) {
			t.Fatalf("half of it: %q, all of it: %q", half, got)
		}
		if want, ok := decoded(doc, paths); ok && (gotErr != nil || !slices.Equal(got, want)) {
			t.Fatalf("picked %q, %v, want %q", got, gotErr, want)
		}
	})
}

// decoded is pickAll by encoding/json. It reports false for what is no valid
// document, and for one with something that pickAll passes over as too large.
func decoded(doc string, paths []string) (all []string, ok bool) {
	if !json.Valid([]byte(doc)) || !utf8.ValidString(doc) || len(doc) > maxValue {
		return nil, false
	}
	dec := json.NewDecoder(strings.NewReader(doc))
	dec.UseNumber()
	note := func(path, value string, k kind) {
		if slices.Contains(paths, path) && (k == nested || value != "") {
			all = append(all, finding(path, value, k))
		}
	}
	var walk func(path string, depth int) bool
	walk = func(path string, depth int) bool {
		token, _ := dec.Token()
		switch v := token.(type) {
		case json.Delim:
			note(path, "", nested)
			if depth == maxDepth {
				return false
			}
			for dec.More() {
				inner := path
				if v == '{' {
					key, _ := dec.Token()
					name := key.(string)
					if len(name) > maxKey/6 { // six bytes are the longest escape of one
						return false
					}
					if name == "" {
						name = "\x00"
					}
					if inner = name; path != "" {
						inner = path + "." + name
					}
				}
				if !walk(inner, depth+1) {
					return false
				}
			}
			dec.Token()
		case string:
			note(path, v, text)
		case json.Number:
			if len(v) > maxKey {
				return false
			}
			note(path, v.String(), literal)
		case bool:
			note(path, map[bool]string{true: "true", false: "false"}[v], literal)
		}
		return true
	}
	ok = walk("", 0)
	return all, ok
}

// FuzzPickXML is FuzzPick for XML: the reference is the decoder that checks how
// elements are nested.
func FuzzPickXML(f *testing.F) {
	for _, doc := range []string{
		`<E><Error><Code>Throttled</Code></Error></E>`, `<a:E xmlns:a="x"><a:Error b="c"><a:Code>Throttled</a:Code></a:Error></a:E>`,
		`<E><Error><Code><!-- c --><![CDATA[Throttled]]></Code><Message/></Error></E>`, `</E></E><E><Error><Code>x`,
		`<!DOCTYPE E [<!ENTITY a "Throttled">]><E><Error><Code>&a;</Code></Error></E>`, `<E><Error><Code> a&lt;&#65; </Code></Error></E>`, ` < `,
	} {
		f.Add(doc)
	}
	for _, s := range seeds(f) {
		if strings.HasPrefix(s.body, "<") {
			f.Add(s.body)
		}
	}
	paths := []string{"Error.Code", "Error.Message", "Code", "Error"}
	f.Fuzz(func(t *testing.T, doc string) {
		pickFrom := func(r io.Reader) (all []string) {
			pickXML(r, paths, func(path, value string) {
				if value == "" || value != strings.TrimSpace(value) || len(value) > 3*len(doc) || !slices.Contains(paths, path) {
					t.Fatalf("found %q at %q", value, path)
				}
				all = append(all, path+"="+value)
			})
			return all
		}
		got := pickFrom(strings.NewReader(doc))
		for how, r := range readers(doc) {
			if again := pickFrom(r()); !slices.Equal(again, got) {
				t.Fatalf("%s: %q, want %q", how, again, got)
			}
		}
		var want, around []string
		for d := xml.NewDecoder(strings.NewReader(doc)); ; {
			token, err := d.Token()
			if err == io.EOF && len(around) == 0 {
				break
			} else if err != nil || len(around) > maxDepth {
				return // no document
			}
			switch token := token.(type) {
			case xml.StartElement:
				around = append(around, token.Name.Local)
			case xml.EndElement:
				around = around[:len(around)-1]
			case xml.CharData:
				if value := strings.TrimSpace(string(token)); value != "" && len(around) > 1 {
					if path := strings.Join(around[1:], "."); slices.Contains(paths, path) {
						want = append(want, path+"="+value)
					}
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("picked %q, want %q", got, want)
		}
	})
}
