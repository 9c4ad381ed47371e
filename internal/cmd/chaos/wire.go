package main

import (
	"time"

	"github.com/headway-go/headway/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// wire is the way to Redis: silent, slow, and losing what it carries.
func wire() []scenario {
	return []scenario{
		{
			name: "silent", injected: "accepts connections, swallows requests and never answers, for 2 s",
			setup: proxied, inject: breaks(redistest.Fault{Mute: true}), heal: mend, bounds: bounds{keeps: true},
		},
		{
			name: "100 ms late", injected: "each reply 100 ms late for 3 s",
			setup: proxied, inject: breaks(redistest.Fault{Delay: 100 * time.Millisecond}), heal: mend,
			away: 3 * time.Second, delay: 100 * time.Millisecond, bounds: bounds{outage: mayLose, keeps: true},
		},
		{
			name: "400 ms late", injected: "each reply 400 ms late for 3 s, more than the limiter waits",
			setup: proxied, inject: breaks(redistest.Fault{Delay: 400 * time.Millisecond}), heal: mend,
			away: 3 * time.Second, bounds: bounds{keeps: true},
		},
		{
			name: "replies lost", injected: "for 3 s one reply of 50 is lost with its connection, after its script ran",
			setup: proxied, inject: breaks(redistest.Fault{Lose: 50}), heal: mend,
			away: 3 * time.Second, bounds: bounds{keeps: true, met: "no reply"},
		},
		{
			name: "cut in a reply", injected: "for 3 s one reply of 50 breaks off in its middle",
			setup: proxied, inject: breaks(redistest.Fault{Cut: 50}), heal: mend,
			away: 3 * time.Second, bounds: bounds{keeps: true, met: "no reply"},
		},
	}
}

// proxied is a Redis that hosts reach through a proxy.
func proxied(s *stage) error {
	if err := s.redis("--repl-diskless-sync-delay", "0"); err != nil { // a replica need not wait for others
		return err
	}
	p, err := redistest.NewProxy(s.server.Addr)
	if err != nil {
		return err
	}
	s.later(p.Close)
	s.proxy = p
	s.connect = func() redis.UniversalClient { return redis.NewClient(settings(p.Addr)) }
	return nil
}

func breaks(f redistest.Fault) func(*stage) error {
	return func(s *stage) error { s.proxy.Break(f); return nil }
}

func mend(s *stage) error { s.proxy.Break(redistest.Fault{}); return nil }
