// Command check enforces the arrows of the design: which package may import
// which, and which modules the library may need. It prints every arrow that
// points the wrong way and exits with 1.
//
// Run it at the root of the module, as "make deps" does.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

const (
	module  = "github.com/headway-go/headway"
	goRedis = "github.com/redis/go-redis/v9"
)

// leaves import no package of ours.
var leaves = []string{"pause", "lanes", "fingerprint", "lua"}

// ours names, for packages that may import only some of ours, which.
var ours = map[string][]string{
	"throttle": {"lua", "pause", "lanes", "fingerprint"},
}

// users names the packages that alone may import a package of others.
// Programs and helpers of tests (see free) may import anything.
var users = map[string][]string{
	goRedis:    {"lua", "throttle"},
	"net/http": {"transport", "transport/profiles", "throttletest", "fingerprint", "pause"}, // the last two for types
}

// never names arrows that no other rule forbids.
var never = map[string][]string{
	"transport/profiles": {"transport", "lua"},
}

// requirements are the only modules that the library itself needs.
var requirements = []string{goRedis, "github.com/cenkalti/backoff/v4", "golang.org/x/time", "github.com/google/uuid"}

// free reports whether a package is a program or serves tests only.
func free(pkg string) bool {
	for _, dir := range []string{"internal", "examples", "cmd"} {
		if pkg == dir || strings.HasPrefix(pkg, dir+"/") {
			return true
		}
	}
	return false
}

// wrong returns what is wrong with the imports of a package of ours, whose path
// is relative to the module.
func wrong(pkg string, imports []string) (faults []string) {
	for _, path := range imports {
		if own, ok := strings.CutPrefix(path, module+"/"); ok {
			allowed, limited := ours[pkg]
			switch {
			case slices.Contains(leaves, pkg),
				limited && !slices.Contains(allowed, own),
				slices.Contains(never[pkg], own),
				free(own) && !free(pkg):
				faults = append(faults, fmt.Sprintf("%s must not import %s", pkg, own))
			}
		}
		if allowed, limited := users[path]; limited && !slices.Contains(allowed, pkg) && !free(pkg) {
			faults = append(faults, fmt.Sprintf("%s must not import %s", pkg, path))
		}
	}
	return faults
}

// unknown returns the direct requirements that are not among the known ones.
func unknown(direct []string) (faults []string) {
	for _, path := range direct {
		if !slices.Contains(requirements, path) {
			faults = append(faults, "go.mod must not require "+path)
		}
	}
	return faults
}

func main() {
	faults, err := check()
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
	for _, f := range faults {
		fmt.Println(f)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
}

// check asks the go command for the packages and the requirements.
func check() (faults []string, err error) {
	out, err := goCommand("list", "-json=ImportPath,Imports", "./...")
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		faults = append(faults, wrong(strings.TrimPrefix(p.ImportPath, module+"/"), p.Imports)...)
	}
	if out, err = goCommand("mod", "edit", "-json"); err != nil {
		return nil, err
	}
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal([]byte(out), &mod); err != nil {
		return nil, fmt.Errorf("go mod edit: %w", err)
	}
	var direct []string
	for _, r := range mod.Require {
		if !r.Indirect {
			direct = append(direct, r.Path)
		}
	}
	return append(faults, unknown(direct)...), nil
}

func goCommand(args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}
