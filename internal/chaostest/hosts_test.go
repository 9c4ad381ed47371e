package chaostest

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
)

// errandKey is the fingerprint under which the errands to this vendor count.
func errandKey(t *testing.T, vendor string) string {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, vendor+"/v1/chat/completions", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+apiKey)
	key, err := new(transport.Transport).Fingerprint(req)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A process that is killed while it waits in line loses its place about two
// seconds after its time. Those behind it go on, and it is charged nothing.
func TestKilledWhileItWaits(t *testing.T) {
	t.Parallel()
	const window = 1500 * ms
	limits := []throttle.Limit{throttle.Per(throttle.Requests, 2, window)}
	prefix := prefixOf(t)
	b := newHost(t, throttle.Config{Prefix: prefix, Default: limits})
	vendor := vendorsim.Run(t, vendorsim.Config{})
	key := errandKey(t, vendor.URL())
	c := one(key, "m")
	c.MaxWait = time.Minute
	reserve(t, b, c)
	reserve(t, b, c)
	dead := send(t, errand{Prefix: prefix, Vendor: vendor.URL(), Model: "m", Limits: limits, Wait: time.Minute})
	eventually(t, "the process waits in line", func() bool { return modelStatus(t, b, key, "m").Waiting == 1 })
	dead.kill()
	killed := time.Now()

	var mu sync.Mutex
	var at []time.Time
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			r, err := b.Wait(t.Context(), c)
			if err != nil {
				t.Errorf("behind a dead process: %v", err)
				return
			}
			mu.Lock()
			at = append(at, r.At())
			mu.Unlock()
		})
	}
	wg.Wait()
	// Six calls need three windows; the dead place costs a window at most, and
	// what it keeps until it is dropped.
	if d := time.Since(killed); d > 4*window+2*time.Second+time.Second*slack {
		t.Errorf("six calls behind a dead process took %v", d)
	}
	if n := most(at, window); n > 2 {
		t.Errorf("%d calls in a window, want 2", n)
	}
	within(t, 2*window+3*time.Second*slack, "the line is empty", func() bool { return modelStatus(t, b, key, "m").Waiting == 0 })
	if n := vendor.Count(vendorsim.Filter{}); n != 0 {
		t.Errorf("the vendor saw %d calls of the dead process", n)
	}
	eventually(t, "all that was charged is the others'", func() bool { return used(t, b, key, "m", throttle.Requests) == 0 })
}

// A process that is killed when its call is out, or in the middle of its answer:
// the estimate stays charged, and the others go on.
func TestKilledWhileItsCallIsOut(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		limits := []throttle.Limit{throttle.PerMinute(throttle.Requests, 10), throttle.PerMinute(throttle.Tokens, 10_000)}
		prefix := prefixOf(t)
		b := newHost(t, throttle.Config{Prefix: prefix, Default: limits})
		vendor := vendorsim.Run(t, vendorsim.Config{Usage: func(vendorsim.Request) (int64, int64) { return 1, 1 }})
		key := errandKey(t, vendor.URL())
		if stream {
			vendor.SetStream(1000, 20*ms)
		} else {
			vendor.Hold()
		}
		dead := send(t, errand{Prefix: prefix, Vendor: vendor.URL(), Model: "m", Limits: limits, Stream: stream})
		if dead.admitted(t); stream {
			dead.await(t, "reading")
		} else if err := vendor.Await(t.Context(), 1, vendorsim.Filter{}); err != nil {
			t.Fatal(err)
		}
		dead.kill()
		eventually(t, "the vendor sees it go", func() bool {
			return vendor.Count(vendorsim.Filter{Match: func(a vendorsim.Arrival) bool { return a.Broken }}) == 1
		})
		vendor.Release()
		if n := used(t, b, key, "m", throttle.Requests); n != 1 {
			t.Errorf("stream %v: %d requests are charged, want 1", stream, n)
		}
		if n := used(t, b, key, "m", throttle.Tokens); n < 100 {
			t.Errorf("stream %v: %d tokens are charged, want the estimate, above 100", stream, n)
		}
		c := throttle.Call{Key: key, Model: "m", Cost: throttle.Cost{throttle.Requests: 1, throttle.Tokens: 1}}
		for range 9 {
			reserve(t, b, c)
		}
		refuse(t, b, c)
	}
}

