package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/throttle"
)

const (
	lead     = 15 * time.Millisecond   // how early the store grants a call
	handover = 1500 * time.Millisecond // how long a process keeps to its part when the store is back
	notice   = 300 * time.Millisecond  // how long a process may need to notice an outage
	freed    = 8 << 20                 // bytes that a process may keep: pools, and what Go has not yet collected
)

// judge holds what happened against the bounds, prints both, and remembers what
// was broken.
type judge struct {
	s      *stage
	out    io.Writer
	broken int

	calls    []sent // that the vendor saw, with their admissions
	notes    []told
	admitted map[string]told
	losses   []span
	alone    []cut    // processes that the store was away for, but not for all; or that did not tell in time what they spent alone
	unaware  []span   // returns of the store that some process took for a store that was never away
	strays   int      // arrivals without an admission
	twice    int      // arrivals of an admission that was used up
	why      []string // what was broken, in detail
	late     int      // calls that took longer than the margin to the vendor
}

// sent is one call at the vendor and its admission.
type sent struct {
	vendorsim.Arrival
	told
}

func newJudge(s *stage, out io.Writer) *judge {
	j := &judge{s: s, out: out, admitted: map[string]told{}}
	s.diary.mu.Lock()
	j.notes, j.losses = slices.Clone(s.diary.notes), slices.Clone(s.diary.losses)
	for _, c := range s.diary.cuts { // until the process is back, and no longer keeps to its part
		j.alone = append(j.alone, cut{span{c.from, c.to.Add(2 * handover)}, c.host})
	}
	for _, k := range s.diary.known {
		staged := slices.ContainsFunc(j.losses, func(l span) bool {
			return !k.from.Before(l.from) && !k.to.After(l.to.Add(handover))
		})
		if !staged { // reset connections, a process that stood still, a busy machine
			j.alone = append(j.alone, cut{span{k.from.Add(-notice), k.to.Add(handover)}, k.host})
		}
	}
	for _, l := range j.losses {
		for _, f := range s.diary.frozen { // what it spent alone it tells when the others have gone on
			if f.touches(l.from, l.to.Add(handover)) {
				j.alone = append(j.alone, cut{span{l.from, f.to.Add(handover)}, f.host})
			}
		}
		var aware [processes]bool
		for _, k := range s.diary.known {
			aware[k.host] = aware[k.host] || k.touches(l.from, l.to.Add(notice))
		}
		fresh := slices.ContainsFunc(s.diary.starts, func(t time.Time) bool { return t.After(l.from) && t.Before(l.to.Add(handover)) })
		if slices.Contains(aware[:], true) && (fresh || slices.Contains(aware[:], false)) {
			j.unaware = append(j.unaware, span{l.to, l.to.Add(handover)})
		}
	}
	s.diary.mu.Unlock()
	for _, n := range j.notes {
		if n.Kind == admitted {
			j.admitted[n.ID] = n
		}
	}
	used := map[string]bool{}
	for _, a := range s.vendor.Arrivals() {
		a.Received, a.Answered = a.Received.Add(-ahead), a.Answered.Add(-ahead)
		n, ok := j.admitted[a.Lane]
		switch {
		case !ok:
			j.strays++
		case used[a.Lane]:
			j.twice++
		default:
			used[a.Lane] = true
			j.calls = append(j.calls, sent{a, n})
			if a.Received.Sub(n.Charged) > margin {
				j.late++
			}
		}
	}
	return j
}

func (j *judge) row(what string, got, bound any, ok bool) {
	fmt.Fprintf(j.out, "%-66s %8v of %-5v   %s\n", what, got, bound, j.mark(ok))
}

func (j *judge) mark(ok bool) string {
	if ok {
		return "ok"
	}
	j.broken++
	return "BROKEN"
}

func (j *judge) none(what string, got int) { j.row(what, got, 0, got == 0) }

func (j *judge) header(lasted time.Duration) {
	d := &j.s.diary
	d.mu.Lock()
	defer d.mu.Unlock()
	var faults []string
	for _, name := range slices.Sorted(maps.Keys(d.faults)) {
		faults = append(faults, fmt.Sprintf("%d %s", d.faults[name], name))
	}
	fmt.Fprintf(j.out, "faults in %v: %s\n", lasted.Round(time.Second), strings.Join(faults, ", "))
	status := map[int]int{}
	for _, c := range j.calls {
		status[c.Status]++
	}
	var answers []string
	for _, code := range slices.Sorted(maps.Keys(status)) {
		answers = append(answers, fmt.Sprintf("%d: %d", code, status[code]))
	}
	fmt.Fprintf(j.out, "%d admissions, %d calls at the vendor (%s), %d of them later than the margin of %v\n",
		len(j.admitted), len(j.calls), strings.Join(answers, ", "), j.late, margin)
	fmt.Fprintf(j.out, "%d losses of the store, %d that not every process saw; %d outages told, %d of one process alone; %d keys in Redis at most\n",
		len(d.losses), len(j.unaware), len(d.known), len(j.alone), d.keys)
}

// budgets judges every limit twice: all calls by the store's times, in windows
// that are longer by the margin; and those that came in time, by the vendor's.
func (j *judge) budgets() {
	fmt.Fprintf(j.out, "\n%-30s %-6s %-6s %19s %19s\n", "most in any window, of", "clock", "window", "store there", "store lost")
	one := func(sent) int64 { return 1 }
	for _, model := range slices.Sorted(maps.Keys(limits)) {
		for _, l := range limits[model] {
			units := one
			if l.Unit == throttle.Tokens {
				units = func(c sent) int64 { return c.In + c.Out }
			}
			j.budget(fmt.Sprintf("%s: %d %s", model, l.Amount, l.Unit), l.Amount, func(c sent) string {
				if c.told.Model != model {
					return ""
				}
				return c.told.Key
			}, units)
		}
	}
	j.budget(fmt.Sprintf("any other model: %d requests", strange[0].Amount), strange[0].Amount, func(c sent) string {
		if limits[c.told.Model] != nil {
			return ""
		}
		return c.told.Key + " " + c.told.Model
	}, one)
	j.budget(fmt.Sprintf("whole key: %d requests", keyAmount), keyAmount, func(c sent) string { return c.told.Key }, one)
	fmt.Fprintln(j.out)
}

