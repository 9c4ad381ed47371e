package throttle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway/lua"
)

// gate is a store that lets each call of the script through when the test says
// so, and can fail it.
type gate struct {
	*Memory
	mu      sync.Mutex
	batches []lua.Batch
	arrived chan int   // the length of each batch, when it arrives
	open    chan error // one for each batch: nil lets it through
}

func newGate() *gate {
	return &gate{Memory: NewMemory(), arrived: make(chan int, 10_000), open: make(chan error, 10_000)}
}

func (s *gate) decide(ctx context.Context, b lua.Batch) ([]lua.Answer, error) {
	s.mu.Lock()
	s.batches = append(s.batches, b)
	s.mu.Unlock()
	s.arrived <- len(b.Ops)
	if err := <-s.open; err != nil {
		return nil, err
	}
	return s.Memory.decide(ctx, b)
}

// gated returns a limiter on a gate.
func gated(t *testing.T, c Config) (*Limiter, *gate) {
	t.Helper()
	l := newLimiter(t, c)
	s := newGate()
	t.Cleanup(func() { close(s.open) }) // lets everything through, before the limiter closes
	l.store = s
	return l, s
}

// queued is the number of operations that wait for the next call of the script.
func queued(l *Limiter) int {
	g, _ := l.find("key", "m")
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.queue)
}

// A call that finds none in flight goes at once; those that come meanwhile ride
// in the next call of the script together, in order.
func TestGroupRidesInOrder(t *testing.T) {
	c := models(Per(Tokens, 1_000_000, time.Hour))
	c.StoreTimeout = time.Minute
	l, s := gated(t, c)
	const n = 200
	ends := make(chan ended, n)
	for i := range n {
		k := call()
		k.Cost = Cost{Tokens: int64(i + 1)}
		start(t.Context(), l, k, i, ends)
		if i == 0 {
			if got := <-s.arrived; got != 1 {
				t.Fatalf("a lone call rides with %d", got)
			}
			continue
		}
		eventually(t, "the call is queued", func() bool { return queued(l) == i })
	}
	s.open <- nil
	if got := <-s.arrived; got != maxBatch {
		t.Errorf("the second script carries %d, want %d", got, maxBatch)
	}
	s.open <- nil
	if got := <-s.arrived; got != n-1-maxBatch {
		t.Errorf("the third script carries %d, want the rest", got)
	}
	s.open <- nil
	for range n {
		if e := <-ends; e.err != nil || e.r.Cost()[Tokens] != int64(e.i+1) {
			t.Errorf("call %d got %v, %v: want its own answer", e.i, e.r, e.err)
		}
	}
	last := int64(0)
	for _, b := range s.batches {
		for _, op := range b.Ops {
			if cost := op.Rows[0].Cost; cost != last+1 {
				t.Fatalf("the call of %d tokens came behind that of %d", cost, last)
			} else {
				last = cost
			}
		}
	}
}

