package throttle

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// keyLog is a hook that keeps the KEYS of every script.
type keyLog struct {
	mu      sync.Mutex
	scripts [][]string
}

func (k *keyLog) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (k *keyLog) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (k *keyLog) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); len(args) > 3 && (cmd.Name() == "evalsha" || cmd.Name() == "eval") {
			var keys []string
			for _, a := range args[3 : 3+args[2].(int)] {
				keys = append(keys, a.(string))
			}
			k.mu.Lock()
			k.scripts = append(k.scripts, keys)
			k.mu.Unlock()
		}
		return next(ctx, cmd)
	}
}

// S21: everything works in a Redis Cluster, and all keys of a script share a slot.
func TestS21Cluster(t *testing.T) {
	t.Parallel()
	s := ownServer(t, "--cluster-enabled", "yes")
	node := s.Client()
	defer node.Close()
	if err := node.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.Addr}})
	defer client.Close()
	eventually(t, "the cluster is up", func() bool { return client.Set(t.Context(), "x", 1, 0).Err() == nil })
	log := &keyLog{}
	client.AddHook(log)
	c := everyShape()
	c.Redis = client
	everything(t, newLimiter(t, c))

	log.mu.Lock()
	defer log.mu.Unlock()
	if len(log.scripts) == 0 {
		t.Fatal("no script was seen")
	}
	for _, keys := range log.scripts {
		first := node.ClusterKeySlot(t.Context(), keys[0]).Val()
		for _, k := range keys {
			if slot := node.ClusterKeySlot(t.Context(), k).Val(); slot != first {
				t.Errorf("%s is in slot %d, %s in %d", keys[0], first, k, slot)
			}
		}
	}
}

// S21: a script touches no key that it does not declare.
func TestS21EveryKeyIsDeclared(t *testing.T) {
	t.Parallel()
	s := ownServer(t)
	client := s.Client()
	defer client.Close()
	log := &keyLog{}
	client.AddHook(log)
	c := everyShape()
	c.Redis = client
	everything(t, newLimiter(t, c))

	declared := map[string]bool{}
	log.mu.Lock()
	for _, keys := range log.scripts {
		for _, k := range keys {
			declared[k] = true
		}
	}
	log.mu.Unlock()
	found := client.Keys(t.Context(), "*").Val()
	if len(found) == 0 {
		t.Fatal("no key was written")
	}
	for _, k := range found {
		if !declared[k] {
			t.Errorf("the key %s was written and never declared", k)
		}
		if len(k) > 250 {
			t.Errorf("a key of %d bytes: %s", len(k), k)
		}
	}
}
