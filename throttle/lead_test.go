package throttle

import (
	"fmt"
	"testing"
	"time"

	"github.com/headway-go/headway/lua"
	"github.com/headway-go/headway/pause"
)

// bothStores runs a test of the seam itself, with a clock of its own.
func bothStores(t *testing.T, test func(t *testing.T, do func(now int64, op lua.Op) lua.Answer, names lua.Names)) {
	c := server.Client()
	t.Cleanup(func() { c.Close() })
	for name, s := range map[string]store{"memory": NewMemory(), "redis": redisStore{c}} {
		t.Run(name, func(t *testing.T) {
			names := lua.NewNames("stores", fmt.Sprint(time.Now().UnixNano()))
			test(t, func(now int64, op lua.Op) lua.Answer {
				t.Helper()
				op.Key, op.Model, op.Line = names.Key(), names.Model("m"), names.Line(names.Model("m"))
				a, err := s.decide(t.Context(), lua.Batch{Now: now, Lead: testLead, Lease: testLease, Ops: []lua.Op{op}})
				if err != nil {
					t.Fatal(err)
				}
				return a[0]
			}, names)
		})
	}
}

// Promise 6: what is given back is what was charged, also when calls that were
// granted a little early stand on the tape behind it.
func TestRefundBeforeCallsGrantedEarly(t *testing.T) {
	bothStores(t, func(t *testing.T, do func(int64, lua.Op) lua.Answer, names lua.Names) {
		row := func(unit string, amount, burst, cost int64) lua.Row {
			r := lua.Row{Window: second, Amount: amount, Ceiling: amount, Burst: burst, Cost: cost}
			r.Tape = names.Tape(names.Model("m"), unit, r.Window, false, "")
			r.Tag = lua.Tag(r.Tape)
			return r
		}
		now := 1764400000 * second
		for i := range int64(4) { // go now, in 1, in 2 and in 3 ms
			op := lua.Op{Kind: lua.Take, Share: 1, Patience: second, Rows: []lua.Row{row(Requests, 1000, 1, 1), row(Tokens, 10_000, 0, 10)}}
			if a := do(now, op); a.Status != lua.Go || a.Wait != i*1000 {
				t.Fatalf("call %d: %+v", i, a)
			}
		}
		free := lua.Op{Kind: lua.Take, Share: 1, Rows: []lua.Row{row(Tokens, 10_000, 0, 500)}}
		a := do(now+200, free)
		if a.Status != lua.Go || a.Wait != 0 {
			t.Fatalf("the call without a request: %+v", a)
		}
		do(now+300, refund(free, a.At))
		look := do(now+400, lua.Op{Kind: lua.Look, On: names.Model("m"), Rows: free.Rows})
		if look.At != 40 {
			t.Errorf("%d tokens are used after the refund, want 40", look.At)
		}
	})
}

// Promise 6: whatever is given back, no count falls below zero.
func TestAdjustNeverBelowZero(t *testing.T) {
	for name, burst := range map[string]int64{"sliding": 0, "fixed": -1, "bucket": 1000} {
		t.Run(name, func(t *testing.T) {
			bothStores(t, func(t *testing.T, do func(int64, lua.Op) lua.Answer, names lua.Names) {
				r := lua.Row{Tape: names.Tape(names.Model("m"), Tokens, second, burst < 0, ""), Tag: 1, Window: second, Amount: 1000, Ceiling: 1000, Burst: burst, Cost: 10}
				now := 1764400000 * second
				for i := range int64(3) {
					if a := do(now+i, lua.Op{Kind: lua.Take, Share: 1, Rows: []lua.Row{r}}); a.Status != lua.Go {
						t.Fatalf("call %d: %+v", i, a)
					}
				}
				for _, at := range []int64{now + 2, now} { // the newest and the oldest
					r.Cost = -500
					do(now+10, lua.Op{Kind: lua.Adjust, At: at, Rows: []lua.Row{r}})
				}
				want := int64(10)
				if burst < 0 {
					want = 0 // one count for the window
				}
				if a := do(now+20, lua.Op{Kind: lua.Look, On: names.Model("m"), Rows: []lua.Row{r}}); a.At != want {
					t.Errorf("used = %d, want %d", a.At, want)
				}
			})
		})
	}
}

