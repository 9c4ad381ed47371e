package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../../.."

// Every mutation fits the code as it is today, and is one of a kind.
func TestListIsCurrent(t *testing.T) {
	all := mutations()
	if len(all) < 25 {
		t.Errorf("%d mutations, want at least 25", len(all))
	}
	names, alone := map[string]bool{}, 0
	for _, m := range all {
		if names[m.name] {
			t.Errorf("%s: listed twice", m.name)
		}
		names[m.name] = true
		if m.promise < 1 || m.promise > 25 {
			t.Errorf("%s: there is no promise %d", m.name, m.promise)
		}
		if len(m.tests) == 0 {
			t.Errorf("%s: names no test", m.name)
		}
		if len(m.tests) == 1 && m.tests[0] == "TestHistories" {
			alone++
		}
		mutated, err := m.apply(root)
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		if strings.HasSuffix(m.file, ".go") {
			if _, err := parser.ParseFile(token.NewFileSet(), m.file, mutated, parser.SkipObjectResolution); err != nil {
				t.Errorf("%s: %v", m.name, err)
			}
		}
	}
	if alone*3 > len(all) {
		t.Errorf("TestHistories alone catches %d of %d, want a third at most: it does not say what broke", alone, len(all))
	}
}

func TestPageIsCurrent(t *testing.T) {
	got, err := os.ReadFile(filepath.Join(root, pagePath))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(page(mutations())) {
		t.Errorf("%s is not what the list says: go run ./internal/cmd/mutants -list -markdown > %s", pagePath, pagePath)
	}
}

// A mutation that does not fit is told, never run.
func TestStale(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte("one two two"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"one", "1", "1 two two"},
		{"two", "2", ""},
		{"three", "3", ""},
		{"one", "one", ""},
	} {
		got, err := (&mutation{file: "a.go", old: c.old, new: c.new}).apply(dir)
		if string(got) != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q to %q: got %q, %v, want %q", c.old, c.new, got, err, c.want)
		}
	}
}

// Only a test that failed catches a mutation.
func TestRead(t *testing.T) {
	for _, c := range []struct{ name, out, failed string }{
		{"passes", "=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\n", ""},
		{"fails", "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n--- FAIL: TestB (0.00s)\nFAIL\n", "TestB"},
		{"fails in a part", "=== RUN   TestA\n=== RUN   TestA/x\n--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/x (0.00s)\n", "TestA"},
		{"panics", "=== RUN   TestA/x\npanic: runtime error\n\ngoroutine 7 [running]:\n", "TestA"},
		{"hangs", "=== RUN   TestA\npanic: test timed out after 1m30s\n\trunning tests:\n", "TestA"},
		{"deadlocks", "=== RUN   TestA\nfatal error: all goroutines are asleep - deadlock!\n", "TestA"},
		{"never began", "redistest: start redis-server\n", ""},
		{"ends before a test", "panic: in TestMain\n", ""},
	} {
		if got := read(c.out); got.failed != c.failed {
			t.Errorf("%s: got %q, want %q", c.name, got.failed, c.failed)
		}
	}
}
