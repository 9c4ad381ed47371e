package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/headway-go/headway/internal/redistest"
)

// The program prints the same on both stores.
func TestRun(t *testing.T) {
	redis, err := redistest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Stop()
	want := regexp.MustCompile(`^background: 200 OK
live: 200 OK
background: no room in 3 requests per 1m0s, come back in 1m\d+s
$`)
	for _, tc := range []struct{ name, addr string }{{"memory", ""}, {"redis", redis.Addr}} {
		t.Run(tc.name, func(t *testing.T) {
			var out strings.Builder
			if err := run(t.Context(), &out, tc.addr); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); !want.MatchString(got) {
				t.Errorf("got\n%swant\n%v", got, want)
			}
		})
	}
}
