// Command exact proves promise 1 and promise 2 on a real Redis: four processes
// and an adversary share one key, and in no interval of the length of a window
// were more units admitted than the limit, while nearly all were usable.
//
// It starts its own redis-server and takes under a minute. It exits with 1 when
// a promise is broken.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/headway-go/headway/internal/redistest"
	"github.com/headway-go/headway/throttle"
	"github.com/redis/go-redis/v9"
)

// leastUsed is the part of a limit that saturating load must be able to use.
const leastUsed = 0.98

func main() {
	part := flag.Int("child", -1, "play one process of the scene of this number (the command starts these itself)")
	addr := flag.String("redis", "", "address of the redis-server, for -child")
	key := flag.String("key", "", "key that the fleet shares, for -child")
	start := flag.Int64("start", 0, "when the scene starts, in Unix microseconds, for -child")
	flag.Parse()
	var err error
	if *part >= 0 && *part < len(scenes) {
		err = runChild(scenes[*part], *addr, *key, time.UnixMicro(*start), os.Stdout)
	} else {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = run(ctx)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "exact:", err)
		os.Exit(1)
	}
}

// run plays every scene and prints a row for each of its limits.
func run(ctx context.Context) error {
	server, err := redistest.Start()
	if err != nil {
		return err
	}
	defer server.Stop()
	fmt.Printf("%d processes and bursts at every edge, windows of %v; every moment is the store's\n\n", processes, window)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "shape\tload\tunit\tN\tadmitted\tmost in any window\tutilisation\tfullest bucket\tcommands/admission\t")
	var faults error
	for i := range scenes {
		broken, unused, err := perform(ctx, server, i, w)
		if err == nil && broken == nil && unused != nil { // a busy machine looks the same: once more
			broken, unused, err = perform(ctx, server, i, w)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", scenes[i].name, err), w.Flush())
		}
		faults = errors.Join(faults, broken, unused)
	}
	if err := errors.Join(w.Flush(), faults); err != nil {
		return err
	}
	fmt.Printf("\nnever more than N in any window, never more than a bucket holds, at least %.0f%% of N used\n", 100*leastUsed)
	return nil
}

// perform plays a scene and prints its rows.
func perform(ctx context.Context, server *redistest.Server, i int, w *tabwriter.Writer) (broken, unused, err error) {
	p, err := play(ctx, server, i)
	if err != nil {
		return nil, nil, err
	}
	broken, unused = p.report(w)
	return broken, unused, nil
}

// performance is a scene that has been played.
type performance struct {
	scene
	start    int64 // microseconds
	admitted []admission
	commands float64 // of the store, in the quiet part
}

// play runs a scene in processes of its own.
func play(ctx context.Context, server *redistest.Server, i int) (*performance, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, (last+8)*window)
	defer stop()
	start := time.Now().Truncate(window).Add(2*window - 10*time.Millisecond) // so that the first edge is a whole one
	p := &performance{scene: scenes[i], start: start.UnixMicro()}
	var children [processes]*exec.Cmd
	var outs [processes]bytes.Buffer
	for n := range children {
		children[n] = exec.CommandContext(ctx, self, "-child", strconv.Itoa(i), "-redis", server.Addr,
			"-key", "exact-"+strconv.FormatInt(p.start, 10), "-start", strconv.FormatInt(p.start, 10))
		children[n].Stdout, children[n].Stderr = &outs[n], os.Stderr
		if err = children[n].Start(); err != nil {
			stop()
			break
		}
	}
	if err == nil {
		p.commands, err = commandsBetween(ctx, server, start.Add(quiet*window), start.Add(calm*window))
	}
	for n, c := range children {
		if c == nil || c.Process == nil {
			continue
		}
		err = errors.Join(err, c.Wait())
		lines := bufio.NewScanner(&outs[n])
		for lines.Scan() {
			var a admission
			if _, bad := fmt.Sscan(lines.Text(), &a.model, &a.at, &a.out, &a.requests, &a.tokens); bad != nil {
				return nil, errors.Join(err, fmt.Errorf("a process wrote %q: %w", lines.Text(), bad))
			}
			p.admitted = append(p.admitted, a)
		}
	}
	return p, err
}

// commandsBetween waits for both moments and returns how many scripts Redis ran
// from one to the other.
func commandsBetween(ctx context.Context, server *redistest.Server, from, to time.Time) (float64, error) {
	rdb := server.Client()
	defer rdb.Close()
	before, err := scriptsAt(ctx, rdb, from)
	if err != nil {
		return 0, err
	}
	after, err := scriptsAt(ctx, rdb, to)
	return after - before, err
}

// scriptsAt waits for the moment and returns how many EVALSHA Redis has run.
func scriptsAt(ctx context.Context, rdb *redis.Client, at time.Time) (float64, error) {
	select {
	case <-time.After(time.Until(at)):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	info, err := rdb.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(info) {
		var calls float64
		if _, err := fmt.Sscanf(line, "cmdstat_evalsha:calls=%f,", &calls); err == nil {
			return calls, nil
		}
	}
	return 0, errors.New("INFO commandstats does not name evalsha")
}

// report prints the rows of the scene. It returns which limits were broken, and
// which could not be used up.
func (p *performance) report(w *tabwriter.Writer) (broken, unused error) {
	from, to := p.start+micros((saturated+1)*window), p.start+micros(calm*window)
	paid := 0 // admissions while the commands were counted
	for _, a := range p.admitted {
		if p.start+micros(quiet*window) <= a.at && a.at < to {
			paid++
		}
		if a.out < a.at && broken == nil {
			broken = fmt.Errorf("%s: a call was let go %d us before its moment", p.name, a.at-a.out)
		}
	}
	units := map[string]func(admission) int64{
		throttle.Requests: func(a admission) int64 { return a.requests },
		throttle.Tokens:   func(a admission) int64 { return a.tokens },
	}
	for _, load := range p.loads {
		for _, l := range p.limits(load) {
			what := fmt.Sprintf("%s, %s, %s", p.name, load.model, l.Unit)
			h := newHistory(p.admitted, load.model, units[l.Unit])
			most := h.most(micros(window))
			if most > l.Amount {
				broken = errors.Join(broken, fmt.Errorf("%s: %d in one window, want %d at most", what, most, l.Amount))
			}
			utilisation, fullest := "-", "-"
			if l.Unit == load.binding {
				part := float64(h.between(from, to)) / float64(l.Amount*((to-from)/micros(window)))
				utilisation = fmt.Sprintf("%.1f%%", 100*part)
				if part < leastUsed {
					unused = errors.Join(unused, fmt.Errorf("%s: only %s could be used", what, utilisation))
				}
			}
			if l.Burst > 0 {
				level := h.level(l.Burst, l.Amount, micros(window))
				fullest = fmt.Sprintf("%.4f", level)
				if level > 1 {
					broken = errors.Join(broken, fmt.Errorf("%s: %s x what the bucket holds", what, fullest))
				}
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%.4f x N\t%s\t%s\t%.2f\t\n", p.name, load.model, l.Unit, l.Amount,
				h.between(0, math.MaxInt64), float64(most)/float64(l.Amount), utilisation, fullest, p.commands/float64(paid))
		}
	}
	return broken, unused
}

func micros(d time.Duration) int64 { return int64(d / time.Microsecond) }
