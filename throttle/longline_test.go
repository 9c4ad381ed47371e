package throttle

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway/lanes"
)

// Thousands of calls may wait in one line: the store keeps answering in time,
// each stands in its place, and when they leave nothing stays.
func TestLongLine(t *testing.T) {
	t.Parallel()
	const waiters = 4000
	c := models(Per(Requests, 1, time.Minute))
	c.StoreTimeout = time.Second
	onRedis(t, c, func(t *testing.T, p *pair) {
		reserve(t, p.a, call())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		patient := call()
		patient.Lane, patient.MaxWait = lanes.Lane{Name: "patient", Share: 1, Outage: lanes.Closed}, 300*24*time.Hour
		var wg sync.WaitGroup
		failed := make(chan error, waiters)
		began := time.Now()
		for i := range waiters {
			wg.Go(func() {
				if _, err := p.each(i).Wait(ctx, patient); !errors.Is(err, context.Canceled) {
					failed <- err
				}
			})
		}
		for model(t, p.b, "m").Waiting < waiters && len(failed) == 0 {
			if time.Since(began) > time.Minute {
				t.Fatalf("%d of %d wait", model(t, p.b, "m").Waiting, waiters)
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Logf("%d stood in line after %v", waiters, time.Since(began))
		cancel()
		began = time.Now()
		wg.Wait()
		t.Logf("gone after %v", time.Since(began))
		close(failed)
		for err := range failed {
			t.Fatalf("Wait() = %v", err)
		}
		for model(t, p.b, "m").Waiting > 0 {
			if time.Since(began) > 30*time.Second {
				t.Fatalf("%d wait after all have left", model(t, p.b, "m").Waiting)
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Logf("line empty after %v", time.Since(began))
	})
}
