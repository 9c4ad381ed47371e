package main

import (
	"os"
	"testing"

	"github.com/headway-go/headway/transport/profiles"
)

// The page is what the profiles say today.
func TestPageIsCurrent(t *testing.T) {
	got, err := os.ReadFile("../../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(render(profiles.Builtin())) {
		t.Errorf("%s is not what the profiles say: go run ./internal/cmd/vendortable", page)
	}
}
