package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/headway-go/headway/internal/redistest"
	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/throttle"
	"github.com/redis/go-redis/v9"
)

const (
	hosts  = 3
	amount = 40 // calls that the vendor allows in a window
	window = time.Second
	margin = 150 * time.Millisecond * slack // the vendor counts to the unit, by its own clock

	fingerprint = "chaos" // of the one key that the fleet shares
	model       = "m"
	ledger      = "calls" // a unit that is never short, by which Redis itself counts what went

	patience = 2 * time.Second       // of callers who wait
	pace     = 10 * time.Millisecond // of a caller who was refused
)

// callers of each host, by lane and by whether they wait for room.
var callers = []struct {
	lane  lanes.Lane
	wait  time.Duration
	count int
}{
	{lanes.Live, -1, 3},
	{lanes.Background, 0, 2},
	{lanes.Live, patience, 3},
}

// stage is a fleet of limiters, each with a go-redis client of its own as a
// process would have, a vendor that counts, and a Redis that a row breaks.
type stage struct {
	scenario
	server  *redistest.Server
	proxy   *redistest.Proxy // of rows that have one, as the next two
	nodes   *redistest.Cluster
	replica *redis.Client
	connect func() redis.UniversalClient // a new client as a host has it
	beside  redis.UniversalClient        // a plain client of the server
	serving func(context.Context) error  // takes a write from a plain client of whoever serves; nil: beside
	vendor  *vendorsim.Server
	fleet   []*host
	record  record
	stall   stall
	junk    []string // keys of others
	ends    []func() // last first
	stopAll context.CancelFunc
	running sync.WaitGroup

	injected, healed time.Time
}

// host is one limiter, as one process has it.
type host struct {
	id      int
	client  redis.UniversalClient
	limiter *throttle.Limiter
}

// settings are the client's settings that the README recommends.
func settings(addr string) *redis.Options {
	return &redis.Options{Addr: addr, ContextTimeoutEnabled: true, DialerRetries: 1}
}

func newStage(s scenario) (*stage, error) {
	st := &stage{scenario: s}
	var err error
	if st.vendor, err = vendorsim.Start(vendorsim.Config{}); err != nil {
		return nil, err
	}
	st.later(st.vendor.Close)
	if err := s.setup(st); err != nil {
		st.end()
		return nil, fmt.Errorf("setup: %w", err)
	}
	return st, nil
}

// later has something done at the end.
func (s *stage) later(f func()) { s.ends = append(s.ends, f) }

// end ends what the stage has started.
func (s *stage) end() {
	if s.stopAll != nil {
		s.stopAll()
		s.running.Wait()
	}
	for len(s.ends) > 0 {
		last := len(s.ends) - 1
		s.ends[last]()
		s.ends = s.ends[:last]
	}
}

// redis starts the row's own server, which everyone reaches directly.
func (s *stage) redis(args ...string) error {
	server, err := redistest.Start(args...)
	if err != nil {
		return err
	}
	s.later(server.Stop)
	s.server = server
	s.use(func() redis.UniversalClient { return redis.NewClient(settings(server.Addr)) }, redis.NewClient(settings(server.Addr)))
	return nil
}

// use sets how hosts connect, and the client that sees who serves.
func (s *stage) use(connect func() redis.UniversalClient, beside redis.UniversalClient) {
	s.connect, s.beside = connect, beside
	if beside != nil {
		s.later(func() { _ = beside.Close() })
	}
}

func (s *stage) config(client redis.UniversalClient) throttle.Config {
	return throttle.Config{
		Redis: client, Members: s.members,
		Default: []throttle.Limit{
			{Unit: throttle.Requests, Amount: amount, Window: window, Margin: margin + s.delay},
			throttle.Per(ledger, 1_000_000, time.Hour),
		},
	}
}

