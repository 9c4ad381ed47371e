// Package headway_test keeps the promises of docs/promises.md end to end: on a
// real Redis, with two limiters that stand for two hosts, and over the wire to a
// loopback vendor wherever the wire is part of the promise.
package headway_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/redistest"
	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/lua"
	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
	"github.com/redis/go-redis/v9"
)

const ms = time.Millisecond

// server is the private Redis of this test binary.
var server *redistest.Server

func TestMain(m *testing.M) {
	if order := os.Getenv(proberEnv); order != "" {
		os.Exit(prober(order))
	}
	os.Exit(redistest.Run(m, func(s *redistest.Server) { server = s }))
}

// host is one host of a fleet: a limiter with a Redis client of its own.
type host struct {
	*throttle.Limiter
	tap  *tap
	news *news
}

// fleet is two hosts that share a Redis.
type fleet struct {
	a, b   *host
	db     *redis.Client // reads what the fleet left
	prefix string
}

// newFleet starts a fleet on the test binary's Redis, under a prefix that no
// other test has. When the test ends, every key must have an expiry (promise 19).
func newFleet(t *testing.T, c throttle.Config) *fleet {
	t.Helper()
	f := &fleet{db: server.Client(), prefix: prefixOf(t)}
	t.Cleanup(func() { f.db.Close() })
	c.Prefix = f.prefix
	f.a, f.b = newHost(t, server.Client(), c), newHost(t, server.Client(), c)
	t.Cleanup(func() { f.checkExpiry(t) }) // before the hosts close
	return f
}

// prefixOf is a prefix for this run of the test.
func prefixOf(t *testing.T) string { return "p:" + t.Name() + ":" + rand.Text()[:8] }

// client is what a host needs of go-redis' clients.
type client interface {
	throttle.RedisClient
	AddHook(redis.Hook)
	Close() error
}

func newHost(t *testing.T, client client, c throttle.Config) *host {
	t.Helper()
	t.Cleanup(func() { client.Close() })
	h := &host{tap: &tap{}, news: &news{}}
	client.AddHook(h.tap)
	c.Redis, c.OnEvent = client, h.news.add
	h.Limiter = newLimiter(t, c)
	return h
}

func newLimiter(t *testing.T, c throttle.Config) *throttle.Limiter {
	t.Helper()
	if c.StoreTimeout == 0 {
		c.StoreTimeout = 5 * time.Second // a busy machine is not an outage
	}
	l, err := throttle.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return l
}

// each returns the host of the i-th call: they take turns.
func (f *fleet) each(i int) *host { return []*host{f.a, f.b}[i%2] }

// keys lists what the fleet left in Redis, without its list of processes.
func (f *fleet) keys(t *testing.T) (keys []string) {
	t.Helper()
	for _, k := range scan(t, f.db, f.prefix) {
		if !strings.HasSuffix(k, "}:f") && !strings.HasSuffix(k, "}:f:reports") {
			keys = append(keys, k)
		}
	}
	return keys
}

