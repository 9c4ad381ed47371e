// Package chaostest holds tests of hosts that die or stand still, vendors that
// lie, callers that misbehave, and people who look where they should not: on a
// real Redis, with limiters or processes that stand for hosts.
package chaostest

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/redistest"
	"github.com/headway-go/headway/lua"
	"github.com/headway-go/headway/throttle"
	"github.com/redis/go-redis/v9"
)

const ms = time.Millisecond

// server is the private Redis of this test binary.
var server *redistest.Server

func TestMain(m *testing.M) {
	if text := os.Getenv(errandEnv); text != "" {
		os.Exit(runErrand(text))
	}
	os.Exit(redistest.Run(m, func(s *redistest.Server) { server = s }))
}

// prefixOf is a prefix for this run of the test.
func prefixOf(t *testing.T) string { return "c:" + t.Name() + ":" + rand.Text()[:8] }

// newHost is a limiter with a Redis client of its own. When the test ends, every
// key under its prefix must have an expiry.
func newHost(t *testing.T, c throttle.Config) *throttle.Limiter {
	t.Helper()
	if c.Redis == nil {
		client := server.Client()
		t.Cleanup(func() { client.Close() })
		c.Redis = client
	}
	if c.StoreTimeout == 0 {
		c.StoreTimeout = 5 * time.Second // a busy machine is not an outage
	}
	l, err := throttle.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		checkExpiry(t, c.Prefix)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return l
}

// newPair is two hosts of one fleet under a prefix of their own.
func newPair(t *testing.T, c throttle.Config) (a, b *throttle.Limiter) {
	t.Helper()
	if c.Prefix == "" {
		c.Prefix = prefixOf(t)
	}
	return newHost(t, c), newHost(t, c)
}

// keysUnder lists what a fleet has in Redis, without its list of processes.
func keysUnder(t *testing.T, prefix string) (keys []string) {
	t.Helper()
	db := server.Client()
	defer db.Close()
	it := db.Scan(context.Background(), 0, "*", 1000).Iterator()
	for it.Next(context.Background()) {
		k := it.Val()
		if strings.HasPrefix(k, prefix) && !strings.HasSuffix(k, "}:f") && !strings.HasSuffix(k, "}:f:reports") {
			keys = append(keys, k)
		}
	}
	if err := it.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func checkExpiry(t *testing.T, prefix string) {
	t.Helper()
	db := server.Client()
	defer db.Close()
	for _, k := range keysUnder(t, prefix) {
		if ttl := db.PTTL(context.Background(), k).Val(); ttl <= 0 && ttl != -2 { // -2: gone meanwhile
			t.Errorf("key %q has expiry %v, want one above zero", k, ttl)
		}
	}
}

// contents is what is stored of one model of a key, by name of the Redis key.
func contents(t *testing.T, prefix, key, model string) map[string]string {
	t.Helper()
	db := server.Client()
	defer db.Close()
	all := map[string]string{}
	scope := lua.NewNames(prefix, key).Model(model)
	for _, k := range keysUnder(t, prefix) {
		if k == scope || strings.HasPrefix(k, scope+":") {
			all[k] = db.Dump(t.Context(), k).Val()
		}
	}
	return all
}

// one is a call of one request.
func one(key, model string) throttle.Call {
	return throttle.Call{Key: key, Model: model, Cost: throttle.Cost{throttle.Requests: 1}}
}

func reserve(t *testing.T, l *throttle.Limiter, c throttle.Call) *throttle.Reservation {
	t.Helper()
	r, err := l.Reserve(t.Context(), c)
	if err != nil {
		t.Fatalf("Reserve(%.200v) = %.200v", c, err)
	}
	return r
}

func refuse(t *testing.T, l *throttle.Limiter, c throttle.Call) *throttle.RefusedError {
	t.Helper()
	_, err := l.Reserve(t.Context(), c)
	e, ok := errors.AsType[*throttle.RefusedError](err)
	if !ok {
		t.Fatalf("got error %v, want a refusal", err)
	}
	return e
}

// modelStatus is what the fleet knows of one model.
func modelStatus(t *testing.T, l *throttle.Limiter, key, model string) throttle.ModelStatus {
	t.Helper()
	s, err := l.Status(t.Context(), key, model)
	if err != nil {
		t.Fatal(err)
	}
	return s.Models[0]
}

// used is what is taken of the limit of the model that counts the unit.
func used(t *testing.T, l *throttle.Limiter, key, model, unit string) int64 {
	t.Helper()
	for _, limit := range modelStatus(t, l, key, model).Limits {
		if limit.Unit == unit {
			return limit.Used
		}
	}
	t.Fatalf("no limit counts %q", unit)
	return 0
}

// eventually waits until ok, at most for a generous time.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	within(t, 15*time.Second, what, ok)
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

// noLeaks returns a check that all goroutines since are gone.
func noLeaks(t *testing.T) func() {
	before := runtime.NumGoroutine()
	return func() {
		t.Helper()
		eventually(t, "goroutines are back to base", func() bool { return runtime.NumGoroutine() <= before })
	}
}

// log gathers what is told to it. It is an io.Writer.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// most is the largest number of moments in a half-open window.
func most(at []time.Time, window time.Duration) (n int) {
	slices.SortFunc(at, time.Time.Compare)
	for i, first := range at {
		j := i
		for j < len(at) && at[j].Before(first.Add(window)) {
			j++
		}
		n = max(n, j-i)
	}
	return n
}

// redisAt is a client of an address, as a user would make it.
func redisAt(addr string) *redis.Client { return redis.NewClient(&redis.Options{Addr: addr}) }
