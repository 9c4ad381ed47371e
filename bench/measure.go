package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// row is one thing that is measured: decide makes one decision.
type row struct {
	name   string
	decide func(context.Context) error
}

// result is one row in one round. Times are microseconds; allocs, commands and
// server are per decision.
type result struct {
	perSecond, p50, p99      float64
	allocs, commands, server float64
}

// measure lets callers decide, each as fast as it can, for d.
func measure(ctx context.Context, rdb *redis.Client, r row, callers int, d time.Duration) (result, error) {
	times := make([][]float64, callers)
	for i := range times {
		times[i] = make([]float64, 0, 1<<15)
	}
	errs := make([]error, callers)
	calls, usec, err := scripts(ctx, rdb)
	if err != nil {
		return result{}, err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for t := time.Now(); t.Sub(began) < d && errs[i] == nil; {
				errs[i] = r.decide(ctx)
				now := time.Now()
				times[i] = append(times[i], float64(now.Sub(t))/1e3)
				t = now
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	for _, err := range errs {
		if err != nil {
			return result{}, fmt.Errorf("%s: %w", r.name, err)
		}
	}
	calls2, usec2, err := scripts(ctx, rdb)
	if err != nil {
		return result{}, err
	}
	sorted := slices.Sorted(slices.Values(slices.Concat(times...)))
	n := float64(len(sorted))
	return result{
		perSecond: n / took.Seconds(), p50: sorted[len(sorted)/2], p99: sorted[len(sorted)*99/100],
		allocs: float64(after.Mallocs-before.Mallocs) / n, commands: (calls2 - calls) / n, server: (usec2 - usec) / n,
	}, nil
}

// scripts returns how many scripts clients have run, and the microseconds that
// the server spent in them.
func scripts(ctx context.Context, rdb *redis.Client) (calls, usec float64, err error) {
	info, err := rdb.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(info) {
		for _, name := range []string{"eval", "evalsha"} {
			var n, us float64
			if _, err := fmt.Sscanf(line, "cmdstat_"+name+":calls=%f,usec=%f,", &n, &us); err == nil {
				calls, usec = calls+n, usec+us
			}
		}
	}
	return calls, usec, nil
}

// median returns the middle value of f over the results.
func median(results []result, f func(result) float64) float64 {
	v := make([]float64, len(results))
	for i, r := range results {
		v[i] = f(r)
	}
	slices.Sort(v)
	return v[len(v)/2]
}
