package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// column is one column of the table.
type column struct {
	name  string
	width int
	text  func(result) string
}

var columns = []column{
	{"row", 26, func(r result) string { return r.name }},
	{"calls", 6, func(r result) string { return fmt.Sprint(r.calls) }},
	{"went", 5, func(r result) string { return fmt.Sprint(r.admitted) }},
	{"refused", 7, func(r result) string { return fmt.Sprint(r.refused) }},
	{"closed", 6, func(r result) string { return fmt.Sprint(r.closed) }},
	{"after a loss", 12, func(r result) string { return count(r.first) }},
	{"other windows", 13, func(r result) string { return count(r.other) }},
	{"finding", 7, func(r result) string { return ms(r.finding) }},
	{"known", 6, func(r result) string {
		if r.knownCalls == 0 {
			return "-"
		}
		return ms(r.known)
	}},
	{"recovery", 8, func(r result) string {
		if !r.recovered {
			return "-"
		}
		return ms(r.recovery)
	}},
	{"charged", 16, func(r result) string {
		if !r.bounds.keeps {
			return "-"
		}
		return fmt.Sprintf("%+d (unknown %d)", r.charged-int64(r.admitted), r.unknown)
	}},
	{"stall", 5, func(r result) string { return ms(r.stall) }},
	{"met", 24, func(r result) string { return words(r.met) }},
	{"verdict", 0, func(r result) string {
		verdict := "ok"
		if len(r.broken) > 0 {
			verdict = "BROKEN: " + strings.Join(r.broken, "; ")
		}
		for _, b := range r.before {
			verdict += " (played again: " + b + ")"
		}
		return verdict
	}},
}

// count is a count and its bound; no window of the kind is a dash.
func count(m most) string {
	if m.n == 0 {
		return "-"
	}
	return fmt.Sprintf("%d / %d", m.n, m.bound)
}

// ms is a time in milliseconds, with a fraction only where it matters.
func ms(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000)
	}
	return fmt.Sprint(d.Milliseconds())
}

// words lists what commands met, the most frequent names in order.
func words(met map[string]int) string {
	if len(met) == 0 {
		return "-"
	}
	var out []string
	for _, w := range slices.Sorted(maps.Keys(met)) {
		out = append(out, fmt.Sprintf("%s %d", w, met[w]))
	}
	return strings.Join(out, ", ")
}

// table prints rows as they come.
type table struct {
	out      io.Writer
	markdown bool
	began    time.Time
}

func newTable(out io.Writer, markdown bool) *table {
	return &table{out: out, markdown: markdown, began: time.Now()}
}

func (t *table) head() {
	fmt.Fprintf(t.out, "%d limiters, each with its own client; N = %d calls per %v; times in ms\n\n", hosts, amount, window)
	t.line(func(c column) string { return c.name })
	if t.markdown {
		t.line(func(column) string { return "---" })
	}
}

func (t *table) row(r result) { t.line(func(c column) string { return c.text(r) }) }

func (t *table) line(text func(column) string) {
	cells := make([]string, len(columns))
	for i, c := range columns {
		cells[i] = text(c)
		if !t.markdown {
			cells[i] = fmt.Sprintf("%-*s", c.width, cells[i])
		}
	}
	if t.markdown {
		fmt.Fprintln(t.out, "| "+strings.Join(cells, " | ")+" |")
		return
	}
	fmt.Fprintln(t.out, strings.TrimRight(strings.Join(cells, "  "), " "))
}

// foot says how long it took, and on what.
func (t *table) foot() {
	fmt.Fprintf(t.out, "\n%v on %s\n", time.Since(t.began).Round(time.Second), machine())
}

// machine is the CPU, its cores, and the versions of what ran.
func machine() string {
	cpu := runtime.GOARCH
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if name, ok := strings.CutPrefix(lines.Text(), "model name"); ok {
				cpu = strings.TrimLeft(name, "\t :")
				break
			}
		}
	}
	version := "an unknown version"
	if out, err := exec.Command("redis-server", "--version").Output(); err == nil {
		for w := range strings.FieldsSeq(string(out)) {
			if v, ok := strings.CutPrefix(w, "v="); ok {
				version = v
			}
		}
	}
	return fmt.Sprintf("%s, %d cores, redis-server %s, %s", cpu, runtime.NumCPU(), version, runtime.Version())
}
