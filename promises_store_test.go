package headway_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/redistest"
	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
	"github.com/redis/go-redis/v9"
)

// everything makes a fleet use all that it can keep in Redis for one key: tapes
// of every shape, a line, pauses, a probe, a settlement.
func (f *fleet) everything(t *testing.T, key, model string) {
	t.Helper()
	c := throttle.Call{Key: key, Model: model, Cost: throttle.Cost{throttle.Requests: 1, "fixed": 2, "bucket": 3}}
	soon := func(h *host, c throttle.Call) (r *throttle.Reservation) { // after a pause there is not room for all at once
		t.Helper()
		eventually(t, "there is room", func() bool {
			var err error
			r, err = h.Reserve(t.Context(), c)
			return err == nil
		})
		return r
	}
	first := soon(f.a, c)
	soon(f.b, by(c, lanes.Background, 0))
	ends := make(chan ended, 1)
	for err := error(nil); err == nil; { // fill the limit of a moment
		_, err = f.a.Reserve(t.Context(), c)
	}
	begin(t.Context(), f.b, by(c, patient, 0), 0, ends)
	if e := <-ends; e.err != nil {
		t.Fatal(e.err)
	}
	if err := first.Settle(t.Context(), throttle.Cost{"fixed": 1, "bucket": 9}); err != nil {
		t.Fatal(err)
	}
	last := soon(f.b, c)
	report(t, last, later(50*ms))
	report(t, last, pause.Verdict{Class: pause.KeyRefused})
	last = soon(f.a, c)
	if !last.Probe() {
		t.Error("the first call after the pause is not the probe")
	}
	report(t, last, pause.Verdict{})
	if s, _ := f.b.status(t, key, model); s.State.Phase != pause.Running {
		t.Errorf("the key is %+v, want it open", s.State)
	}
}

// all is the configuration for everything.
func all() throttle.Config {
	fixed, bucket, lane := throttle.Per("fixed", 10_000, time.Minute), throttle.Per("bucket", 10_000, time.Minute), throttle.PerDay(throttle.Requests, 1000)
	fixed.Shape, bucket.Shape, bucket.Burst, lane.Lane = throttle.Fixed, throttle.Bucket, 1000, "background"
	return throttle.Config{
		Key:     []throttle.Limit{throttle.PerMinute(throttle.Requests, 10_000)},
		Default: []throttle.Limit{throttle.Per(throttle.Requests, 8, 200*ms), fixed, bucket, lane},
		Policy:  pause.Policy{Refused: 100 * ms},
	}
}

// Promise 19: no key without an expiry, and keys bounded in length and number,
// also for hostile names.
func TestPromise19_EveryKeyExpiresAndIsBounded(t *testing.T) {
	t.Parallel()
	f := newFleet(t, all())
	f.everything(t, "key", "m")
	perModel := len(f.keys(t))
	if perModel < 8 {
		t.Fatalf("a model left %d keys, %q, want those of everything", perModel, f.keys(t))
	}
	life := 24*time.Hour*2 + time.Hour // the longest window, twice
	for _, k := range scan(t, f.db, f.prefix) {
		if ttl := f.db.PTTL(t.Context(), k).Val(); ttl <= 0 && ttl != -2 || ttl > life {
			t.Errorf("key %q has expiry %v, want at most %v", k, ttl, life)
		}
	}

	longest := len(f.names("key").Key()) + 160 // prefix and fingerprint; the names of a model, a unit and a window
	for _, name := range []string{
		"", strings.Repeat("x", 100<<10), "\x00\r\n\x1b[31m", "{other}", "}{", "a b*?[c]", "k", "m:m", "f", "#", "ｍ", "m:line", "\xff\xfe",
	} {
		t.Run(fmt.Sprintf("%.20q", name), func(t *testing.T) {
			before := map[string]bool{}
			for _, k := range f.keys(t) {
				before[k] = true
			}
			f.everything(t, "key", name)
			added := 0
			for _, k := range f.keys(t) {
				if len(k) > longest {
					t.Errorf("a key of %d bytes: %.200q", len(k), k)
				}
				if strings.Count(k, "{") != 1 || strings.Count(k, "}") != 1 {
					t.Errorf("key %q has more than one hash tag", k)
				}
				if !before[k] {
					added++
				}
			}
			if added == 0 || added > perModel {
				t.Errorf("the model added %d keys, want its own, at most %d", added, perModel)
			}
		})
	}

	// Hundreds of names over the wire, which come from request bodies.
	w := newWire(t, all(), vendorsim.Config{})
	for i := range 50 {
		w.send(t, ask{host: i, body: fmt.Sprintf(`{"model":"%s%d"}`, strings.Repeat(`\u0001{`, 500), i)}.now())
	}
	for _, k := range scan(t, w.db, w.prefix) {
		if len(k) > len(w.prefix)+32+160 {
			t.Errorf("a key of %d bytes: %.200q", len(k), k)
		}
	}
}

