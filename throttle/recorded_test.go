package throttle

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/lua"
	"github.com/headway-go/headway/pause"
)

// recorded is a fleet of limiters under one key that notes all it does.
type recorded struct {
	record
	limiters []*Limiter
	names    lua.Names
	policy   pause.Policy
}

const (
	recordedWindow = 250 * time.Millisecond
	recordedCalm   = 1500 * time.Millisecond // at first all is well, so that the order of the line is plain
)

// The limits of an hour are never reached: they add up what went.
func recordedConfig(policy pause.Policy) Config {
	hour := func(unit string) Limit { return Per(unit, 1e9, time.Hour) }
	return Config{
		Models: map[string][]Limit{
			"strict": {Per(Requests, 20, recordedWindow), Per(Tokens, 300, recordedWindow), hour(Requests), hour(Tokens)}, // nothing is given back of what binds
			"loose":  {Per(Tokens, 60, recordedWindow), hour(Requests), hour(Tokens)},
		},
		Key: []Limit{hour(Requests)}, Policy: policy, StoreTimeout: 5 * time.Second,
	}
}

func newRecorded(t *testing.T, hosts int) *recorded {
	prefix := fmt.Sprintf("%s-%d", t.Name(), time.Now().UnixNano()) // a run of its own
	f := &recorded{names: lua.NewNames(prefix, "key"), policy: pause.Policy{
		Unnamed: 60 * time.Millisecond, Refused: 100 * time.Millisecond, Lease: 80 * time.Millisecond, Cap: 150 * time.Millisecond,
		Overload: 20 * time.Millisecond, OverloadMax: 80 * time.Millisecond, OverloadCalm: 500 * time.Millisecond,
	}}
	for i := range hosts {
		c := server.Client()
		t.Cleanup(func() { c.Close() })
		config := recordedConfig(f.policy)
		config.Redis, config.Prefix, config.OnEvent, config.Name = c, prefix, f.event, fmt.Sprint("host", i)
		l, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		l.store = noting{l.store, &f.record}
		f.limiters = append(f.limiters, l)
	}
	return f
}

// verdict is what the vendor says to a call.
func verdict(r *rand.Rand, probe bool) (v pause.Verdict, told bool) {
	later := pause.Hint{Wait: time.Duration(30+r.IntN(70)) * time.Millisecond, Named: r.IntN(3) > 0}
	if probe {
		switch r.IntN(6) {
		case 0:
			return pause.Verdict{Class: pause.KeyRefused, Scope: pause.Key}, true
		case 1:
			return pause.Verdict{Class: pause.ServerError}, true
		case 2:
			return pause.Verdict{}, false // the prober dies
		}
	}
	switch n := r.IntN(1000); {
	case n < 12:
		return pause.Verdict{Class: pause.KeyRefused, Scope: pause.Key}, true
	case n < 40:
		return pause.Verdict{Class: pause.RateLimited, Scope: pause.Model, Hint: later}, true
	case n < 44:
		return pause.Verdict{Class: pause.RateLimited, Scope: pause.Key, Hint: later}, true
	case n < 46:
		return pause.Verdict{Class: pause.RateLimited, Scope: pause.Model, Hint: pause.Hint{Wait: time.Hour, Named: true}}, true
	case n < 60:
		return pause.Verdict{Class: pause.Overloaded, Scope: pause.Model}, true
	case n < 100:
		return pause.Verdict{Class: pause.ServerError}, true
	}
	return pause.Verdict{Class: pause.OK}, true
}