// budget judges one limit; of are its calls, by what they share it with.
func (j *judge) budget(what string, amount int64, of func(sent) string, units func(sent) int64) {
	byStore, byVendor := map[string]history{}, map[string]history{}
	for _, c := range j.calls {
		if share := of(c); share != "" {
			byStore[share] = append(byStore[share], event{c.Charged, units(c)})
			if c.Received.Sub(c.Charged) <= margin {
				byVendor[share] = append(byVendor[share], event{c.Received, units(c)})
			}
		}
	}
	for _, by := range []struct {
		name   string
		h      map[string]history
		window time.Duration
		slack  time.Duration
	}{{"store", byStore, window + margin, lead}, {"vendor", byVendor, window, margin}} {
		var most [2]int64 // in usual windows, in those that touch a loss or a process alone
		bound, worst := amount, 0.0
		for _, h := range by.h {
			h.windows(by.window, func(from, to time.Time, sum int64) {
				may, usual := j.allowed(amount, from, to, by.slack)
				if sum > may {
					j.explain(what, from, to, sum, may)
				}
				if usual {
					most[0] = max(most[0], sum)
				} else if part := float64(sum) / float64(may); part > worst {
					worst, most[1], bound = part, sum, may
				}
			})
		}
		mark := j.mark(most[0] <= amount && most[1] <= bound)
		fmt.Fprintf(j.out, "%-30s %-6s %-6v %10d of %-5d %10d of %-5d   %s\n", what, by.name, by.window, most[0], amount, most[1], bound, mark)
	}
}

// allowed is how many units may be in a window: twice the amount if the store
// was lost in it, or came back and a process did not know that it was away (it
// takes what it finds, before the others have told what they spent), and a part
// more for each process that was alone.
func (j *judge) allowed(amount int64, from, to time.Time, slack time.Duration) (may int64, usual bool) {
	may = amount
	for _, l := range j.losses {
		if (span{l.from, l.from.Add(slack + 50*time.Millisecond)}).touches(from, to) {
			may = 2 * amount
		}
	}
	for _, u := range j.unaware {
		if u.touches(from, to) {
			may = 2 * amount
		}
	}
	var hosts [processes]bool
	for _, c := range j.alone {
		if !hosts[c.host] && c.touches(from, to) {
			hosts[c.host] = true
			may += amount / processes
		}
	}
	return may, may == amount
}

// disturbed reports whether the store was away, for anybody, in a span of time:
// then pauses and probes are each process' own, or forgotten.
func (j *judge) disturbed(from, to time.Time) bool { return j.quietUntil(from, to).Before(to) }

// quietUntil is when the store was away for the first time from from on, or to.
func (j *judge) quietUntil(from, to time.Time) time.Time {
	first := to
	away := func(s span) {
		if s.touches(from, to) && s.from.Before(first) {
			first = s.from
		}
	}
	for _, l := range j.losses {
		away(span{l.from, l.to.Add(handover + notice)})
	}
	for _, c := range j.alone {
		away(c.span)
	}
	return first
}

// admissions judges that the vendor saw what was admitted, once.
func (j *judge) admissions() {
	j.none("calls that nobody admitted", j.strays)
	j.none("calls sent twice for one admission", j.twice)
}

// leftovers judges what remains of the processes and who could read a key.
func (j *judge) leftovers() {
	ends, goroutines, files, heap := 0, 0, 0, int64(0)
	for _, n := range j.notes {
		if n.Kind == ended {
			ends++
			goroutines = max(goroutines, n.After.Goroutines-n.Before.Goroutines)
			files = max(files, n.After.Files-n.Before.Files)
			heap = max(heap, int64(n.After.Heap)-int64(n.Before.Heap))
		}
	}
	j.row("processes that ended well", ends, processes, ends == processes)
	j.row("goroutines left in a process", goroutines, 0, goroutines <= 0)
	j.row("files and connections left in a process", files, 0, files <= 0)
	j.row("memory left in a process, KiB", heap>>10, freed>>10, heap <= freed)
	l := &j.s.leaks
	l.mu.Lock()
	defer l.mu.Unlock()
	var places []string
	for _, where := range slices.Sorted(maps.Keys(l.bytes)) {
		places = append(places, fmt.Sprintf("%s %d KiB", where, l.bytes[where]>>10))
	}
	j.none(fmt.Sprintf("places with a piece of a key (%s)", strings.Join(places, ", ")), len(l.where))
}

// verdict is an error if anything was broken.
func (j *judge) verdict() error {
	d := &j.s.diary
	d.mu.Lock()
	defer d.mu.Unlock()
	err := errors.Join(d.errs...)
	if j.s.details {
		for _, why := range j.why {
			fmt.Fprintf(j.out, "\n%s\n", why)
		}
	}
	if j.broken > 0 {
		err = errors.Join(fmt.Errorf("seed %d: %d bounds are broken", j.s.seed, j.broken), err)
	}
	if err == nil {
		fmt.Fprintln(j.out, "\nnothing broke")
	}
	return err
}

func seconds(d time.Duration) float64 {
	return float64(d.Round(10*time.Millisecond)) / float64(time.Second)
}
