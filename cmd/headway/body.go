package main

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// bodyOf returns a body as it went over the wire.
func bodyOf(raw json.RawMessage) ([]byte, error) {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, nil
	case raw[0] == '{' || raw[0] == '[':
		return raw, nil
	case raw[0] == '"':
		var s string
		err := json.Unmarshal(raw, &s)
		return []byte(s), err
	}
	return nil, errors.New("want an object, an array, a string or null")
}

// header returns header lines as net/http delivers them. Of lines that differ in
// letter case only, the order is that of their names.
func header(lines map[string]string) http.Header {
	h := http.Header{}
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		h.Add(name, lines[name])
	}
	return h
}

// kindOf returns what json.UnmarshalTypeError found, without its value.
func kindOf(value string) string {
	kind, _, _ := strings.Cut(value, " ")
	return kind
}
