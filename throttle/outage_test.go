package throttle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/redistest"
	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/pause"
	"github.com/redis/go-redis/v9"
)

// outageFleet is two limiters on a Redis of their own, which have heard of each other.
type outageFleet struct {
	t      *testing.T
	redis  *redistest.Server
	hosts  []*Limiter
	events chan Event
}

func newOutageFleet(t *testing.T, hosts int, config Config) *outageFleet {
	t.Helper()
	s, err := redistest.Start()
	if err != nil {
		t.Fatal(err)
	}
	f := &outageFleet{t: t, redis: s, events: make(chan Event, 10_000)}
	t.Cleanup(s.Stop)
	for i := range hosts {
		c := s.Client()
		config.Redis, config.Name = c, fmt.Sprint("host", i)
		config.OnEvent = func(e Event) {
			if e.Kind == StoreLost || e.Kind == StoreBack {
				f.events <- e
			}
		}
		l, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		f.hosts = append(f.hosts, l)
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if err := l.Close(ctx); err != nil {
				t.Errorf("Close: %v", err)
			}
			c.Close()
		})
	}
	return f
}

// heard waits until every host knows how many they are.
func (f *outageFleet) heard() {
	f.t.Helper()
	for _, l := range f.hosts {
		if _, err := l.Reserve(f.t.Context(), Call{Key: "k", Model: "warm", Cost: Cost{Requests: 1, Tokens: 1}}); err != nil {
			f.t.Fatal(err)
		}
	}
	f.until(8*time.Second, "every host has heard of the fleet", func() bool {
		for _, l := range f.hosts {
			g, _ := l.find("k", "")
			if int(g.members.Load()) != len(f.hosts) {
				return false
			}
		}
		return true
	})
}

func (f *outageFleet) until(bound time.Duration, what string, is func() bool) {
	f.t.Helper()
	for end := time.Now().Add(bound); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("not within %v: %s", bound, what)
		}
	}
}

func (f *outageFleet) down() bool {
	for _, l := range f.hosts {
		if !l.outage.down.Load() {
			return false
		}
	}
	return true
}

// lose kills the store and lets every host find out.
func (f *outageFleet) lose() {
	f.t.Helper()
	f.redis.Kill()
	for _, l := range f.hosts {
		began := time.Now()
		_, err := l.Reserve(f.t.Context(), Call{Key: "k", Model: "warm", Lane: lanes.Background, Cost: Cost{Requests: 1, Tokens: 1}})
		if !errors.Is(err, ErrStoreUnavailable) {
			f.t.Fatalf("first call after the loss: %v, want ErrStoreUnavailable", err)
		}
		if took := time.Since(began); took > 4*defaultStoreTimeout {
			f.t.Errorf("first call after the loss took %v", took)
		}
	}
}

// flood makes calls from every host for a while and returns when each was charged.
func (f *outageFleet) flood(d time.Duration, call Call) (went []time.Time, longest time.Duration) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	end := time.Now().Add(d)
	for _, l := range f.hosts {
		for range 4 {
			wg.Go(func() {
				for time.Now().Before(end) {
					began := time.Now()
					r, err := l.Reserve(f.t.Context(), call)
					took := time.Since(began)
					mu.Lock()
					longest = max(longest, took)
					if err == nil {
						went = append(went, time.UnixMicro(r.answer.At)) // one machine, one clock
					}
					mu.Unlock()
					if err != nil {
						time.Sleep(2 * time.Millisecond)
					}
				}
			})
		}
	}
	wg.Wait()
	return went, longest
}

func most(went []time.Time, window time.Duration) (n int) {
	for _, from := range went {
		in := 0
		for _, at := range went {
			if !at.Before(from) && at.Sub(from) < window {
				in++
			}
		}
		n = max(n, in)
	}
	return n
}

