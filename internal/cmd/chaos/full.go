package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// full is a Redis that has no room, in memory or on its disk.
func full() []scenario {
	return []scenario{
		{
			name: "no memory, noeviction", injected: "others fill it above maxmemory for 2 s",
			setup: func(s *stage) error { return s.redis("--maxmemory-policy", "noeviction") },
			inject: func(s *stage) error {
				if err := s.fill(600, 0); err != nil {
					return err
				}
				return s.do("CONFIG", "SET", "maxmemory", "4mb") // below what is there, so that no buffer that shrinks makes room
			},
			heal:   func(s *stage) error { return s.beside.Del(context.Background(), s.junk...).Err() },
			bounds: bounds{keeps: true, met: "OOM"},
		},
		{
			name: "eviction, allkeys-lru", injected: "full all the time, others write 300 keys a second for 3 s; ours are in use",
			setup:  func(s *stage) error { return s.evicting("allkeys-lru") },
			inject: func(s *stage) error { return s.fill(900, 3333*time.Microsecond) },
			bounds: bounds{outage: mayLose},
		},
		{
			name: "eviction, allkeys-random", injected: "the same where Redis throws out any key",
			setup:  func(s *stage) error { return s.evicting("allkeys-random") },
			inject: func(s *stage) error { return s.fill(900, 3333*time.Microsecond) },
			bounds: bounds{outage: mayLose},
		},
		{
			name: "MISCONF", injected: "saves fail and stop-writes-on-bgsave-error forbids writes for 2 s",
			setup: func(s *stage) error { return s.redis("--save", "3600 1000000") }, // a Redis that saves at all
			inject: func(s *stage) error {
				// A folder in the place of its file: root may write everywhere else.
				if err := os.Mkdir(filepath.Join(s.server.Dir(), "dump.rdb"), 0o700); err != nil {
					return err
				}
				return s.saved("err")
			},
			heal: func(s *stage) error {
				if err := os.Remove(filepath.Join(s.server.Dir(), "dump.rdb")); err != nil {
					return err
				}
				return s.saved("ok")
			},
			bounds: bounds{keeps: true, met: "MISCONF"},
		},
	}
}

// junkSize is how large the keys of others are.
const junkSize = 10_000

// fill writes so many keys of others, one each pause.
func (s *stage) fill(keys int, pause time.Duration) error {
	ctx, value := context.Background(), strings.Repeat("x", junkSize)
	for range keys {
		key := fmt.Sprintf("junk:%d", len(s.junk))
		if err := s.beside.Set(ctx, key, value, 0).Err(); err != nil {
			return err
		}
		s.junk = append(s.junk, key)
		if pause > 0 {
			_ = pass(ctx, pause)
		}
	}
	return nil
}

// evicting is a full Redis that throws out keys to make room, and tells when one
// of them was the count of a limit. For each such time N more may go.
func (s *stage) evicting(policy string) error {
	if err := s.redis("--maxmemory", "8mb", "--maxmemory-policy", policy, "--notify-keyspace-events", "Ee"); err != nil {
		return err
	}
	ctx := context.Background()
	told := s.beside.Subscribe(ctx, "__keyevent@0__:evicted")
	if _, err := told.Receive(ctx); err != nil {
		return err
	}
	s.later(func() { _ = told.Close() })
	go func() {
		for m := range told.Channel(redis.WithChannelSize(100_000)) {
			if strings.Contains(m.Payload, ourKey) && strings.Contains(m.Payload, ":requests:") {
				s.record.forget()
			}
		}
	}()
	return s.fill(1000, 0)
}

// saved has Redis save in the background until the last time ended as wanted.
func (s *stage) saved(status string) error {
	ctx := context.Background()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if strings.Contains(s.beside.Info(ctx, "persistence").Val(), "rdb_last_bgsave_status:"+status) {
			return nil
		}
		_ = s.beside.BgSave(ctx).Err() // one may be running
	}
	return errors.New("the background save did not end with " + status)
}
