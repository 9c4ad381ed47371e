package chaostest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/redistest"
	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
)

// print takes a value the way a program would print it.
func (l *log) print(values ...any) {
	for _, v := range values {
		fmt.Fprintf(l, "%v\n%+v\n%#v\n", v, v, v)
	}
}

// The API key, and every piece of it, is on no channel that somebody else can
// read: what Redis holds, is sent, logs or shows of itself; logs, events, errors,
// states, reports and refusals of ours; and what "headway explain" prints.
func TestSecretOnEveryChannel(t *testing.T) {
	t.Parallel()
	const secret = "sk-zQ9xV7kPt3mWc5RbN8sLd2Hf"
	s, err := redistest.Start("--slowlog-log-slower-than", "0", "--slowlog-max-len", "100000", "--latency-monitor-threshold", "1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	seen := map[string]*log{}
	channel := func(name string) *log {
		if seen[name] == nil {
			seen[name] = &log{}
		}
		return seen[name]
	}
	monitor := channel("MONITOR")
	monitored := watchCommands(t, s.Addr, monitor)

	db := s.Client()
	defer db.Close()
	logs, events := channel("logs at Debug"), channel("events")
	logger := slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug, AddSource: true}))
	host := func() *throttle.Limiter {
		client := s.Client()
		t.Cleanup(func() { client.Close() })
		l, err := throttle.New(throttle.Config{Redis: client, Prefix: "headway", StoreTimeout: 5 * time.Second, Policy: pause.Policy{Refused: 50 * ms},
			Default: []throttle.Limit{throttle.PerMinute(throttle.Requests, 20)}, Logger: logger,
			OnEvent: func(e throttle.Event) { events.print(e, e.Err) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close(context.Background()) })
		return l
	}
	a, b := host(), host()
	vendor := vendorsim.Run(t, vendorsim.Config{})
	errs, answers, states := channel("errors"), channel("synthetic responses"), channel("Status and reports")
	var key string
	call := func(tr *transport.Transport, model string, lane lanes.Lane) {
		tr.Logger = logger
		req := request(t, lanes.With(t.Context(), lane), vendor.URL()+"/v1/chat/completions", model)
		req.Header.Set("Authorization", "Bearer "+secret)
		if key, err = tr.Fingerprint(req); err != nil {
			t.Fatal(err)
		}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			errs.print(err, errors.Unwrap(err))
			return
		}
		if refused, ok := transport.FromResponse(resp); ok { // else it is the vendor's own, which may name the key
			answers.print(refused, resp.Header, resp.Status)
			_, _ = io.Copy(answers, resp.Body)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	for i, l := range []*throttle.Limiter{a, b} {
		plain := &transport.Transport{Limiter: l, MaxWait: -1}
		sdk := &transport.Transport{Limiter: l, MaxWait: -1, Refusals: transport.AsResponse}
		large := &transport.Transport{Limiter: l, Cost: throttle.Cost{throttle.Requests: 21}}
		vendor.RefuseKey(secret, true) // it repeats the whole key in its answer
		call(plain, "m", lanes.Live)
		call(plain, "m", lanes.Background)
		call(sdk, "m", lanes.Live)
		vendor.RefuseKey(secret, false)
		vendor.Script("later", vendorsim.RateLimited(time.Minute, vendorsim.DialectText))
		eventually(t, "the key works again", func() bool {
			call(plain, "later", lanes.Live)
			s, err := l.Status(t.Context(), key, "later")
			return err == nil && s.Models[0].State.Left > 0
		})
		vendor.Script("m", vendorsim.Answer{Cut: vendorsim.CutBefore})
		call(plain, "m", lanes.Live)
		call(sdk, "later", lanes.Live)
		call(large, "m", lanes.Live)
		call(sdk, fmt.Sprintf("}{%d\x00\r\n", i), lanes.Live)
	}
	eventually(t, "both hosts have reported", func() bool {
		s, err := b.Status(t.Context(), key)
		return err == nil && len(s.Fleet) == 2 && len(s.Fleet[0].Report.Models) > 1
	})
	for _, l := range []*throttle.Limiter{a, b} {
		s, err := l.Status(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		states.print(s)
	}
	for _, k := range db.Keys(t.Context(), "*").Val() {
		channel("keys and values").print(k, db.Dump(t.Context(), k).Val(), db.Get(t.Context(), k).Val(), db.HGetAll(t.Context(), k).Val(), db.ZRange(t.Context(), k, 0, -1).Val())
	}
	channel("SLOWLOG").print(db.SlowLogGet(t.Context(), -1).Val())
	channel("INFO and CLIENT LIST").print(db.Info(t.Context(), "everything").Val(), db.ClientList(t.Context()).Val())
	channel("headway explain").print(explain(t, secret))
	s.Kill() // ends MONITOR
	<-monitored
	call(&transport.Transport{Limiter: a}, "m", lanes.Background)

	// Each channel says something that it must say, or the test sees nothing.
	for name, word := range map[string]string{
		"MONITOR": key, "logs at Debug": "pause began", "events": "key paused", "errors": "store unavailable", "synthetic responses": "rate_limit_error",
		"Status and reports": "Report", "keys and values": key, "SLOWLOG": "evalsha", "INFO and CLIENT LIST": "redis_version", "headway explain": "key_refused",
	} {
		l := seen[name]
		l.mu.Lock()
		text := l.text.String()
		l.mu.Unlock()
		if !strings.Contains(text, word) {
			t.Errorf("%s does not contain %q", name, word)
		}
		for i := range len(secret) - 8 - len("sk-") {
			piece := secret[len("sk-")+i:][:8]
			if at := strings.Index(text, piece); at >= 0 {
				t.Errorf("%s has a piece of the key behind %q", name, text[max(0, at-60):at])
			}
		}
	}
}

// watchCommands reads every command that a server gets until that ends.
func watchCommands(t *testing.T, addr string, to io.Writer) (done chan struct{}) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "MONITOR\r\n"); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(c)
	if line, err := lines.ReadString('\n'); err != nil || line != "+OK\r\n" {
		t.Fatalf("MONITOR answers %q, %v", line, err)
	}
	done = make(chan struct{})
	go func() {
		defer close(done)
		defer c.Close()
		_, _ = io.Copy(to, lines)
	}()
	return done
}

