package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
	"github.com/redis/go-redis/v9"
)

const (
	hostEnv    = "HEADWAY_SOAK_HOST" // set: be one process of the fleet
	callHeader = "X-Soak-Call"

	live, background = 6, 3 // callers in each process

	refused = time.Second // pause of a refused key
	lease   = 3 * time.Second
)

// host is one process: callers that want more than their budget until stdin
// ends. It returns the exit code.
func host(in io.Reader, out, log io.Writer) int {
	h := &hostSide{out: json.NewEncoder(out)}
	if err := h.run(bufio.NewReader(in), log); err != nil {
		fmt.Fprintln(log, "soak host:", err)
		return 1
	}
	return 0
}

type hostSide struct {
	order
	mu    sync.Mutex
	out   *json.Encoder
	calls atomic.Int64
}

func (h *hostSide) say(n note) {
	n.When = time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = h.out.Encode(n)
}

func (h *hostSide) run(in *bufio.Reader, log io.Writer) error {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	if err := json.Unmarshal(line, &h.order); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	if err := warm(h.Vendor); err != nil {
		return err
	}
	before := measure()

	rdb := redis.NewClient(&redis.Options{Addr: h.Redis, ContextTimeoutEnabled: true})
	limiter, err := throttle.New(throttle.Config{
		Redis: rdb, Models: limits, Default: strange, Key: []throttle.Limit{per(throttle.Requests, keyAmount)},
		Policy:  pause.Policy{Unnamed: 2 * time.Second, Cap: 4 * time.Second, Refused: refused, Lease: lease, OverloadMax: 4 * time.Second, Overload: time.Second},
		Name:    h.Name,
		Logger:  slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		OnEvent: h.event,
	})
	if err != nil {
		return err
	}
	base := &http.Transport{MaxIdleConnsPerHost: 64}
	client := &http.Client{Transport: &transport.Transport{
		Limiter: watched{limiter, h.say}, Base: base,
		Logger: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}}
	var callers sync.WaitGroup
	for i := range live + background {
		lane := lanes.Live
		if i >= live {
			lane = lanes.Background
		}
		callers.Go(func() {
			h.callAll(lanes.With(ctx, lane), client, rand.New(rand.NewPCG(h.Seed, uint64(i))))
		})
	}
	callers.Wait()
	base.CloseIdleConnections()
	if h.Idle > 0 { // open, but out of use: the heartbeats stop by themselves
		settle(before, h.Idle, 0)
		if n := runtime.NumGoroutine(); n > before.Goroutines {
			return fmt.Errorf("%d goroutines after %v of rest, %d before the first call:\n%s", n, h.Idle, before.Goroutines, stacks())
		}
	}
	ends, cancelClose := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancelClose()
	if err := errors.Join(limiter.Close(ends), rdb.Close()); err != nil {
		return err
	}
	cancelClose()
	after := settle(before, 10*time.Second, before.Files)
	h.say(note{Kind: ended, Before: &before, After: &after})
	return nil
}

// event tells what the limiter said, except decisions.
func (h *hostSide) event(e throttle.Event) {
	if e.Kind == throttle.Admitted || e.Kind == throttle.RefusedCall {
		return
	}
	n := note{Kind: e.Kind.String(), Key: e.Key, Model: e.Model, For: e.For}
	if e.Err != nil {
		n.Error = e.Err.Error()
	}
	h.say(n)
}

type callID struct{}

// watched is a limiter that notes every admission before the call is sent.
type watched struct {
	*throttle.Limiter
	say func(note)
}

func (w watched) Wait(ctx context.Context, c throttle.Call) (*throttle.Reservation, error) {
	r, err := w.Limiter.Wait(ctx, c)
	if err == nil {
		id, _ := ctx.Value(callID{}).(string)
		w.say(note{Kind: admitted, ID: id, Key: c.Key, Model: c.Model, Charged: r.At(), Probe: r.Probe()})
	}
	return r, err
}

// callAll is one caller. It makes calls of every kind until ctx ends.
func (h *hostSide) callAll(ctx context.Context, client *http.Client, r *rand.Rand) {
	models := []string{"sliding", "bucket", "tokens"}
	told := map[string]bool{}
	for ctx.Err() == nil {
		model := models[r.IntN(len(models))]
		if r.IntN(20) == 0 {
			model = []string{strings.Repeat("x", 5000), "{b}\r\n\x00:line", "Sliding", "*"}[r.IntN(4)]
		}
		err := h.callOnce(ctx, client, r, h.Keys[r.IntN(len(h.Keys))], model)
		if err == nil {
			continue
		}
		if kind := fmt.Sprintf("%T", errors.Unwrap(err)); !told[kind] || r.IntN(50) == 0 { // what callers print
			told[kind] = true
			h.say(note{Kind: seen, Error: fmt.Sprintf("%v %+v %#v", err, err, errors.Unwrap(err))})
		}
		time.Sleep(time.Duration(2+r.IntN(10)) * time.Millisecond) // a refused caller comes back soon, not at once
	}
}

// callOnce makes one call, and reads the answer, or half of it, or leaves.
func (h *hostSide) callOnce(ctx context.Context, client *http.Client, r *rand.Rand, key, model string) error {
	if r.IntN(8) == 0 { // a caller who leaves
		var leave context.CancelFunc
		ctx, leave = context.WithTimeout(ctx, time.Duration(1+r.IntN(300))*time.Millisecond)
		defer leave()
	}
	id := fmt.Sprintf("%s:%d", h.Name, h.calls.Add(1))
	body, err := json.Marshal(map[string]any{
		"model": model, "stream": r.IntN(2) == 0, "stream_options": map[string]bool{"include_usage": r.IntN(2) == 0},
		"max_tokens": 10 + r.IntN(60), "messages": []map[string]string{{"role": "user", "content": strings.Repeat("word ", 10)}},
	})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(context.WithValue(ctx, callID{}, id), http.MethodPost, h.Vendor+"/v1/chat/completions", strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set(callHeader, id)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if r.IntN(10) == 0 {
		_, _ = io.CopyN(io.Discard, resp.Body, 64)
		return nil
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// warm uses the network once, which leaves Go's own files open.
func warm(vendor string) error {
	c, err := net.Dial("tcp", strings.TrimPrefix(vendor, "http://"))
	if err != nil {
		return err
	}
	return c.Close()
}

// measure counts what the process holds.
func measure() use {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := use{Goroutines: runtime.NumGoroutine(), Heap: m.HeapAlloc}
	if files, err := os.ReadDir("/dev/fd"); err == nil {
		u.Files = len(files)
	}
	return u
}

// settle measures until the process holds no more than before, at most for d.
// files is how many of those are asked for; 0 does not ask.
func settle(before use, d time.Duration, files int) use {
	for end := time.Now().Add(d); ; time.Sleep(20 * time.Millisecond) {
		u := measure()
		if u.Goroutines <= before.Goroutines && (files == 0 || u.Files <= files) || time.Now().After(end) {
			return u
		}
	}
}

func stacks() string {
	b := make([]byte, 16<<10)
	return string(b[:runtime.Stack(b, true)])
}
