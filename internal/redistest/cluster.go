package redistest

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// slots is how many slots a Redis Cluster has.
const slots = 16384

// Cluster is a Redis Cluster of three masters with a replica each.
type Cluster struct {
	Nodes []*Server // the first three start as masters, the last three as their replicas
}

// StartCluster starts the six nodes and joins them. A node that is silent for
// the given time is taken for dead. It blocks until all slots are served and
// every replica follows its master.
func StartCluster(dead time.Duration) (c *Cluster, err error) {
	c = &Cluster{}
	defer func() {
		if err != nil {
			c.Stop()
		}
	}()
	for range 6 {
		n, err := startNode(dead)
		if err != nil {
			return c, err
		}
		c.Nodes = append(c.Nodes, n)
	}
	return c, c.join()
}

// startNode starts one node; its bus needs a port of its own.
func startNode(dead time.Duration) (*Server, error) {
	bus, err := freePort()
	if err != nil {
		return nil, err
	}
	return Start("--cluster-enabled", "yes", "--cluster-node-timeout", fmt.Sprint(dead.Milliseconds()), "--cluster-port", fmt.Sprint(bus),
		"--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0")
}

func (c *Cluster) join() error {
	ctx := context.Background()
	first := c.Nodes[0].Client()
	defer first.Close()
	for i, n := range c.Nodes {
		node := n.Client()
		defer node.Close()
		if i < 3 {
			if err := node.ClusterAddSlotsRange(ctx, slots*i/3, slots*(i+1)/3-1).Err(); err != nil {
				return fmt.Errorf("redistest: slots: %w", err)
			}
		}
		if err := node.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			return fmt.Errorf("redistest: epoch: %w", err)
		}
		host, port, _ := net.SplitHostPort(n.Addr)
		bus := node.ConfigGet(ctx, "cluster-port").Val()["cluster-port"]
		if i > 0 {
			if err := first.Do(ctx, "CLUSTER", "MEET", host, port, bus).Err(); err != nil {
				return fmt.Errorf("redistest: meet: %w", err)
			}
		}
	}
	for i := 3; i < 6; i++ {
		master, err := c.Nodes[i-3].ID(ctx)
		if err != nil {
			return err
		}
		node := c.Nodes[i].Client()
		defer node.Close()
		err = within(10*time.Second, "a replica knows its master", func() bool { return node.ClusterReplicate(ctx, master).Err() == nil })
		if err != nil {
			return err
		}
	}
	return c.ready()
}

// ready waits until every node serves, and every replica follows.
func (c *Cluster) ready() error {
	ctx := context.Background()
	return within(20*time.Second, "the cluster is up", func() bool {
		for i, n := range c.Nodes {
			node := n.Client()
			state, nodes := node.ClusterInfo(ctx).Val(), node.ClusterNodes(ctx).Val()
			link := node.Info(ctx, "replication").Val()
			node.Close()
			if !strings.Contains(state, "cluster_state:ok") || strings.Count(nodes, "connected") != 6 || strings.Count(nodes, "slave") != 3 ||
				i >= 3 && !strings.Contains(link, "master_link_status:up") {
				return false
			}
		}
		return true
	})
}

// ID is the node's id in its cluster.
func (s *Server) ID(ctx context.Context) (string, error) {
	c := s.Client()
	defer c.Close()
	return c.ClusterMyID(ctx).Result()
}

// Client returns a new client of the cluster with go-redis' defaults.
func (c *Cluster) Client() *redis.ClusterClient {
	var addrs []string
	for _, n := range c.Nodes {
		addrs = append(addrs, n.Addr)
	}
	return redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
}

// Owner is the node that serves the slot of a key, and the slot.
func (c *Cluster) Owner(ctx context.Context, key string) (*Server, int, error) {
	for _, n := range c.Nodes {
		node := n.Client()
		slot, err := node.ClusterKeySlot(ctx, key).Result()
		var all string
		if err == nil {
			all, err = node.ClusterNodes(ctx).Result()
		}
		node.Close()
		if err != nil {
			continue // this one is dead
		}
		for line := range strings.Lines(all) {
			// id address flags master ping pong epoch link slots...
			f := strings.Fields(line)
			if len(f) < 9 || !serves(f[8:], int(slot)) {
				continue
			}
			addr, _, _ := strings.Cut(f[1], "@")
			for _, o := range c.Nodes {
				if o.Addr == addr {
					return o, int(slot), nil
				}
			}
		}
	}
	return nil, 0, fmt.Errorf("redistest: no node serves the slot of %s", key)
}

// serves reports whether a slot is in one of the ranges, "7" or "0-5460".
func serves(ranges []string, slot int) bool {
	for _, r := range ranges {
		from, to, many := strings.Cut(r, "-")
		if !many {
			to = from
		}
		low, err := strconv.Atoi(from)
		high, err2 := strconv.Atoi(to)
		if err == nil && err2 == nil && low <= slot && slot <= high {
			return true
		}
	}
	return false
}

// Stop ends everything.
func (c *Cluster) Stop() {
	for _, n := range c.Nodes {
		n.Stop()
	}
}
