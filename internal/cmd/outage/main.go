// Command outage stages a day without Redis: four processes call a vendor under
// one shared limit, Redis is killed under load and comes back empty. It prints
// what the vendor counted and how long calls took, and exits with 1 when a
// stated bound is broken.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/headway-go/headway/internal/redistest"
	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
	"github.com/redis/go-redis/v9"
)

const (
	processes = 4
	callers   = 8 // in each process
	amount    = 40
	window    = time.Second
	margin    = 100 * time.Millisecond // the vendor counts to the unit, by its own clock

	healthy = 8 * time.Second // until every process has heard of the fleet
	away    = 5 * time.Second
	again   = 5 * time.Second
)

func main() {
	redisAddr := flag.String("redis", "", "address of Redis (for the processes that this command starts)")
	vendor := flag.String("vendor", "", "address of the vendor (likewise)")
	flag.Parse()
	run := stage
	if *vendor != "" {
		run = func() error { return call(*redisAddr, *vendor) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "outage:", err)
		os.Exit(1)
	}
}

// note is one line from a process: what its limiter said, or how long a call took.
type note struct {
	At     time.Time
	Event  string        `json:",omitempty"` // "store lost" or "store back"
	Took   time.Duration `json:",omitempty"` // of a call that the limiter decided
	Outage bool          `json:",omitempty"` // the outage was known when the call began
}

// call is one process: callers that want more than their budget, until stdin ends.
func call(redisAddr, vendor string) error {
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	say := func(n note) {
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode(n)
	}
	var known sync.Map // "outage": present while it is known
	client := redis.NewClient(&redis.Options{Addr: redisAddr})
	defer client.Close()
	limiter, err := throttle.New(throttle.Config{
		Redis:   client,
		Default: []throttle.Limit{{Unit: throttle.Requests, Amount: amount, Window: window, Margin: margin}},
		OnEvent: func(e throttle.Event) {
			switch e.Kind {
			case throttle.StoreLost:
				known.Store("outage", true)
				say(note{At: time.Now(), Event: e.Kind.String()})
			case throttle.StoreBack:
				known.Delete("outage")
				say(note{At: time.Now(), Event: e.Kind.String()})
			}
		},
	})
	if err != nil {
		return err
	}
	client2 := &http.Client{Transport: &transport.Transport{Limiter: limiter, MaxWait: -1}}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for ctx.Err() == nil {
				_, outage := known.Load("outage")
				began := time.Now()
				if sent := post(ctx, client2, vendor); !sent { // the vendor's own time does not count
					say(note{At: began, Took: time.Since(began), Outage: outage})
					time.Sleep(3 * time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
	return limiter.Close(context.Background())
}

// post makes one call and reports whether the vendor got it.
func post(ctx context.Context, client *http.Client, vendor string) bool {
	body := bytes.NewReader([]byte(`{"model":"m","messages":[],"max_tokens":1}`))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, vendor+"/v1/chat/completions", body)
	if err != nil {
		return false
	}
	req.Header.Set("Authorization", "Bearer sk-outage")
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return true
}

// process is a child and what it said.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	notes []note
	done  chan struct{}
}

func start(redisAddr, vendor string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(self, "-redis", redisAddr, "-vendor", vendor), done: make(chan struct{})}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.done)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var n note
			if json.Unmarshal(lines.Bytes(), &n) == nil {
				p.notes = append(p.notes, n)
			}
		}
	}()
	return p, nil
}

func (p *process) stop() {
	_ = p.in.Close()
	<-p.done
	_ = p.cmd.Wait()
}

func stage() error {
	server, err := redistest.Start()
	if err != nil {
		return err
	}
	defer server.Stop()
	vendor, err := vendorsim.Start(vendorsim.Config{})
	if err != nil {
		return err
	}
	defer vendor.Close()
	var all []*process
	defer func() {
		for _, p := range all {
			_ = p.cmd.Process.Kill() // ended already, unless something failed above
		}
	}()
	for range processes {
		p, err := start(server.Addr, vendor.URL())
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	time.Sleep(healthy)
	killed := time.Now()
	server.Kill()
	time.Sleep(away)
	if err := server.Restart(); err != nil {
		return err
	}
	back := time.Now()
	time.Sleep(again)
	for _, p := range all {
		p.stop()
	}
	return judge(vendor.Arrivals(), all, killed, back)
}

// judge holds what happened against the bounds and prints both.
func judge(arrivals []vendorsim.Arrival, all []*process, killed, back time.Time) error {
	var at []time.Time
	for _, a := range arrivals {
		at = append(at, a.Received)
	}
	wrong := 0
	row := func(what string, got, bound any, ok bool) {
		mark := "ok"
		if !ok {
			mark = "BROKEN"
			wrong++
		}
		fmt.Printf("%-62s %12v   at most %-8v %s\n", what, got, bound, mark)
	}
	count := func(what string, from, to time.Time, bound int) {
		n := most(at, from, to)
		row(what, n, bound, n <= bound)
	}
	var first, known, recovered time.Duration
	var knownAll []time.Duration
	for _, p := range all {
		for _, n := range p.notes {
			switch {
			case n.Event == throttle.StoreBack.String() && n.At.After(back):
				recovered = max(recovered, n.At.Sub(back))
			case n.Event != "":
			case n.Outage:
				knownAll = append(knownAll, n.Took)
			default:
				first = max(first, n.Took)
			}
		}
	}
	slices.Sort(knownAll)
	if len(knownAll) > 0 {
		known = knownAll[len(knownAll)*99/100]
	}
	fmt.Printf("%d processes, %d callers each, %d calls per %v; Redis away for %v\n", processes, callers, amount, window, away)
	count("calls in any window before the loss", at[0], killed, amount)
	count("calls in any window that touches the loss", killed.Add(-window), killed.Add(window), 2*amount)
	count("calls in any window of the outage after the first", killed.Add(window), back, amount)
	count("calls in any window around the return", back.Add(-window), back.Add(4*time.Second), amount)
	row("calls that went during the outage, at least a quarter of N a window", within(at, killed.Add(window), back), "-",
		within(at, killed.Add(window), back) >= int(away/window-1)*amount/4)
	row("longest refused call, ms", first.Milliseconds(), 250+100, first <= 350*time.Millisecond)
	row("99% of calls once the outage is known, ms", float64(known.Microseconds())/1000, 5, known <= 5*time.Millisecond)
	row("until every process is back, ms", recovered.Milliseconds(), 1500, recovered > 0 && recovered <= 1500*time.Millisecond)
	if wrong > 0 {
		return fmt.Errorf("%d bounds are broken", wrong)
	}
	return nil
}

func within(at []time.Time, from, to time.Time) (n int) {
	for _, t := range at {
		if !t.Before(from) && t.Before(to) {
			n++
		}
	}
	return n
}

// most is the largest number of arrivals in a half-open window between from and to.
func most(at []time.Time, from, to time.Time) (n int) {
	for _, t := range at {
		if !t.Before(from) && t.Before(to) {
			n = max(n, within(at, t, minTime(t.Add(window), to)))
		}
	}
	return n
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