// explain is what the operator's command prints of an exchange with the key in
// every place where vendors and callers put it.
func explain(t *testing.T, secret string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "headway")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir, build.Env = "../../cmd/headway", append(os.Environ(), "GOWORK=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	exchange := fmt.Sprintf(`{"request":{"method":"POST","url":"https://api.openai.com/v1/chat/completions?key=%[1]s",
		"headers":{"Authorization":"Bearer %[1]s","X-Api-Key":"%[1]s"},"body":{"model":"m","user":"%[1]s"}},
		"response":{"status":401,"headers":{"X-Echo":"%[1]s"},"body":{"error":{"code":"invalid_api_key","message":"Incorrect API key provided: %[1]s."}}}}`, secret)
	var all bytes.Buffer
	for _, args := range [][]string{{"explain"}, {"explain", "--text"}} {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(exchange), &all, &all
		if err := cmd.Run(); err != nil {
			t.Fatalf("headway %v: %v\n%s", args, err, &all)
		}
	}
	return all.String()
}

// A tenant who names models cannot reach what is kept of another model, of the
// key, of another key or of the fleet: whatever happens to the hostile name.
func TestHostileNamesReachNobodyElse(t *testing.T) {
	t.Parallel()
	prefix := prefixOf(t)
	a, b := newPair(t, throttle.Config{Prefix: prefix, Key: []throttle.Limit{throttle.PerDay(throttle.Requests, 1e6)},
		Default: []throttle.Limit{throttle.PerMinute(throttle.Requests, 3)}})
	for _, key := range []string{"key", "other"} {
		for _, model := range []string{"m", "k", throttle.NoModel} { // victims
			reserve(t, a, one(key, model))
		}
		if err := a.Pause(t.Context(), key, "k", time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	victims := func() (all []string) {
		for _, key := range []string{"key", "other"} {
			for _, model := range []string{"m", "k", throttle.NoModel} {
				m := modelStatus(t, b, key, model)
				all = append(all, fmt.Sprint(key, " ", model, " ", m.State.Phase, m.State.Left > 0, m.Limits[0].Used, contents(t, prefix, key, model)))
			}
		}
		return all
	}
	before := victims()
	for _, name := range []string{
		"m:line", "m:requests:60000000", "m:requests:60000000f", "k:requests:86400000000", ":m", "m:", "m:m", "m\x00", "m\n", " m", "m ", "M", "ｍ",
		"../m", "*", "?", "[m]", "m*", "{key}:m:m", "}:m:m", "{other}", prefix + ":1:{key}:m:m", "f", "f:reports", "line", "#",
		"-\x00", "+ ", "\xff", "m\r\nDEL m\r\n", `"m"`, strings.Repeat("m", 65), strings.Repeat("m", 100<<10),
	} {
		c := one("key", name)
		for range 3 {
			reserve(t, a, c)
		}
		if e := refuse(t, b, c); e.Reason != throttle.NoRoom || !strings.Contains(e.Limit, "3 requests") {
			t.Errorf("%.20q: %+v, want its own limit", name, e)
		}
		r := reserve(t, a, throttle.Call{Key: "key", Model: name, Cost: throttle.Cost{throttle.Requests: 0}})
		if err := r.Report(t.Context(), pause.Verdict{Class: pause.RateLimited, Scope: pause.Model, Hint: pause.Hint{Wait: time.Hour, Named: true}}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*ms)
		waits := c
		waits.MaxWait = 300 * 24 * time.Hour
		_, _ = b.Wait(ctx, waits)
		cancel()
		if err := b.Resume(t.Context(), "key", name); err != nil {
			t.Fatal(err)
		}
	}
	after := victims()
	for i := range before {
		if after[i] != before[i] {
			t.Errorf("a hostile name changed\n%q to\n%q", before[i], after[i])
		}
	}
	// "M" and the others above are not "m" under other spellings: nothing is
	// folded, so a tenant's spelling is a budget of its own. Aliases join them.
	reserve(t, b, one("key", "m"))
}