// What was admitted for a caller who left while it rode is given back; a caller
// who left while queued never ran.
func TestGroupCancelWhileRiding(t *testing.T) {
	c := models(Per(Requests, 10, time.Hour))
	c.StoreTimeout = time.Minute
	l, s := gated(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	ends := make(chan ended, 20)
	start(ctx, l, call(), 0, ends)
	<-s.arrived
	for i := range 9 {
		start(ctx, l, call(), i+1, ends)
	}
	eventually(t, "nine are queued", func() bool { return queued(l) == 9 })
	cancel()
	for range 10 {
		if e := <-ends; !errors.Is(e.err, context.Canceled) {
			t.Errorf("a cancelled call ended with %v", e.err)
		}
	}
	if n := queued(l); n != 0 {
		t.Errorf("%d are still queued", n)
	}
	s.open <- nil
	if got := <-s.arrived; got != 1 { // what the first was charged is given back
		t.Errorf("the next script carries %d, want the refund", got)
	}
	s.open <- nil
	go func() { <-s.arrived; s.open <- nil }()
	s2, err := l.Status(t.Context(), "key", "m")
	if err != nil || s2.Models[0].Limits[0].Used != 0 {
		t.Errorf("used = %+v, %v, want 0", s2.Models, err)
	}
}

// An error of the script reaches the calls that rode in it, and no others.
func TestGroupErrorHitsItsRidersOnly(t *testing.T) {
	c := models(Per(Requests, 10, time.Hour))
	c.StoreTimeout = time.Minute
	l, s := gated(t, c)
	ends := make(chan ended, 20)
	start(t.Context(), l, call(), 0, ends)
	<-s.arrived
	for i := range 5 {
		start(t.Context(), l, call(), i+1, ends)
	}
	eventually(t, "five are queued", func() bool { return queued(l) == 5 })
	boom := errors.New("boom")
	s.open <- boom
	if e := <-ends; e.i != 0 || !errors.Is(e.err, ErrStoreUnavailable) || !strings.Contains(e.err.Error(), "boom") {
		t.Errorf("call %d ended with %v, want the first with the store's error", e.i, e.err)
	}
	<-s.arrived
	s.open <- nil
	for range 5 {
		if e := <-ends; e.err != nil {
			t.Errorf("call %d: %v", e.i, e.err)
		}
	}
}

// S24: at most two calls of the store are out beyond their time, however many
// calls come; the others are answered within the store's time.
func TestS24AtMostTwoStrays(t *testing.T) {
	c := models(Per(Requests, 1_000_000, time.Hour))
	c.StoreTimeout = 100 * ms
	l, s := gated(t, c)
	ends := make(chan ended, 2000)
	n := 0
	for began := time.Now(); time.Since(began) < 300*ms; pass(2 * ms) {
		for range 10 { // more than fit into one script
			start(t.Context(), l, closedCall(), n, ends)
			n++
		}
	}
	for range n {
		if e := <-ends; !errors.Is(e.err, ErrStoreUnavailable) || errors.Is(e.err, ErrRefused) {
			t.Errorf("a call ended with %v, want ErrStoreUnavailable and no refusal", e.err)
		}
	}
	if got := len(s.arrived); got > maxStray {
		t.Errorf("%d calls of the store are out, want at most %d", got, maxStray)
	}
	if got := queued(l); got > 0 {
		t.Errorf("%d calls are still queued", got)
	}
	for range 100 { // the store is back: what was admitted for those who left is given back
		s.open <- nil
	}
	eventually(t, "the store is known to be back", func() bool { _, err := l.Reserve(t.Context(), closedCall()); return err == nil })
	eventually(t, "only what was taken since is used", func() bool { return used(t, l, "m")[Requests] <= 1 })
}

// Close wakes those who wait, gives their places back before it returns, is
// idempotent, and leaves reservations to be settled.
func TestClose(t *testing.T) {
	t.Parallel()
	onBoth(t, models(Per(Requests, 10, time.Hour)), func(t *testing.T, p *pair) {
		var rs []*Reservation
		for range 10 {
			rs = append(rs, reserve(t, p.a, call()))
		}
		ends := make(chan ended, 100)
		for i := range 100 {
			k := call()
			k.MaxWait = 24 * time.Hour
			start(t.Context(), p.a, k, i, ends)
		}
		eventually(t, "all wait", func() bool { return model(t, p.b, "m").Waiting == 100 })
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if err := p.a.Close(t.Context()); err != nil {
					t.Errorf("Close() = %v", err)
				}
			})
		}
		wg.Wait()
		if n := model(t, p.b, "m").Waiting; n != 0 {
			t.Errorf("%d are in line after Close, want none", n)
		}
		for range 100 {
			if e := <-ends; !errors.Is(e.err, ErrClosed) {
				t.Errorf("a waiting call ended with %v, want ErrClosed", e.err)
			}
		}
		if _, err := p.a.Wait(t.Context(), call()); !errors.Is(err, ErrClosed) {
			t.Errorf("Wait() after Close = %v, want ErrClosed", err)
		}
		s, err := p.b.Status(t.Context(), "key", "m")
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(s.Fleet, func(m Member) bool { return m.Name == p.a.config.Name }) {
			t.Error("the closed process is still in the fleet's list")
		}
		if err := rs[0].Settle(t.Context(), Cost{Requests: 0}); err != nil {
			t.Errorf("Settle() after Close = %v", err)
		}
		if got := used(t, p.b, "m")[Requests]; got != 9 {
			t.Errorf("used = %d after a settlement, want 9", got)
		}
	})
}

