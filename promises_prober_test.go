package headway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
	"github.com/redis/go-redis/v9"
)

// proberEnv tells the test binary to be a third host that makes one call.
const proberEnv = "HEADWAY_TEST_PROBER"

// order is what such a process is told.
type order struct{ Redis, Prefix, Vendor string }

// offPolicy is short pauses for refused keys.
var offPolicy = pause.Policy{Refused: 500 * ms, Lease: 1500 * ms}

// prober makes one call as a process of its own, and returns its exit code.
func prober(text string) int {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	client := redis.NewClient(&redis.Options{Addr: o.Redis})
	defer client.Close()
	c := plenty()
	c.Redis, c.Prefix, c.Policy, c.StoreTimeout = client, o.Prefix, offPolicy, 5*time.Second
	limiter, err := throttle.New(c)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	req, err := http.NewRequest(http.MethodPost, o.Vendor+"/v1/chat/completions", strings.NewReader(`{"model":"m"}`))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	req.Header.Set("Authorization", "Bearer "+apiKey)
	resp, err := (&http.Client{Transport: &transport.Transport{Limiter: limiter}}).Do(req)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return 0
}

// Promise 15: a prober that dies, here by SIGKILL, holds its place until the
// lease is over and no longer.
func TestPromise15_ADeadProberLosesItsPlace(t *testing.T) {
	t.Parallel()
	c := plenty()
	c.Policy = offPolicy
	w := newWire(t, c, vendorsim.Config{})
	w.vendor.Script("m", vendorsim.KeyRefused401())
	w.status(t, 401, ask{})
	w.vendor.Hold()

	text, err := json.Marshal(order{server.Addr, w.prefix, w.vendor.URL()})
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), proberEnv+"="+string(text))
	child.Stderr = os.Stderr
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Wait() }() // it is killed
	w.await(t, 2)
	before := w.now(t)
	s, _ := w.b.status(t, w.call(t, ask{}).Key, "m")
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if s.State.Phase != pause.Probing || s.State.Left <= 0 {
		t.Fatalf("the key is %+v while the probe is out, want probing", s.State)
	}
	lease := before.Add(s.State.Left) // a little early, never late
	w.vendor.Release()

	for i := 0; w.vendor.Count(vendorsim.Filter{}) == 2; i++ {
		w.send(t, ask{host: i, model: []string{"m", "n"}[i/2%2]}.now())
		pass(5 * ms)
		if w.now(t).After(lease.Add(20 * time.Second)) {
			t.Fatal("nobody probes after the lease")
		}
	}
	probe, next := w.vendor.Arrivals()[1].Received, w.vendor.Arrivals()[2].Received
	if d := next.Sub(probe); d < offPolicy.Lease-200*ms*slack { // the probe was charged a little before it arrived
		t.Errorf("the next probe came after %v, want a lease of %v", d, offPolicy.Lease)
	}
	if next.Before(lease) {
		t.Errorf("the next probe came %v before the end of the lease", lease.Sub(next))
	}
	if late := next.Sub(lease); late > 300*ms*slack {
		t.Errorf("the next probe came %v after the end of the lease, want it soon", late)
	}
	for i := range 4 {
		w.status(t, 200, ask{host: i, model: []string{"m", "n"}[i%2]}.now()) // it got through: everything resumes
	}
}
