package main

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// killing is Redis' process: ended, stopped, and never there.
func killing() []scenario {
	plain := func(s *stage) error { return s.redis() }
	return []scenario{
		{
			name: "killed, empty", injected: "kill -9, 2 s later a restart without data",
			setup: plain, inject: kill, heal: restart,
		},
		{
			name: "killed as the fleet starts", injected: "the same, 0.8 s after the first calls: who knows how many they are?",
			setup: plain, inject: kill, heal: restart, warm: 800 * time.Millisecond,
		},
		{
			name: "killed, with its data", injected: "kill -9, 2 s later a restart from an append-only file that is written at each command",
			setup:  func(s *stage) error { return s.redis("--appendonly", "yes", "--appendfsync", "always") },
			inject: kill, heal: restart, bounds: bounds{keeps: true},
		},
		{
			name: "stopped", injected: "kill -STOP, 2 s later kill -CONT",
			setup: plain, inject: freeze, heal: thaw, bounds: bounds{keeps: true},
		},
		{
			name: "stopped, a pool of one", injected: "the same, each client with one connection",
			setup: func(s *stage) error {
				if err := s.redis(); err != nil {
					return err
				}
				s.connect = func() redis.UniversalClient {
					o := settings(s.server.Addr)
					o.PoolSize = 1
					return redis.NewClient(o)
				}
				return nil
			},
			inject: freeze, heal: thaw, bounds: bounds{keeps: true},
		},
		{
			name: "never there, members set", injected: "refuses connections from the start for 3 s, Members: 3",
			setup: notYet, heal: restart, away: 3 * time.Second, members: hosts,
		},
		{
			name: "never there", injected: "refuses connections from the start for 3 s; nobody knows the fleet, so nothing may go",
			setup: notYet, heal: restart, away: 3 * time.Second, bounds: bounds{none: true},
		},
	}
}

func kill(s *stage) error { s.server.Kill(); return nil }

func restart(s *stage) error { return s.server.Launch() }

func freeze(s *stage) error { s.server.Freeze(); return nil }

func thaw(s *stage) error { s.server.Thaw(); return nil }

// notYet is a server that has an address and does not run yet.
func notYet(s *stage) error {
	if err := s.redis(); err != nil {
		return err
	}
	s.server.Kill()
	return nil
}
