package headway_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
	"github.com/redis/go-redis/v9"
)

// tap is a hook that sees every command of one host's Redis client.
type tap struct {
	mu   sync.Mutex
	keep bool // what is sent and answered, not only counts
	sent []sent
	n    int
}

// sent is one command and its answer.
type sent struct {
	args  []any
	reply string
}

func (*tap) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (*tap) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (p *tap) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		p.mu.Lock()
		defer p.mu.Unlock()
		if keys := keysOf(cmd.Args()); len(keys) > 0 && !strings.HasSuffix(keys[0], "}:f") { // the list of processes is not counted
			p.n++
		}
		if p.keep {
			s := sent{args: cmd.Args()}
			if c, ok := cmd.(interface{ Text() (string, error) }); ok {
				s.reply, _ = c.Text()
			}
			p.sent = append(p.sent, s)
		}
		return err
	}
}

// keysOf are the keys that a script's command declares.
func keysOf(args []any) (keys []string) {
	if len(args) < 3 {
		return nil
	}
	n, _ := args[2].(int)
	for _, k := range args[3 : 3+n] {
		keys = append(keys, k.(string))
	}
	return keys
}

// commands returns how many decisions the host asked for since it last did.
func (p *tap) commands() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.n
	p.n = 0
	return n
}

func (p *tap) record() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keep = true
}

func (p *tap) recorded() []sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]sent(nil), p.sent...)
}

// wire is a fleet whose hosts call one vendor through a transport each.
type wire struct {
	*fleet
	vendor     *vendorsim.Server
	transports [2]*transport.Transport
}

func newWire(t *testing.T, c throttle.Config, v vendorsim.Config) *wire {
	t.Helper()
	w := &wire{vendor: vendorsim.Run(t, v), fleet: newFleet(t, c)}
	for i := range w.transports {
		base := &http.Transport{MaxIdleConnsPerHost: 256}
		t.Cleanup(base.CloseIdleConnections)
		w.transports[i] = &transport.Transport{Limiter: w.each(i).Limiter, Base: base}
	}
	return w
}

const apiKey = "sk-promise"

// ask is one chat call; its zero fields are the usual ones.
type ask struct {
	host  int             // of the fleet
	ctx   context.Context // zero: the test's
	lane  lanes.Lane      // zero: live
	wait  time.Duration   // longest; zero: the lane's
	key   string          // zero: apiKey
	model string          // zero: "m"
	url   string          // zero: the vendor's chat completions
	body  string          // zero: a short chat
	edit  func(*http.Request)
}

// answer is what became of an ask.
type answer struct {
	status int
	body   string
	err    error
	took   time.Duration // until the header or the refusal
}

func (w *wire) request(t *testing.T, a ask) *http.Request {
	or := func(s *string, other string) {
		if *s == "" {
			*s = other
		}
	}
	or(&a.key, apiKey)
	or(&a.model, "m")
	or(&a.url, w.vendor.URL()+"/v1/chat/completions")
	or(&a.body, `{"model":"`+a.model+`","max_tokens":16,"messages":[{"role":"user","content":"hello"}]}`)
	if a.ctx == nil {
		a.ctx = t.Context()
	}
	lane := a.lane.Or(lanes.Live)
	ctx := transport.WithMaxWait(lanes.With(a.ctx, lane), a.wait)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, strings.NewReader(a.body))
	if err != nil {
		t.Error(err)
		return nil
	}
	req.Header.Set("Authorization", "Bearer "+a.key)
	req.Header.Set("X-Lane", lane.Name)
	if a.edit != nil {
		a.edit(req)
	}
	return req
}

// send makes one call as any program would, and reads the whole answer.
func (w *wire) send(t *testing.T, a ask) answer {
	t.Helper()
	began := time.Now()
	resp, err := (&http.Client{Transport: w.transports[a.host%2]}).Do(w.request(t, a))
	got := answer{err: err, took: time.Since(began)}
	if err == nil {
		defer resp.Body.Close()
		body, readErr := io.ReadAll(resp.Body)
		got.status, got.body, got.err = resp.StatusCode, string(body), readErr
	}
	return got
}

// status sends a call and demands an answer of the vendor with this status.
func (w *wire) status(t *testing.T, want int, a ask) {
	t.Helper()
	if got := w.send(t, a); got.err != nil || got.status != want {
		t.Fatalf("host %d: answer %d, %v, want %d of the vendor", a.host%2, got.status, got.err, want)
	}
}

// refused sends a call that must not go out.
func (w *wire) refused(t *testing.T, a ask) *throttle.RefusedError {
	t.Helper()
	before := w.vendor.Count(vendorsim.Filter{})
	got := w.send(t, a)
	if n := w.vendor.Count(vendorsim.Filter{}); n != before {
		t.Fatalf("the vendor saw %d calls, want none", n-before)
	}
	return refusal(t, got.err)
}

// many sends n calls at once, from the hosts in turn.
func (w *wire) many(t *testing.T, n int, each func(i int) ask) []answer {
	t.Helper()
	out := make([]answer, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			a := each(i)
			a.host = i
			out[i] = w.send(t, a)
		})
	}
	wg.Wait()
	return out
}

// await waits until the vendor has seen n calls.
func (w *wire) await(t *testing.T, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := w.vendor.Await(ctx, n, vendorsim.Filter{}); err != nil {
		t.Fatal(err)
	}
}

// call is the budget's side of an ask.
func (w *wire) call(t *testing.T, a ask) throttle.Call {
	t.Helper()
	key, err := w.transports[0].Fingerprint(w.request(t, a))
	if err != nil {
		t.Fatal(err)
	}
	if a.model == "" {
		a.model = "m"
	}
	return throttle.Call{Key: key, Model: a.model}
}

// count counts the answers with a status, or with 0 the refusals.
func count(t *testing.T, out []answer, status int) (n int) {
	t.Helper()
	for _, a := range out {
		switch {
		case a.err == nil && a.status == status, status == 0 && errors.Is(a.err, throttle.ErrRefused):
			n++
		case a.err != nil && !errors.Is(a.err, throttle.ErrRefused):
			t.Error(a.err)
		}
	}
	return n
}

// now is the ask that is refused rather than wait.
func (a ask) now() ask {
	a.wait = -1
	return a
}
