package throttle

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// ownServer is a Redis that a test may break.
func ownServer(t *testing.T, args ...string) *redistest.Server {
	t.Helper()
	s, err := redistest.Start(args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// S22: a lost script costs one more round trip, once; SCRIPT is not used.
func TestS22ScriptCacheLost(t *testing.T) {
	t.Parallel()
	s := ownServer(t)
	l, n := counted(t, s, models(Per(Requests, 10, time.Hour)))
	c := s.Client()
	defer c.Close()
	reserve(t, l, call())
	n.since()
	for range 2 {
		if err := c.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		reserve(t, l, call())
		if got := n.since(); got != 2 {
			t.Errorf("the first call after the loss took %d commands, want 2", got)
		}
		reserve(t, l, call())
		if got := n.since(); got != 1 {
			t.Errorf("the next call took %d commands, want 1", got)
		}
	}
	if got := used(t, l, "m")[Requests]; got != 5 {
		t.Errorf("used = %d, want 5", got)
	}
}

// S22: a Redis that forbids SCRIPT, and any key but ours, is enough (S21: the
// script touches what it declares, and that begins with the prefix).
func TestS22AccessLists(t *testing.T) {
	t.Parallel()
	s := ownServer(t)
	admin := s.Client()
	defer admin.Close()
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "app", "on", ">pw", "~mine:1:{key}:*", "+@all", "-script", "-@admin").Err(); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: s.Addr, Username: "app", Password: "pw"})
	defer client.Close()
	c := everyShape()
	c.Redis, c.Prefix = client, "mine"
	l := newLimiter(t, c)
	everything(t, l)
	if log := admin.Do(t.Context(), "ACL", "LOG").Val(); len(log.([]any)) != 0 {
		t.Errorf("refused by the access list: %v", log)
	}
}

// everyShape limits "m" in every shape, and the whole key.
func everyShape() Config {
	fixed := Per("segments", 100, 24*time.Hour)
	fixed.Shape = Fixed
	bucket := Per("images", 100, time.Hour)
	bucket.Shape, bucket.Burst = Bucket, 50
	c := models(Per(Requests, 100, time.Minute), Per(Tokens, 10_000, time.Minute), fixed, bucket)
	c.Key = []Limit{Per(Requests, 200, time.Minute)}
	c.StoreTimeout = 5 * time.Second
	return c
}

// everything uses the whole interface once.
func everything(t *testing.T, l *Limiter) {
	t.Helper()
	ctx := t.Context()
	c := call()
	c.Cost = Cost{Requests: 1, Tokens: 10, "segments": 1, "images": 1}
	r := reserve(t, l, c)
	err := errors.Join(
		r.Settle(ctx, Cost{Tokens: 20}),
		r.Report(ctx, later(time.Minute)),
		l.Resume(ctx, "key", "m"),
		l.Pause(ctx, "key", "m", 50*ms),
	)
	if err != nil {
		t.Fatal(err)
	}
	waited, err := l.Wait(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := waited.Cancel(ctx); err != nil {
		t.Fatal(err)
	}
	c.Key = "key"
	for _, name := range []string{"", "x", strings.Repeat("long ", 1000), "{brace}", "m:line", "*"} {
		c.Model = name
		reserve(t, l, c)
	}
	eventually(t, "the process is in the fleet's list", func() bool {
		s, err := l.Status(ctx, "key")
		if err != nil {
			t.Fatal(err)
		}
		return len(s.Fleet) == 1 && len(s.Models) > 0
	})
}

// S23: an admission whose reply is lost is charged once, though the client
// retries by default.
func TestS23LostReplyIsChargedOnce(t *testing.T) {
	t.Parallel()
	s := ownServer(t)
	proxy := newProxy(t, s.Addr)
	client := redis.NewClient(&redis.Options{Addr: proxy.addr})
	defer client.Close()
	c := models(Per(Requests, 1000, time.Hour))
	c.Redis = client
	l := newLimiter(t, c)
	c.Redis = s.Client()
	other := newLimiter(t, c)
	defer c.Redis.(*redis.Client).Close()
	reserve(t, l, closedCall())
	for i := int64(1); i <= 5; i++ {
		proxy.drop.Store(true)
		if _, err := l.Reserve(t.Context(), closedCall()); !errors.Is(err, ErrStoreUnavailable) {
			t.Fatalf("Reserve() without a reply = %v, want ErrStoreUnavailable", err)
		}
		proxy.drop.Store(false)
		eventually(t, "the outage is over", func() bool { return !l.outage.down.Load() && !l.outage.over.Load() })
		if got := used(t, other, "m")[Requests]; got != 1+i {
			t.Errorf("used = %d after %d lost replies, want each charged once", got, i)
		}
	}
	reserve(t, l, closedCall())
}

// proxy forwards to Redis, and while drop is set cuts the connection in place
// of a script's reply.
type proxy struct {
	addr string
	drop atomic.Bool
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	p := &proxy{addr: listener.Addr().String()}
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(in, to)
		}
	}()
	return p
}

