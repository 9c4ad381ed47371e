package main

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/headway-go/headway/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// failover is a Redis whose master changes.
func failover() []scenario {
	return []scenario{
		{
			name: "READONLY", injected: "the replica is promoted and the master demoted; after 2 s the proxy leads to the new one",
			setup: func(s *stage) error {
				if err := proxied(s); err != nil {
					return err
				}
				replica, err := redistest.Start()
				if err != nil {
					return err
				}
				s.later(replica.Stop)
				s.replica = redis.NewClient(settings(replica.Addr))
				s.later(func() { _ = s.replica.Close() })
				if err := follow(s.replica, s.server.Addr); err != nil {
					return err
				}
				return s.until("the replica follows", func() bool {
					return strings.Contains(s.replica.Info(context.Background(), "replication").Val(), "master_link_status:up")
				})
			},
			inject: func(s *stage) error {
				if err := s.replica.ReplicaOf(context.Background(), "NO", "ONE").Err(); err != nil {
					return err
				}
				return follow(s.beside, s.replica.Options().Addr)
			},
			heal: func(s *stage) error {
				s.proxy.Point(s.replica.Options().Addr)
				s.beside = s.replica // who serves now
				return nil
			},
			bounds: bounds{met: "READONLY"},
		},
		{
			name: "Sentinel failover", injected: "three sentinels, the master is killed and a replica promoted",
			setup: func(s *stage) error {
				group, err := redistest.StartSentinels(500 * time.Millisecond)
				if err != nil {
					return err
				}
				s.later(group.Stop)
				s.server = group.Nodes[0]
				o := func() *redis.FailoverOptions {
					return &redis.FailoverOptions{MasterName: redistest.MasterName, SentinelAddrs: group.Addrs, ContextTimeoutEnabled: true, DialerRetries: 1}
				}
				s.use(func() redis.UniversalClient { return redis.NewFailoverClient(o()) }, nil)
				s.serving = func(ctx context.Context) error { return named(ctx, group.Addrs) }
				return nil
			},
			inject: kill, heal: func(*stage) error { return nil }, // the sentinels do it
			away: 100 * time.Millisecond,
		},
	}
}

// follow makes a Redis the replica of another.
func follow(c redis.UniversalClient, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	return c.(*redis.Client).ReplicaOf(context.Background(), host, port).Err()
}

// named reports whether the master that a sentinel names takes a write.
func named(ctx context.Context, sentinels []string) (err error) {
	for _, addr := range sentinels {
		c := redis.NewSentinelClient(settings(addr))
		var master []string
		master, err = c.GetMasterAddrByName(ctx, redistest.MasterName).Result()
		_ = c.Close()
		if err == nil {
			return anyMaster(ctx, []string{net.JoinHostPort(master[0], master[1])})
		}
	}
	return err
}

// anyMaster reports whether one of the nodes takes a write.
func anyMaster(ctx context.Context, addrs []string) (err error) {
	for _, addr := range addrs {
		o := settings(addr)
		o.MaxRetries = -1
		c := redis.NewClient(o)
		err = c.Set(ctx, "beside:{"+fingerprint+"}", 1, time.Minute).Err()
		_ = c.Close()
		if err == nil {
			return nil
		}
	}
	return err
}
