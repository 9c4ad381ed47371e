package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// access is what Redis knows and allows: scripts, users, passwords, types.
func access() []scenario {
	plain := func(s *stage) error { return s.redis() }
	return []scenario{
		{
			name: "SCRIPT FLUSH", injected: "the scripts are forgotten every 20 ms for 2 s",
			setup: plain,
			inject: func(s *stage) error {
				for range 100 {
					if err := s.do("SCRIPT", "FLUSH"); err != nil {
						return err
					}
					time.Sleep(20 * time.Millisecond)
				}
				return nil
			},
			away: time.Millisecond, bounds: bounds{outage: mustKeep, keeps: true, met: "NOSCRIPT"},
		},
		{
			name: "user without SCRIPT", injected: "the access list forbids SCRIPT from the start",
			setup:  user("+@all", "-script"),
			inject: func(s *stage) error { return s.do("SCRIPT", "FLUSH") },
			bounds: bounds{outage: mustKeep, keeps: true, met: "NOSCRIPT"},
		},
		{
			name: "user without EVAL", injected: "for 2 s the access list forbids EVAL and EVALSHA",
			setup:  user("+@all"),
			inject: func(s *stage) error { return s.do("ACL", "SETUSER", "app", "-eval", "-evalsha") },
			heal:   func(s *stage) error { return s.do("ACL", "SETUSER", "app", "+eval", "+evalsha") },
			bounds: bounds{keeps: true, met: "NOPERM"},
		},
		{
			name: "password changed", injected: "CONFIG SET requirepass and CLIENT KILL; after 2 s back",
			setup: plain,
			inject: func(s *stage) error {
				if err := s.do("CONFIG", "SET", "requirepass", "other"); err != nil {
					return err
				}
				return s.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			},
			heal: func(s *stage) error {
				o := settings(s.server.Addr)
				o.Password = "other"
				admin := redis.NewClient(o)
				defer admin.Close()
				return admin.ConfigSet(context.Background(), "requirepass", "").Err()
			},
			bounds: bounds{keeps: true, met: "NOAUTH"},
		},
		{
			name: "WRONGTYPE", injected: "another program's list stands at our key for 2 s; ours comes back then",
			setup: plain,
			inject: func(s *stage) error {
				tape, err := s.tape()
				if err != nil {
					return err
				}
				s.record.forget()
				_, err = s.beside.TxPipelined(context.Background(), func(p redis.Pipeliner) error {
					p.Rename(context.Background(), tape, "aside:"+tape)
					p.LPush(context.Background(), tape, "foreign")
					return nil
				})
				return err
			},
			heal: func(s *stage) error {
				tape, err := s.tape()
				if err != nil {
					return err
				}
				// One call's answer is no outage, so nobody told Redis what went meanwhile.
				s.record.forget()
				return s.do("RENAME", "aside:"+tape, tape)
			},
			bounds: bounds{outage: mustKeep, met: "WRONGTYPE"},
		},
	}
}

// user is a Redis where hosts have a user of their own, with these rules.
func user(rules ...any) func(*stage) error {
	return func(s *stage) error {
		if err := s.redis(); err != nil {
			return err
		}
		s.connect = func() redis.UniversalClient {
			o := settings(s.server.Addr)
			o.Username, o.Password = "app", "pw"
			return redis.NewClient(o)
		}
		return s.do(append([]any{"ACL", "SETUSER", "app", "on", ">pw", "~*", "&*"}, rules...)...)
	}
}

// tape is the key of what went under the limit of requests.
func (s *stage) tape() (string, error) {
	for _, k := range s.beside.Keys(context.Background(), "headway:*").Val() {
		if strings.Contains(k, ":requests:") && !strings.HasSuffix(k, ":line") {
			return k, nil
		}
	}
	return "", errors.New("no key holds the limit of requests")
}
