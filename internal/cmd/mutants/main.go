// Command mutants breaks the code in every way that it lists, one at a time, and
// asks the tests to notice. It exits with 1 if a mutation survives its tests,
// does not compile, or no longer fits the code.
//
//	go run ./internal/cmd/mutants                  all of them
//	go run ./internal/cmd/mutants -only lease      those whose name, file or test matches
//	go run ./internal/cmd/mutants -list            without running anything
//	go run ./internal/cmd/mutants -list -markdown  docs/mutants.md
//
// Run it at the root of the module, as "make mutants" does. The work tree is only
// read. Only a test that fails, panics or hangs counts; the same tests must pass
// on the code as it is.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	only := flag.String("only", "", "a regular `expression`: the mutations whose name, file or test matches")
	list := flag.Bool("list", false, "list the mutations, run nothing")
	markdown := flag.Bool("markdown", false, "with -list: as the page docs/mutants.md")
	verbose := flag.Bool("v", false, "show what the tests said")
	flag.Parse()
	pattern, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants: -only:", err)
		os.Exit(2)
	}
	chosen := slices.DeleteFunc(mutations(), func(m mutation) bool {
		return !pattern.MatchString(m.name + "\n" + m.file + "\n" + strings.Join(m.tests, "\n"))
	})
	switch {
	case *list && *markdown:
		os.Stdout.Write(page(chosen))
	case *list:
		for _, m := range chosen {
			fmt.Printf("%2d  %-60s %s\n", m.promise, m.name, m.file)
		}
	default:
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err := try(ctx, chosen, *verbose)
		stop()
		if err != nil {
			fmt.Fprintln(os.Stderr, "mutants:", err)
			os.Exit(1)
		}
	}
}

// try runs the tests on the code as it is, and then on each mutation.
func try(ctx context.Context, chosen []mutation, verbose bool) error {
	root, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b, began := &bench{root, dir}, time.Now()
	if err := b.unbroken(ctx, chosen); err != nil {
		return err
	}
	caught := 0
	for _, m := range chosen {
		start := time.Now()
		o, err := b.broken(ctx, &m)
		what := "caught"
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			what, o.failed = "ERROR", err.Error()
		case o.failed == "":
			what, o.failed = "SURVIVES", strings.Join(m.tests, ", ")
		default:
			caught++
		}
		fmt.Printf("%-8s %2d  %-60s %s  %.1fs\n", what, m.promise, m.name, o.failed, time.Since(start).Seconds())
		if verbose {
			fmt.Println(o.text)
		}
	}
	fmt.Printf("%d of %d caught in %v\n", caught, len(chosen), time.Since(began).Round(time.Second))
	if caught < len(chosen) {
		return errors.New("the tests do not notice all of it")
	}
	return nil
}

// broken runs the tests of one mutation.
func (b *bench) broken(ctx context.Context, m *mutation) (outcome, error) {
	mutated, err := m.apply(b.root)
	if err != nil {
		return outcome{}, err
	}
	binary, err := b.build(ctx, m.pkg, m.file, mutated)
	if err != nil {
		return outcome{}, err
	}
	return b.run(ctx, binary, m.pkg, m.tests)
}

// unbroken requires that every test that mutations name is there and passes.
func (b *bench) unbroken(ctx context.Context, chosen []mutation) error {
	tests := map[string][]string{} // by package
	for _, m := range chosen {
		tests[m.pkg] = append(tests[m.pkg], m.tests...)
	}
	for _, pkg := range slices.Sorted(maps.Keys(tests)) {
		slices.Sort(tests[pkg])
		names := slices.Compact(tests[pkg])
		start := time.Now()
		binary, err := b.build(ctx, pkg, "", nil)
		if err != nil {
			return fmt.Errorf("%s: %w", pkg, err)
		}
		o, err := b.run(ctx, binary, pkg, names)
		if err != nil {
			return fmt.Errorf("%s: %w", pkg, err)
		}
		if o.failed != "" {
			return fmt.Errorf("%s: %s fails on the code as it is:\n%s", pkg, o.failed, o.text)
		}
		for _, name := range names {
			if !slices.Contains(o.passed, name) {
				return fmt.Errorf("%s: there is no test %s, or it does not pass", pkg, name)
			}
		}
		fmt.Printf("unbroken %-26s %d tests pass  %.1fs\n", pkg, len(names), time.Since(start).Seconds())
	}
	return nil
}
