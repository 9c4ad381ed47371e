package throttle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/pause"
	"github.com/redis/go-redis/v9"
)

// pair is two limiters on one store, which stand for two hosts.
type pair struct {
	a, b   *Limiter
	redis  *redis.Client // nil when the store is memory
	prefix string
	events *recorder
}

// onBoth runs a test of the public interface on both stores.
func onBoth(t *testing.T, c Config, test func(t *testing.T, p *pair)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		c := c
		c.Memory, c.StoreTimeout = NewMemory(), 5*time.Second // a busy machine is not an outage
		test(t, newPair(t, c, c))
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		onRedis(t, c, test)
	})
}

func onRedis(t *testing.T, c Config, test func(t *testing.T, p *pair)) {
	t.Helper()
	client := server.Client()
	t.Cleanup(func() { client.Close() })
	c.Prefix = prefix(t)
	if c.StoreTimeout == 0 {
		c.StoreTimeout = 5 * time.Second // a busy machine is not an outage
	}
	first, second := c, c
	first.Redis, second.Redis = server.Client(), server.Client()
	t.Cleanup(func() {
		first.Redis.(*redis.Client).Close()
		second.Redis.(*redis.Client).Close()
	})
	p := newPair(t, first, second)
	p.redis, p.prefix = client, c.Prefix
	t.Cleanup(func() { p.checkExpiry(t) }) // before the limiters close
	test(t, p)
}

// prefix begins the keys of this run of the test, and of no other.
func prefix(t *testing.T) string {
	return fmt.Sprintf("%s.%d", strings.NewReplacer("/", ".", "{", "", "}", "").Replace(t.Name()), time.Now().UnixNano())
}

func newPair(t *testing.T, a, b Config) *pair {
	p := &pair{events: &recorder{}}
	a.OnEvent, b.OnEvent = p.events.add, p.events.add
	p.a, p.b = newLimiter(t, a), newLimiter(t, b)
	return p
}

func newLimiter(t *testing.T, c Config) *Limiter {
	t.Helper()
	l, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return l
}

// each returns the limiter of the i-th call: they take turns.
func (p *pair) each(i int) *Limiter {
	if i%2 == 0 {
		return p.a
	}
	return p.b
}

// keys lists what the test left in Redis.
func (p *pair) keys(t *testing.T) (keys []string) {
	t.Helper()
	scan := p.redis.Scan(context.Background(), 0, p.prefix+":*", 1000).Iterator()
	for scan.Next(context.Background()) {
		keys = append(keys, scan.Val())
	}
	if err := scan.Err(); err != nil {
		t.Fatal(err)
	}
	return keys
}

// checkExpiry keeps S20: no key without an expiry.
func (p *pair) checkExpiry(t *testing.T) {
	for _, k := range p.keys(t) {
		if ttl := p.redis.PTTL(context.Background(), k).Val(); ttl <= 0 && ttl != -2 { // -2: gone meanwhile
			t.Errorf("key %s has expiry %v, want one above zero", k, ttl)
		}
	}
}

// recorder keeps the events of a fleet.
type recorder struct {
	mu     sync.Mutex
	events []Event
}

func (r *recorder) add(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) count(k EventKind) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Kind == k {
			n++
		}
	}
	return n
}

// call is a call of one request to the model "m".
func call() Call { return Call{Key: "key", Model: "m", Cost: Cost{Requests: 1}} }

// closedCall is a live call that does not go on alone while the store is away.
func closedCall() Call {
	c := call()
	c.Lane = lanes.Lane{Name: "live", Share: 1, MaxWait: 5 * time.Second, Outage: lanes.Closed}
	return c
}

// models limits the model "m".
func models(limits ...Limit) Config { return Config{Models: map[string][]Limit{"m": limits}} }

func reserve(t *testing.T, l *Limiter, c Call) *Reservation {
	t.Helper()
	r, err := l.Reserve(t.Context(), c)
	if err != nil {
		t.Fatalf("Reserve(%+v) = %v", c, err)
	}
	return r
}

func refuse(t *testing.T, l *Limiter, c Call) *RefusedError {
	t.Helper()
	_, err := l.Reserve(t.Context(), c)
	return refusal(t, err)
}

func refusal(t *testing.T, err error) *RefusedError {
	t.Helper()
	e, ok := errors.AsType[*RefusedError](err)
	if !ok {
		t.Fatalf("got error %v, want a refusal", err)
	}
	return e
}

// used reads what is taken of the limits of a model, by unit.
func used(t *testing.T, l *Limiter, model string) map[string]int64 {
	t.Helper()
	s, err := l.Status(t.Context(), "key", model)
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]int64{}
	for _, x := range s.Models[0].Limits {
		n[x.Unit] = x.Used
	}
	return n
}

func model(t *testing.T, l *Limiter, name string) ModelStatus {
	t.Helper()
	s, err := l.Status(t.Context(), "key", name)
	if err != nil {
		t.Fatal(err)
	}
	return s.Models[0]
}

func report(t *testing.T, r *Reservation, v pause.Verdict) {
	t.Helper()
	if err := r.Report(t.Context(), v); err != nil {
		t.Fatal(err)
	}
}

// later is a rate limit that names a wait.
func later(d time.Duration) pause.Verdict {
	return pause.Verdict{Class: pause.RateLimited, Scope: pause.Model, Hint: pause.Hint{Wait: d, Named: true}}
}

var (
	keyRefused  = pause.Verdict{Class: pause.KeyRefused, Scope: pause.Key}
	overloaded  = pause.Verdict{Class: pause.Overloaded, Scope: pause.Model}
	serverError = pause.Verdict{Class: pause.ServerError}
)

// eventually waits until ok, at most for a generous time.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("never: %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// pass lets real time go by: the stores have clocks of their own.
func pass(d time.Duration) { <-time.After(d) }

// waiting is the number of calls in line for the model "m".
func (p *pair) waiting(t *testing.T) int { return model(t, p.a, "m").Waiting }

// outcome is how one of many calls ended.
type ended struct {
	i   int
	r   *Reservation
	err error
	at  time.Time
}

// start makes a call in the background; its end arrives on the channel.
func start(ctx context.Context, l *Limiter, c Call, i int, to chan<- ended) {
	go func() {
		r, err := l.Wait(ctx, c)
		to <- ended{i, r, err, time.Now()}
	}()
}
