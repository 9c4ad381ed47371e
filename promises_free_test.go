package headway_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/throttle"
)

// Promise 12, the cost: one command for a lone call, one to settle, two for a
// call that waits, and one for many that come together.
func TestPromise12_WaitingIsNearlyFree(t *testing.T) {
	t.Parallel()
	w := newWire(t, models(throttle.PerMinute(throttle.Requests, 3), throttle.PerMinute(throttle.Tokens, 10_000)), vendorsim.Config{})
	w.status(t, 200, ask{host: 0, key: "sk-warm"}) // loads the script
	w.status(t, 200, ask{host: 1, key: "sk-warm"})
	w.a.tap.commands()
	w.b.tap.commands()
	w.status(t, 200, ask{})
	if n := w.a.tap.commands(); n != 2 {
		t.Errorf("a call took %d commands, want one and one to settle", n)
	}
	w.vendor.SetUsage(func(vendorsim.Request) (int64, int64) { return 30, 16 })
	w.transports[1].Cost = throttle.Cost{throttle.Requests: 1, throttle.Tokens: 46}
	w.status(t, 200, ask{host: 1})
	if n := w.b.tap.commands(); n != 1 {
		t.Errorf("a call that cost what was estimated took %d commands, want 1", n)
	}

	const window = 700 * ms
	f := newFleet(t, models(throttle.Per(throttle.Requests, 4, window)))
	reserve(t, f.b, throttle.Call{Key: "warm", Model: "other"})
	for range 4 {
		reserve(t, f.a, call())
	}
	f.b.tap.commands()
	if _, err := f.b.Wait(t.Context(), call()); err != nil {
		t.Fatal(err)
	}
	if n := f.b.tap.commands(); n > 3 { // two, and a third where a busy machine made it late or early
		t.Errorf("a call that waited %v took %d commands, want 2, at most 3", window, n)
	}

	crowd := newFleet(t, models(throttle.PerMinute(throttle.Requests, 1000)))
	reserve(t, crowd.a, call())
	crowd.a.tap.commands()
	ends := make(chan ended, 500)
	for i := range 500 {
		begin(t.Context(), crowd.a, call(), i, ends)
	}
	for range 500 {
		if e := <-ends; e.err != nil {
			t.Fatal(e.err)
		}
	}
	if n := crowd.a.tap.commands(); n > 250 {
		t.Errorf("500 calls at once took %d commands, want them to ride together", n)
	}
}

// Promise 12, the end: a cancelled wait gives its place back within 50 ms and
// leaks nothing. It counts goroutines, so nothing runs beside it.
func TestPromise12_CancelledWaitsLeaveNothing(t *testing.T) {
	w := newWire(t, models(throttle.Per(throttle.Requests, 10, 30*time.Second)), vendorsim.Config{})
	full := call()
	full.Key, full.Cost = w.call(t, ask{}).Key, throttle.Cost{throttle.Requests: 10}
	taken := reserve(t, w.a, full)
	reserve(t, w.b, throttle.Call{Key: full.Key, Model: "other"})
	waiting := func() int { _, m := w.a.status(t, full.Key, "m"); return m.Waiting }
	waiting()
	base := runtime.NumGoroutine()

	ctx, cancel := context.WithCancel(t.Context())
	ends := make(chan answer, 100)
	for i := range 100 {
		go func() { ends <- w.send(t, ask{host: i, ctx: ctx, wait: time.Hour}) }()
	}
	eventually(t, "100 calls wait", func() bool { return waiting() == 100 })
	cancel()
	cancelled := time.Now()
	for range 100 {
		if a := <-ends; !errors.Is(a.err, context.Canceled) {
			t.Errorf("a wait ended with %v, want the context's error", a.err)
		}
	}
	if d := time.Since(cancelled); d > 50*ms*slack {
		t.Errorf("the calls returned after %v, want 50ms", d)
	}
	within(t, 50*ms*slack+20*ms, "the line is empty", func() bool { return waiting() == 0 })
	eventually(t, "goroutines are back to base", func() bool { return runtime.NumGoroutine() <= base })
	if err := taken.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.status(t, 200, ask{host: 1}.now()) // nobody is in the way
	if n := w.vendor.Count(vendorsim.Filter{}); n != 1 {
		t.Errorf("the vendor saw %d calls, want 1", n)
	}
}
