package chaostest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
)

// errandEnv tells the test binary to be a host that makes one call.
const errandEnv = "HEADWAY_TEST_ERRAND"

// errand is what such a process is told.
type errand struct {
	Redis, Prefix, Vendor, Model string
	Limits                       []throttle.Limit
	Wait                         time.Duration
	Stream                       bool
}

// apiKey is the credential of all errands.
const apiKey = "sk-errand"

// runErrand makes one call as a process of its own, and says how far it got: its
// admission, the first bytes of the answer, the end. It returns its exit code.
func runErrand(text string) int {
	var o errand
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	client := redisAt(o.Redis)
	defer client.Close()
	limiter, err := throttle.New(throttle.Config{Redis: client, Prefix: o.Prefix, Default: o.Limits, StoreTimeout: 5 * time.Second})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	body := fmt.Sprintf(`{"model":%q,"stream":%v,"max_tokens":100}`, o.Model, o.Stream)
	req, err := http.NewRequest(http.MethodPost, o.Vendor+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	req.Header.Set("Authorization", "Bearer "+apiKey)
	resp, err := (&http.Client{Transport: &transport.Transport{Limiter: speaking{limiter}, MaxWait: o.Wait}}).Do(req)
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	_, _ = io.ReadFull(resp.Body, make([]byte, 8))
	fmt.Println("reading")
	_, _ = io.Copy(io.Discard, resp.Body)
	fmt.Println("done")
	return 0
}

// speaking says when a call is admitted, by the store's clock.
type speaking struct{ *throttle.Limiter }

func (s speaking) Wait(ctx context.Context, c throttle.Call) (*throttle.Reservation, error) {
	r, err := s.Limiter.Wait(ctx, c)
	if err == nil {
		fmt.Println("admitted", r.At().UnixMicro())
	}
	return r, err
}

// runner is an errand under way.
type runner struct {
	cmd   *exec.Cmd
	lines chan string // closed at its end
}

func send(t *testing.T, o errand) *runner {
	t.Helper()
	o.Redis = server.Addr
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{cmd: exec.Command(os.Args[0]), lines: make(chan string, 16)}
	r.cmd.Env = append(os.Environ(), errandEnv+"="+string(text))
	r.cmd.Stderr = os.Stderr
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			r.lines <- lines.Text()
		}
		_ = r.cmd.Wait() // it may have been killed
	}()
	t.Cleanup(r.kill)
	return r
}

// await returns what follows a word of the errand.
func (r *runner) await(t *testing.T, word string) string {
	t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		select {
		case line, ok := <-r.lines:
			if rest, is := strings.CutPrefix(line, word); is && ok {
				return strings.TrimSpace(rest)
			}
			if !ok || strings.HasPrefix(line, "error") {
				t.Fatalf("the errand ended with %q before it was %s", line, word)
			}
		case <-timeout:
			t.Fatalf("the errand is not %s", word)
		}
	}
}

// admitted waits for the admission and returns its time.
func (r *runner) admitted(t *testing.T) time.Time {
	t.Helper()
	at, err := strconv.ParseInt(r.await(t, "admitted"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.UnixMicro(at)
}

func (r *runner) kill() { _ = r.cmd.Process.Kill() }

func (r *runner) freeze(t *testing.T) { r.signal(t, syscall.SIGSTOP) }
func (r *runner) thaw(t *testing.T)   { r.signal(t, syscall.SIGCONT) }

func (r *runner) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}
