package vendorsim

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// epoch is the start of a window of a minute and of a day.
var epoch = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

func TestMeters(t *testing.T) {
	const s = time.Second
	type step struct {
		at   time.Duration // since epoch
		n    int64
		wait time.Duration // 0: fits and is taken
	}
	minute := func(a Algorithm) Limit { return Limit{Unit: Tokens, Amount: 10, Window: time.Minute, Algorithm: a} }
	burst := minute(TokenBucket)
	burst.Burst = 3
	tests := []struct {
		name  string
		limit Limit
		steps []step
	}{
		{"sliding: N pass, N+1 waits", minute(SlidingLog), []step{{0, 9, 0}, {s, 1, 0}, {2 * s, 1, 58 * s}}},
		{"sliding: half-open edge", minute(SlidingLog), []step{{0, 10, 0}, {60*s - 1, 1, 1}, {60 * s, 10, 0}, {60 * s, 1, 60 * s}}},
		{"sliding: no double across a boundary", minute(SlidingLog), []step{{59 * s, 10, 0}, {61 * s, 1, 58 * s}}},
		{"sliding: waits for as many as needed", minute(SlidingLog), []step{{0, 2, 0}, {10 * s, 3, 0}, {20 * s, 5, 0}, {30 * s, 5, 40 * s}, {30 * s, 6, 50 * s}, {30 * s, 2, 30 * s}}},
		{"sliding: a refusal takes nothing", minute(SlidingLog), []step{{0, 8, 0}, {s, 3, 59 * s}, {s, 2, 0}}},
		{"fixed: aligned", minute(FixedWindow), []step{{59 * s, 10, 0}, {59 * s, 1, s}, {60*s - 1, 1, 1}, {60 * s, 10, 0}, {60 * s, 1, 60 * s}}},
		{"fixed: N+1", minute(FixedWindow), []step{{0, 10, 0}, {30 * s, 1, 30 * s}}},
		{"bucket: full, then by the rate", minute(TokenBucket), []step{{0, 10, 0}, {0, 1, 6 * s}, {6*s - 1, 1, 1000}, {6 * s, 1, 0}, {6 * s, 2, 12 * s}}},
		{"bucket: burst below the amount", burst, []step{{0, 3, 0}, {0, 1, 6 * s}, {60 * s, 3, 0}, {60 * s, 3, 18 * s}}},
		{"bucket: full after long calm", minute(TokenBucket), []step{{0, 10, 0}, {1e6 * s, 10, 0}, {1e6 * s, 1, 6 * s}}},
		{"bucket: thirds do not drift", Limit{Amount: 3, Window: s, Algorithm: TokenBucket, Burst: 2}, []step{
			{0, 2, 0}, {0, 1, 333334 * time.Microsecond}, {333334 * time.Microsecond, 1, 0},
			{333334 * time.Microsecond, 1, 333333 * time.Microsecond}, {666667 * time.Microsecond, 1, 0}, {s, 1, 0},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := newGauge(tt.limit, epoch)
			for i, st := range tt.steps {
				now := epoch.Add(st.at)
				if got := g.wait(now, st.n); got != st.wait {
					t.Fatalf("step %d: wait for %d = %v, want %v", i, st.n, got, st.wait)
				}
				if st.wait == 0 {
					g.take(now, st.n)
				}
			}
		})
	}
}

