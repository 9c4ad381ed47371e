package chaostest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway/lua"
	"github.com/headway-go/headway/throttle"
	"github.com/redis/go-redis/v9"
)

// Two versions of a program with different limits run side by side: each keeps
// to its own limit over all that both spend, so the larger one is the most that
// goes in any window, and no more than the smaller one where the old version
// still decides.
func TestRollingDeployWithOtherLimits(t *testing.T) {
	t.Parallel()
	const window = time.Second
	prefix := prefixOf(t)
	of := func(n int64) *throttle.Limiter {
		return newHost(t, throttle.Config{Prefix: prefix, Default: []throttle.Limit{throttle.Per(throttle.Requests, n, window)}})
	}
	small, large := of(6), of(12)
	var all []time.Time
	for began := time.Now(); time.Since(began) < 3*window; {
		// One after the other, so that what the first one saw is known.
		for _, v := range []struct {
			l *throttle.Limiter
			n int
		}{{small, 6}, {large, 12}} {
			r, err := v.l.Reserve(t.Context(), one("key", "m"))
			if err != nil {
				continue
			}
			in := 1
			for _, at := range all {
				if r.At().Sub(at) < window {
					in++
				}
			}
			if in > v.n {
				t.Errorf("a limit of %d admitted call %d of its window", v.n, in)
			}
			all = append(all, r.At())
		}
	}
	if n := most(all, window); n > 12 || n < 11 {
		t.Errorf("%d calls in a window, want 12", n)
	}
}

// A version that lays out its keys otherwise runs side by side: neither sees,
// changes or breaks what the other keeps. Each has the whole budget.
func TestTwoLayoutsSideBySide(t *testing.T) {
	t.Parallel()
	const n = 5
	prefix := prefixOf(t)
	l := newHost(t, throttle.Config{Prefix: prefix, Default: []throttle.Limit{throttle.PerMinute(throttle.Requests, n)}})
	for range n {
		reserve(t, l, one("key", "m"))
	}
	refuse(t, l, one("key", "m"))
	before := contents(t, prefix, "key", "m")

	other := exec.CommandContext(t.Context(), buildOther(t), server.Addr, prefix, strconv.Itoa(n))
	other.Stderr = os.Stderr
	out, err := other.Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(out), "admitted"); got != n {
		t.Errorf("the other version admitted %d calls, want its own %d", got, n)
	}
	refuse(t, l, one("key", "m"))
	if after := contents(t, prefix, "key", "m"); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the other version changed ours:\n%q\n%q", before, after)
	}
	db := server.Client()
	defer db.Close()
	theirs := strings.Replace(lua.NewNames(prefix, "key").Key(), prefix+":1:", prefix+":other:", 1)
	keys := db.Keys(t.Context(), strings.NewReplacer("{", "[{]", "}", "[}]").Replace(strings.TrimSuffix(theirs, "k"))+"*").Val()
	if len(keys) == 0 {
		t.Errorf("no key begins with %q, so this was not another layout", theirs)
	}
	for _, k := range keys {
		if ttl := db.PTTL(t.Context(), k).Val(); ttl <= 0 && ttl != -2 {
			t.Errorf("key %q has expiry %v", k, ttl)
		}
	}
}

// buildOther builds a host whose package lua has another layout.
func buildOther(t *testing.T) string {
	t.Helper()
	keys, err := filepath.Abs("../../lua/keys.go")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(keys)
	if err != nil {
		t.Fatal(err)
	}
	const layout = `const layout = "1"`
	if strings.Count(string(source), layout) != 1 {
		t.Fatalf("%s does not say %s", keys, layout)
	}
	dir := t.TempDir()
	changed, overlay, program := filepath.Join(dir, "keys.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "other")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {keys: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{changed: strings.Replace(string(source), layout, `const layout = "other"`, 1), overlay: string(text)} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", program, "./testdata/other")
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// jumping is a hook that moves the clock of the store: it sends the scripts
// themselves, with another TIME.
type jumping struct {
	sources map[string]string // by the hash of the true script
	ahead   *atomic.Int64     // microseconds
}

func newJumping(t *testing.T, ahead *atomic.Int64) *jumping {
	t.Helper()
	j := &jumping{map[string]string{}, ahead}
	for _, file := range []string{"../../lua/take.lua", "../../lua/fleet.lua"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		const now = "t[1] * 1000000 + t[2]"
		if strings.Count(string(source), now) != 1 {
			t.Fatalf("%s does not read TIME as %q", file, now)
		}
		j.sources[redis.NewScript(string(source)).Hash()] = strings.Replace(string(source), now, now+" + (%d)", 1)
	}
	return j
}

func (*jumping) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (*jumping) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (j *jumping) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); args[0] == "evalsha" {
			args[0], args[1] = "eval", strings.Replace(j.sources[args[1].(string)], "(%d)", strconv.FormatInt(j.ahead.Load(), 10), 1)
		}
		return next(ctx, cmd)
	}
}

// The store's clock jumps by ten minutes, as after a failover to a server that is
// wrong, or right. Forward, what was spent has aged: at most the limit once
// more. Back, nothing more goes until the clock has caught up, and a refusal
// says how long that is: the budget is never larger for a clock that goes back.
func TestStoreClockJumps(t *testing.T) {
	t.Parallel()
	const n, jump = 5, 10 * time.Minute
	var ahead atomic.Int64
	c := throttle.Config{Prefix: prefixOf(t), Default: []throttle.Limit{throttle.PerMinute(throttle.Requests, n)}}
	var hosts []*throttle.Limiter
	for range 2 {
		client := server.Client()
		t.Cleanup(func() { client.Close() })
		client.AddHook(newJumping(t, &ahead))
		c.Redis = client
		hosts = append(hosts, newHost(t, c))
	}
	spend := func() (went int) {
		t.Helper()
		for i := range 2 * n {
			if _, err := hosts[i%2].Reserve(t.Context(), one("key", "m")); err == nil {
				went++
			}
		}
		return went
	}
	if went := spend(); went != n {
		t.Fatalf("%d calls went, want %d", went, n)
	}
	ahead.Store(jump.Microseconds())
	if went := spend(); went != n {
		t.Errorf("%d calls went ten minutes later, want %d", went, n)
	}
	ahead.Store(0)
	if went := spend(); went != 0 {
		t.Errorf("%d calls went when the clock had gone back, want none", went)
	}
	for _, h := range hosts {
		e := refuse(t, h, one("key", "m"))
		if least := jump; e.RetryAfter < least || e.RetryAfter > (least+time.Minute)*11/10 {
			t.Errorf("the refusal says %v, want until the clock has caught up, about %v", e.RetryAfter, jump+time.Minute)
		}
	}
	if err := hosts[0].Pause(t.Context(), "key", "n", time.Minute); err != nil {
		t.Fatal(err)
	}
	ahead.Store(-jump.Microseconds())
	if e := refuse(t, hosts[1], one("key", "n")); e.Reason != throttle.ModelPaused {
		t.Errorf("refusal %+v, want the pause to hold when the clock goes back", e)
	}
	if err := hosts[0].Resume(t.Context(), "key", "n"); err != nil {
		t.Fatal(err)
	}
	reserve(t, hosts[1], one("key", "n")) // an operator can open it
}