func (p *proxy) serve(in net.Conn, to string) {
	defer in.Close()
	out, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer out.Close()
	go func() {
		io.Copy(out, in)
		out.(*net.TCPConn).CloseWrite()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := out.Read(buf)
		if err != nil || p.drop.Load() && strings.HasPrefix(string(buf[:n]), "$") {
			return
		}
		if _, err := in.Write(buf[:n]); err != nil {
			return
		}
	}
}

// S24: a hung Redis: every call is answered in time, goroutines stay flat, and
// the outage ends by itself.
func TestS24HungRedis(t *testing.T) {
	s := ownServer(t)
	l, n := counted(t, s, models(Per(Requests, 1_000_000, time.Hour)))
	l.config.StoreTimeout = 250 * ms
	var events recorder
	l.config.OnEvent = events.add
	reserve(t, l, closedCall())
	base := runtime.NumGoroutine()
	s.Freeze()
	var wg sync.WaitGroup
	for i := range 400 {
		wg.Go(func() {
			<-time.After(time.Duration(i) * 2 * ms)
			began := time.Now()
			if _, err := l.Reserve(t.Context(), closedCall()); !errors.Is(err, ErrStoreUnavailable) {
				t.Errorf("Reserve() = %v, want ErrStoreUnavailable", err)
			}
			if d := time.Since(began); d > 250*ms+100*ms*slack {
				t.Errorf("answered after %v, want 250ms", d)
			}
		})
	}
	wg.Wait()
	began := time.Now()
	for range 100 {
		l.Reserve(t.Context(), closedCall())
	}
	if d := time.Since(began); d > 100*ms*slack {
		t.Errorf("100 calls took %v in a known outage, want no wait", d)
	}
	if got := n.peak(); got > maxStray {
		t.Errorf("%d commands were out at once, want at most %d", got, maxStray)
	}
	if got := runtime.NumGoroutine(); got > base+10 {
		t.Errorf("%d goroutines, %d before", got, base)
	}
	s.Thaw()
	began = time.Now()
	eventually(t, "calls pass again", func() bool { _, err := l.Reserve(t.Context(), closedCall()); return err == nil })
	if d := time.Since(began); d > time.Second*slack {
		t.Errorf("recovered after %v, want a second", d)
	}
	if lost, back := events.count(StoreLost), events.count(StoreBack); lost != 1 || back != 1 {
		t.Errorf("told %d times that the store is lost and %d times that it is back, want once", lost, back)
	}
	eventually(t, "only what passed is charged", func() bool { return used(t, l, "m")[Requests] <= 4 })
}

