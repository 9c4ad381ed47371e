package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// longest bounds the tests of one mutation.
const longest = 90 * time.Second

// bench builds and runs tests, with a file replaced or as they are. All that it
// writes is in dir, which is the tests' folder for temporary files too.
type bench struct {
	root string // of the module
	dir  string
}

// build compiles the tests of a package with mutated in the place of file; an
// empty file is the code as it is.
func (b *bench) build(ctx context.Context, pkg, file string, mutated []byte) (binary string, err error) {
	binary = filepath.Join(b.dir, "tests")
	args := []string{"test", "-c", "-o", binary}
	if file != "" {
		overlay, err := b.overlay(file, mutated)
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
	cmd.Dir, cmd.Env = b.root, append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("does not compile: %w\n%s", err, out)
	}
	return binary, nil
}

// overlay has the go command read mutated in the place of file, embedded files
// included, so that the work tree stays as it is.
func (b *bench) overlay(file string, mutated []byte) (string, error) {
	to := filepath.Join(b.dir, "mutated"+filepath.Ext(file))
	list := filepath.Join(b.dir, "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(b.root, filepath.FromSlash(file)): to},
	})
	if err != nil {
		return "", err
	}
	return list, errors.Join(os.WriteFile(to, mutated, 0o600), os.WriteFile(list, text, 0o600))
}

// run runs the named tests of a package's binary where the go command would.
// Its error says that they could not be run, not that they failed.
func (b *bench) run(ctx context.Context, binary, pkg string, tests []string) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, longest+10*time.Second) // the binary ends itself before
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "-test.v", "-test.failfast", "-test.timeout", longest.String(),
		"-test.run", "^("+strings.Join(tests, "|")+")$")
	cmd.Dir = filepath.Join(b.root, filepath.FromSlash(pkg))
	cmd.Env = append(os.Environ(), "TMPDIR="+b.dir)
	// A test that panics leaves its redis-server behind: it ends with the group.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	end := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel, cmd.WaitDelay = end, time.Second
	out, err := cmd.CombinedOutput()
	if cmd.Process != nil {
		_ = end()
	}
	o := read(string(out))
	switch exit := (*exec.ExitError)(nil); {
	case ctx.Err() != nil:
		return o, ctx.Err()
	case err == nil && o.failed == "", errors.As(err, &exit) && o.failed != "":
		return o, nil
	case err == nil:
		err = errors.New("its tests failed and it says that they passed")
	}
	return o, fmt.Errorf("the tests did not run: %w\n%s", err, out)
}

// outcome is what tests said.
type outcome struct {
	passed []string
	failed string // the first test that failed, "" if none did
	text   string
}

var line = regexp.MustCompile(`(?m)^(=== RUN   |--- PASS: |--- FAIL: |panic: |fatal error: )(\S*)`)

// read reads the output of tests run one after the other. A panic, a fatal
// error and the end of the time are failures of the test that was running.
func read(out string) outcome {
	o := outcome{text: out}
	running := ""
	for _, m := range line.FindAllStringSubmatch(out, -1) {
		test, _, _ := strings.Cut(m[2], "/")
		switch m[1] {
		case "=== RUN   ":
			running = test
		case "--- PASS: ":
			o.passed = append(o.passed, test)
			running = ""
		case "--- FAIL: ":
			if o.failed == "" {
				o.failed = test
			}
		default:
			if o.failed == "" {
				o.failed = running
			}
		}
	}
	return o
}
