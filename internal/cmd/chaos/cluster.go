package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/headway-go/headway/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// ourKey is in the slot of everything that the fleet keeps.
const ourKey = "{" + fingerprint + "}"

// cluster is a Redis Cluster of three masters with a replica each.
func cluster() []scenario {
	return []scenario{
		{
			name: "Cluster, slot moves", injected: "our slot moves to another master, key by key, for about 2 s",
			setup: clustered, inject: moveSlot, heal: func(*stage) error { return nil },
			away: time.Millisecond, bounds: bounds{outage: mayLose, keeps: true, met: "MOVED"},
		},
		{
			name: "Cluster, master killed", injected: "the master of our slot is killed and its replica promoted",
			setup: clustered,
			inject: func(s *stage) error {
				owner, _, err := s.nodes.Owner(context.Background(), ourKey)
				if err != nil {
					return err
				}
				owner.Kill()
				return nil
			},
			heal: func(*stage) error { return nil }, // the cluster does it
			away: 100 * time.Millisecond,
		},
	}
}

func clustered(s *stage) error {
	c, err := redistest.StartCluster(time.Second)
	if err != nil {
		return err
	}
	s.later(c.Stop)
	s.nodes = c
	var addrs []string
	for _, n := range c.Nodes {
		addrs = append(addrs, n.Addr)
	}
	s.serving = func(ctx context.Context) error { return anyMaster(ctx, addrs) }
	s.use(func() redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: addrs, ContextTimeoutEnabled: true, DialerRetries: 1,
			NewClient: func(o *redis.Options) *redis.Client {
				node := redis.NewClient(o)
				node.AddHook(nodeHook{&s.record})
				return node
			},
		})
	}, nil)
	return nil
}

// moveSlot moves our slot to another master while calls run.
func moveSlot(s *stage) error {
	ctx := context.Background()
	owner, slot, err := s.nodes.Owner(ctx, ourKey)
	if err != nil {
		return err
	}
	next := s.nodes.Nodes[0]
	if next == owner {
		next = s.nodes.Nodes[1]
	}
	from, to := owner.Client(), next.Client()
	defer from.Close()
	defer to.Close()
	fromID, err := owner.ID(ctx)
	if err != nil {
		return err
	}
	toID, err := next.ID(ctx)
	if err != nil {
		return err
	}
	if err := to.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", fromID).Err(); err != nil {
		return fmt.Errorf("importing: %w", err)
	}
	if err := from.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", toID).Err(); err != nil {
		return fmt.Errorf("migrating: %w", err)
	}
	host, port, _ := net.SplitHostPort(next.Addr)
	for {
		keys, err := from.ClusterGetKeysInSlot(ctx, slot, 1).Result()
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			break
		}
		if err := from.Migrate(ctx, host, port, keys[0], 0, time.Second).Err(); err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		time.Sleep(200 * time.Millisecond)
	}
	time.Sleep(300 * time.Millisecond)            // nothing left: the old master says ASK
	for _, n := range []*redis.Client{to, from} { // who gets it must know first
		if err := n.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", toID).Err(); err != nil {
			return fmt.Errorf("node: %w", err)
		}
	}
	return nil
}
