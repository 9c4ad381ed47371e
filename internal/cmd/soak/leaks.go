package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// leaks remembers where a piece of an API key was seen.
type leaks struct {
	mu    sync.Mutex
	where map[string]bool
	bytes map[string]int // that were looked through, by kind of place
}

// piece is how much of a key counts as a leak, in bytes.
const piece = 8

// scan looks for pieces of a key in something that others can read.
func (l *leaks) scan(where string, text []byte) {
	found := slices.ContainsFunc(keys, func(key string) bool {
		secret := strings.TrimPrefix(key, "sk-soak-")
		for i := range len(secret) - piece + 1 {
			if bytes.Contains(text, []byte(secret[i:i+piece])) {
				return true
			}
		}
		return false
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.where == nil {
		l.where, l.bytes = map[string]bool{}, map[string]int{}
	}
	l.bytes[where] += len(text)
	if found {
		l.where[where] = true
	}
}

// watch looks into Redis all the while: every key and value twice a second, and
// every command as it comes.
func (s *stage) watch(ctx context.Context, _ randSource) error {
	for wait(ctx, 500*time.Millisecond) == nil {
		if err := s.scanStore(ctx); err != nil {
			return err
		}
	}
	return nil
}

// monitor reads every command that Redis gets, until the server ends.
func (s *stage) monitor() {
	c, err := net.Dial("tcp", s.server.Addr)
	if err != nil {
		return
	}
	defer c.Close()
	if _, err := fmt.Fprint(c, "MONITOR\r\n"); err != nil {
		return
	}
	lines := bufio.NewReader(c)
	for {
		line, err := lines.ReadBytes('\n')
		s.leaks.scan("commands to Redis", line)
		if err != nil {
			return
		}
	}
}

// scanStore checks all that Redis holds: our keys only, each with an expiry, and
// no secret. A server that is away has nothing to look at.
func (s *stage) scanStore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	db := s.server.Client()
	defer db.Close()
	names, err := db.Keys(ctx, "*").Result()
	if err != nil {
		return nil // away
	}
	for _, name := range names {
		dump, err := db.Dump(ctx, name).Result()
		if err != nil {
			continue // expired, or away meanwhile
		}
		s.leaks.scan("Redis", []byte(name+dump))
		for _, text := range []any{db.Get(ctx, name).Val(), db.HGetAll(ctx, name).Val(), db.ZRange(ctx, name, 0, -1).Val()} {
			s.leaks.scan("Redis", fmt.Append(nil, text))
		}
		if !strings.HasPrefix(name, "headway:1:{") {
			return fmt.Errorf("a key that is not ours: %.100q", name)
		}
		if len(name) > 250 {
			return fmt.Errorf("a key of %d bytes: %.100q", len(name), name)
		}
		if ttl, err := db.PTTL(ctx, name).Result(); err == nil && ttl <= 0 && ttl != -2 {
			return fmt.Errorf("key %.100q has no expiry", name)
		}
	}
	s.diary.held(len(names))
	return nil
}
