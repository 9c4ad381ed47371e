// Package npmopenai puts the official openai package of npm behind the gateway.
package npmopenai

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/sdktest"
	"github.com/headway-go/headway/internal/vendorsim"
)

const refusedKey = "sk-loopback-refused"

// atOnce is the longest that a refusal takes. The package's shortest backoff is
// longer.
const atOnce = 350 * time.Millisecond

// line is what came of one call of scene.mjs.
type line struct {
	Name, Text, Error string
	Status, Attempts  int
	MS, Spread        float64
	Refusal           *struct {
		Reason       string
		RetryAfterMS float64
	}
}

func TestSDK(t *testing.T) {
	version := install(t)
	vendor := vendorsim.Run(t, vendorsim.Config{})
	vendor.SetStream(4, 200*time.Millisecond)
	vendor.Script("model-d", vendorsim.RateLimited(time.Second, vendorsim.DialectSeconds))
	vendor.RefuseKey(refusedKey, true)
	lines := scene(t, gateway(t, vendor.URL()))
	row := sdktest.Row{SDK: "openai (npm), through the gateway", Version: version, Attempts: lines["refused"].Attempts, Lost: "none"}
	t.Run("call", func(t *testing.T) {
		for _, name := range []string{"call", "settled"} {
			if l := lines[name]; l.Text != "ok " || l.Attempts != 1 {
				t.Errorf("%s: %+v", name, l)
			}
		}
		row.Call = "yes, settled"
	})
	t.Run("stream", func(t *testing.T) { // S10
		if l := lines["stream"]; l.Text != "ok ok ok ok " || l.Spread < 400 {
			t.Errorf("%+v, want four pieces as the vendor sends them", l)
		}
		row.Stream = "live"
	})
	t.Run("refusal", func(t *testing.T) {
		if l := lines["background"]; l.Text != "ok " {
			t.Errorf("the lane's share of 2: %+v", l)
		}
		l := lines["refused"]
		if l.Status != 429 || l.Attempts != 1 || l.Refusal == nil || l.Refusal.Reason != "no room" || l.Refusal.RetryAfterMS <= 0 {
			t.Errorf("%+v, want one attempt and no room", l)
		}
		if took := time.Duration(l.MS * float64(time.Millisecond)); took > atOnce {
			t.Errorf("the refusal took %v, want it at once", took)
		}
		if got := vendor.Count(vendorsim.Filter{Model: "model-c"}); got != 1 {
			t.Errorf("the vendor saw %d calls, want 1", got)
		}
		row.Reason = "`err.headers`"
	})
	t.Run("vendor 429", func(t *testing.T) {
		l := lines["later"]
		if l.Text != "ok " || l.Attempts != 2 || l.MS < 1000 {
			t.Errorf("%+v, want the retry to pass after the second that the vendor named", l)
		}
		row.TooMany = "2 attempts: the last one goes out after the pause"
	})
	t.Run("refused key", func(t *testing.T) {
		l := lines["key"]
		if l.Status != 401 || l.Attempts != 1 || l.Refusal != nil {
			t.Errorf("%+v, want the vendor's 401", l)
		}
		next := lines["another model"]
		if next.Refusal == nil || next.Refusal.Reason != "key paused" || vendor.Count(vendorsim.Filter{Key: refusedKey}) != 1 {
			t.Errorf("%+v, want the key paused", next)
		}
		row.Key = fmt.Sprintf("%d attempt: %d", l.Attempts, l.Status)
	})
	sdktest.Record(t, row)
}

// install installs the package where the version of package.json is not there,
// and returns that version.
func install(t *testing.T) string {
	t.Helper()
	want := struct{ Dependencies struct{ OpenAI string } }{}
	got := struct{ Version string }{}
	read(t, "package.json", &want)
	installed := filepath.Join("node_modules", "openai", "package.json")
	if _, err := os.Stat(installed); err == nil {
		read(t, installed, &got)
	}
	if got.Version != want.Dependencies.OpenAI {
		if out, err := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund").CombinedOutput(); err != nil {
			t.Fatalf("npm ci: %v\n%s", err, out)
		}
	}
	return want.Dependencies.OpenAI
}

func read(t *testing.T, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// gateway builds and starts examples/gateway in front of a vendor, with 2
// requests a minute for each model, and returns its URL.
func gateway(t *testing.T, vendor string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "gateway")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../gateway").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program,
		"-listen", "127.0.0.1:0", "-vendor", vendor, "-requests", "2", "-tokens", "40000")
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the gateway ended with %v", err)
		}
	})
	url, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(url)
}

// scene plays scene.mjs and returns its lines by name.
func scene(t *testing.T, url string) map[string]line {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", "scene.mjs")
	cmd.Env = append(cmd.Environ(), "GATEWAY="+url, "KEY="+sdktest.Key, "REFUSED_KEY="+refusedKey)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]line{}
	for b := range bytes.Lines(out) {
		var l line
		if err := json.Unmarshal(b, &l); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		lines[l.Name] = l
	}
	return lines
}
