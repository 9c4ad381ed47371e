package throttle

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/lanes"
)

// limitsOf tells models apart by the amount of their limit.
func limitsOf(n int64) []Limit { return []Limit{Per(Requests, n, time.Hour)} }

// Names, patterns and aliases choose the limits and the budget of a model.
func TestModelNames(t *testing.T) {
	t.Parallel()
	c := Config{
		Models: map[string][]Limit{
			"gpt":         limitsOf(3),
			"gpt-*":       limitsOf(4),
			"gpt-4*":      limitsOf(5),
			"gpt-4o":      limitsOf(6),
			"claude-opus": limitsOf(7),
		},
		Default: limitsOf(2),
		Aliases: map[string]string{"claude-opus-*": "claude-opus", "old": "gpt-4o"},
	}
	for _, tc := range []struct {
		model  string
		shared string // another name of the same budget; "" for none
		amount int
	}{
		{"gpt", "", 3}, {"gpt-3", "", 4}, {"gpt-4", "", 5}, {"gpt-4-turbo", "", 5}, {"gpt-4o", "old", 6},
		{"claude-opus-2026-01-01", "claude-opus", 7}, {"claude-opus-x", "claude-opus-y", 7}, {"claude", "", 2}, {"", NoModel, 2}, {"GPT", "", 2},
	} {
		t.Run("model "+tc.model, func(t *testing.T) {
			t.Parallel()
			onBoth(t, c, func(t *testing.T, p *pair) {
				k := call()
				went := 0
				for i := range 20 {
					if k.Model = tc.model; tc.shared != "" && i%2 == 1 {
						k.Model = tc.shared
					}
					if _, err := p.each(i).Reserve(t.Context(), k); err == nil {
						went++
					} else {
						refusal(t, err)
					}
				}
				if went != tc.amount {
					t.Errorf("%d calls passed, want %d", went, tc.amount)
				}
				k.Model = "gpt-3.5" // a budget of its own
				reserve(t, p.a, k)
			})
		})
	}
}

// A model that no limit names passes, with one warning a name, under the limits
// of its key and under every pause; a strict limiter refuses it.
func TestUnknownModels(t *testing.T) {
	t.Parallel()
	c := models(Per(Requests, 1, time.Hour))
	c.Key = limitsOf(5)
	onBoth(t, c, func(t *testing.T, p *pair) {
		for range 5 {
			k := call()
			k.Model = "unknown"
			reserve(t, p.a, k)
		}
		if n := p.events.count(UnlimitedModel); n != 1 {
			t.Errorf("%d warnings, want 1", n)
		}
		k := call()
		k.Model = "unknown too"
		if e := refuse(t, p.a, k); e.Unit != Requests {
			t.Errorf("refusal = %+v, want the key's requests", e)
		}
		if err := p.b.Pause(t.Context(), "key", "unknown", time.Hour); err != nil {
			t.Fatal(err)
		}
		k.Model = "unknown"
		k.Cost = Cost{Requests: 0}
		if e := refuse(t, p.a, k); e.Reason != ModelPaused {
			t.Errorf("refusal = %+v, want the pause", e)
		}
	})
	c.Strict = true
	onStrict := func(t *testing.T, p *pair) {
		k := call()
		k.Model = "unknown"
		if _, err := p.a.Reserve(t.Context(), k); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "unknown") {
			t.Errorf("Reserve() = %v, want ErrInvalid naming the model", err)
		}
		reserve(t, p.a, call())
	}
	t.Run("strict", func(t *testing.T) { onBoth(t, c, onStrict) })
}

// Promise 19: junk names of models make no keys without limits, and with them
// keys of a bounded length that do not meet.
func TestJunkModelNames(t *testing.T) {
	t.Parallel()
	junk := func(i int) string {
		return fmt.Sprintf("%s}{%d:line\r\n\x00*%s", strings.Repeat("x", i*50), i, strings.Repeat("é", i))
	}
	t.Run("without limits", func(t *testing.T) {
		t.Parallel()
		onRedis(t, models(Per(Requests, 1, time.Hour)), func(t *testing.T, p *pair) {
			for i := range 100 {
				reserve(t, p.a, Call{Key: "key", Model: junk(i)})
			}
			for _, k := range p.keys(t) {
				if !strings.HasSuffix(k, ":f") && !strings.HasSuffix(k, ":f:reports") {
					t.Errorf("key %q for a model without limits", k)
				}
			}
		})
	})
	t.Run("with limits", func(t *testing.T) {
		t.Parallel()
		onRedis(t, Config{Default: limitsOf(1)}, func(t *testing.T, p *pair) {
			for i := range 50 {
				k := call()
				k.Model = junk(i)
				reserve(t, p.a, k)
				refuse(t, p.b, k)
			}
			for _, k := range p.keys(t) {
				if len(k) > len(p.prefix)+150 || strings.Count(k, "{") != 1 || strings.Count(k, "}") != 1 {
					t.Errorf("key %q, want it short and with one hash tag", k)
				}
			}
		})
	})
	t.Run("memory is bounded", func(t *testing.T) {
		t.Parallel()
		l := newLimiter(t, models(Per(Requests, 1, time.Hour)))
		for i := range 3 * maxNames {
			reserve(t, l, Call{Key: "key", Model: fmt.Sprint(i)})
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.targets) > maxNames || len(l.unknown) > maxNames {
			t.Errorf("%d targets and %d names are kept, want at most %d", len(l.targets), len(l.unknown), maxNames)
		}
	})
}