// A process that stands still while its time in line comes: the others go on
// without it; when it goes on it neither sends into the pause that began
// meanwhile nor takes more than there is.
func TestProcessStandsStill(t *testing.T) {
	t.Parallel()
	const window = time.Second
	limits := []throttle.Limit{throttle.Per(throttle.Requests, 2, window)}
	prefix := prefixOf(t)
	b := newHost(t, throttle.Config{Prefix: prefix, Default: limits})
	vendor := vendorsim.Run(t, vendorsim.Config{})
	key := errandKey(t, vendor.URL())
	c := one(key, "m")
	c.MaxWait = time.Minute
	at := []time.Time{reserve(t, b, c).At(), reserve(t, b, c).At()}
	still := send(t, errand{Prefix: prefix, Vendor: vendor.URL(), Model: "m", Limits: limits, Wait: time.Minute})
	eventually(t, "the process waits in line", func() bool { return modelStatus(t, b, key, "m").Waiting == 1 })
	still.freeze(t)
	began := time.Now()
	for range 6 { // for longer than its place is kept
		r, err := b.Wait(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, r.At())
	}
	if d := time.Since(began); d > 4*window+2*time.Second+time.Second*slack {
		t.Errorf("six calls behind a process that stands still took %v", d)
	}
	if err := b.Pause(t.Context(), key, "m", 2*time.Second); err != nil {
		t.Fatal(err)
	}
	over := time.Now().Add(2*time.Second - 50*ms) // the pause began a little before
	still.thaw(t)
	late := still.admitted(t)
	if late.Before(over) {
		t.Errorf("it was admitted %v before the end of a pause", over.Sub(late))
	}
	if n := most(append(at, late), window); n > 2 {
		t.Errorf("%d calls in a window, want 2", n)
	}
	still.await(t, "done")
	eventually(t, "nobody waits", func() bool { return modelStatus(t, b, key, "m").Waiting == 0 })
}

// 5,000 waiting calls are cancelled at once: they end in bounded time, their
// places are free, and no goroutine remains. To book so long a line takes long,
// hence the long StoreTimeout. It counts goroutines, so nothing runs beside it.
func TestManyWaitersAreCancelled(t *testing.T) {
	const waiters = 5000
	a, b := newPair(t, throttle.Config{StoreTimeout: time.Minute, Default: []throttle.Limit{throttle.Per(throttle.Requests, 1, 5*time.Minute)}})
	full := reserve(t, a, one("key", "m"))
	reserve(t, b, throttle.Call{Key: "key", Model: "other", Cost: throttle.Cost{throttle.Requests: 0}})
	base := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(t.Context())
	ends := make(chan error, waiters)
	c := one("key", "m")
	c.MaxWait = 300 * 24 * time.Hour
	began := time.Now()
	for i := range waiters {
		l := []*throttle.Limiter{a, b}[i%2]
		go func() {
			_, err := l.Wait(ctx, c)
			ends <- err
		}()
	}
	within(t, 60*time.Second, "all wait", func() bool { return modelStatus(t, a, "key", "m").Waiting == waiters })
	booked := time.Since(began)
	cancel()
	cancelled := time.Now()
	for range waiters {
		if err := <-ends; !errors.Is(err, context.Canceled) {
			t.Errorf("a wait ended with %v", err)
		}
	}
	returned := time.Since(cancelled)
	within(t, 30*time.Second, "the line is empty", func() bool { return modelStatus(t, a, "key", "m").Waiting == 0 })
	empty := time.Since(cancelled)
	if returned > time.Second*slack {
		t.Errorf("the calls returned after %v", returned)
	}
	if empty > 5*time.Second*slack {
		t.Errorf("the line was empty after %v", empty)
	}
	t.Logf("%d calls stood in line after %v, returned %v after the cancel, the line was empty after %v", waiters, booked, returned, empty)
	if err := full.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	reserve(t, b, one("key", "m")) // nobody is in the way
	eventually(t, "goroutines are back to base", func() bool { return runtime.NumGoroutine() <= base })
}
