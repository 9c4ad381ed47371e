package sdktest

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
)

// Vendor is the vendor of a scene. Its methods may be called while it serves.
type Vendor interface {
	http.Handler

	// Later makes the next call a 429.
	Later()

	// RefuseKey refuses the key of every further call.
	RefuseKey()

	// Counted is what the vendor counted in its last call, in the SDK's unit.
	Counted() int64

	// Opening is how many writes a stream begins with before it holds a piece of
	// the answer.
	Opening() int
}

// sim is a Vendor that speaks OpenAI's and Anthropic's APIs.
type sim struct{ *vendorsim.Server }

func newSim() (Vendor, error) {
	s, err := vendorsim.New(vendorsim.Config{})
	return sim{s}, err
}

func (s sim) Later()       { s.Script("", vendorsim.RateLimited(time.Second, vendorsim.DialectSeconds)) }
func (s sim) RefuseKey()   { s.Server.RefuseKey(Key, true) }
func (s sim) Opening() int { return 4 } // OpenAI: four of content; Anthropic: three before the first

func (s sim) Counted() int64 {
	a := s.Arrivals()
	return a[len(a)-1].In + a[len(a)-1].Out
}

// Answer is one answer of a [Canned] vendor. Status 0 is 200, and the content is
// JSON unless Header says otherwise.
type Answer struct {
	Status int
	Header map[string]string
	Body   string
	Events []string // of a stream, in Body's place
}

// Canned is a Vendor that gives the same answers again and again, for APIs that
// vendorsim does not speak. Its fields must not change once it serves.
type Canned struct {
	OK, TooMany, Refused Answer

	// Stream is the answer to calls whose path contains StreamPath.
	Stream     Answer
	StreamPath string

	// Count is what it counts in a call.
	Count int64

	later, refuse atomic.Bool
}

// Later implements [Vendor].
func (c *Canned) Later() { c.later.Store(true) }

// RefuseKey implements [Vendor].
func (c *Canned) RefuseKey() { c.refuse.Store(true) }

// Counted implements [Vendor].
func (c *Canned) Counted() int64 { return c.Count }

// Opening implements [Vendor].
func (c *Canned) Opening() int { return 1 }

// ServeHTTP implements [http.Handler].
func (c *Canned) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
	a := c.OK
	switch {
	case c.refuse.Load():
		a = c.Refused
	case c.later.Swap(false):
		a = c.TooMany
	case c.StreamPath != "" && strings.Contains(r.URL.Path, c.StreamPath):
		a = c.Stream
	}
	a.write(w)
}

func (a Answer) write(w http.ResponseWriter) {
	status := a.Status
	if status == 0 {
		status = http.StatusOK
	}
	w.Header().Set("Content-Type", "application/json")
	for name, value := range a.Header {
		w.Header().Set(name, value)
	}
	if a.Events == nil {
		w.Header().Set("Content-Length", strconv.Itoa(len(a.Body)))
	}
	w.WriteHeader(status)
	for _, event := range append([]string{a.Body}, a.Events...) {
		if event == "" {
			continue
		}
		if _, err := io.WriteString(w, event); err != nil || http.NewResponseController(w).Flush() != nil {
			panic(http.ErrAbortHandler)
		}
	}
}