// New copies its configuration: what the caller changes afterwards has no effect.
func TestConfigIsCopied(t *testing.T) {
	t.Parallel()
	c := models(Per(Requests, 1, time.Hour))
	c.Default, c.Key, c.Aliases = limitsOf(1), limitsOf(3), map[string]string{"a": "m"}
	l := newLimiter(t, c)
	c.Models["m"][0].Amount, c.Default[0].Amount, c.Key[0].Amount = 9, 9, 9
	delete(c.Aliases, "a")
	c.Models["n"] = limitsOf(9)
	k := call()
	k.Model = "a"
	reserve(t, l, k)
	refuse(t, l, call())
	k.Model = "n"
	reserve(t, l, k)
	refuse(t, l, k)
	k.Model = "o"
	reserve(t, l, k)
	k.Model = "p"
	refuse(t, l, k)
}

// A wrong configuration is an error that names the field.
func TestConfigErrors(t *testing.T) {
	t.Parallel()
	limit := func(change func(*Limit)) Config {
		l := Per(Requests, 10, time.Minute)
		change(&l)
		return models(l)
	}
	for _, tc := range []struct {
		name string
		c    Config
		want string
	}{
		{"amount", limit(func(l *Limit) { l.Amount = -1 }), `Models["m"][0].Amount`},
		{"amount above 2^53-1", limit(func(l *Limit) { l.Amount = MaxAmount + 1 }), "Amount"},
		{"unit", limit(func(l *Limit) { l.Unit = "" }), "Unit"},
		{"window", limit(func(l *Limit) { l.Window = 0 }), "Window"},
		{"window in nanoseconds", limit(func(l *Limit) { l.Window = time.Second + 1 }), "Window"},
		{"shape", limit(func(l *Limit) { l.Shape = 7 }), "Shape"},
		{"burst without a bucket", limit(func(l *Limit) { l.Burst = 1 }), "Burst"},
		{"bucket without a burst", limit(func(l *Limit) { l.Shape = Bucket }), "Burst"},
		{"burst above the amount", limit(func(l *Limit) { l.Shape, l.Burst = Bucket, 11 }), "Burst"},
		{"zone of a sliding window", limit(func(l *Limit) { l.Zone = time.UTC }), "Zone"},
		{"margin", limit(func(l *Limit) { l.Margin = -1 }), "Margin"},
		{"margin of a fixed window", limit(func(l *Limit) { l.Shape, l.Margin = Fixed, 16*time.Second }), "Margin"},
		{"the same limit twice", models(Per(Requests, 1, time.Minute), Per(Requests, 2, time.Minute)), `Models["m"][1]`},
		{"key", Config{Key: limitsOf(0)}, "Key[0].Amount"},
		{"default", Config{Default: limitsOf(0)}, "Default[0].Amount"},
		{"empty model", Config{Models: map[string][]Limit{"": nil}}, "Models"},
		{"alias to a pattern", Config{Aliases: map[string]string{"a": "b*"}}, `Aliases["a"]`},
		{"prefix", Config{Prefix: "{x}"}, "Prefix"},
		{"two stores", Config{Redis: server.Client(), Memory: NewMemory()}, "Memory"},
		{"zero memory", Config{Memory: &Memory{}}, "NewMemory"},
		{"timeout", Config{StoreTimeout: -1}, "StoreTimeout"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := New(tc.c); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("New() = %v, want an error naming %s", err, tc.want)
			}
		})
	}
}

// Lanes of the caller's own: share and longest wait.
func TestLaneErrors(t *testing.T) {
	t.Parallel()
	l := newLimiter(t, models(Per(Requests, 10, time.Hour)))
	for _, lane := range []lanes.Lane{{Share: 1}, {Name: "x", Share: 1.5}, {Name: "x", Share: 1, MaxWait: -1}} {
		k := call()
		k.Lane = lane
		if _, err := l.Reserve(t.Context(), k); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "Lane") {
			t.Errorf("Reserve(%+v) = %v, want ErrInvalid naming Lane", lane, err)
		}
	}
}

// A name as long as a request is kept by its beginning and its hash: in memory,
// in what is told of it, and apart from another that begins alike.
func TestLongNames(t *testing.T) {
	t.Parallel()
	onBoth(t, Config{Default: []Limit{Per(Requests, 1, time.Hour)}}, func(t *testing.T, p *pair) {
		c := call()
		begin := strings.Repeat("n", 100<<10)
		for _, end := range []string{"a", "b"} {
			c.Model = begin + end
			reserve(t, p.a, c)
			if e := refuse(t, p.b, c); len(e.Model) != longestName || !strings.HasPrefix(e.Model, "nnn") {
				t.Errorf("refused %q of %d bytes, want %d", e.Model[:9], len(e.Model), longestName)
			}
		}
		c.Model = strings.Repeat("n", longestName)
		reserve(t, p.a, c)
		if e := refuse(t, p.b, c); e.Model != c.Model {
			t.Errorf("refused %q, want the name as it is", e.Model)
		}
	})
}
