package throttle

import (
	"fmt"
	"testing"
	"time"
)

// Models that share a limit of the key: those who wait for their own model's
// limit, or for its pause, do not keep others from the key's room.
func TestWaitersOfOneModelDoNotBlockOthers(t *testing.T) {
	c := Config{
		Key:    []Limit{PerSecond(Requests, 10)},
		Models: map[string][]Limit{"slow": {PerSecond(Requests, 1)}, "held": {PerMinute(Requests, 1000)}, "m": {PerMinute(Requests, 1000)}},
	}
	onBoth(t, c, func(t *testing.T, p *pair) {
		if err := p.a.Pause(t.Context(), "key", "held", 2*time.Second); err != nil {
			t.Fatal(err)
		}
		ends := make(chan ended, 40)
		for i := range 20 {
			c := call()
			c.Model, c.MaxWait = []string{"slow", "held"}[i%2], time.Minute
			start(t.Context(), p.each(i), c, i, ends)
		}
		eventually(t, "nineteen wait", func() bool { return p.waiting(t) >= 19 })
		for range 5 {
			reserve(t, p.b, call()) // fails when it is refused
		}
	})
}

// Promise 11 under a limit of the key: a large call that waits for it is not
// starved by small ones of another model.
func TestLargeCallUnderAKeyLimit(t *testing.T) {
	c := Config{Key: []Limit{PerSecond(Tokens, 100)}, Default: []Limit{PerMinute(Requests, 100_000)}}
	onBoth(t, c, func(t *testing.T, p *pair) {
		small := Call{Key: "key", Model: "small", Cost: Cost{Tokens: 10, Requests: 1}, MaxWait: time.Minute}
		for range 10 {
			reserve(t, p.a, small)
		}
		ends := make(chan ended, 200)
		start(t.Context(), p.a, Call{Key: "key", Model: "large", Cost: Cost{Tokens: 90, Requests: 1}, MaxWait: time.Minute}, 0, ends)
		eventually(t, "the large call waits", func() bool { return p.waiting(t) == 1 })
		for i := range 30 {
			start(t.Context(), p.each(i), small, i+1, ends)
		}
		began := time.Now()
		for e := range ends {
			if e.err != nil {
				t.Fatal(e.err)
			}
			if e.i == 0 {
				break
			}
		}
		if d := time.Since(began); d > 1500*ms*slack {
			t.Errorf("the large call waited for %v, want about a window", d)
		}
		for range 29 {
			<-ends
		}
	})
}

// Promise 19: junk model names share one budget once there are very many.
func TestManyUnknownModels(t *testing.T) {
	c := Config{Default: []Limit{PerMinute(Requests, 1)}, Models: map[string][]Limit{"named": {PerMinute(Requests, 1)}}}
	onBothInTurn(t, c, func(t *testing.T, p *pair) {
		refused := 0
		for i := range maxStrangers + 100 {
			k := call()
			k.Model = fmt.Sprintf("junk-%d", i)
			if _, err := p.a.Reserve(t.Context(), k); err != nil {
				refused++
			}
		}
		if refused != 99 {
			t.Errorf("%d calls were refused, want all but one of those beyond the bound", refused)
		}
		if p.redis != nil {
			if got := len(p.keys(t)); got > maxStrangers+20 {
				t.Errorf("%d keys", got)
			}
		}
		k := call()
		k.Model = "named"
		reserve(t, p.a, k)
	})
}
