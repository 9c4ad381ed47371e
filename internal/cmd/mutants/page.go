package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

const pagePath = "docs/mutants.md"

// page lays the list out.
func page(all []mutation) []byte {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b mutation) int { return a.promise - b.promise })
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Mutants

%d ways in which the code is broken on purpose, the promise of [design.md](design.md) that each breaks, and the
tests that must notice: `+"`make mutants`"+` breaks the code in each way, one at a time, and fails if its tests do
not. Written by `+"`go run ./internal/cmd/mutants -list -markdown`"+`.

| promise | the broken code ... | in | caught by |
|---|---|---|---|
`, len(all))
	for _, m := range all {
		where := strings.TrimPrefix(m.pkg, "./")
		if where == "." {
			where = ""
		} else {
			where += ": "
		}
		fmt.Fprintf(&b, "| %d | %s | `%s` | %s`%s` |\n", m.promise, m.name, m.file, where, strings.Join(m.tests, "`, `"))
	}
	return b.Bytes()
}
