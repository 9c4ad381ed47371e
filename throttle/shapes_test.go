package throttle

import (
	"testing"
	"time"

	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/lua"
)

// rowOf is the limit as take.lua sees it at a moment.
func rowOf(l Limit, names lua.Names, now time.Time) lua.Row {
	r := boundLimit{l, names.Model("m")}.row(names, lanes.Live)
	if l.Shape == Fixed {
		r.Zone = zone(l, now)
	}
	return r
}

func at(t *testing.T, zone *time.Location, text string) time.Time {
	t.Helper()
	when, err := time.ParseInLocation("2006-01-02 15:04:05", text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

// A Fixed day begins at midnight of its time zone, also on the days on which
// the clock changes, in both stores.
func TestFixedDayOfATimeZone(t *testing.T) {
	la, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	cairo, err := time.LoadLocation("Africa/Cairo")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name      string
		zone      *time.Location
		day, next string // the first is full; the second begins a day
		margin    time.Duration
	}{
		{"utc", nil, "2026-06-01 23:59:59", "2026-06-02 00:00:00", 0},
		{"summer", la, "2026-06-01 17:00:00", "2026-06-02 00:00:00", 0},
		{"the clock goes forward", la, "2026-03-08 01:00:00", "2026-03-09 00:00:00", 0}, // 23 hours long
		{"the clock goes back", la, "2026-11-01 00:30:00", "2026-11-02 00:00:00", 0},    // 25 hours long
		{"midnight is skipped", cairo, "2026-04-23 23:30:00", "2026-04-24 01:00:00", 0},
		{"long before a skipped midnight", cairo, "2026-04-23 09:00:00", "2026-04-24 01:00:00", 0},
		{"midnight comes an hour late", cairo, "2026-10-29 09:00:00", "2026-10-30 00:00:00", 0},
		{"the day after", la, "2026-11-02 00:00:00", "2026-11-03 00:00:00", 0},
		{"margin", la, "2026-06-01 17:00:00", "2026-06-02 00:00:00", time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bothStores(t, func(t *testing.T, do func(int64, lua.Op) lua.Answer, names lua.Names) {
				limit := Limit{Unit: Requests, Amount: 2, Window: 24 * time.Hour, Shape: Fixed, Zone: tc.zone, Margin: tc.margin}
				loc := tc.zone
				if loc == nil {
					loc = time.UTC
				}
				day, next := at(t, loc, tc.day), at(t, loc, tc.next)
				take := func(now time.Time, cost int64) lua.Answer {
					r := rowOf(limit, names, now)
					r.Cost = cost
					return do(now.UnixMicro(), lua.Op{Kind: lua.Take, Share: 1, Rows: []lua.Row{r}})
				}
				if a := take(day, 2); a.Status != lua.Go {
					t.Fatalf("at %v: %+v, want to go", day, a)
				}
				want := next.Add(tc.margin)
				a := take(day.Add(time.Microsecond), 1)
				if got := day.Add(time.Microsecond + time.Duration(a.Wait)*time.Microsecond); a.Status != lua.Refused || !got.Equal(want) {
					t.Errorf("refused until %v (status %d), want %v", got, a.Status, want)
				}
				if a := take(want.Add(-time.Microsecond), 1); a.Status != lua.Refused || a.Wait != 1 {
					t.Errorf("a microsecond before: %+v, want a wait of 1", a)
				}
				if a := take(want, 2); a.Status != lua.Go {
					t.Errorf("at %v: %+v, want the whole amount of the new day", want, a)
				}
				if tc.margin > 0 {
					end := next.Add(24*time.Hour - tc.margin).Add(time.Microsecond)
					r := rowOf(limit, names, end)
					r.Tape, r.Cost = r.Tape+":unused", 1
					if a := do(end.UnixMicro(), lua.Op{Kind: lua.Take, Share: 1, Rows: []lua.Row{r}}); a.Wait == 0 {
						t.Errorf("within the margin before the boundary: %+v, want a wait", a)
					}
				}
			})
		})
	}
}

// A fixed hour goes on evenly when the clock of its time zone changes: whatever
// the host's clock says, an hour is the same hour.
func TestFixedHourAcrossAClockChange(t *testing.T) {
	la, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	for _, window := range []time.Duration{time.Second, time.Minute, 15 * time.Minute, time.Hour} {
		for _, change := range []string{"2026-03-08 03:00:00", "2026-11-01 00:59:59"} {
			limit := Limit{Unit: Requests, Amount: 1, Window: window, Shape: Fixed, Zone: la}
			names := lua.NewNames("p", "key")
			moment := at(t, la, change).Add(30 * time.Minute).UnixMicro()
			want := rowOf(limit, names, at(t, la, change).Add(-48*time.Hour))
			for hours := range 96 {
				r := rowOf(limit, names, at(t, la, change).Add(time.Duration(hours-48)*time.Hour))
				if got, want := windowNumber(&r, moment), windowNumber(&want, moment); got != want {
					t.Fatalf("%v: a host %d hours from the change counts in window %d, another in %d", window, hours-48, got, want)
				}
			}
		}
	}
}

