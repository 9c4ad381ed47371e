package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strings"
)

const head = `# SDKs

What SDKs make of Headway underneath. Every row was measured by the test of its
module, through the SDK itself, with the SDK's own defaults for retries.
` + "`go run ./internal/cmd/sdktable`" + ` measures again and writes this page.

- **call**, **stream**: the answer arrives, live where it streams, and the vendor's count replaces the estimate.
- **refused: attempts, time lost**: what a refusal of Headway's comes to. One attempt means that the SDK does not retry it, and "none" that it is back before the shortest backoff of any SDK, within 0.3 s on a busy machine.
- **the reason**: what finds the ` + "`*throttle.RefusedError`" + ` behind the SDK's error. ` + "`transport.Restore`" + ` wants ` + "`transport.Watch`" + ` before the call.
- **the vendor's 429**: what one 429 of the vendor comes to. A retry is a new call, and waits for the end of the pause.
- **a refused key**: what reaches the caller. Every later call, to any model of the key, is refused without the vendor.

| SDK | version | call | stream | refused: attempts | time lost | the reason | the vendor's 429 | a refused key |
|---|---|---|---|---|---|---|---|---|
`

// render returns the page.
func render(modules []module) []byte {
	var b bytes.Buffer
	b.WriteString(head)
	for _, m := range modules {
		for _, r := range m.rows {
			fmt.Fprintf(&b, "| [%s](../%s) | %s | %s | %s | %d | %s | %s | %s | %s |\n",
				r.SDK, m.dir, r.Version, r.Call, r.Stream, r.Attempts, r.Lost, r.Reason, r.TooMany, r.Key)
		}
	}
	b.WriteString("\n## How to put Headway under each\n\nThe code of the tests, as it ran.\n")
	for _, m := range modules {
		if m.wiring != "" {
			fmt.Fprintf(&b, "\n### %s\n\n%s", path.Base(m.dir), m.wiring)
		}
	}
	return b.Bytes()
}

// shown reports whether a function of this name shows how to use Headway: it
// makes a client, reads the vendor or finds a refusal.
func shown(name string) bool {
	return strings.HasPrefix(name, "new") || name == "profile" || name == "refusal"
}

// wiring returns the functions of a file that are shown, in Markdown. Empty says
// that there is none.
func wiring(file string, src []byte) (string, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, src, parser.ParseComments)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Doc == nil || !shown(fn.Name.Name) {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.Write(src[set.Position(fn.Doc.Pos()).Offset:set.Position(fn.End()).Offset])
		b.WriteByte('\n')
	}
	if b.Len() == 0 {
		return "", nil
	}
	return "```go\n" + b.String() + "```\n", nil
}
