package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mutation is one way to break the code.
type mutation struct {
	name    string   // what the broken code does
	promise int      // of docs/design.md, the one that this breaks
	file    string   // relative to the module, with slashes
	old     string   // stands in the file exactly once
	new     string   // takes its place
	pkg     string   // package of the tests, as the go command names it
	tests   []string // one of these must fail
}

// mutations is the whole list.
func mutations() []mutation {
	var all []mutation
	for _, list := range [][]mutation{scripts, budgets, outages, transports, vendors} {
		all = append(all, list...)
	}
	return all
}

// apply returns the file with the mutation in it. A mutation that no longer
// fits the code proves nothing, so it is an error.
func (m *mutation) apply(root string) ([]byte, error) {
	source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.file)))
	if err != nil {
		return nil, err
	}
	switch n := strings.Count(string(source), m.old); {
	case n != 1:
		return nil, fmt.Errorf("stale: %s has its old text %d times, want once: %q", m.file, n, m.old)
	case m.old == m.new:
		return nil, fmt.Errorf("stale: it changes nothing in %s", m.file)
	}
	return []byte(strings.Replace(string(source), m.old, m.new, 1)), nil
}
