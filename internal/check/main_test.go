package main

import (
	"slices"
	"testing"
)

func TestWrong(t *testing.T) {
	for _, c := range []struct {
		name, pkg, imports string
		want               string
	}{
		{"a leaf and the library", "lanes", "context", ""},
		{"a leaf and ours", "pause", module + "/lanes", "pause must not import lanes"},
		{"throttle and lua", "throttle", module + "/lua", ""},
		{"throttle and transport", "throttle", module + "/transport", "throttle must not import transport"},
		{"lua and Redis", "lua", goRedis, ""},
		{"transport and Redis", "transport", goRedis, "transport must not import " + goRedis},
		{"transport and HTTP", "transport", "net/http", ""},
		{"throttle and HTTP", "throttle", "net/http", "throttle must not import net/http"},
		{"profiles and throttle", "transport/profiles", module + "/throttle", ""},
		{"profiles and transport", "transport/profiles", module + "/transport", "transport/profiles must not import transport"},
		{"transport and profiles", "transport", module + "/transport/profiles", ""},
		{"a test's vendor and HTTP", "internal/vendorsim", "net/http", ""},
		{"an example and Redis", "examples/demo", goRedis, ""},
		{"the library and a test's server", "throttle", module + "/internal/redistest", "throttle must not import internal/redistest"},
		{"transport and a test's vendor", "transport", module + "/internal/vendorsim", "transport must not import internal/vendorsim"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			if got := wrong(c.pkg, []string{c.imports}); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestUnknown(t *testing.T) {
	got := unknown([]string{goRedis, "golang.org/x/time", "example.com/other"})
	if want := []string{"go.mod must not require example.com/other"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
