package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
)

// S31: a deferral is no failure, and does not go on for ever.
func TestNext(t *testing.T) {
	p := policy{maxAttempts: 2, maxAge: time.Minute, backoff: time.Second}
	later := func(d time.Duration) error {
		return &throttle.RefusedError{Reason: throttle.NoRoom, RetryAfter: d, Deferred: true}
	}
	for _, tc := range []struct {
		name   string
		failed int           // attempts used before
		age    time.Duration // of the job
		err    error
		want   ending
		after  time.Duration
		used   int // attempts used afterwards
	}{
		{"done", 0, 0, nil, done, 0, 0},
		{"deferred", 0, 0, later(30 * time.Second), pending, 30 * time.Second, 0},
		{"deferred with one attempt left", 1, 0, later(30 * time.Second), pending, 30 * time.Second, 1},
		{"deferred up to its last moment", 0, 30 * time.Second, later(30 * time.Second), pending, 30 * time.Second, 0},
		{"deferred beyond its age", 0, 31 * time.Second, later(30 * time.Second), expired, 0, 0},
		{"too large", 0, 0, &throttle.RefusedError{Reason: throttle.TooLarge}, failed, 0, 0},
		{"no store", 1, 0, throttle.ErrStoreUnavailable, pending, time.Second, 1},
		{"no store for too long", 0, time.Minute, throttle.ErrStoreUnavailable, expired, 0, 0},
		{"failed", 0, 0, errors.New("boom"), pending, time.Second, 1},
		{"failed for the last time", 1, 0, errors.New("boom"), failed, 0, 2},
		{"failed and too old", 0, time.Minute, errors.New("boom"), expired, 0, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			now := time.Now()
			j, after, got := p.next(job{born: now.Add(-tc.age), attempts: tc.failed}, tc.err, now)
			if got != tc.want || after != tc.after || j.attempts != tc.used {
				t.Errorf("%v after %v with %d attempts used, want %v after %v with %d",
					got, after, j.attempts, tc.want, tc.after, tc.used)
			}
		})
	}
}

// vendor answers at once and counts.
type vendor struct{ calls atomic.Int64 }

func (v *vendor) RoundTrip(r *http.Request) (*http.Response, error) {
	v.calls.Add(1)
	io.Copy(io.Discard, r.Body)
	r.Body.Close()
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("{}")), Request: r}, nil
}

// S31: a thousand jobs at a full share are told when to come back, at once and
// each at another time, come back, and are all done, or end by their age.
func TestThousandJobs(t *testing.T) {
	const budget, jobs = 100, 1000 // requests a minute, of which background may use 60
	for _, tc := range []struct {
		name   string
		maxAge time.Duration
		done   int // at least
		want   ending
	}{
		{"time enough", time.Hour, jobs, done},
		{"five minutes", 5 * time.Minute, 5 * 60, expired},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limiter, err := throttle.New(throttle.Config{Default: []throttle.Limit{throttle.PerMinute(throttle.Requests, budget)}})
				if err != nil {
					t.Fatal(err)
				}
				defer limiter.Close(context.WithoutCancel(t.Context()))
				v := &vendor{}
				client := &http.Client{Transport: &transport.Transport{Base: v, Limiter: limiter, Lane: lanes.Background}}
				var list []job
				for i := range jobs {
					list = append(list, job{number: i, born: time.Now()})
				}
				p := policy{maxAttempts: 1, maxAge: tc.maxAge, backoff: time.Second}
				var turns atomic.Int64
				var distinct sync.Map // times to come back
				results := p.work(t.Context(), 8, list, func(ctx context.Context, j job) error {
					turns.Add(1)
					began := time.Now()
					err := call(ctx, client, "http://vendor.example")
					if after, ok := throttle.RetryAfter(err); ok {
						if after <= 0 || time.Since(began) != 0 {
							t.Errorf("deferred for %v after %v, want a time to come back at once", after, time.Since(began))
						}
						distinct.Store(time.Now().Add(after), true)
					}
					return err
				})
				ends := map[ending]int{}
				for _, r := range results {
					ends[r.ending]++
					if r.attempts != 0 {
						t.Errorf("job %d lost %d attempts to deferrals", r.number, r.attempts)
					}
				}
				if ends[done] < tc.done || ends[done]+ends[tc.want] < jobs || int(v.calls.Load()) != ends[done] {
					t.Errorf("%v, the vendor saw %d calls; want at least %d done and the rest %v", ends, v.calls.Load(), tc.done, tc.want)
				}
				times := 0
				distinct.Range(func(any, any) bool { times++; return true })
				if times < jobs/2 {
					t.Errorf("only %d different times to come back", times)
				}
				t.Logf("%d turns, %v", turns.Load(), ends)
			})
		})
	}
}

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	want := "15 jobs: 15 done, 0 failed, 0 expired\ndeferred: true; attempts used up: 0; calls that the vendor saw: 15\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
