// Command chaos breaks Redis in every way that is known to happen, under load,
// and judges by the vendor's counts and the callers' clocks whether the stated
// bounds hold. It prints one row for each scenario and exits with 1 when a
// bound is broken.
//
// It starts its own servers, all on the loopback address, and ends them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"github.com/redis/go-redis/v9/logging"
)

func main() {
	run := flag.String("run", "", "play only the rows whose name matches this regular expression")
	list := flag.Bool("list", false, "print the rows and end")
	markdown := flag.Bool("markdown", false, "print the table as docs/chaos.md has it, with the machine")
	flag.Parse()
	logging.Disable() // go-redis tells of every connection that is refused
	rows, err := chosen(*run)
	if *list && err == nil {
		for _, s := range rows {
			fmt.Printf("%-34s %s\n", s.name, s.injected)
		}
		return
	}
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = play(ctx, rows, *markdown)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// chosen returns the rows whose name matches.
func chosen(pattern string) ([]scenario, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	var out []scenario
	for _, s := range scenarios() {
		if re.MatchString(s.name) {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("run: no row matches %q", pattern)
	}
	return out, nil
}

// play plays rows one after the other and prints each as it ends.
func play(ctx context.Context, rows []scenario, markdown bool) error {
	t := newTable(os.Stdout, markdown)
	t.head()
	broken := 0
	for _, s := range rows {
		r, err := s.fairly(ctx)
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", s.name, err), ctx.Err())
		}
		t.row(r)
		if len(r.broken) > 0 {
			broken++
		}
	}
	t.foot()
	if broken > 0 {
		return fmt.Errorf("%d of %d rows break a bound", broken, len(rows))
	}
	return nil
}
