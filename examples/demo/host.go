package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
	"github.com/redis/go-redis/v9"
)

// order is what the story asks of a host: n calls of a lane at once.
type order struct {
	Lane string
	N    int
}

// outcome is what became of one call.
type outcome struct {
	Status     int           // of the vendor's answer; 0 when nothing was sent
	Took       time.Duration // until the answer or the refusal
	Deferred   bool
	RetryAfter time.Duration
	Error      string
}

func (o outcome) ok() bool       { return o.Status == http.StatusOK }
func (o outcome) deferred() bool { return o.Deferred && o.RetryAfter > 0 }
func (o outcome) prompt() bool   { return o.ok() && o.Took < 500*time.Millisecond }
func (o outcome) waited() bool   { return o.ok() && o.Took >= 100*time.Millisecond }

func count(out []outcome, is func(outcome) bool) (n int) {
	for _, o := range out {
		if is(o) {
			n++
		}
	}
	return n
}

// soonest is the shortest time to come back.
func soonest(out []outcome) time.Duration {
	d := time.Hour
	for _, o := range out {
		if o.deferred() {
			d = min(d, o.RetryAfter)
		}
	}
	return d
}

// serveHost is one host: a limiter, a wrapped client, and calls to order. It
// reads orders and writes outcomes until its input ends.
func serveHost(name, vendor, redisAddr string, memory *throttle.Memory, in io.Reader, out io.Writer) error {
	config := throttle.Config{
		Name: name, Memory: memory,
		Models: map[string][]throttle.Limit{model: {{
			Unit: throttle.Requests, Amount: budget, Window: window,
			Margin: 50 * time.Millisecond, // this vendor counts to the unit, by its own clock
		}}},
		Policy: pause.Policy{Refused: keyOff},
	}
	if redisAddr != "" {
		client := redis.NewClient(&redis.Options{Addr: redisAddr})
		defer client.Close()
		config.Redis, config.Prefix = client, "headway-demo"
	}
	limiter, err := throttle.New(config)
	if err != nil {
		return err
	}
	defer limiter.Close(context.Background())
	client := &http.Client{Transport: &transport.Transport{Limiter: limiter}}

	orders, outcomes := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var o order
		if err := orders.Decode(&o); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		done := make([]outcome, o.N)
		var wg sync.WaitGroup
		for i := range done {
			wg.Go(func() { done[i] = callVendor(client, vendor, o.Lane) })
		}
		wg.Wait()
		if err := outcomes.Encode(done); err != nil {
			return err
		}
	}
}

// callVendor makes one call as any program would.
func callVendor(client *http.Client, vendor, lane string) (o outcome) {
	ctx := context.Background()
	if lane == lanes.Background.Name {
		ctx = lanes.With(ctx, lanes.Background)
	}
	began := time.Now()
	defer func() { o.Took = time.Since(began) }()
	body := []byte(`{"model":"` + model + `","messages":[{"role":"user","content":"hello"}],"max_tokens":16}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, vendor+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return outcome{Error: err.Error()}
	}
	req.Header.Set("Authorization", "Bearer "+apiKey)
	req.Header.Set("X-Lane", lane)
	resp, err := client.Do(req)
	var refused *throttle.RefusedError
	switch {
	case errors.As(err, &refused):
		return outcome{Deferred: refused.Deferred, RetryAfter: refused.RetryAfter, Error: refused.Error()}
	case err != nil:
		return outcome{Error: err.Error()}
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return outcome{Status: resp.StatusCode}
}

// host is the story's end of a host.
type host struct {
	kind string
	in   io.WriteCloser
	enc  *json.Encoder
	dec  *json.Decoder
	wait func() error
}

// start sends an order; the outcomes arrive on the channel.
func (h *host) start(o order) <-chan []outcome {
	done := make(chan []outcome, 1)
	if err := h.enc.Encode(o); err != nil {
		close(done)
		return done
	}
	go func() {
		var out []outcome
		if err := h.dec.Decode(&out); err != nil {
			out = []outcome{{Error: err.Error()}}
		}
		done <- out
	}()
	return done
}

func (h *host) call(o order) []outcome { return <-h.start(o) }

func (h *host) stop() {
	_ = h.in.Close()
	_ = h.wait()
}

// startHosts starts two limiters here, or two processes on a Redis.
func startHosts(vendor, redisAddr string) (a, b *host, err error) {
	memory := throttle.NewMemory()
	start := func(name string) (*host, error) {
		if redisAddr != "" {
			return startProcess(name, vendor, redisAddr)
		}
		return startHere(name, vendor, memory), nil
	}
	if a, err = start("A"); err != nil {
		return nil, nil, err
	}
	if b, err = start("B"); err != nil {
		a.stop()
		return nil, nil, err
	}
	return a, b, nil
}

func startHere(name, vendor string, memory *throttle.Memory) *host {
	in, orders := io.Pipe()
	outcomes, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := serveHost(name, vendor, "", memory, in, out)
		_ = out.CloseWithError(err)
		done <- err
	}()
	return &host{kind: "two limiters on the memory store", in: orders, enc: json.NewEncoder(orders),
		dec: json.NewDecoder(outcomes), wait: func() error { return <-done }}
}

func startProcess(name, vendor, redisAddr string) (*host, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "-host", name, "-vendor", vendor, "-redis", redisAddr)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start host %s: %w", name, err)
	}
	return &host{kind: "two processes on Redis", in: in, enc: json.NewEncoder(in), dec: json.NewDecoder(out), wait: cmd.Wait}, nil
}