// Close returns when its context ends, though the store is silent.
func TestCloseEndsWithItsContext(t *testing.T) {
	c := models(Per(Requests, 10, time.Hour))
	c.StoreTimeout = time.Minute
	l, s := gated(t, c)
	ends := make(chan ended, 1)
	start(t.Context(), l, call(), 0, ends)
	<-s.arrived
	ctx, cancel := context.WithTimeout(t.Context(), 20*ms)
	defer cancel()
	if err := l.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close() = %v, want the context's error", err)
	}
	s.open <- nil
	if e := <-ends; e.err != nil {
		t.Error(e.err)
	}
}

// Reservations may be settled while and after the limiter closes, from many
// goroutines at once.
func TestCloseWhileSettling(t *testing.T) {
	t.Parallel()
	for range 300 {
		l, err := New(models(Per(Tokens, 1_000_000, time.Hour)))
		if err != nil {
			t.Fatal(err)
		}
		var rs []*Reservation
		k := call()
		k.Cost = Cost{Tokens: 10}
		for range 8 {
			rs = append(rs, reserve(t, l, k))
		}
		var wg sync.WaitGroup
		for _, r := range rs {
			wg.Go(func() {
				if err := r.Settle(t.Context(), Cost{Tokens: 1}); err != nil {
					t.Error(err)
				}
			})
		}
		for range 3 {
			wg.Go(func() {
				if err := l.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}

// 64 goroutines do everything at once; the race detector looks on, and in the
// end the budget is whole.
func TestManyGoroutines(t *testing.T) {
	t.Parallel()
	c := models(Per(Requests, 400, 500*time.Millisecond), Per(Tokens, 40_000, time.Hour))
	c.Key = []Limit{Per(Requests, 500, 500*time.Millisecond)}
	onBoth(t, c, func(t *testing.T, p *pair) {
		var wg sync.WaitGroup
		var went atomic.Int64
		for i := range 64 {
			wg.Go(func() {
				for j := range 20 {
					k := call()
					k.Cost = Cost{Requests: 1, Tokens: 10}
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+(i*j)%40)*20*ms)
					r, err := p.each(i+j).Wait(ctx, k)
					if err == nil {
						went.Add(1)
						switch j % 4 {
						case 0:
							err = r.Cancel(ctx)
						case 1:
							err = r.Settle(ctx, Cost{Tokens: 5})
						case 2:
							err = r.Report(ctx, overloadedBriefly)
							err = errors.Join(err, p.each(j).Resume(t.Context(), "key", "m"), r.Cancel(ctx))
						default:
							err = r.Cancel(ctx)
						}
						if err != nil {
							t.Error(err)
						}
						if j%4 == 1 {
							went.Add(1 << 32)
						}
					} else if !errors.Is(err, ErrRefused) && !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
					cancel()
				}
			})
		}
		wg.Wait()
		settled := went.Load() >> 32
		eventually(t, "nobody waits", func() bool { return p.waiting(t) == 0 })
		eventually(t, fmt.Sprintf("%d settled calls are charged", settled), func() bool {
			return used(t, p.a, "m")[Tokens] == 5*settled
		})
		if went.Load()&(1<<32-1) == 0 {
			t.Error("no call went")
		}
	})
}
