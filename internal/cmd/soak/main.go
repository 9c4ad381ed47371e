// Command soak lets everything go wrong at once. Four processes call a vendor
// under shared limits while Redis, the network, the vendor, the processes and
// the callers fail at random, as a seed says. It prints what the vendor counted,
// what the processes left behind and who could read the API key, on one screen,
// and exits with 1 when a stated bound is broken. docs/soak.md explains it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/headway-go/headway/internal/redistest"
	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/throttle"
	"github.com/redis/go-redis/v9"
)

// quiet keeps go-redis from printing what the faults do to its connections.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func main() {
	redis.SetLogger(quiet{})
	if os.Getenv(hostEnv) != "" {
		os.Exit(host(os.Stdin, os.Stdout, os.Stderr))
	}
	length := flag.Duration("for", 10*time.Minute, "how long faults are staged")
	seed := flag.Uint64("seed", 0, "choose the faults by this number (0: a random one, which is printed)")
	details := flag.Bool("v", false, "tell what was going on around everything that was broken")
	flag.Parse()
	if *seed == 0 {
		*seed = rand.Uint64N(1e6) + 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, plan{length: *length, idle: 35 * time.Second, seed: *seed, details: *details}, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// plan is what a run is to do.
type plan struct {
	length  time.Duration // of the faults
	idle    time.Duration // that the processes rest, still open, before they are measured; 0: they close at once
	seed    uint64
	details bool // what was going on around everything that was broken
}

// ahead is how far the vendor's clock is ahead of the hosts', whose clocks
// cannot be moved: a date that it names is right only by its own clock.
const ahead = 10 * time.Minute

// stage is what the faults act upon.
type stage struct {
	plan
	server *redistest.Server
	vendor *vendorsim.Server
	hosts  [processes]*hostRun
	diary  diary
	leaks  leaks
}

// run stages the faults, heals everything, and judges.
func run(ctx context.Context, p plan, out io.Writer) error {
	server, err := redistest.Start()
	if err != nil {
		return err
	}
	defer server.Stop()
	vendor, err := vendorsim.Start(vendorsim.Config{
		LaneHeader: callHeader,
		Usage:      func(q vendorsim.Request) (int64, int64) { return 5, q.MaxTokens / 2 },
		Now:        func() time.Time { return time.Now().Add(ahead) },
	})
	if err != nil {
		return err
	}
	defer vendor.Close()
	s := &stage{plan: p, server: server, vendor: vendor}
	for i := range s.hosts {
		h, err := newHostRun(s, i)
		if err != nil {
			return err
		}
		s.hosts[i] = h
		defer h.end()
	}
	fmt.Fprintf(out, "seed %d: %d processes for %v\n", p.seed, processes, p.length)
	return s.play(ctx, out)
}

func (s *stage) play(ctx context.Context, out io.Writer) error {
	for _, h := range s.hosts {
		if err := h.start(); err != nil {
			return err
		}
	}
	// Until all have heard of each other: a fleet that does not know its size is
	// closed in an outage, and that would be a soak of nothing.
	if err := wait(ctx, 5*time.Second); err != nil {
		return err
	}
	began := time.Now()
	staged, end := context.WithTimeout(ctx, s.length)
	defer end()
	var all sync.WaitGroup
	for i, act := range []func(context.Context, *rand.Rand) error{s.storeFaults, s.vendorFaults, s.hostFaults, s.watch} {
		all.Go(func() {
			if err := act(staged, rand.New(rand.NewPCG(s.seed, uint64(i)))); err != nil {
				s.diary.fail(err)
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	healed := time.Now()
	recovered, recoverErr := s.recovered(ctx, healed)
	for _, h := range s.hosts {
		h.rest()
	}
	for _, h := range s.hosts {
		if err := h.await(s.idle + 30*time.Second); err != nil {
			s.diary.fail(err)
		}
	}
	if err := s.scanStore(context.Background()); err != nil {
		s.diary.fail(err)
	}
	j := newJudge(s, out)
	j.header(healed.Sub(began))
	j.budgets()
	j.admissions()
	j.pauses()
	j.probes()
	j.row("until every key and model is answered again, s", seconds(recovered), seconds(recoverIn), recoverErr == nil)
	j.leftovers()
	return j.verdict()
}

// recoverIn is how long a healed fleet may take: the longest pause of the
// policy or the vendor, and as much again for a busy machine.
const recoverIn = 15 * time.Second

// recovered waits until the vendor has accepted a call of every key and model.
func (s *stage) recovered(ctx context.Context, healed time.Time) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, recoverIn)
	defer cancel()
	for _, key := range keys {
		for model := range limits {
			err := s.vendor.Await(ctx, 1, vendorsim.Filter{Key: vendorsim.Key(key), Model: model, Accepted: true,
				Match: func(a vendorsim.Arrival) bool { return a.Received.Add(-ahead).After(healed) }})
			if err != nil {
				return time.Since(healed), fmt.Errorf("%s: %w", model, err)
			}
		}
	}
	return time.Since(healed), nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// What is limited. The vendor counts to the unit, hence the margin. It is also
// the longest way from the store's clock to the vendor's that counts as on time.
const (
	processes = 4
	window    = time.Second
	margin    = 250 * time.Millisecond
	keyAmount = 48
)

// limits are those of each model. Every amount is a multiple of the processes,
// so that the parts of an outage are even.
var limits = map[string][]throttle.Limit{
	"sliding": {per(throttle.Requests, 20)},
	"bucket":  {{Unit: throttle.Requests, Amount: 16, Window: window, Margin: margin, Shape: throttle.Bucket, Burst: 4}},
	"tokens":  {per(throttle.Requests, 40), per(throttle.Tokens, 600)},
}

func per(unit string, amount int64) throttle.Limit {
	return throttle.Limit{Unit: unit, Amount: amount, Window: window, Margin: margin}
}

// strange is the limit of every model that limits does not name.
var strange = []throttle.Limit{per(throttle.Requests, 8)}

// keys are the API keys, long and without a word of the language in them.
var keys = []string{"sk-soak-Qw7ZpX2vKd9RtB4mLs", "sk-soak-Hn3YcF8jVg6TuE1oWa"}
