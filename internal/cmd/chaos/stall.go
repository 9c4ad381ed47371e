package main

import (
	"context"
	"sync/atomic"
	"time"
)

// stallBound is how late this machine may be before what it measured says more
// about the machine than about the limiter. The limit has a margin of
// 150 ms for the way to the vendor.
const stallBound = 50 * time.Millisecond

// stall is the longest that a timer of this process was late: what everything
// else that is measured here may be late by as well.
type stall struct{ longest atomic.Int64 }

func (s *stall) watch(ctx context.Context) {
	const every = 5 * time.Millisecond
	tick := time.NewTimer(every)
	defer tick.Stop()
	for due := time.Now().Add(every); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			now := time.Now()
			s.longest.Store(max(s.longest.Load(), int64(now.Sub(due))))
			due = now.Add(every)
			tick.Reset(every)
		}
	}
}

func (s *stall) most() time.Duration { return time.Duration(s.longest.Load()) }
