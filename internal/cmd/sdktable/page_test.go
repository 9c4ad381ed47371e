package main

import (
	"strings"
	"testing"

	"github.com/headway-go/headway/internal/sdktest"
)

func TestRender(t *testing.T) {
	got := string(render([]module{
		{dir: "examples/one", wiring: "```go\nfunc newClient() {}\n```\n", rows: []sdktest.Row{
			{SDK: "one", Version: "v1.2.3", Call: "yes", Stream: "none", Attempts: 1, Lost: "none", Reason: "`errors.As`", TooMany: "1 attempt: 429", Key: "1 attempt: 401"},
			{SDK: "one, another way", Version: "v1.2.3", Attempts: 2},
		}},
		{dir: "examples/two", rows: []sdktest.Row{{SDK: "two"}}},
	}))
	for _, want := range []string{
		"\n| [one](../examples/one) | v1.2.3 | yes | none | 1 | none | `errors.As` | 1 attempt: 429 | 1 attempt: 401 |\n",
		"\n| [one, another way](../examples/one) | v1.2.3 |  |  | 2 |  |  |  |  |\n| [two](../examples/two) |",
		"\n### one\n\n```go\nfunc newClient() {}\n```\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "### two") {
		t.Error("a module without wiring has a section of it")
	}
}

func TestWiring(t *testing.T) {
	const src = `package p

// newClient makes a client.
func newClient() int { return 1 }

func newThing() {}

// refusal finds one.
func refusal() {}

// Other is not wiring.
func Other() {}
`
	const want = "```go\n// newClient makes a client.\nfunc newClient() int { return 1 }\n\n// refusal finds one.\nfunc refusal() {}\n```\n"
	got, err := wiring("p.go", []byte(src))
	if got != want || err != nil {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if _, err := wiring("p.go", []byte("package")); err == nil {
		t.Error("a file that is no Go is no error")
	}
}

// The modules are found, and each has wiring to show.
func TestFind(t *testing.T) {
	modules, err := find("../../../examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range modules {
		if m.wiring == "" {
			t.Errorf("%s: no function that begins with new, and no client.mjs", m.dir)
		}
	}
	if _, err := find(t.TempDir()); err == nil {
		t.Error("no module is no error")
	}
}
