package headway_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
	"github.com/redis/go-redis/v9"
)

// ahead is how far the store's clock is ahead of the hosts' in the tests below.
const ahead = 10 * time.Minute

// shifted is a hook that moves the clock of the store: it sends the scripts
// themselves, with another TIME.
type shifted struct{ sources map[string]string } // by the hash of the true script

func newShifted(t *testing.T) *shifted {
	t.Helper()
	s := &shifted{map[string]string{}}
	for _, file := range []string{"lua/take.lua", "lua/fleet.lua"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		const now = "t[1] * 1000000 + t[2]"
		if strings.Count(string(source), now) != 1 {
			t.Fatalf("%s does not read TIME as %q", file, now)
		}
		s.sources[redis.NewScript(string(source)).Hash()] = strings.Replace(string(source), now, fmt.Sprintf("%s + %d", now, ahead.Microseconds()), 1)
	}
	return s
}

func (*shifted) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (*shifted) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (s *shifted) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); args[0] == "evalsha" {
			args[0], args[1] = "eval", s.sources[args[1].(string)]
		}
		return next(ctx, cmd)
	}
}

// Promise 20: the store's clock is the only one. It is ten minutes ahead here:
// whatever a host's clock decided would be ten minutes wrong (S25).
func TestPromise20_OneClock(t *testing.T) {
	t.Parallel()
	c := all()
	c.Prefix = prefixOf(t)
	f := &fleet{db: server.Client(), prefix: c.Prefix}
	t.Cleanup(func() { f.db.Close() })
	for _, h := range []**host{&f.a, &f.b} {
		client := server.Client()
		client.AddHook(newShifted(t))
		*h = newHost(t, client, c)
		(*h).tap.record()
	}
	began := time.Now()
	f.everything(t, "key", "m")
	if d := time.Since(began); d > 3*time.Second*slack {
		t.Errorf("waits and pauses of a third of a second took %v", d)
	}

	k := throttle.Call{Key: "key", Model: "n", Cost: throttle.Cost{throttle.Requests: 8, "fixed": 1, "bucket": 1}}
	first := reserve(t, f.a, k)
	if d := time.Until(first.At()) - ahead; d.Abs() > time.Minute {
		t.Fatalf("the store's clock is %v ahead, want %v", d+ahead, ahead)
	}
	began = time.Now()
	second, err := f.b.Wait(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	if d := second.At().Sub(first.At()); d < 200*ms || time.Since(began) > time.Second*slack {
		t.Errorf("a wait of 200ms took %v, %v by the store's clock", time.Since(began), d)
	}
	if err := second.Settle(t.Context(), throttle.Cost{"fixed": 5}); err != nil {
		t.Fatal(err)
	}
	if got := f.a.used(t, k, "fixed"); got != 6 && got != 5 { // a minute may just have begun
		t.Errorf("used = %d, want 1 and the settled 5", got)
	}
	report(t, second, later(20*time.Second))
	for _, h := range []*host{f.a, f.b} {
		s, m := h.status(t, "key", "n")
		if m.State.Left > 20*time.Second || m.State.Left < 20*time.Second-time.Second*slack {
			t.Errorf("the pause has %v left, want 20s on every host", m.State.Left)
		}
		for _, member := range s.Fleet {
			if d := time.Until(member.Seen) - ahead; d.Abs() > time.Minute {
				t.Errorf("a process was seen %v from now, want by the store's clock", d+ahead)
			}
		}
	}

	// No host's time reaches Redis: nothing that was sent is within five minutes of it, in any unit.
	var numbers []float64
	for _, cmd := range append(f.a.tap.recorded(), f.b.tap.recorded()...) {
		for i, arg := range cmd.args {
			switch a := arg.(type) {
			case []byte:
				for ; len(a) >= 8; a = a[8:] {
					numbers = append(numbers, math.Float64frombits(binary.LittleEndian.Uint64(a)))
				}
			case string:
				if i == 1 { // the script
					continue
				}
				for _, digits := range strings.FieldsFunc(a, func(r rune) bool { return (r < '0' || r > '9') && r != '.' }) {
					if n, err := strconv.ParseFloat(digits, 64); err == nil {
						numbers = append(numbers, n)
					}
				}
			default:
				if n, err := strconv.ParseFloat(fmt.Sprint(a), 64); err == nil {
					numbers = append(numbers, n)
				}
			}
		}
	}
	if len(numbers) < 500 {
		t.Fatalf("%d numbers were sent, want the commands of both hosts", len(numbers))
	}
	stores := 0
	for _, n := range numbers {
		for unit, perSecond := range map[string]float64{"seconds": 1, "milliseconds": 1e3, "microseconds": 1e6, "nanoseconds": 1e9} {
			d := n/perSecond - float64(time.Now().Unix())
			if math.Abs(d) < 300 {
				t.Errorf("%.0f was sent to Redis: the host's clock in %s", n, unit)
			}
			if math.Abs(d-ahead.Seconds()) < 300 {
				stores++ // echoed: when a call was charged
			}
		}
	}
	if stores == 0 {
		t.Error("no time of the store's was sent back, so the test does not read what is sent")
	}
	for _, key := range f.keys(t) {
		if ttl := f.db.PTTL(t.Context(), key).Val(); ttl <= 0 && ttl != -2 {
			t.Errorf("key %q has expiry %v", key, ttl)
		}
	}
}

// Promise 20: a date that a vendor names is read against the vendor's own clock.
func TestPromise20_DatesAreReadAgainstTheVendorsClock(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"ahead": ahead, "behind": -ahead} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := plenty()
			c.Policy = pause.Policy{Now: 10 * ms}
			w := newWire(t, c, vendorsim.Config{Now: func() time.Time { return time.Now().Add(off) }})
			w.vendor.Script("m", vendorsim.RateLimited(20*time.Second, vendorsim.DialectDate))
			w.status(t, 429, ask{})
			if left := w.left(t, ask{}); left < 20*time.Second-time.Second*slack || left > 22*time.Second {
				t.Errorf("the pause has %v left, want 20s, rounded up to a date", left)
			}
		})
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