// Whatever the history: a named wait is exact (refused a microsecond before,
// accepted then), and the algorithm's own promise holds over every interval.
func TestMeterWaitIsExact(t *testing.T) {
	const amount, window, calls = 17, 7 * time.Second, 300
	algorithms := []struct {
		name      string
		algorithm Algorithm
		most      int64 // in any half-open window
	}{{"sliding", SlidingLog, amount}, {"fixed", FixedWindow, 2 * amount}, {"bucket", TokenBucket, 2 * amount}}
	for i, alg := range algorithms {
		t.Run(alg.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			var history []entry
			replay := func() *gauge { // looking ahead changes a meter, so every look has its own
				g := newGauge(Limit{Unit: Tokens, Amount: amount, Window: window, Algorithm: alg.algorithm}, epoch)
				for _, e := range history {
					g.take(e.at, e.n)
				}
				return g
			}
			now, waits := epoch, 0
			for range calls {
				now = now.Add(time.Duration(random.Int64N(int64(2 * time.Second))).Truncate(time.Microsecond))
				n := 1 + random.Int64N(9)
				if wait := replay().wait(now, n); wait > 0 {
					waits++
					if replay().wait(now.Add(wait-time.Microsecond), n) == 0 {
						t.Fatalf("fits before the named wait %v", wait)
					}
					now = now.Add(wait)
				}
				if wait := replay().wait(now, n); wait != 0 {
					t.Fatalf("does not fit after the named wait: %v more", wait)
				}
				history = append(history, entry{now, n})
				if g := replay(); g.used(now.Add(g.idle(now))) != 0 {
					t.Fatal("something counts after idle")
				}
				var sum int64
				for _, e := range history {
					if now.Sub(e.at) < window {
						sum += e.n
					}
				}
				if sum > alg.most {
					t.Fatalf("%d units in one window, want at most %d", sum, alg.most)
				}
			}
			if waits < calls/10 {
				t.Errorf("only %d waits tried", waits)
			}
		})
	}
}

// The log, the limits kept and the body read are bounded.
func TestBounds(t *testing.T) {
	s, err := New(Config{Key: []Limit{{Amount: 1, Window: time.Hour}}})
	if err != nil {
		t.Fatal(err)
	}
	call := func(body io.Reader) int {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/v1/responses", body)
		r.Header.Set("Authorization", "Bearer test-key-1")
		s.ServeHTTP(w, r)
		return w.Code
	}
	for i := range maxScopes {
		s.gauges[scope{"other", strconv.Itoa(i)}] = nil
	}
	if got := call(strings.NewReader(`{"model":"m"}`)); got != 500 || len(s.gauges) != maxScopes {
		t.Errorf("one key more: %d, want 500", got)
	}
	s.log.arrivals = make([]*Arrival, maxArrivals)
	if got := call(bytes.NewReader(make([]byte, maxBody+1))); got != 413 {
		t.Errorf("a body too large: %d, want 413", got)
	}
	if got := s.Dropped(); got != 1 || len(s.log.arrivals) != maxArrivals {
		t.Errorf("one arrival more: dropped %d, want 1", got)
	}
}

func TestLimitCheck(t *testing.T) {
	ok := Limit{Amount: 1, Window: time.Second}
	tests := []struct {
		name string
		edit func(*Limit)
		want string // "" = accepted
	}{
		{"smallest", func(*Limit) {}, ""},
		{"a day of tokens in a bucket", func(l *Limit) { *l = Limit{Tokens, 2_000_000, 24 * time.Hour, TokenBucket, 2_000_000} }, ""},
		{"unit", func(l *Limit) { l.Unit = "euros" }, "unit"},
		{"amount", func(l *Limit) { l.Amount = 0 }, "amount"},
		{"no window", func(l *Limit) { l.Window = 0 }, "window"},
		{"window of nanoseconds", func(l *Limit) { l.Window = 1500 }, "window"},
		{"algorithm", func(l *Limit) { l.Algorithm = 3 }, "algorithm"},
		{"burst without a bucket", func(l *Limit) { l.Burst = 1 }, "burst"},
		{"negative burst", func(l *Limit) { l.Algorithm, l.Burst = TokenBucket, -1 }, "burst"},
		{"burst too large", func(l *Limit) { l.Algorithm, l.Burst = TokenBucket, 1<<60 }, "burst"},
		{"refill too slow", func(l *Limit) { l.Algorithm, l.Burst, l.Window = TokenBucket, 1e6, 24*time.Hour }, "burst"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := ok
			tt.edit(&l)
			_, err := New(Config{Models: map[string][]Limit{"m": {l}}})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), ": "+tt.want+":")) {
				t.Errorf("New: %v, want an error that names %q", err, tt.want)
			}
		})
	}
}
