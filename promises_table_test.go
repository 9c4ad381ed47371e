package headway_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The table of promises is true: every test that it names exists, and every
// promise has one.
func TestPromisesAreInTheTable(t *testing.T) {
	table, err := os.ReadFile("docs/promises.md")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		tests.Write(source)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile("`(Test\\w+)(\\.\\.\\.)?`").FindAllStringSubmatch(string(table), -1) {
		end := "("
		if name[2] != "" {
			end = ""
		}
		if !strings.Contains(tests.String(), "\nfunc "+name[1]+end) {
			t.Errorf("the table names %s, which does not exist", name[1])
		}
	}
	for i := 1; i <= 25; i++ {
		if row := fmt.Sprintf("\n| %d | ", i); !strings.Contains(string(table), row) {
			t.Errorf("the table has no row %d", i)
		}
	}
	for _, name := range regexp.MustCompile(`\nfunc (TestPromise\d+_\w+)\(`).FindAllStringSubmatch(tests.String(), -1) {
		if !strings.Contains(string(table), "`"+name[1]+"`") {
			t.Errorf("the table lacks %s", name[1])
		}
	}
}
