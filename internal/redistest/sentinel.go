package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"
)

// MasterName is what the sentinels of [StartSentinels] call their master.
const MasterName = "main"

// Sentinels is a master with replicas, watched by three sentinels.
type Sentinels struct {
	Addrs     []string  // of the sentinels
	Nodes     []*Server // the first is the master, as they start
	sentinels []*Server
}

// StartSentinels starts a master, two replicas and three sentinels that take a
// master for dead after the given time. It blocks until they know each other.
func StartSentinels(dead time.Duration) (s *Sentinels, err error) {
	s = &Sentinels{}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	for i := range 3 {
		args := []string{"--repl-diskless-sync-delay", "0", "--repl-diskless-load", "swapdb"}
		if i > 0 {
			host, port, _ := net.SplitHostPort(s.Nodes[0].Addr)
			args = append(args, "--replicaof", host+" "+port)
		}
		n, err := Start(args...)
		if err != nil {
			return s, err
		}
		s.Nodes = append(s.Nodes, n)
	}
	if err := s.watch(dead); err != nil {
		return s, err
	}
	return s, s.ready()
}

// watch starts the sentinels, each with a folder and a file of settings that it rewrites.
func (s *Sentinels) watch(dead time.Duration) error {
	host, port, _ := net.SplitHostPort(s.Nodes[0].Addr)
	for range 3 {
		dir, err := os.MkdirTemp("", "redistest")
		if err != nil {
			return err
		}
		own, err := freePort()
		if err != nil {
			return err
		}
		file := filepath.Join(dir, "sentinel.conf")
		text := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\n", own, dir) +
			fmt.Sprintf("sentinel monitor %s %s %s 2\n", MasterName, host, port) +
			fmt.Sprintf("sentinel down-after-milliseconds %s %d\n", MasterName, dead.Milliseconds()) +
			fmt.Sprintf("sentinel failover-timeout %s 5000\nsentinel parallel-syncs %[1]s 2\n", MasterName)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
		w := &Server{Addr: fmt.Sprintf("127.0.0.1:%d", own), dir: dir, args: []string{file, "--sentinel"}}
		if err := w.Restart(); err != nil {
			return errors.Join(err, os.RemoveAll(dir))
		}
		s.sentinels = append(s.sentinels, w)
		s.Addrs = append(s.Addrs, w.Addr)
	}
	return nil
}

// ready waits until every sentinel knows both replicas and the other sentinels.
func (s *Sentinels) ready() error {
	return within(20*time.Second, "the sentinels know each other", func() bool {
		for _, addr := range s.Addrs {
			c := redis.NewSentinelClient(&redis.Options{Addr: addr})
			replicas, err := c.Replicas(context.Background(), MasterName).Result()
			others, err2 := c.Sentinels(context.Background(), MasterName).Result()
			c.Close()
			if err != nil || err2 != nil || len(replicas) < 2 || len(others) < 2 {
				return false
			}
			for _, r := range replicas {
				if r["master-link-status"] != "ok" {
					return false
				}
			}
		}
		return true
	})
}

// Stop ends everything.
func (s *Sentinels) Stop() {
	for _, w := range append(s.sentinels, s.Nodes...) {
		w.Stop()
	}
}

// within waits until something is so.
func within(bound time.Duration, what string, is func() bool) error {
	for end := time.Now().Add(bound); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("redistest: not within %v: %s", bound, what)
		}
	}
	return nil
}
