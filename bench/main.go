// Command bench measures what a decision costs, side by side in one run: the
// floor (an empty script), the best known peer (redis_rate, one limit) and
// Headway. It starts its own redis-server and takes under a minute.
//
// Rounds are interleaved, so that a busy machine is busy for every row; figures
// are medians over the rounds, and the ratio is the median of each round's own.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/headway-go/headway/internal/redistest"
	"github.com/redis/go-redis/v9"
)

const (
	rounds   = 5
	duration = 400 * time.Millisecond // of one row in one round
	warm     = 50 * time.Millisecond
	poolSize = 64 // connections, for every row
	base     = 1  // the row that the others are compared with
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	server, err := redistest.Start()
	if err != nil {
		return err
	}
	defer server.Stop()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr, PoolSize: poolSize})
	defer rdb.Close()
	rows, err := newRows(ctx, rdb)
	if err != nil {
		return err
	}
	fmt.Println(machine())
	fmt.Printf("redis-server and callers share the cores; %d connections; %d rounds of %v a row\n", poolSize, rounds, duration)
	for _, callers := range []int{1, 64} {
		results := make([][]result, len(rows))
		for range rounds {
			for i, r := range rows {
				if _, err := measure(ctx, rdb, r, callers, warm); err != nil {
					return err
				}
				m, err := measure(ctx, rdb, r, callers, duration)
				if err != nil {
					return err
				}
				results[i] = append(results[i], m)
			}
		}
		fmt.Printf("\n%d callers\n", callers)
		if err := table(rows, results); err != nil {
			return err
		}
	}
	return nil
}

func table(rows []row, results [][]result) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\tdecisions/s\tx %s\tp50 us\tp99 us\tallocs\tcommands\tserver us\t\n", rows[base].name)
	for i, r := range rows {
		of := func(f func(result) float64) float64 { return median(results[i], f) }
		ratios := make([]result, rounds)
		for k := range ratios {
			ratios[k].perSecond = results[i][k].perSecond / results[base][k].perSecond
		}
		fmt.Fprintf(w, "%s\t%.0f\t%.2f\t%.1f\t%.1f\t%.0f\t%.2f\t%.1f\t\n", r.name,
			of(func(m result) float64 { return m.perSecond }),
			median(ratios, func(m result) float64 { return m.perSecond }),
			of(func(m result) float64 { return m.p50 }), of(func(m result) float64 { return m.p99 }),
			of(func(m result) float64 { return m.allocs }), of(func(m result) float64 { return m.commands }),
			of(func(m result) float64 { return m.server }))
	}
	return w.Flush()
}

// machine names the processor, its cores, and the versions.
func machine() string {
	model := runtime.GOARCH
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	version := "redis-server of unknown version"
	if out, err := exec.Command("redis-server", "--version").Output(); err == nil {
		if f := strings.Fields(string(out)); len(f) > 2 {
			version = "Redis " + strings.TrimPrefix(f[2], "v=")
		}
	}
	return fmt.Sprintf("%s, %d cores, %s, %s", model, runtime.NumCPU(), version, runtime.Version())
}