// caller makes one call after the other until ctx ends.
// The vendor refuses the key of one of them every now and then, for sure.
func (f *recorded) caller(ctx context.Context, t *testing.T, l *Limiter, r *rand.Rand, answers *sync.WaitGroup, refused bool) {
	trouble := time.Now().Add(recordedCalm)
	live, back := lanes.Lane{Name: "live", Share: 1, MaxWait: 1500 * time.Millisecond}, lanes.Lane{Name: "back", Share: 0.6}
	for ctx.Err() == nil {
		call := Call{Key: "key", Model: "strict", Lane: live, Cost: Cost{Requests: 1, Tokens: 1 + r.Int64N(20)}}
		if r.IntN(4) == 0 {
			call.Model = "loose"
		}
		if r.IntN(6) == 0 {
			call.Lane = back
		}
		res, err := l.Wait(ctx, call)
		if d, later := RetryAfter(err); later {
			select {
			case <-time.After(min(d, time.Duration(20+r.IntN(60))*time.Millisecond)):
			case <-ctx.Done():
			}
			continue
		} else if err != nil {
			if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
				t.Error(err)
			}
			return
		}
		v, told := verdict(r, res.Probe())
		takes := time.Duration(r.IntN(40)) * time.Millisecond
		if now := time.Now(); now.After(trouble) && refused {
			trouble = now.Add(recordedCalm / 3)
			v, told, takes = pause.Verdict{Class: pause.KeyRefused, Scope: pause.Key}, true, 0
		} else if now.Before(trouble) {
			v, told = pause.Verdict{Class: pause.OK}, true
		} else if r.IntN(8) == 0 {
			takes = time.Duration(100+r.IntN(300)) * time.Millisecond // a late answer, and often bad news
			v.Class, v.Scope = []pause.Class{v.Class, pause.RateLimited, pause.KeyRefused}[r.IntN(3)], pause.Key
		}
		actual, cancel := Cost{Tokens: r.Int64N(call.Cost[Tokens] + 1)}, call.Model == "loose" && r.IntN(8) == 0
		ends := r.IntN(10) > 0
		answers.Go(func() {
			<-time.After(takes)
			var err error
			switch {
			case cancel:
				err = res.Cancel(context.Background())
			case told:
				if err = res.Report(context.Background(), v); err == nil && ends {
					err = res.Settle(context.Background(), actual)
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
		if r.IntN(2) == 0 {
			<-time.After(takes / 2)
		}
	}
}

// TestRecorded lets several limiters work on one Redis in real time, with calls
// of all kinds, pauses, refused keys, dead probes and late answers, and checks
// the promises on the record of every decision afterwards.
func TestRecorded(t *testing.T) {
	const hosts, callers, long = 4, 5, 5 * time.Second
	f := newRecorded(t, hosts)
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	var all, answers sync.WaitGroup
	for i, l := range f.limiters {
		for j := range callers {
			all.Go(func() { f.caller(ctx, t, l, rand.New(rand.NewPCG(uint64(i), uint64(j))), &answers, i == 0 && j == 0) })
		}
	}
	all.Wait()
	answers.Wait()
	for _, l := range f.limiters[1:] {
		l.Close(context.Background()) // places of callers that have gone are given back
	}
	status, err := f.limiters[0].Status(t.Context(), "key", "strict", "loose")
	if err != nil {
		t.Fatal(err)
	}
	f.limiters[0].Close(context.Background())
	f.mu.Lock()
	defer f.mu.Unlock()

	fullest, err := f.windows()
	if err != nil {
		t.Error("promise 1:", err)
	}
	if tape := f.names.Tape(f.names.Model("strict"), Requests, int64(recordedWindow/time.Microsecond), false, ""); fullest[tape] < 18 {
		t.Errorf("the fullest window held %d of 20 requests, want pressure", fullest[tape])
	}

	// Promise 3: what the limits of an hour count is what went, and nothing of what
	// was refused.
	_, went, back := f.tapes()
	sum := func(scope, unit string) (n int64) {
		tape := f.names.Tape(scope, unit, int64(time.Hour/time.Microsecond), false, "")
		for _, c := range append(went[tape], back[tape]...) {
			n += c.units
		}
		return n
	}
	check := func(scope string, limits []LimitStatus) {
		for _, l := range limits {
			if want := sum(scope, l.Unit); l.Window == time.Hour && (l.Used != want || want == 0) {
				t.Errorf("promise 3: %s counts %d %s, want %d", scope, l.Used, l.Unit, want)
			}
		}
	}
	check(f.names.Key(), status.Limits)
	for _, m := range status.Models {
		check(f.names.Model(m.Model), m.Limits)
	}

	pairs, err := f.lines(f.names.Model("strict"))
	if err != nil {
		t.Error("promise 11:", err)
	}
	began, probes, err := f.pauses(int64(f.policy.Lease / time.Microsecond))
	if err != nil {
		t.Error("promises 13 and 15:", err)
	}
	late, err := f.late()
	if err != nil {
		t.Error("promise 16:", err)
	}
	starts, told := 0, 0
	for _, n := range f.notes {
		if n.op.Kind == lua.Hold && n.a.Status == lua.Go {
			starts++
		}
	}
	for _, e := range f.events {
		if e.Kind == PauseBegan {
			told++
		}
	}
	if starts != told {
		t.Errorf("%d pauses began and %d were told", starts, told)
	}
	t.Logf("%d decisions, %d pairs in line, %d pauses, %d probes, %d late reports, fullest %v", len(f.notes), pairs, began, probes, late, fullest)
	if pairs < 20 || began < 5 || probes < 1 || late < 1 {
		t.Errorf("%d pairs in line, %d pauses, %d probes, %d late reports: too few to say anything", pairs, began, probes, late)
	}
}