// open starts the fleet and its callers.
func (s *stage) open() error {
	ctx, cancel := context.WithCancel(context.Background())
	s.stopAll = cancel
	vendor := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	s.later(vendor.CloseIdleConnections)
	for i := range hosts {
		h := &host{id: i, client: s.connect()}
		s.later(func() { _ = h.client.Close() })
		h.client.AddHook(&s.record)
		config := s.config(h.client)
		config.OnEvent = func(e throttle.Event) { s.record.event(i, e) }
		var err error
		if h.limiter, err = throttle.New(config); err != nil {
			return err
		}
		s.fleet = append(s.fleet, h)
	}
	s.running.Go(func() { s.stall.watch(ctx) })
	for _, h := range s.fleet {
		for _, c := range callers {
			for range c.count {
				s.running.Go(func() { s.call(ctx, h, c.lane, c.wait, vendor) })
			}
		}
	}
	return nil
}

// call is one caller: it wants more than there is, until ctx ends.
func (s *stage) call(ctx context.Context, h *host, lane lanes.Lane, wait time.Duration, vendor *http.Client) {
	what := throttle.Call{Key: fingerprint, Model: model, Lane: lane, MaxWait: wait, Cost: throttle.Cost{throttle.Requests: 1, ledger: 1}}
	for ctx.Err() == nil {
		c := called{host: h.id, lane: lane.Name, began: time.Now(), known: s.record.known(h.id)}
		// The call itself is not cancelled at the end: each must end with an answer.
		r, err := h.limiter.Wait(context.Background(), what)
		c.took = max(0, time.Since(c.began)-max(0, wait)) // who waits for room does so for the budget, not for the store
		c.how = outcomeOf(err)
		if c.how == failed {
			c.err = err
		}
		if err == nil {
			c.err = post(vendor, s.vendor.URL())
			c.late = time.Since(r.At())
		}
		s.record.add(c)
		if err != nil {
			_ = pass(ctx, pace)
		}
	}
}

// outcomeOf says how a call ended.
func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return admitted
	case errors.Is(err, throttle.ErrRefused):
		return refused
	case errors.Is(err, throttle.ErrStoreUnavailable):
		return closed
	}
	return failed
}

// post sends an admitted call to the vendor.
func post(client *http.Client, url string) error {
	body := bytes.NewReader([]byte(`{"model":"m","messages":[],"max_tokens":1}`))
	req, err := http.NewRequest(http.MethodPost, url+"/v1/chat/completions", body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer sk-chaos")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.Body.Close()
}

// awaitServing waits until the server side takes a write from a plain client,
// and notes when: what a limiter needs from then on is its time to recover.
func (s *stage) awaitServing() error {
	end := time.Now().Add(20 * time.Second)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		var err error
		if s.serving != nil {
			err = s.serving(ctx)
		} else {
			err = s.beside.Set(ctx, "beside:{"+fingerprint+"}", 1, time.Minute).Err()
		}
		cancel()
		if err == nil {
			s.healed = time.Now()
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("the server side does not serve again: %w", err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// awaitBack waits until no limiter knows of an outage, as long as that may take,
// and then until what follows an outage is over: 1.5 s in which calls keep to
// the part of their process as well, and the end of that.
func (s *stage) awaitBack(ctx context.Context) error {
	for end := time.Now().Add(recoveryBound); s.record.out() && time.Now().Before(end); {
		if err := pass(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	return pass(ctx, 2300*time.Millisecond)
}

// stop ends the callers and then the limiters, which tell Redis what is left to tell.
func (s *stage) stop() error {
	s.stopAll()
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(patience + 5*time.Second):
		return errors.New("a call was lost: it never ended")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, h := range s.fleet {
		if err := h.limiter.Close(ctx); err != nil {
			return fmt.Errorf("close: %w", err)
		}
	}
	return nil
}

// charged is what Redis has counted in all, by a limiter that took no part.
func (s *stage) charged() (int64, error) {
	client := s.connect()
	defer client.Close()
	limiter, err := throttle.New(s.config(client))
	if err != nil {
		return 0, err
	}
	defer limiter.Close(context.Background())
	status, err := limiter.Status(context.Background(), fingerprint, model)
	if err != nil {
		return 0, err
	}
	for _, l := range status.Models[0].Limits {
		if l.Unit == ledger {
			return l.Used, nil
		}
	}
	return 0, errors.New("status does not tell of the ledger")
}
