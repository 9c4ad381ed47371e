package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/throttle"
	"github.com/redis/go-redis/v9"
)

// child is one process of the fleet: its calls and what was admitted of them.
type child struct {
	limiter *throttle.Limiter
	key     string
	start   time.Time

	mu       sync.Mutex
	admitted []admission
	err      error // the first that was not a refusal
}

// runChild plays the part of one process in a scene and writes what was admitted.
func runChild(s scene, addr, key string, start time.Time, w io.Writer) error {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	models := map[string][]throttle.Limit{}
	for _, l := range s.loads {
		models[l.model] = s.limits(l)
	}
	limiter, err := throttle.New(throttle.Config{Redis: rdb, Models: models, StoreTimeout: 2 * time.Second})
	if err != nil {
		return err
	}
	c := &child{limiter: limiter, key: key, start: start}
	ctx, stop := context.WithCancel(context.Background())
	time.AfterFunc(time.Until(start.Add(calm*window)), stop)
	var all sync.WaitGroup
	for _, l := range s.loads {
		for range waiters {
			all.Go(func() { c.saturate(ctx, l) })
		}
		all.Go(func() { c.burst(l) })
	}
	all.Wait()
	err = limiter.Close(context.Background())
	out := bufio.NewWriter(w)
	for _, a := range c.admitted {
		fmt.Fprintln(out, a.model, a.at, a.out, a.requests, a.tokens)
	}
	return errors.Join(c.err, err, out.Flush())
}

// saturate keeps one call of the load in line for as long as the lines are full.
func (c *child) saturate(ctx context.Context, l load) {
	time.Sleep(time.Until(c.start.Add(saturated * window)))
	for ctx.Err() == nil {
		c.call(ctx, l, time.Minute)
	}
}

// burst is the adversary: around every edge of a window it wants more than the
// whole budget on either side, and in every other window it comes at the edges
// of the slots too.
func (c *child) burst(l load) {
	slot := window / slots
	edge := c.start.Truncate(window)
	for ; edge.Before(c.start.Add(last * window)); edge = edge.Add(window) {
		if since := edge.Sub(c.start); since >= quiet*window && since < calm*window {
			continue
		}
		c.burstAt(edge.Add(-time.Millisecond), l, l.atWindow)
		c.burstAt(edge, l, l.atWindow)
		for k := 1; k < slots && edge.Unix()%2 == 0; k++ {
			off := time.Duration(k%3-1) * time.Millisecond
			c.burstAt(edge.Add(time.Duration(k)*slot+off), l, l.atSlot)
		}
	}
}

// burstAt sends n calls at once, none of which waits.
func (c *child) burstAt(at time.Time, l load, n int) {
	if at.Before(c.start) {
		return
	}
	time.Sleep(time.Until(at))
	var all sync.WaitGroup
	for range n {
		all.Go(func() { c.call(context.Background(), l, -1) })
	}
	all.Wait()
}

// call asks for one call of the load and keeps what was admitted.
func (c *child) call(ctx context.Context, l load, wait time.Duration) {
	units := l.cheapest + rand.Int64N(l.dearest-l.cheapest+1)
	r, err := c.limiter.Wait(ctx, throttle.Call{
		Key: c.key, Model: l.model, Lane: lanes.Live, MaxWait: wait,
		Cost: throttle.Cost{throttle.Requests: 1, throttle.Tokens: units},
	})
	out := time.Now().UnixMicro()
	c.mu.Lock()
	defer c.mu.Unlock()
	var refused *throttle.RefusedError
	switch {
	case err == nil:
		c.admitted = append(c.admitted, admission{l.model, r.At().UnixMicro(), out, 1, units})
	case !errors.As(err, &refused) && ctx.Err() == nil && c.err == nil:
		c.err = err
	}
}
