package main

import (
	"bytes"
	"encoding/binary"
	"math"
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
			name: "replies lost", injected: "for 3 s one of three replies that admit calls is lost with its connection",
			setup: proxied, inject: breaks(redistest.Fault{Lose: 3, Which: admits}), heal: mend,
			away: 3 * time.Second, bounds: bounds{keeps: true, met: "no reply"},
		},
		{
			name: "cut in a reply", injected: "for 3 s one of three replies that admit calls breaks off in its middle",
			setup: proxied, inject: breaks(redistest.Fault{Cut: 3, Which: admits}), heal: mend,
			away: 3 * time.Second, bounds: bounds{keeps: true, met: "no reply"},
		},
	}
}

// admits reports whether a reply of the admission script has a call that goes:
// six numbers for each, the first is 1 then. To lose any other changes nothing.
func admits(reply []byte) bool {
	const size = 6 * 8
	_, packed, found := bytes.Cut(reply, []byte("\r\n"))
	if reply[0] != '$' || !found {
		return false
	}
	for ; len(packed) >= size; packed = packed[size:] {
		if math.Float64frombits(binary.LittleEndian.Uint64(packed)) == 1 {
			return true
		}
	}
	return false
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