// Fixed windows of the public interface: at most the amount in each, and a new
// one at the boundary of the clock.
func TestFixedWindows(t *testing.T) {
	t.Parallel()
	const window = time.Second
	limit := Per(Requests, 5, window)
	limit.Shape = Fixed
	onBoth(t, models(limit), func(t *testing.T, p *pair) {
		in := map[int64]int{}
		for began := time.Now(); time.Since(began) < 2*window; {
			if r, err := p.each(len(in)).Reserve(t.Context(), call()); err == nil {
				in[r.answer.At/int64(window/time.Microsecond)]++
			} else if e := refusal(t, err); e.RetryAfter > window+200*ms {
				t.Errorf("RetryAfter = %v, want the boundary", e.RetryAfter)
			}
			pass(5 * ms)
		}
		for k, n := range in {
			if n > 5 {
				t.Errorf("%d went in window %d, want at most 5", n, k)
			}
		}
		if len(in) < 2 {
			t.Errorf("calls went in %d windows, want at least 2", len(in))
		}
	})
}

// Promise 1: Sliding never admits more than the amount in any window, and nearly
// all of it (promise 2), over two hosts.
func TestSlidingNeverMoreInAnyWindow(t *testing.T) {
	t.Parallel()
	const amount, window = 100, 200 * time.Millisecond
	for _, tc := range []struct {
		name   string
		margin time.Duration
	}{{"plain", 0}, {"margin", 50 * ms}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			limit := Per(Requests, amount, window)
			limit.Margin = tc.margin
			onBoth(t, models(limit), func(t *testing.T, p *pair) {
				var times []int64
				began := time.Now()
				for i := 0; time.Since(began) < time.Second; i++ {
					if r, err := p.each(i).Reserve(t.Context(), call()); err == nil {
						times = append(times, r.answer.At)
					} else {
						pass(ms)
					}
				}
				long := (window + tc.margin).Microseconds()
				for i := range times {
					if i >= amount && times[i]-times[i-amount] < long {
						t.Fatalf("%d calls within %d us, want at most %d in %d", amount+1, times[i]-times[i-amount], amount, long)
					}
				}
				if want := amount * int(time.Second/(window+tc.margin)) * 3 / 4; len(times) < want {
					t.Errorf("%d calls went, want at least %d", len(times), want)
				}
			})
		})
	}
}

// Bucket: never more than Burst + Amount*d/Window in any interval d, also for a
// lane below 100%, which has its share of both.
func TestBucketBound(t *testing.T) {
	t.Parallel()
	const amount, burst = 200, 10
	low := lanes.Lane{Name: "low", Share: 0.5}
	for _, tc := range []struct {
		name          string
		lane          lanes.Lane
		burst, amount int64
	}{{"live", lanes.Live, burst, amount}, {"half", low, burst / 2, amount / 2}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			limit := Limit{Unit: Requests, Amount: amount, Window: time.Second, Shape: Bucket, Burst: burst}
			onBoth(t, models(limit), func(t *testing.T, p *pair) {
				c := call()
				c.Lane = tc.lane
				var times []int64
				began := time.Now()
				for i := 0; time.Since(began) < 800*ms; i++ {
					if r, err := p.each(i).Reserve(t.Context(), c); err == nil {
						times = append(times, r.answer.At)
					} else {
						pass(ms)
					}
				}
				for i := range times {
					for j := i; j < len(times); j++ {
						if n, most := int64(j-i+1), tc.burst+(times[j]-times[i])*tc.amount/second; n > most+1 || n > most && (times[j]-times[i])*tc.amount%second == 0 {
							t.Fatalf("%d went within %d us, want at most %d", n, times[j]-times[i], most)
						}
					}
				}
				if want := tc.amount * 6 / 10; int64(len(times)) < want {
					t.Errorf("%d went, want at least %d", len(times), want)
				}
			})
		})
	}
}

// A call above the burst goes alone, when the bucket is full.
func TestBucketLargeCallGoesAlone(t *testing.T) {
	t.Parallel()
	limit := Limit{Unit: Tokens, Amount: 1000, Window: time.Second, Shape: Bucket, Burst: 100}
	onBoth(t, models(limit), func(t *testing.T, p *pair) {
		c := call()
		c.Cost = Cost{Tokens: 500}
		first, err := p.a.Wait(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		second, err := p.b.Wait(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if d := second.answer.At - first.answer.At; d < 500_000 || d > 700_000 {
			t.Errorf("two calls of 500 went %d us apart, want the time that the first takes to drain", d)
		}
	})
}
