package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/headway-go/headway/throttle"
)

// job is a piece of background work.
type job struct {
	number    int
	born      time.Time
	attempts  int // failures so far
	deferrals int // times it was told to come back
}

// ending says what became of a job.
type ending int

const (
	pending ending = iota // it comes back
	done
	failed  // its attempts are used up, or it can never go
	expired // it would come back too old
)

func (e ending) String() string { return [...]string{"pending", "done", "failed", "expired"}[e] }

// policy says how long a job may go on.
type policy struct {
	maxAttempts int           // failures
	maxAge      time.Duration // since it was born, deferrals included
	backoff     time.Duration // after a failure
}

// next decides what becomes of a job whose turn at now ended with err: how it
// ended, or after how long it comes back. A deferral is no failure: the job
// comes back when Headway said, and no attempt is used up. Only its age ends a
// job that is deferred again and again.
func (p policy) next(j job, err error, now time.Time) (job, time.Duration, ending) {
	if err == nil {
		return j, 0, done
	}
	after, deferred := throttle.RetryAfter(err)
	switch {
	case deferred:
		j.deferrals++
	case errors.Is(err, throttle.ErrStoreUnavailable): // nothing was sent
		after = p.backoff
		j.deferrals++
	case errors.Is(err, throttle.ErrTooLarge): // no time helps
		return j, 0, failed
	default:
		after = p.backoff
		if j.attempts++; j.attempts >= p.maxAttempts {
			return j, 0, failed
		}
	}
	if now.Add(after).Sub(j.born) > p.maxAge {
		return j, 0, expired
	}
	return j, after, pending
}

// result is a job at its end.
type result struct {
	job
	ending ending
}

// work runs jobs on a few goroutines until each has ended, or ctx has. A job
// that comes back waits on no goroutine.
func (p policy) work(ctx context.Context, goroutines int, jobs []job, do func(context.Context, job) error) []result {
	ctx, cancel := context.WithCancel(ctx)
	due := make(chan job, len(jobs)) // room for all: nobody blocks on it
	ended := make(chan result, len(jobs))
	for _, j := range jobs {
		due <- j
	}
	turn := func(j job) {
		j, after, ending := p.next(j, do(ctx, j), time.Now())
		if ending == pending {
			time.AfterFunc(after, func() { due <- j })
			return
		}
		ended <- result{j, ending}
	}
	var workers sync.WaitGroup
	for range goroutines {
		workers.Go(func() {
			for {
				select {
				case j := <-due:
					turn(j)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	defer workers.Wait()
	defer cancel()
	var results []result
	for range jobs {
		select {
		case r := <-ended:
			results = append(results, r)
		case <-ctx.Done():
			return results
		}
	}
	return results
}
