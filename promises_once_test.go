package headway_test

import (
	"bytes"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/throttle"
	"github.com/redis/go-redis/v9"
)

// proxy stands between a host and Redis. It passes every request on, and loses or
// delays the reply of the scripts it is told to.
type proxy struct {
	net.Listener
	lose    atomic.Int32 // how many replies from now on
	late    atomic.Int64 // delay of the replies to lose, instead of losing them
	scripts atomic.Int32 // calls of a script that went through
	wg      sync.WaitGroup
}

func newProxy(t *testing.T) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l}
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() { l.Close() }) // what is open ends with the hosts' clients
	return p
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	store, err := net.Dial("tcp", server.Addr)
	if err != nil {
		return
	}
	defer store.Close()
	var hit atomic.Bool // the next reply is one to lose
	go func() {
		defer store.Close()
		b := make([]byte, 64<<10)
		for {
			n, err := client.Read(b)
			if err != nil {
				return
			}
			if bytes.Contains(b[:n], []byte("evalsha")) && !bytes.Contains(b[:n], []byte("}:f:reports")) { // not the list of processes
				p.scripts.Add(1)
				hit.Store(p.lose.Add(-1) >= 0)
			}
			if _, err := store.Write(b[:n]); err != nil {
				return
			}
		}
	}()
	b := make([]byte, 64<<10)
	for {
		n, err := store.Read(b)
		if err != nil {
			return
		}
		if hit.CompareAndSwap(true, false) {
			if p.late.Load() == 0 {
				return
			}
			time.Sleep(time.Duration(p.late.Load())) // the network is slow
		}
		if _, err := client.Write(b[:n]); err != nil {
			return
		}
	}
}

// shut is a live lane that is closed while the store does not answer, so that
// nothing is admitted without it.
var shut = lanes.Lane{Name: "live", Share: 1, MaxWait: 5 * time.Second, Outage: lanes.Closed}

// Promise 8: an admission is charged at most once, whatever the network does,
// with a go-redis client that retries by default (S23).
func TestPromise08_AtMostOnce(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{0, 600 * ms} {
		name := map[bool]string{true: "reply lost", false: "reply late"}[late == 0]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProxy(t)
			c := models(throttle.PerMinute(throttle.Tokens, 10_000))
			f := newFleet(t, c)
			c.Prefix, c.StoreTimeout = f.prefix, 250*ms
			if late == 0 {
				c.StoreTimeout = 5 * time.Second
			}
			host := newHost(t, redis.NewClient(&redis.Options{Addr: p.Addr().String()}), c)
			reserve(t, host, by(costing(0), patient, 0)) // loads the script
			eventually(t, "the host is announced", func() bool { s, _ := f.b.status(t, "key", "m"); return len(s.Fleet) == 1 })
			used := func() int64 { return f.b.used(t, costing(0), throttle.Tokens) }

			base := p.scripts.Load()
			p.late.Store(int64(late))
			p.lose.Store(1)
			_, err := host.Reserve(t.Context(), by(costing(10), shut, 0))
			if !errors.Is(err, throttle.ErrStoreUnavailable) || errors.Is(err, throttle.ErrRefused) {
				t.Fatalf("a lost reply is %v, want the store unavailable", err)
			}
			if n := p.scripts.Load() - base; n != 1 {
				t.Errorf("the script was sent %d times, want once", n)
			}
			if n := used(); n > 10 {
				t.Errorf("used = %d, want at most the 10 of one admission", n)
			}
			if late > 0 { // the answer comes when the caller has gone: it is given back
				eventually(t, "the late admission is given back", func() bool { return used() == 0 })
			}

			before := used()
			p.late.Store(0)
			var r *throttle.Reservation
			eventually(t, "the host goes on", func() bool { r, err = host.Reserve(t.Context(), by(costing(100), shut, 0)); return err == nil })
			p.lose.Store(1)
			if err := r.Settle(t.Context(), throttle.Cost{throttle.Tokens: 300}); !errors.Is(err, throttle.ErrStoreUnavailable) {
				t.Fatalf("a lost reply is %v, want the store unavailable", err)
			}
			if err := r.Settle(t.Context(), throttle.Cost{throttle.Tokens: 300}); err != nil {
				t.Fatal(err)
			}
			if n := used() - before; n != 100 && n != 300 {
				t.Errorf("used = %d after one settlement from 100 to 300, want either", n)
			}
		})
	}
	t.Run("a crowd", func(t *testing.T) {
		t.Parallel()
		p := newProxy(t)
		c := models(throttle.PerMinute(throttle.Tokens, 10_000))
		f := newFleet(t, c)
		c.Prefix = f.prefix
		host := newHost(t, redis.NewClient(&redis.Options{Addr: p.Addr().String()}), c)
		reserve(t, host, costing(0))
		var wg sync.WaitGroup
		var went, lost atomic.Int64
		for i := range 200 {
			if i%20 == 0 {
				p.lose.Store(1)
			}
			wg.Go(func() {
				switch _, err := host.Reserve(t.Context(), by(costing(1), shut, 0)); {
				case err == nil:
					went.Add(1)
				case errors.Is(err, throttle.ErrStoreUnavailable):
					lost.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := f.b.used(t, costing(0), throttle.Tokens); n < went.Load() || n > went.Load()+lost.Load() || lost.Load() == 0 {
			t.Errorf("used = %d, with %d admitted and %d of unknown fate", n, went.Load(), lost.Load())
		}
	})
}
