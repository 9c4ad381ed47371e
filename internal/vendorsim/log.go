package vendorsim

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"
)

// maxArrivals bounds the log; [Server.Dropped] counts what came after.
const maxArrivals = 1_000_000

// Key is an API key as the vendor received it. It compares as a string and
// prints as "[key]" with every verb, so that a failing test shows no secret.
type Key string

// Format implements [fmt.Formatter]. It never writes the key.
func (Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[key]") }

// MarshalText implements [encoding.TextMarshaler]. It never writes the key.
func (Key) MarshalText() ([]byte, error) { return []byte("[key]"), nil }

// Arrival is one call as the vendor saw it.
type Arrival struct {
	Received time.Time // whole request read and judged, by the server's clock; never goes back
	Answered time.Time // just before the last bytes went out, or the connection was cut; zero: still open
	Path     string
	Shape    Shape
	Key      Key
	Model    string   // "" when the body named none
	Lane     string   // the header Config.LaneHeader, "" when absent
	Body     [32]byte // SHA-256 of the request body
	BodyLen  int64
	Status   int   // 0: no status line was sent (yet)
	Accepted bool  // the limits let it through and were charged
	In, Out  int64 // tokens the vendor charged, 0 unless Accepted
	Broken   bool  // the answer did not reach its end: cut by script, or the caller left; set after Answered
	Conn     int64 // number of the TCP connection, from 1; 0 without a listener
	Remote   string

	opened, closed int64 // places in the order of all beginnings and ends; closed 0: open
}

// Filter chooses arrivals. Zero fields choose all; set fields must all match.
type Filter struct {
	Key      Key
	Path     string
	Model    string
	Lane     string
	Status   int
	Accepted bool               // true: only accepted calls
	Match    func(Arrival) bool // any further test; must not call the server
}

func (f Filter) match(a *Arrival) bool {
	return (f.Key == "" || f.Key == a.Key) &&
		(f.Path == "" || f.Path == a.Path) &&
		(f.Model == "" || f.Model == a.Model) &&
		(f.Lane == "" || f.Lane == a.Lane) &&
		(f.Status == 0 || f.Status == a.Status) &&
		(!f.Accepted || a.Accepted) &&
		(f.Match == nil || f.Match(*a))
}

// record is the log. The server's lock guards it.
type record struct {
	arrivals []*Arrival // in order of Received
	refused  int64
	dropped  int64
	order    int64         // beginnings and ends so far
	changed  chan struct{} // non-nil while somebody awaits; closed at each change
}

func (r *record) add(a *Arrival) {
	r.order++
	a.opened = r.order
	if len(r.arrivals) < maxArrivals {
		r.arrivals = append(r.arrivals, a)
	} else {
		r.dropped++
	}
	r.change()
}

// end is idempotent: the first end of a counts.
func (r *record) end(a *Arrival, now time.Time) {
	if a.closed == 0 {
		r.order++
		a.closed, a.Answered = r.order, now
	}
	r.change()
}

func (r *record) change() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// Arrivals returns a copy of the log in the order the calls were judged, at
// most 1,000,000 of them.
func (s *Server) Arrivals() []Arrival { return s.chosen(Filter{}) }

func (s *Server) chosen(f Filter) []Arrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Arrival
	for _, a := range s.log.arrivals {
		if f.match(a) {
			out = append(out, *a)
		}
	}
	return out
}

// Count is how many arrivals f chooses.
func (s *Server) Count(f Filter) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.count(f)
}

func (r *record) count(f Filter) int {
	n := 0
	for _, a := range r.arrivals {
		if f.match(a) {
			n++
		}
	}
	return n
}

// Await blocks until f chooses at least n arrivals. It returns an error that
// wraps ctx.Err() when ctx ends first.
func (s *Server) Await(ctx context.Context, n int, f Filter) error {
	for {
		s.mu.Lock()
		if s.log.changed == nil {
			s.log.changed = make(chan struct{})
		}
		changed, got := s.log.changed, s.log.count(f)
		s.mu.Unlock()
		if got >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("vendorsim: await: %d of %d arrivals: %w", got, n, ctx.Err())
		}
	}
}

// MaxInWindow is the most units that the accepted arrivals of f used in any
// half-open interval [t, t+window), exactly, by their Received times. It does
// not know what [Server.Dropped] counts. A window of 0 or less holds nothing.
func (s *Server) MaxInWindow(window time.Duration, unit Unit, f Filter) int64 {
	if window <= 0 {
		return 0
	}
	f.Accepted = true
	arrivals := s.chosen(f)
	var most, sum int64
	first := 0
	for _, a := range arrivals {
		sum += unit.cost(a.In, a.Out)
		for a.Received.Sub(arrivals[first].Received) >= window {
			sum -= unit.cost(arrivals[first].In, arrivals[first].Out)
			first++
		}
		most = max(most, sum)
	}
	return most
}

// MaxConcurrent is the most arrivals of f that were open at once, by the order
// of their beginnings and ends, whatever the clock says.
func (s *Server) MaxConcurrent(f Filter) int {
	type edge struct {
		order int64
		step  int
	}
	var edges []edge
	for _, a := range s.chosen(f) {
		edges = append(edges, edge{a.opened, +1})
		if a.closed != 0 {
			edges = append(edges, edge{a.closed, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.order, b.order) })
	most, open := 0, 0
	for _, e := range edges {
		open += e.step
		most = max(most, open)
	}
	return most
}

// Refused is how many answers had the status 429, scripted ones included.
func (s *Server) Refused() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.refused
}

// Dropped is how many arrivals came after the log was full.
func (s *Server) Dropped() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.dropped
}

// Reset forgets the log and its counts. Limits keep what they have counted,
// scripts, refused keys and settings stay.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.arrivals, s.log.refused, s.log.dropped = nil, 0, 0
	s.log.change()
}
