// Command demo tells Headway's main job as a short story: two hosts share one
// API key and one budget in front of a vendor on the loopback interface, which
// enforces its own limits and counts every call.
//
// Without flags the hosts are two limiters of this process on the memory store.
// With -redis they are two processes that share a Redis. It exits with 1 when
// any of the vendor's counts is not what the promises say.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
)

const (
	model  = "gpt-demo"
	apiKey = "sk-demo-0000000000000000"

	budget = 20              // requests in a window
	window = 2 * time.Second // of the budget
	share  = budget * 6 / 10 // of background work
	later  = 2 * time.Second // the vendor's "later"
	keyOff = time.Second     // pause of a refused key; five minutes in real life
)

func main() {
	redis := flag.String("redis", "", "address of a Redis; empty uses the memory store")
	host := flag.String("host", "", "be the host of this name (the demo starts these)")
	vendor := flag.String("vendor", "", "address of the vendor, for -host")
	flag.Parse()
	if *host != "" {
		if err := serveHost(*host, *vendor, *redis, nil, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "demo: host:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(*redis); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// story is one run of the demo.
type story struct {
	vendor *vendorsim.Server
	a, b   *host
	wrong  int
}

func run(redis string) error {
	began := time.Now()
	vendor, err := vendorsim.Start(vendorsim.Config{Models: map[string][]vendorsim.Limit{
		model: {{Unit: vendorsim.Requests, Amount: budget, Window: window}},
	}})
	if err != nil {
		return err
	}
	defer vendor.Close()
	a, b, err := startHosts(vendor.URL(), redis)
	if err != nil {
		return err
	}
	defer a.stop()
	defer b.stop()

	s := &story{vendor: vendor, a: a, b: b}
	say("Two hosts (%s) share one key. The vendor takes %d calls in any %v.", a.kind, budget, window)
	s.lanes()
	s.pause()
	s.key()
	say("\nThe whole story took %v.", time.Since(began).Round(100*time.Millisecond))
	if s.wrong > 0 {
		return fmt.Errorf("%d of the vendor's counts are wrong", s.wrong)
	}
	say("Every count is as promised.")
	return nil
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// expect prints a count and remembers when it is wrong.
func (s *story) expect(what string, got, low, high int) {
	mark := "ok"
	if got < low || got > high {
		mark = fmt.Sprintf("WRONG, want %d to %d", low, high)
		s.wrong++
	}
	say("   %-62s %4d   %s", what, got, mark)
}

// exactly is expect for one number.
func (s *story) exactly(what string, got, want int) { s.expect(what, got, want, want) }

// both sends n calls of a lane from each host at the same moment.
func (s *story) both(lane string, n int) []outcome {
	done := s.a.start(order{Lane: lane, N: n})
	out := s.b.call(order{Lane: lane, N: n})
	return append(out, <-done...)
}

// lanes: live and background share a budget; a live call waits, a job comes back.
func (s *story) lanes() {
	say("\n1. Each host sends 15 background jobs at once. Background stops at 60%%.")
	jobs := s.both("background", 15)
	s.exactly("background jobs that reached the vendor", s.vendor.Count(vendorsim.Filter{Lane: "background"}), share)
	s.exactly("deferred at once, each with its time to come back", count(jobs, outcome.deferred), 30-share)
	come := soonest(jobs)
	say("   The first may come back in %v.", come.Round(10*time.Millisecond))
	back := time.Now().Add(come)

	say("\n2. Customers write: each host sends live calls, which may use the whole budget.")
	live := s.both("live", (budget-share)/2)
	s.exactly("live calls that reached the vendor without waiting", count(live, outcome.prompt), budget-share)
	one := s.a.call(order{Lane: "live", N: 1})[0]
	say("   The budget is spent. One more live call waits for room: %v.", one.Took.Round(10*time.Millisecond))
	s.exactly("live calls that waited and then went", count([]outcome{one}, outcome.waited), 1)

	time.Sleep(time.Until(back))
	job := s.b.call(order{Lane: "background", N: 1})[0]
	s.exactly("deferred jobs that came back in time and went", count([]outcome{job}, outcome.ok), 1)
	s.exactly("refusals by the vendor so far", int(s.vendor.Refused()), 0)
	s.exactly("most calls in any window, by the vendor's own clock",
		int(s.vendor.MaxInWindow(window, vendorsim.Requests, vendorsim.Filter{})), budget)
}

// pause: a vendor's "later" holds both hosts.
func (s *story) pause() {
	time.Sleep(window) // a fresh budget
	say("\n3. The vendor answers one call of host A with 429, Retry-After: %d.", int(later.Seconds()))
	s.vendor.Script(model, vendorsim.RateLimited(later, vendorsim.DialectSeconds))
	s.a.call(order{Lane: "live", N: 1})
	told := time.Now()
	before := s.vendor.Count(vendorsim.Filter{})
	jobs := s.both("background", 5)
	s.exactly("background jobs deferred on both hosts", count(jobs, outcome.deferred), 10)
	live := s.both("live", 2)
	first := s.vendor.Arrivals()[before].Received.Sub(told)
	s.exactly("live calls held and then served, two on each host", count(live, outcome.ok), 4)
	s.expect("ms until the vendor saw the next call", int(first.Milliseconds()), int(later.Milliseconds())-20, 4000)
}

// key: a refused key stops everything; one probe at a time finds out.
func (s *story) key() {
	time.Sleep(window)
	say("\n4. The key is revoked. A refused key pauses for %v here, for five minutes in real life.", keyOff)
	s.vendor.RefuseKey(apiKey, true)
	before := s.vendor.Count(vendorsim.Filter{})
	s.a.call(order{Lane: "live", N: 1})
	held := s.both("background", 50)
	s.exactly("calls the vendor saw: the one that found out", s.vendor.Count(vendorsim.Filter{})-before, 1)
	s.exactly("calls held back on both hosts", count(held, outcome.deferred), 100)

	for round := 1; round <= 2; round++ {
		time.Sleep(keyOff + 50*time.Millisecond)
		if round == 2 {
			say("   The key works again, nobody knows yet.")
			s.vendor.RefuseKey(apiKey, false)
		}
		before = s.vendor.Count(vendorsim.Filter{})
		s.vendor.Hold() // the vendor is slow: the probe stays out
		probe := s.a.start(order{Lane: "background", N: 1})
		s.awaitOne(before)
		others := s.b.call(order{Lane: "background", N: 40})
		s.exactly(fmt.Sprintf("probe %d of host A: calls out while host B asks for 40", round), s.vendor.Count(vendorsim.Filter{})-before, 1)
		s.exactly("others held back meanwhile", count(others, outcome.deferred), 40)
		s.vendor.Release()
		<-probe
	}
	resumed := s.both("live", 1)
	s.exactly("live calls served right after the probe got through", count(resumed, outcome.ok), 2)
}

// awaitOne blocks until the vendor has seen one call more than before.
func (s *story) awaitOne(before int) {
	deadline := time.Now().Add(2 * time.Second)
	for s.vendor.Count(vendorsim.Filter{}) <= before && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
}