// S24, promise 18: the fleet goes on by its parts, never above N in a window
// after the first, answers fast once the outage is known, and comes back by
// itself; what it spent alone counts in the first window after the return.
func TestOutageLocalParts(t *testing.T) {
	const n, window = 20, time.Second
	f := newOutageFleet(t, 2, Config{Default: []Limit{Per(Requests, n, window)}})
	f.heard()
	live := Call{Key: "k", Model: "m", Cost: Cost{Requests: 1}}
	before, _ := f.flood(window/2, live)
	f.lose()
	went, longest := f.flood(3*window, live)
	if limit := defaultStoreTimeout; longest > limit {
		t.Errorf("longest call of a known outage took %v, want at most %v", longest, limit)
	}
	if got := most(append(before, went...), window); got > 2*n {
		t.Errorf("%d calls in the first window after the loss, want at most %d", got, 2*n)
	}
	var later []time.Time
	for _, at := range went {
		if at.Sub(went[0]) > window {
			later = append(later, at)
		}
	}
	if got := most(later, window); got > n || got < n/2 {
		t.Errorf("%d calls in a later window of the outage, want %d to %d", got, n/2, n)
	}
	if err := f.redis.Restart(); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	after, _ := f.flood(3*window, live)
	for i := range f.hosts {
		if f.hosts[i].outage.down.Load() {
			t.Errorf("host %d has not come back within %v", i, time.Since(back))
		}
	}
	if got := most(append(later, after...), window); got > n {
		t.Errorf("%d calls in a window around the return, want at most %d", got, n)
	}
}

// Promise 18: a process goes on from what it has spent already, and just after the
// outage keeps to its part as well, though the store has more.
func TestOutageBeginsAndEndsWithThePart(t *testing.T) {
	f := newOutageFleet(t, 2, Config{Default: []Limit{Per(Requests, 20, time.Hour)}})
	f.heard()
	a := f.hosts[0]
	take := func(model string, most int) (went int) {
		for range most {
			if _, err := a.Reserve(t.Context(), Call{Key: "k", Model: model, Cost: Cost{Requests: 1}}); err == nil {
				went++
			}
		}
		return went
	}
	if got := take("m", 8); got != 8 {
		t.Fatalf("%d of 8 calls went before the loss", got)
	}
	f.lose()
	if got := take("m", 10); got != 2 {
		t.Errorf("%d calls went in the outage, want the rest of the part of 10, which is 2", got)
	}
	if err := f.redis.Restart(); err != nil {
		t.Fatal(err)
	}
	f.until(5*time.Second, "the store is back", func() bool { return a.outage.over.Load() })
	if got := take("n", 20); got != 10 && a.outage.over.Load() {
		t.Errorf("%d calls went in the handover, want the part of 10", got)
	}
	f.until(5*time.Second, "the handover is over", func() bool { return !a.outage.over.Load() && !a.outage.down.Load() })
	if got := take("n", 20); got != 10 {
		t.Errorf("%d calls went after the handover, want the other 10", got)
	}
	s, err := f.hosts[1].Status(t.Context(), "k", "m")
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Models[0].Limits[0].Used; got != 2 { // Redis came back empty
		t.Errorf("the store has counted %d calls of the outage, want 2", got)
	}
}

// Promise 18: background work is deferred, and it says that it is an outage.
func TestOutageClosed(t *testing.T) {
	f := newOutageFleet(t, 1, Config{Default: []Limit{Per(Requests, 10, time.Second)}})
	f.heard()
	f.lose()
	_, err := f.hosts[0].Wait(t.Context(), Call{Key: "k", Model: "m", Lane: lanes.Background, Cost: Cost{Requests: 1}})
	var outage *OutageError
	if !errors.As(err, &outage) || !errors.Is(err, ErrDeferred) || errors.Is(err, ErrRefused) || errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want a deferring *OutageError", err)
	}
	if d, ok := RetryAfter(err); !ok || d <= 0 {
		t.Errorf("RetryAfter = %v, %v", d, ok)
	}
	s, err := f.hosts[0].Status(t.Context(), "k")
	if err != nil || s.Outage == nil || s.Outage.Cause == "" {
		t.Errorf("Status = %+v, %v, want it to tell of the outage", s, err)
	}
	if e := <-f.events; e.Kind != StoreLost || e.Err == nil {
		t.Errorf("event %+v, want StoreLost", e)
	}
	if err := f.redis.Restart(); err != nil {
		t.Fatal(err)
	}
	f.until(6*time.Second, "the store is back", func() bool { return !f.down() })
	if e := <-f.events; e.Kind != StoreBack {
		t.Errorf("event %+v, want StoreBack", e)
	}
	if s, err := f.hosts[0].Status(t.Context(), "k"); err != nil || s.Outage != nil {
		t.Errorf("Status after the return = %+v, %v", s, err)
	}
}

