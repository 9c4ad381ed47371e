package sdktest

import (
	"cmp"
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
)

// requests is the limit of a model in a minute.
const requests = 10

// patience is how long a scene waits for what should happen at once.
const patience = 5 * time.Second

// Wire is Headway's transport, which counts what the SDK asks of it.
type Wire struct {
	transport *transport.Transport
	attempts  atomic.Int32

	mu  sync.Mutex
	key string // the fingerprint of the last call
}

// RoundTrip implements [http.RoundTripper].
func (w *Wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.note(r)
	return w.transport.RoundTrip(r)
}

// Do is for SDKs that take a Doer.
func (w *Wire) Do(r *http.Request) (*http.Response, error) {
	w.note(r)
	return w.transport.Do(r)
}

func (w *Wire) note(r *http.Request) {
	w.attempts.Add(1)
	if key, err := w.transport.Fingerprint(r); err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.key = key
	}
}

// rig is a client of the SDK, Headway under it, and a vendor.
type rig struct {
	t       *testing.T
	vendor  Vendor
	limiter *throttle.Limiter
	wire    *Wire
	client  Client
	calls   atomic.Int32 // that reached the vendor
	stream  gate

	mu       sync.Mutex
	lastCall time.Time // when it reached the vendor
}

// newRig makes a rig whose calls are of a lane.
func newRig(t *testing.T, s SDK, lane lanes.Lane) *rig {
	t.Helper()
	r := &rig{t: t}
	if s.Vendor != nil {
		r.vendor = s.Vendor()
	} else {
		sim, err := newSim()
		if err != nil {
			t.Fatal(err)
		}
		r.vendor = sim
	}
	server := httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(server.Close)
	var err error
	r.limiter, err = throttle.New(throttle.Config{Default: []throttle.Limit{
		throttle.PerMinute(throttle.Requests, requests), throttle.PerMinute(cmp.Or(s.Unit, throttle.Tokens), 100_000),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.limiter.Close(context.WithoutCancel(t.Context())) })
	r.wire = &Wire{transport: &transport.Transport{Limiter: r.limiter, Profile: s.Profile}}
	if s.NoContext {
		r.wire.transport.Lane = lane
	}
	if r.client, err = s.New(r.wire, server.URL); err != nil {
		t.Fatal(err)
	}
	return r
}

// serve counts the calls, and holds a stream back at its gate.
func (r *rig) serve(w http.ResponseWriter, req *http.Request) {
	r.calls.Add(1)
	r.mu.Lock()
	r.lastCall = time.Now()
	r.mu.Unlock()
	r.vendor.ServeHTTP(&gated{ResponseWriter: w, gate: &r.stream, ctx: req.Context(), left: r.vendor.Opening()}, req)
}

// since returns how long after a moment the vendor saw the last call.
func (r *rig) since(began time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lastCall.Sub(began)
}

// used returns the requests, and the units that the vendor counts, that a model
// has used.
func (r *rig) used(model string) (requests, units int64) {
	r.t.Helper()
	r.wire.mu.Lock()
	key := r.wire.key
	r.wire.mu.Unlock()
	status, err := r.limiter.Status(r.t.Context(), key, model)
	if err != nil {
		r.t.Fatal(err)
	}
	limits := status.Models[0].Limits
	return limits[0].Used, limits[1].Used
}

// settles reports whether the units used by Model come to be want: an SDK may
// close an answer a little after it has handed it over.
func (r *rig) settles(want int64) bool {
	r.t.Helper()
	for began := time.Now(); time.Since(began) < patience; time.Sleep(time.Millisecond) {
		if _, units := r.used(Model); units == want {
			return true
		}
	}
	return false
}

// gate holds a stream back until the client has the first piece of it. The zero
// gate holds nothing back.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // nil: nothing is held back
	forced atomic.Bool   // the client had nothing in time
}

// shut makes a gate hold streams back, and returns the function that opens it.
func (g *gate) shut() (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	opened := make(chan struct{})
	g.opened = opened
	return sync.OnceFunc(func() { close(opened) })
}

func (g *gate) pass(ctx context.Context) {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	if opened == nil {
		return
	}
	select {
	case <-opened:
	case <-ctx.Done():
	case <-time.After(patience):
		g.forced.Store(true)
	}
}

// gated is a ResponseWriter that waits at a gate after the first writes.
type gated struct {
	http.ResponseWriter
	gate *gate
	ctx  context.Context
	left int
}

func (g *gated) Write(b []byte) (int, error) {
	if g.left--; g.left < 0 {
		g.gate.pass(g.ctx)
	}
	return g.ResponseWriter.Write(b)
}

// Unwrap lets [http.ResponseController] flush.
func (g *gated) Unwrap() http.ResponseWriter { return g.ResponseWriter }