// Promise 6: a window that is over is left alone, and so is the one that follows.
func TestAdjustOfAnEarlierWindow(t *testing.T) {
	for name, burst := range map[string]int64{"sliding": 0, "fixed": -1, "bucket": 1000} {
		t.Run(name, func(t *testing.T) {
			bothStores(t, func(t *testing.T, do func(int64, lua.Op) lua.Answer, names lua.Names) {
				r := lua.Row{Tape: names.Tape(names.Model("m"), Tokens, second, burst < 0, ""), Tag: 1, Window: second, Amount: 1000, Ceiling: 1000, Burst: burst, Cost: 100}
				now := 1764400000 * second
				for _, at := range []int64{now, now + second + second/2} {
					if a := do(at, lua.Op{Kind: lua.Take, Share: 1, Rows: []lua.Row{r}}); a.Status != lua.Go {
						t.Fatalf("at %d: %+v", at, a)
					}
				}
				r.Cost = -70
				now += second + second/2 + 10
				if a := do(now, lua.Op{Kind: lua.Adjust, At: 1764400000 * second, Rows: []lua.Row{r}}); a.Status == lua.Go {
					t.Errorf("the earlier call was adjusted: %+v", a)
				}
				if a := do(now, lua.Op{Kind: lua.Look, On: names.Model("m"), Rows: []lua.Row{r}}); a.At != 100 {
					t.Errorf("used = %d, want the later call's 100", a.At)
				}
			})
		})
	}
}

// Promise 15: an operator's pause does not excuse a refused key from its probe.
func TestOperatorKeepsTheProbe(t *testing.T) {
	bothStores(t, func(t *testing.T, do func(int64, lua.Op) lua.Answer, names lua.Names) {
		r := lua.Row{Tape: names.Tape(names.Model("m"), Tokens, second, false, ""), Tag: 1, Window: second, Amount: 100, Ceiling: 100, Cost: 1}
		take := lua.Op{Kind: lua.Take, Share: 1, Rows: []lua.Row{r}}
		now := 1764400000 * second
		first := do(now, take)
		refused := lua.Op{Kind: lua.Hold, On: names.Key(), Gen: first.KeyGen, Length: second, First: true, Rule: int64(pause.Refusal)}
		if a := do(now+1, refused); a.Status != lua.Go {
			t.Fatalf("the refusal: %+v", a)
		}
		now += 2 * second // the pause is over, and nobody has called
		if a := do(now, lua.Op{Kind: lua.Hold, On: names.Key(), Length: second, Rule: int64(pause.Operator), Why: byOperator}); a.Status != lua.Go {
			t.Fatalf("the operator: %+v", a)
		}
		now += 2 * second
		if a := do(now, take); a.Status != lua.Go || a.By != lua.ProbeKey {
			t.Errorf("the first call after it: %+v, want the probe", a)
		}
		if a := do(now+1, take); a.Status == lua.Go {
			t.Errorf("the second call: %+v, want none beside the probe", a)
		}
	})
}

// Promise 11: a call in line whose process has died holds up nobody for long.
func TestGoneWaiterIsDropped(t *testing.T) {
	bothStores(t, func(t *testing.T, do func(int64, lua.Op) lua.Answer, names lua.Names) {
		take := func(now, cost, patience int64) lua.Answer {
			r := lua.Row{Tape: names.Tape(names.Model("m"), Tokens, second, false, ""), Tag: 1, Window: second, Amount: 100, Ceiling: 100, Cost: cost}
			return do(now, lua.Op{Kind: lua.Take, Share: 1, Patience: patience, Rows: []lua.Row{r}})
		}
		now := 1764400000 * second
		if a := take(now, 50, 0); a.Status != lua.Go {
			t.Fatalf("the first call: %+v", a)
		}
		if a := take(now+1, 80, 10*second); a.Status != lua.InLine {
			t.Fatalf("the call that waits: %+v", a)
		}
		if a := take(now+2*second, 60, 0); a.Status != lua.Refused {
			t.Errorf("a second after the time of the call that waits: %+v, want no room: it may still ask", a)
		}
		if a := take(now+4*second, 60, 0); a.Status != lua.Go {
			t.Errorf("three seconds after it: %+v, want room: it is gone", a)
		}
	})
}

// A call in line asks a little before its time only where it can be granted early.
func TestNap(t *testing.T) {
	sliding, fixed := lua.Row{}, lua.Row{Burst: -1}
	for _, tc := range []struct {
		name     string
		rows     []lua.Row
		by       int64
		wait     time.Duration
		min, max time.Duration
	}{
		{"sliding", []lua.Row{sliding}, 1, time.Second, time.Second - askEarly, time.Second - askEarly},
		{"hardly any wait", []lua.Row{sliding}, 1, 2 * ms, 2 * ms, 2 * ms},
		{"fixed", []lua.Row{fixed}, 1, time.Second, time.Second, time.Second},
		{"sliding beside fixed", []lua.Row{fixed, sliding}, 2, time.Second, time.Second, time.Second},
		{"pause", []lua.Row{sliding}, lua.ByModel, time.Second, time.Second, time.Second + wakeSpread},
	} {
		p := &plan{op: lua.Op{Rows: tc.rows}}
		if got := p.nap(lua.Answer{By: tc.by}, tc.wait); got < tc.min || got > tc.max {
			t.Errorf("%s: nap(%v) = %v, want %v to %v", tc.name, tc.wait, got, tc.min, tc.max)
		}
	}
}