// Promise 18: a process that never saw the store is closed, unless it was told
// how many members there are; an open lane is not limited.
func TestOutageNeverSeen(t *testing.T) {
	for _, tc := range []struct {
		name    string
		members int
		lane    lanes.Lane
		want    int // of 20 calls under 10 a minute
	}{
		{"live, unknown fleet", 0, lanes.Live, 0},
		{"live, two members", 2, lanes.Live, 5},
		{"more members than units", 20, lanes.Live, 1},
		{"open", 0, lanes.Lane{Name: "open", Share: 1, Outage: lanes.Open}, 20},
		{"background made local", 2, lanes.Lane{Name: "b", Share: 0.6, Outage: lanes.Local}, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newOutageFleet(t, 1, Config{Default: []Limit{PerMinute(Requests, 10)}, Members: tc.members})
			f.redis.Kill()
			went := 0
			for range 20 {
				if _, err := f.hosts[0].Reserve(t.Context(), Call{Key: "k", Model: "m", Lane: tc.lane, Cost: Cost{Requests: 1}}); err == nil {
					went++
				}
			}
			if went != tc.want {
				t.Errorf("%d calls went, want %d", went, tc.want)
			}
		})
	}
}

// What a vendor says to a call of an open lane holds the others of its process,
// again after a pause that is over.
func TestOutageOpenReports(t *testing.T) {
	f := newOutageFleet(t, 1, Config{Default: []Limit{PerMinute(Requests, 100)}, Members: 1})
	f.redis.Kill()
	later := pause.Verdict{Class: pause.RateLimited, Scope: pause.Model, Hint: pause.Hint{Wait: 700 * time.Millisecond, Named: true}}
	open := Call{Key: "k", Model: "m", Lane: lanes.Lane{Name: "open", Share: 1, Outage: lanes.Open}, Cost: Cost{Requests: 1}}
	live := Call{Key: "k", Model: "m", Cost: Cost{Requests: 1}}
	for range 2 {
		r, err := f.hosts[0].Reserve(t.Context(), open)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Report(t.Context(), later); err != nil {
			t.Fatal(err)
		}
		if _, err := f.hosts[0].Reserve(t.Context(), live); !errors.Is(err, ErrRefused) {
			t.Errorf("a live call after the vendor said later: %v, want a refusal", err)
		}
		f.until(4*time.Second, "the pause is over", func() bool { _, err := f.hosts[0].Reserve(t.Context(), live); return err == nil })
	}
}

// A call that is larger than the part goes alone and takes windows to come.
func TestOutageLargeCall(t *testing.T) {
	f := newOutageFleet(t, 1, Config{Default: []Limit{Per(Tokens, 1000, time.Second)}, Members: 4})
	f.redis.Kill()
	call := func(n int64) error {
		_, err := f.hosts[0].Reserve(t.Context(), Call{Key: "k", Model: "m", Cost: Cost{Tokens: n}})
		return err
	}
	if err := call(750); err != nil { // three parts of 250
		t.Fatalf("a call of three parts: %v", err)
	}
	began := time.Now()
	f.until(10*time.Second, "the next call goes", func() bool { return call(250) == nil })
	if took := time.Since(began); took < 2900*time.Millisecond {
		t.Errorf("the next call went after %v, want three windows", took)
	}
}

