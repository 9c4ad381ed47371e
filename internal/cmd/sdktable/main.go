// Command sdktable writes docs/sdks.md: how vendors' SDKs behave with Headway
// underneath, as the tests under examples/ measure it.
//
// Run it at the root of the module. With -check it writes nothing, and exits
// with 1 if the page is not what it would write.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/headway-go/headway/internal/sdktest"
)

const page = "docs/sdks.md"

func main() {
	check := flag.Bool("check", false, "compare the page with what it should be, and write nothing")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "sdktable:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	modules, err := find("examples")
	if err != nil {
		return err
	}
	for i := range modules {
		if err := modules[i].measure(); err != nil {
			return fmt.Errorf("%s: %w", modules[i].dir, err)
		}
	}
	want := render(modules)
	if !check {
		return os.WriteFile(page, want, 0o644)
	}
	got, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%s is not what was measured; run this command without -check, and look at the difference", page)
	}
	return nil
}

// module is a nested module whose test puts Headway under an SDK.
type module struct {
	dir    string // such as examples/openai
	wiring string // the code that does it, in Markdown
	rows   []sdktest.Row
}

// find returns the modules below dir whose tests use sdktest, sorted.
func find(dir string) ([]module, error) {
	mods, err := filepath.Glob(filepath.Join(dir, "*", "go.mod"))
	if err != nil {
		return nil, err
	}
	var modules []module
	for _, mod := range mods {
		m := module{dir: filepath.Dir(mod)}
		tested, err := m.read()
		if err != nil {
			return nil, err
		}
		if tested {
			modules = append(modules, m)
		}
	}
	if modules == nil {
		return nil, errors.New("no module below " + dir + " uses internal/sdktest")
	}
	return modules, nil
}

// read reads the module's wiring, and reports whether its tests use sdktest.
func (m *module) read() (tested bool, err error) {
	files, err := filepath.Glob(filepath.Join(m.dir, "*.go"))
	if err != nil {
		return false, err
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			return false, err
		}
		tested = tested || bytes.Contains(src, []byte("sdktest."))
		part, err := wiring(file, src)
		if err != nil {
			return false, err
		}
		m.wiring += part
	}
	if js, err := os.ReadFile(filepath.Join(m.dir, "client.mjs")); err == nil {
		m.wiring += "```js\n" + string(js) + "```\n"
	}
	return tested, nil
}

// measure runs the module's test and collects its rows.
func (m *module) measure() error {
	temp, err := os.MkdirTemp("", "sdktable")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	path := filepath.Join(temp, "rows")
	if _, err := m.goTool(sdktest.RowsEnv+"="+path, "test", "-count=1", "./..."); err != nil {
		return err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(b) {
		var row sdktest.Row
		if err := json.Unmarshal(line, &row); err != nil {
			return err
		}
		if row.Version == "" {
			if row.Version, err = m.goTool("", "list", "-m", "-f", "{{.Version}}", row.Module); err != nil {
				return err
			}
		}
		m.rows = append(m.rows, row)
	}
	return nil
}

// goTool runs the go command in the module, with one more variable in its
// environment.
func (m *module) goTool(env string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = m.dir
	cmd.Env = append(cmd.Environ(), env)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
