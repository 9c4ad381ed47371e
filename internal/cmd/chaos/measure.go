package main

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/headway-go/headway/throttle"
)

// What must hold in every row. A machine of two cores, which runs the servers,
// the fleet and the vendor, gets 100 ms on top of the 250 ms that are promised.
const (
	findingBound  = 250*time.Millisecond + 100*time.Millisecond*slack
	knownBound    = 5 * time.Millisecond * slack // 99% of the calls
	recoveryBound = 1500 * time.Millisecond * (1 + slack) / 2
	storeTimeout  = 250 * time.Millisecond
)

// result is what was measured in a row, and what of it is broken.
type result struct {
	scenario
	calls, admitted, refused, closed int
	first, other                     most          // of the windows that touch the first after a loss; of all others
	losses                           int           // times that limiters told of a loss
	finding                          time.Duration // longest store time of a call that began when no outage was known
	known                            time.Duration // the 99th percentile of those that began when one was
	knownCalls                       int
	recovery                         time.Duration // from serving again until the last limiter is back
	recovered                        bool
	charged, unknown                 int64
	met                              map[string]int
	stall                            time.Duration // longest that this machine let a timer wait, or a granted call take to the vendor
	before                           []string      // what was broken in earlier playings, on a late machine
	broken                           []string
}

// most is the fullest window at the vendor.
type most struct {
	n, bound int
	when     time.Duration // its beginning, from the injection
}

// worse is the window that is over its bound by more.
func (m most) worse(w most) most {
	if m.n > 0 && m.n*w.bound >= w.n*m.bound {
		return m
	}
	return w
}

// touching counts the moments whose first window after them this one touches.
func touching(from time.Time, moments []time.Time) (n int) {
	for _, m := range moments {
		if from.Add(window).After(m) && from.Before(m.Add(window)) {
			n++
		}
	}
	return n
}

func (r *result) check(ok bool, format string, args ...any) {
	if !ok {
		r.broken = append(r.broken, fmt.Sprintf(format, args...))
	}
}

// judge measures the row and holds it against the bounds.
func (s *stage) judge() (result, error) {
	r := result{scenario: s.scenario}
	if s.bounds.keeps {
		var err error
		if r.charged, err = s.charged(); err != nil {
			return r, fmt.Errorf("what Redis counted: %w", err)
		}
	}
	s.record.mu.Lock()
	defer s.record.mu.Unlock()
	r.unknown, r.met, r.stall = s.record.unknown, s.record.met, s.stall.most()
	s.times(&r)
	s.windows(&r)
	s.comeback(&r)
	if s.bounds.met != "" {
		r.check(r.met[s.bounds.met] > 0, "no command met %s: the fault was not there", s.bounds.met)
	}
	if s.bounds.keeps {
		r.check(r.charged <= int64(r.admitted)+r.unknown, "Redis charged %d for %d calls and %d of unknown fate", r.charged, r.admitted, r.unknown)
		r.check(r.charged >= int64(r.admitted)-r.unknown, "Redis charged only %d for %d calls and %d of unknown fate", r.charged, r.admitted, r.unknown)
	}
	return r, nil
}

// times measures how long calls took, and how they ended.
func (s *stage) times(r *result) {
	var known []time.Duration
	sent := 0
	for _, c := range s.record.calls {
		r.calls++
		switch c.how {
		case admitted:
			r.admitted++
			r.stall = max(r.stall, c.late)
			if c.err == nil {
				sent++
			}
		case refused:
			r.refused++
		case closed:
			r.closed++
		case failed:
			r.check(false, "a %s call failed: %v", c.lane, c.err)
		}
		if c.took >= storeTimeout {
			r.unknown++ // it left before its answer, which may never have been asked for
		}
		if c.known {
			known = append(known, c.took)
		} else {
			r.finding = max(r.finding, c.took)
		}
	}
	slices.Sort(known)
	if r.knownCalls = len(known); r.knownCalls > 0 {
		r.known = known[len(known)*99/100]
	}
	got := len(s.vendor.Arrivals())
	r.check(sent == r.admitted && got == r.admitted, "%d calls were admitted, %d sent, and the vendor got %d", r.admitted, sent, got)
	r.check(r.finding <= findingBound, "a call took %v of store time", r.finding.Round(time.Millisecond))
	r.check(r.known <= knownBound, "in a known outage 1%% of the calls took more than %v", r.known)
}

// windows counts what the vendor got, by its own clock, in every window.
func (s *stage) windows(r *result) {
	var losses []time.Time
	for _, e := range s.record.events {
		if e.kind == throttle.StoreLost {
			r.losses++
			losses = append(losses, e.at)
		}
	}
	var at []time.Time
	for _, a := range s.vendor.Arrivals() {
		at = append(at, a.Received)
	}
	for i, from := range at {
		n := sort.Search(len(at)-i, func(k int) bool { return at[i+k].Sub(from) >= window })
		w := most{n, amount * (1 + min(1, touching(from, losses)) + touching(from, s.record.forgot)), from.Sub(s.injected)}
		if w.bound > amount {
			r.first = r.first.worse(w)
		} else {
			r.other = r.other.worse(w)
		}
	}
	for _, w := range []most{r.first, r.other} {
		r.check(w.n <= w.bound, "the vendor counted %d of %d in the window at %+d ms of the injection", w.n, w.bound, w.when.Milliseconds())
	}
	if s.bounds.none {
		during := 0
		for _, t := range at {
			if t.After(s.injected) && t.Before(s.healed) {
				during++
			}
		}
		r.check(during == 0, "%d calls went, none may", during)
	} else if len(at) < amount {
		r.check(false, "only %d calls went at all", len(at))
	}
}

// comeback measures how long after Redis serves again the last limiter is back:
// its own word, and the last call that was closed out.
func (s *stage) comeback(r *result) {
	lost, back := [hosts]bool{}, [hosts]bool{}
	for _, e := range s.record.events {
		lost[e.host] = lost[e.host] || e.kind == throttle.StoreLost
		back[e.host] = e.kind == throttle.StoreBack
		if !s.healed.IsZero() && e.kind == throttle.StoreBack {
			r.recovery = max(r.recovery, e.at.Sub(s.healed))
		}
	}
	for _, c := range s.record.calls {
		if c.how == closed && !s.healed.IsZero() {
			r.recovery = max(r.recovery, c.began.Add(c.took).Sub(s.healed))
		}
	}
	switch some := slices.Contains(lost[:], true); s.bounds.outage {
	case mustLose:
		r.check(some, "no limiter told that the store was lost")
	case mustKeep:
		r.check(!some, "a limiter told that the store was lost")
	}
	for _, e := range s.record.events {
		r.check(s.inject == nil || !e.at.Before(s.injected), "%v before anything was broken: %v", e.kind, e.err)
	}
	for i := range lost {
		r.check(!lost[i] || back[i], "limiter %d has not come back", i)
	}
	r.recovered = !s.healed.IsZero()
	r.check(r.recovery <= recoveryBound, "recovery took %v", r.recovery.Round(time.Millisecond))
}