// Promise 21: all state of one fingerprint is in one slot, and every key is
// declared, so that Redis Cluster works (S21).
func TestPromise21_OneSlot(t *testing.T) {
	t.Parallel()
	s, err := redistest.Start("--cluster-enabled", "yes", "--cluster-port", freePort(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	db := s.Client()
	t.Cleanup(func() { db.Close() })
	if err := db.Do(t.Context(), "cluster", "addslotsrange", 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the cluster is up", func() bool {
		return strings.Contains(db.ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	})
	c := all()
	c.Prefix = "p:cluster"
	f := &fleet{db: db, prefix: c.Prefix}
	node := func() *redis.ClusterClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.Addr}})
	}
	f.a, f.b = newHost(t, node(), c), newHost(t, node(), c)
	f.a.tap.record()
	f.b.tap.record()
	slots := map[int64]bool{}
	for _, key := range []string{"key", "4f9c1f2a", "}{", "a key"} {
		f.everything(t, key, "{m}")
		slots[db.ClusterKeySlot(t.Context(), f.names(key).Key()).Val()] = true
	}
	if len(slots) != 4 {
		t.Errorf("four keys lie in %d slots, want each in its own", len(slots))
	}

	declared := map[string]bool{}
	for _, cmd := range append(f.a.tap.recorded(), f.b.tap.recorded()...) {
		keys := keysOf(cmd.args)
		for _, k := range keys {
			declared[k] = true
			if got, want := db.ClusterKeySlot(t.Context(), k).Val(), db.ClusterKeySlot(t.Context(), keys[0]).Val(); got != want {
				t.Errorf("one command names %q of slot %d and %q of slot %d", keys[0], want, k, got)
			}
		}
	}
	left := scan(t, db, "")
	if len(left) < 4*8 {
		t.Errorf("%d keys are left, want those of 4 keys", len(left))
	}
	for _, k := range left {
		if !declared[k] {
			t.Errorf("key %q was written and never declared", k)
		}
		if ttl := db.PTTL(t.Context(), k).Val(); ttl <= 0 && ttl != -2 {
			t.Errorf("key %q has expiry %v", k, ttl)
		}
	}
}

// Promise 22: numbers are whole and exact up to 2^53-1 in both stores (S26).
func TestPromise22_NumbersAreExact(t *testing.T) {
	t.Parallel()
	shapes := func(n int64) (limits []throttle.Limit) {
		for _, s := range []throttle.Shape{throttle.Sliding, throttle.Fixed, throttle.Bucket} {
			l := throttle.Per(s.String(), n, 9600*time.Hour)
			if l.Shape = s; s == throttle.Bucket {
				l.Burst = n
			}
			limits = append(limits, l)
		}
		return limits
	}
	for _, n := range []int64{999_999, 1e6, 1e14, 1e15 + 1, 1<<53 - 2, 1<<53 - 1} {
		for _, store := range []string{"redis", "memory"} {
			t.Run(fmt.Sprintf("%d in %s", n, store), func(t *testing.T) {
				t.Parallel()
				f := &fleet{}
				if store == "redis" {
					f = newFleet(t, models(shapes(n)...))
				} else {
					c := models(shapes(n)...)
					c.Memory = throttle.NewMemory()
					f.a, f.b = &host{Limiter: newLimiter(t, c)}, &host{Limiter: newLimiter(t, c)}
				}
				for _, unit := range []string{"sliding", "fixed", "bucket"} {
					c := func(units int64) throttle.Call {
						cost := throttle.Cost{"sliding": 0, "fixed": 0, "bucket": 0}
						cost[unit] = units
						return throttle.Call{Key: "key", Model: "m", Cost: cost}
					}
					want := func(units int64) {
						t.Helper()
						if got := f.b.used(t, c(0), unit); got != units {
							t.Fatalf("%s: used = %d, want %d", unit, got, units)
						}
					}
					first := reserve(t, f.a, c(n-5))
					want(n - 5)
					refuse(t, f.b, c(6))
					reserve(t, f.b, c(5))
					want(n)
					refuse(t, f.a, c(1))
					if err := first.Settle(t.Context(), throttle.Cost{unit: n - 8}); err != nil {
						t.Fatal(err)
					}
					want(n - 3)
					refuse(t, f.b, c(4))
					reserve(t, f.b, c(3))
					want(n)
				}
				for _, bad := range []int64{-1, 1 << 53, -1 << 63} {
					k := call()
					k.Cost = throttle.Cost{"sliding": bad, "fixed": 1, "bucket": 1}
					if _, err := f.a.Reserve(t.Context(), k); !errors.Is(err, throttle.ErrInvalid) {
						t.Errorf("a cost of %d: %v, want it invalid", bad, err)
					}
				}
			})
		}
	}
	if _, err := throttle.New(models(throttle.PerMinute("units", 1<<53))); err == nil {
		t.Error("a limit of 2^53 was taken")
	}
}