// scan lists all keys that begin with prefix.
func scan(t *testing.T, db redis.Cmdable, prefix string) (keys []string) {
	t.Helper()
	it := db.Scan(context.Background(), 0, "*", 1000).Iterator()
	for it.Next(context.Background()) {
		if strings.HasPrefix(it.Val(), prefix) {
			keys = append(keys, it.Val())
		}
	}
	if err := it.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func (f *fleet) checkExpiry(t *testing.T) {
	for _, k := range scan(t, f.db, f.prefix) {
		if ttl := f.db.PTTL(context.Background(), k).Val(); ttl <= 0 && ttl != -2 { // -2: gone meanwhile
			t.Errorf("key %q has expiry %v, want one above zero", k, ttl)
		}
	}
}

// image is everything that the fleet has in Redis, expiries included.
func (f *fleet) image(t *testing.T) map[string]string {
	t.Helper()
	image := map[string]string{}
	for _, k := range f.keys(t) {
		dump, err := f.db.Dump(t.Context(), k).Result()
		if err != nil {
			t.Fatal(err)
		}
		image[k] = dump + " until " + f.db.PExpireTime(t.Context(), k).Val().String()
	}
	return image
}

// now is the store's clock.
func (f *fleet) now(t *testing.T) time.Time {
	t.Helper()
	now, err := f.db.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// status reads the state of a key and one model of it.
func (h *host) status(t *testing.T, key, model string) (throttle.Status, throttle.ModelStatus) {
	t.Helper()
	s, err := h.Status(t.Context(), key, model)
	if err != nil {
		t.Fatal(err)
	}
	return s, s.Models[0]
}

// used is what is taken of the one limit of "m" that counts the unit.
func (h *host) used(t *testing.T, c throttle.Call, unit string) int64 {
	t.Helper()
	_, m := h.status(t, c.Key, c.Model)
	for _, l := range m.Limits {
		if l.Unit == unit {
			return l.Used
		}
	}
	t.Fatalf("no limit counts %q", unit)
	return 0
}

func (h *host) waiting(t *testing.T) int {
	t.Helper()
	_, m := h.status(t, "key", "m")
	return m.Waiting
}

// call is a call of one request to the model "m".
func call() throttle.Call {
	return throttle.Call{Key: "key", Model: "m", Cost: throttle.Cost{throttle.Requests: 1}}
}

// costing is a call of n tokens to the model "m".
func costing(n int64) throttle.Call {
	return throttle.Call{Key: "key", Model: "m", Cost: throttle.Cost{throttle.Tokens: n}}
}

// by returns the call in a lane, with a longest wait of its own.
func by(c throttle.Call, lane lanes.Lane, wait time.Duration) throttle.Call {
	c.Lane, c.MaxWait = lane, wait
	return c
}

// models limits the model "m".
func models(limits ...throttle.Limit) throttle.Config {
	return throttle.Config{Models: map[string][]throttle.Limit{"m": limits}}
}

func reserve(t *testing.T, h *host, c throttle.Call) *throttle.Reservation {
	t.Helper()
	r, err := h.Reserve(t.Context(), c)
	if err != nil {
		t.Fatalf("Reserve(%+v) = %v", c, err)
	}
	return r
}

func refuse(t *testing.T, h *host, c throttle.Call) *throttle.RefusedError {
	t.Helper()
	_, err := h.Reserve(t.Context(), c)
	return refusal(t, err)
}

func refusal(t *testing.T, err error) *throttle.RefusedError {
	t.Helper()
	e, ok := errors.AsType[*throttle.RefusedError](err)
	if !ok {
		t.Fatalf("got error %v, want a refusal", err)
	}
	return e
}

func report(t *testing.T, r *throttle.Reservation, v pause.Verdict) {
	t.Helper()
	if err := r.Report(t.Context(), v); err != nil {
		t.Fatal(err)
	}
}

// later is a rate limit that names a wait.
func later(d time.Duration) pause.Verdict {
	return pause.Verdict{Class: pause.RateLimited, Scope: pause.Model, Hint: pause.Hint{Wait: d, Named: true}}
}

// ended is how one of many calls ended.
type ended struct {
	i   int
	r   *throttle.Reservation
	err error
	at  time.Time
}

// begin makes a call that may wait; its end arrives on the channel.
func begin(ctx context.Context, h *host, c throttle.Call, i int, to chan<- ended) {
	go func() {
		r, err := h.Wait(ctx, c)
		to <- ended{i, r, err, time.Now()}
	}()
}

// eventually waits until ok, at most for a generous time.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	within(t, 10*time.Second, what, ok)
}

func within(t *testing.T, d time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(d)
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("not within %v: %s", d, what)
		case <-time.After(2 * ms):
		}
	}
}

// pass lets real time go by: Redis has a clock of its own.
func pass(d time.Duration) { <-time.After(d) }

// news keeps the events of a host.
type news struct {
	mu     sync.Mutex
	events []throttle.Event
}

func (n *news) add(e throttle.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, e)
}

func (n *news) all() []throttle.Event {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.events)
}

// told counts the events of a kind on both hosts.
func (f *fleet) told(k throttle.EventKind) (n int) {
	for _, e := range append(f.a.news.all(), f.b.news.all()...) {
		if e.Kind == k {
			n++
		}
	}
	return n
}

// names are the keys in Redis of a vendor key of the fleet.
func (f *fleet) names(key string) lua.Names { return lua.NewNames(f.prefix, key) }
