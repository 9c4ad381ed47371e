package main

import (
	"context"
	"math/rand/v2"
	"time"
)

// A fault is staged for the time d, and undone whatever happens.
type fault struct {
	name string
	act  func(ctx context.Context, r *rand.Rand, d time.Duration) error
}

// randSource chooses; each kind of fault has one of its own, so that the choices
// of one do not depend on how long another took.
type randSource = *rand.Rand

// between draws a time.
func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)))
}

// stageAll stages one fault after the other until ctx ends.
func (s *stage) stageAll(ctx context.Context, r *rand.Rand, rest, length [2]time.Duration, faults []fault) error {
	for wait(ctx, between(r, rest[0], rest[1])) == nil {
		f := faults[r.IntN(len(faults))]
		s.diary.fault(f.name)
		if err := f.act(ctx, r, between(r, length[0], length[1])); err != nil {
			return err
		}
	}
	return nil
}

// storeFaults does to Redis and the network before it what happens to them.
func (s *stage) storeFaults(ctx context.Context, r *rand.Rand) error {
	go s.monitor()
	// lose stages a loss for all processes.
	lose := func(ctx context.Context, d time.Duration, begin func(), end func() error) error {
		from := time.Now()
		begin()
		_ = wait(ctx, d)
		to := time.Now()
		err := end()
		s.diary.loss(from, to)
		return err
	}
	each := func(do func(*proxy)) {
		for _, h := range s.hosts {
			do(h.proxy)
		}
	}
	faults := []fault{
		{"Redis killed", func(ctx context.Context, _ *rand.Rand, d time.Duration) error {
			return lose(ctx, d, s.server.Kill, func() error {
				defer func() { go s.monitor() }()
				return s.server.Restart()
			})
		}},
		{"Redis stopped", func(ctx context.Context, _ *rand.Rand, d time.Duration) error {
			return lose(ctx, d, s.server.Freeze, func() error { s.server.Thaw(); return nil })
		}},
		{"network cut", func(ctx context.Context, _ *rand.Rand, d time.Duration) error {
			return lose(ctx, d, func() { each(func(p *proxy) { p.cut(true) }) }, func() error {
				each(func(p *proxy) { p.cut(false) })
				return nil
			})
		}},
		{"one process cut off", func(ctx context.Context, r *rand.Rand, d time.Duration) error {
			h, from := s.hosts[r.IntN(processes)], time.Now()
			h.proxy.cut(true)
			_ = wait(ctx, d)
			h.proxy.cut(false)
			s.diary.cutOff(h.n, from, time.Now())
			return nil
		}},
		{"connections reset", func(context.Context, *rand.Rand, time.Duration) error {
			each(func(p *proxy) { p.cut(false) })
			return nil
		}},
		{"network slow", func(ctx context.Context, r *rand.Rand, d time.Duration) error {
			slow := between(r, 5*time.Millisecond, 80*time.Millisecond)
			each(func(p *proxy) { p.delay(slow) })
			_ = wait(ctx, d)
			each(func(p *proxy) { p.delay(0) })
			return nil
		}},
		{"scripts flushed", func(ctx context.Context, _ *rand.Rand, _ time.Duration) error {
			db := s.server.Client()
			defer db.Close()
			_ = db.ScriptFlush(ctx) // the server is there; ctx may have ended
			return nil
		}},
	}
	return s.stageAll(ctx, r, [2]time.Duration{time.Second, 8 * time.Second}, [2]time.Duration{200 * time.Millisecond, 3 * time.Second}, faults)
}

// hostFaults kills and stops processes.
func (s *stage) hostFaults(ctx context.Context, r *rand.Rand) error {
	faults := []fault{
		{"process killed", func(ctx context.Context, r *rand.Rand, d time.Duration) error {
			h := s.hosts[r.IntN(processes)]
			if err := h.kill(); err != nil {
				return err
			}
			s.diary.died(h.n, time.Now())
			_ = wait(ctx, d/2)
			return h.start()
		}},
		{"process stopped", func(ctx context.Context, r *rand.Rand, d time.Duration) error {
			h, from := s.hosts[r.IntN(processes)], time.Now()
			if err := h.freeze(); err != nil {
				return err
			}
			_ = wait(ctx, d)
			s.diary.stood(h.n, from, time.Now())
			return h.thaw()
		}},
	}
	return s.stageAll(ctx, r, [2]time.Duration{time.Second, 6 * time.Second}, [2]time.Duration{200 * time.Millisecond, 3 * time.Second}, faults)
}