// A pause that the store told of holds on, and one that a vendor asks for
// during the outage reaches the fleet after it.
func TestOutagePauses(t *testing.T) {
	f := newOutageFleet(t, 2, Config{Default: []Limit{Per(Requests, 100, time.Second)}})
	f.heard()
	a, b := f.hosts[0], f.hosts[1]
	if err := b.Pause(t.Context(), "k", "paused", time.Minute); err != nil {
		t.Fatal(err)
	}
	paused := Call{Key: "k", Model: "paused", Cost: Cost{Requests: 1}}
	if _, err := a.Reserve(t.Context(), paused); !errors.Is(err, ErrRefused) {
		t.Fatalf("before the outage: %v", err)
	}
	f.lose()
	var refused *RefusedError
	if _, err := a.Reserve(t.Context(), paused); !errors.As(err, &refused) || refused.Reason != ModelPaused {
		t.Errorf("a model that was paused before the outage: %v", err)
	}
	r, err := a.Reserve(t.Context(), Call{Key: "k", Model: "busy", Cost: Cost{Requests: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Report(t.Context(), pause.Verdict{Class: pause.RateLimited, Scope: pause.Model, Hint: pause.Hint{Wait: time.Minute, Named: true}}); err != nil {
		t.Fatal(err)
	}
	if err := f.redis.Restart(); err != nil {
		t.Fatal(err)
	}
	f.until(6*time.Second, "the store is back", func() bool { return !a.outage.down.Load() && !b.outage.down.Load() })
	for _, model := range []string{"busy", "paused"} {
		if _, err := b.Reserve(t.Context(), Call{Key: "k", Model: model, Cost: Cost{Requests: 1}}); !errors.As(err, &refused) || refused.Reason != ModelPaused {
			t.Errorf("the other host after the outage, model %s: %v", model, err)
		}
	}
}

// A Redis that hangs: the first calls end within the bound, later ones at once,
// and waiting calls go on by the part of their process.
func TestOutageHungStore(t *testing.T) {
	f := newOutageFleet(t, 2, Config{Default: []Limit{Per(Requests, 40, time.Second)}})
	f.heard()
	f.redis.Freeze()
	var longest atomic.Int64
	var wg sync.WaitGroup
	for _, l := range f.hosts {
		for range 50 {
			wg.Go(func() {
				began := time.Now()
				_, err := l.Reserve(t.Context(), Call{Key: "k", Model: "m", Cost: Cost{Requests: 1}})
				if err != nil && !errors.Is(err, ErrRefused) {
					t.Errorf("got %v", err)
				}
				longest.Store(max(longest.Load(), int64(time.Since(began))))
			})
		}
	}
	wg.Wait()
	if d := time.Duration(longest.Load()); d > 4*defaultStoreTimeout {
		t.Errorf("longest call took %v", d)
	}
	f.redis.Thaw()
	f.until(6*time.Second, "the store is back", func() bool { return !f.hosts[0].outage.down.Load() && !f.hosts[1].outage.down.Load() })
}

// In the handover a call is decided twice and told once.
func TestHandoverTellsOnce(t *testing.T) {
	f := newOutageFleet(t, 1, Config{Default: []Limit{PerMinute(Requests, 100), PerMinute(Tokens, 100)}, Members: 2})
	f.heard()
	f.lose()
	if err := f.redis.Restart(); err != nil {
		t.Fatal(err)
	}
	for e := range f.events {
		if e.Kind == StoreBack {
			break
		}
	}
	l := f.hosts[0]
	var admitted atomic.Int64
	l.config.OnEvent = func(e Event) {
		if e.Kind == Admitted {
			admitted.Add(1)
		}
	}
	for range 3 {
		if _, err := l.Reserve(t.Context(), Call{Key: "k", Model: "m", Cost: Cost{Requests: 1, Tokens: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	if !l.outage.over.Load() {
		t.Fatal("the handover was over too soon to be tested")
	}
	if got := admitted.Load(); got != 3 {
		t.Errorf("%d calls were told as admitted, want 3", got)
	}
}

// A call that waits for its part when the store comes back asks the store as
// well before it goes: the store must count it at once, not when the handover
// is over, or never.
func TestOutageEndsWhileACallWaits(t *testing.T) {
	f := newOutageFleet(t, 2, Config{Default: []Limit{Per(Requests, 2, 2*time.Second), Per(Tokens, 1000, time.Hour)}, Members: 2})
	a, b := f.hosts[0], f.hosts[1]
	f.lose()
	call := Call{Key: "key", Model: "m", Cost: Cost{Requests: 1, Tokens: 1}, MaxWait: 5 * time.Second}
	if _, err := a.Wait(t.Context(), call); err != nil { // all of its part
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := a.Wait(t.Context(), call)
		done <- err
	}()
	g, _ := a.find("key", "m")
	f.until(time.Second, "the second call waits", func() bool { return a.ownGroup(g).sleeping() == 1 })
	if err := f.redis.Restart(); err != nil {
		t.Fatal(err)
	}
	f.until(1900*time.Millisecond, "the store is back", func() bool { return !a.outage.down.Load() })
	select {
	case err := <-done:
		t.Fatalf("the second call ended with %v before its part was free", err)
	default:
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := used(t, b, "m")[Tokens]; got != 2 {
		t.Errorf("the store has counted %d calls, want both", got)
	}
}

// So does a call that found the outage, which may have been charged in it.
func TestOutageEndsWhileItsFinderWaits(t *testing.T) {
	f := newOutageFleet(t, 2, Config{Default: []Limit{Per(Requests, 2, 2*time.Second), Per(Tokens, 1000, time.Hour)}, Members: 2})
	a, b := f.hosts[0], f.hosts[1]
	call := Call{Key: "key", Model: "m", Cost: Cost{Requests: 1, Tokens: 1}, MaxWait: 5 * time.Second}
	if _, err := a.Wait(t.Context(), call); err != nil { // all of its part
		t.Fatal(err)
	}
	f.redis.Kill()
	done := make(chan error)
	go func() {
		_, err := a.Wait(t.Context(), call)
		done <- err
	}()
	g, _ := a.find("key", "m")
	f.until(time.Second, "the second call waits", func() bool { return a.ownGroup(g).sleeping() == 1 })
	if err := f.redis.Restart(); err != nil { // empty
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := used(t, b, "m")[Tokens]; got != 1 {
		t.Errorf("the store has counted %d calls, want the one that went after its return", got)
	}
}

// A "later" is not lost between two stores: neither of a call that the store
// admitted when its answer comes during an outage, nor of one that went alone
// when its answer comes after it.
func TestOutageReports(t *testing.T) {
	f := newOutageFleet(t, 2, Config{Default: []Limit{Per(Requests, 100, time.Second)}})
	f.heard()
	a, b := f.hosts[0], f.hosts[1]
	of := func(model string) Call { return Call{Key: "k", Model: model, Cost: Cost{Requests: 1}} }
	admit := func(model string) *Reservation {
		t.Helper()
		r, err := a.Reserve(t.Context(), of(model))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	later := pause.Verdict{Class: pause.RateLimited, Scope: pause.Model, Hint: pause.Hint{Wait: time.Minute, Named: true}}
	held := func(l *Limiter, model string) bool {
		var refused *RefusedError
		_, err := l.Reserve(t.Context(), of(model))
		return errors.As(err, &refused) && refused.Reason == ModelPaused
	}
	before := admit("before")
	f.lose()
	during := admit("during")
	_ = before.Report(t.Context(), later) // the store is away: it says so
	if !held(a, "before") {
		t.Error("the answer to a call from before the outage does not hold its model during it")
	}
	if err := f.redis.Restart(); err != nil {
		t.Fatal(err)
	}
	f.until(6*time.Second, "the store is back", func() bool { return !a.outage.down.Load() && !b.outage.down.Load() })
	if err := during.Report(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	if !held(b, "during") {
		t.Error("the answer to a call from the outage does not hold its model after it")
	}
	f.until(time.Second, "the first pause reaches the other host", func() bool { return held(b, "before") })
}

// Processes that start together, as a deploy has them, know of each other soon:
// an outage must not find each thinking that it is alone.
func TestFleetIsHeardSoon(t *testing.T) {
	f := newOutageFleet(t, 3, Config{Default: []Limit{PerMinute(Requests, 1000)}})
	for _, l := range f.hosts {
		if _, err := l.Reserve(t.Context(), Call{Key: "k", Model: "m", Cost: Cost{Requests: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	f.until(2*time.Second, "every host has heard of the others", func() bool {
		for _, l := range f.hosts {
			g, _ := l.find("k", "")
			if g.members.Load() != 3 {
				return false
			}
		}
		return true
	})
}

// lateClient is a Redis that carries out scripts at once and answers late, not
// before the test lets it.
type lateClient struct {
	*redis.Client
	hold atomic.Pointer[chan struct{}] // nil: answers pass
	lose atomic.Bool                   // the next answer never comes
}

func (c *lateClient) Process(ctx context.Context, cmd redis.Cmder) error {
	err := c.Client.Process(ctx, cmd)
	if hold := c.hold.Load(); hold != nil && cmd.Args()[2] != 2 { // fleet.lua has two keys
		<-*hold
	}
	if cmd.Args()[2] != 2 && c.lose.CompareAndSwap(true, false) {
		err = io.ErrUnexpectedEOF
		cmd.SetErr(err)
	}
	return err
}

// A call that went by its part since its answer was late is charged once: where
// the late answer admits it, that stands; where it was never asked, it is owed.
func TestOutageLateAnswerStands(t *testing.T) {
	s, err := redistest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	client := &lateClient{Client: s.Client()}
	defer client.Close()
	plain := s.Client()
	defer plain.Close()
	c := models(Per(Requests, 1000, time.Hour))
	c.Members, c.StoreTimeout, c.Redis = 2, 250*time.Millisecond, client
	l := newLimiter(t, c)
	c.Redis = plain
	other := newLimiter(t, c)
	reserve(t, l, call())

	hold := make(chan struct{})
	client.hold.Store(&hold)
	var calls sync.WaitGroup
	for range 3 { // one rides, two are queued
		calls.Go(func() {
			if _, err := l.Reserve(t.Context(), call()); err != nil {
				t.Errorf("Reserve() = %v, want it to go by its part", err)
			}
		})
	}
	calls.Wait()
	client.hold.Store(nil)
	close(hold)
	eventually(t, "the outage is over", func() bool { return !l.outage.down.Load() && !l.outage.over.Load() })
	if got := used(t, other, "m")[Requests]; got != 4 {
		t.Errorf("used = %d, want each of 4 calls charged once", got)
	}
}

// A call whose answer was lost and that waits for its part then goes at another
// time than it may have been charged at, so it is asked for again.
func TestOutageLostAnswerAges(t *testing.T) {
	s, err := redistest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	client := &lateClient{Client: s.Client()}
	defer client.Close()
	plain := s.Client()
	defer plain.Close()
	c := models(Per(Requests, 2, time.Second), Per(Tokens, 1000, time.Hour))
	c.Members, c.StoreTimeout, c.Redis = 2, 250*time.Millisecond, client
	l := newLimiter(t, c)
	c.Redis = plain
	other := newLimiter(t, c)
	k := call()
	k.Cost[Tokens] = 1
	reserve(t, l, k) // all of its part
	client.lose.Store(true)
	began := time.Now()
	k.MaxWait = 4 * time.Second
	if _, err := l.Wait(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	if waited := time.Since(began); waited < 500*time.Millisecond {
		t.Fatalf("it went after %v, before its part was free", waited)
	}
	if got := used(t, other, "m")[Tokens]; got != 3 {
		t.Errorf("used = %d, want the first call, the answer that was lost, and the call that went", got)
	}
}
