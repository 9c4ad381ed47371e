package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// loading is a Redis that is busy with itself.
func loading() []scenario {
	return []scenario{
		{
			name: "LOADING", injected: "killed; the restart takes about 2 s to load its data and says so",
			setup: func(s *stage) error { return s.redis() },
			inject: func(s *stage) error {
				if err := s.fill(2000, 0); err != nil {
					return err
				}
				if err := s.beside.Save(context.Background()).Err(); err != nil {
					return err
				}
				s.server.Kill()
				// A small set that loads as slowly as a large one: 1 ms a key.
				return s.server.Launch("--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024")
			},
			heal: func(*stage) error { return nil }, // it ends by itself
			away: 500 * time.Millisecond, bounds: bounds{met: "LOADING"},
		},
		{
			name: "BUSY", injected: "the script of another program runs for ever; after 2 s SCRIPT KILL",
			setup: func(s *stage) error { return s.redis("--busy-reply-threshold", "50") },
			inject: func(s *stage) error {
				other := redis.NewClient(&redis.Options{Addr: s.server.Addr, ReadTimeout: time.Minute, MaxRetries: -1})
				s.later(func() { _ = other.Close() })
				go func() { _ = other.Eval(context.Background(), "while true do end", nil).Err() }() // ends when it is killed
				return s.until("the script runs", func() bool { return redis.HasErrorPrefix(s.beside.Ping(context.Background()).Err(), "BUSY") })
			},
			heal:   func(s *stage) error { return s.beside.ScriptKill(context.Background()).Err() },
			bounds: bounds{keeps: true, met: "BUSY"},
		},
	}
}

// until waits until something is so.
func (s *stage) until(what string, is func() bool) error {
	for end := time.Now().Add(15 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return errors.New("not within 15 s: " + what)
		}
	}
	return nil
}

// do sends one command beside, and names it when it fails.
func (s *stage) do(args ...any) error {
	if err := s.beside.Do(context.Background(), args...).Err(); err != nil {
		return fmt.Errorf("%v: %w", args[:min(2, len(args))], err)
	}
	return nil
}