// S24: a closed port, and a Redis that comes back empty.
func TestS24RedisGoneAndBack(t *testing.T) {
	t.Parallel()
	s := ownServer(t)
	client := s.Client()
	defer client.Close()
	c := models(Per(Requests, 1000, time.Hour))
	c.Redis = client
	l := newLimiter(t, c)
	reserve(t, l, closedCall())
	s.Kill()
	for range 20 {
		began := time.Now()
		if _, err := l.Reserve(t.Context(), closedCall()); !errors.Is(err, ErrStoreUnavailable) {
			t.Errorf("Reserve() = %v, want ErrStoreUnavailable", err)
		}
		if d := time.Since(began); d > 250*ms+100*ms*slack {
			t.Errorf("answered after %v, want 250ms", d)
		}
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	eventually(t, "calls pass again", func() bool { _, err := l.Reserve(t.Context(), closedCall()); return err == nil })
	if d := time.Since(began); d > 2*time.Second*slack {
		t.Errorf("recovered after %v, want about a second", d)
	}
}

// movedClient stands for the client of a Redis Cluster whose master has died: it asks
// the dead one until it reads again who serves.
type movedClient struct {
	old, next *redis.Client
	read      atomic.Bool
}

func (m *movedClient) Process(ctx context.Context, cmd redis.Cmder) error {
	if m.read.Load() {
		return m.next.Process(ctx, cmd)
	}
	return m.old.Process(ctx, cmd)
}

func (m *movedClient) ReloadState(context.Context) { m.read.Store(true) }

// S24: a client that has to be told to look for the new master is told so.
func TestS24ClusterMasterGone(t *testing.T) {
	t.Parallel()
	s, next := ownServer(t), ownServer(t)
	client := &movedClient{old: s.Client(), next: next.Client()}
	defer client.old.Close()
	defer client.next.Close()
	c := models(Per(Requests, 1000, time.Hour))
	c.Redis = client
	l := newLimiter(t, c)
	reserve(t, l, closedCall())
	s.Kill()
	if _, err := l.Reserve(t.Context(), closedCall()); !errors.Is(err, ErrStoreUnavailable) {
		t.Errorf("Reserve() = %v, want ErrStoreUnavailable", err)
	}
	eventually(t, "calls pass again", func() bool { _, err := l.Reserve(t.Context(), closedCall()); return err == nil })
}

// A waiting call whose Redis goes away is told so in time, not when its turn comes for ever.
func TestS24RedisGoneWhileCallsWait(t *testing.T) {
	t.Parallel()
	s := ownServer(t)
	client := s.Client()
	defer client.Close()
	c := models(Per(Requests, 1, 500*ms))
	c.Redis, c.StoreTimeout = client, 5*time.Second // a busy machine is not an outage; a refused connection is
	l := newLimiter(t, c)
	reserve(t, l, closedCall())
	ends := make(chan ended, 3)
	for i := range 3 {
		start(t.Context(), l, closedCall(), i, ends)
	}
	eventually(t, "all wait", func() bool { return model(t, l, "m").Waiting == 3 })
	s.Kill()
	for range 3 {
		if e := <-ends; !errors.Is(e.err, ErrStoreUnavailable) {
			t.Errorf("a waiting call ended with %v, want ErrStoreUnavailable", e.err)
		}
	}
}

// A foreign value at one of our keys is an error, not a panic, and nothing else
// is written.
func TestForeignValueIsAnError(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		put  func(ctx context.Context, c *redis.Client, key string) error
	}{
		{"another type", func(ctx context.Context, c *redis.Client, key string) error { return c.LPush(ctx, key, "x").Err() }},
		{"too short", func(ctx context.Context, c *redis.Client, key string) error {
			return c.Set(ctx, key, "x", time.Minute).Err()
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			client := server.Client()
			defer client.Close()
			c := models(Per(Requests, 10, time.Hour), Per(Tokens, 10, time.Hour))
			c.Redis, c.Prefix = client, prefix(t)
			l := newLimiter(t, c)
			_, target := l.find("key", "m")
			tape := target.limits[1].row(target.names, call().Lane).Tape
			if err := tc.put(t.Context(), client, tape); err != nil {
				t.Fatal(err)
			}
			k := call()
			k.Cost[Tokens] = 1
			if _, err := l.Reserve(t.Context(), k); !errors.Is(err, ErrStoreUnavailable) {
				t.Errorf("Reserve() = %v, want ErrStoreUnavailable", err)
			}
			client.Del(t.Context(), tape)
			if got := used(t, l, "m"); got[Requests] != 0 {
				t.Errorf("used = %v after a failed script, want nothing", got)
			}
			reserve(t, l, k)
		})
	}
}

// A Ring is refused with its reason.
func TestRingIsRefused(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": server.Addr}})
	defer ring.Close()
	c := models(Per(Requests, 1, time.Hour))
	c.Redis = ring
	if _, err := New(c); err == nil || !strings.Contains(err.Error(), "Ring") || !strings.Contains(err.Error(), "budget") {
		t.Errorf("New(Ring) = %v, want an error that says why", err)
	}
}
