// Package redistest runs a private redis-server for a test binary or a demo.
//
// A server listens on a free port of the loopback address, keeps nothing on
// disk, and is ended by its process.
package redistest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a running redis-server.
type Server struct {
	Addr string // host:port
	cmd  *exec.Cmd
	args []string
	dir  string
}

// Start starts a server with extra arguments such as "--maxmemory", "1mb". It
// blocks until the server answers, 10 seconds at most.
func Start(args ...string) (*Server, error) {
	dir, err := os.MkdirTemp("", "redistest")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), dir: dir}
	s.args = append([]string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
		"--dir", dir, "--loglevel", "warning"}, args...)
	if err := s.Restart(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// Launch starts the process again after [Server.Kill] and does not wait until
// it answers. It is empty, unless the arguments had it keep its data. More
// arguments hold until the next time only.
func (s *Server) Launch(args ...string) error {
	s.cmd = exec.Command("redis-server", slices.Concat(s.args, args)...)
	s.cmd.Stdout, s.cmd.Stderr = io.Discard, io.Discard
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("redistest: start redis-server (make test installs it): %w", err)
	}
	return nil
}

// Restart is [Server.Launch], and then waits until the server answers.
func (s *Server) Restart(args ...string) error {
	if err := s.Launch(args...); err != nil {
		return err
	}
	c := redis.NewClient(&redis.Options{Addr: s.Addr, DialerRetries: 1, MaxRetries: -1})
	defer c.Close()
	deadline := time.Now().Add(10 * time.Second)
	for {
		err := c.Ping(context.Background()).Err()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			s.Kill()
			return fmt.Errorf("redistest: redis-server does not answer: %w", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Dir is the server's folder, which [Server.Stop] removes.
func (s *Server) Dir() string { return s.dir }

// Kill ends the process at once; its data is gone, unless it was told to keep it.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// Stop ends the server and removes its folder.
func (s *Server) Stop() {
	s.Kill()
	_ = os.RemoveAll(s.dir)
}

// Freeze stops the process without ending it, as kill -STOP does; Thaw lets it go on.
func (s *Server) Freeze() { _ = s.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw continues a frozen process.
func (s *Server) Thaw() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }

// Client returns a new client with go-redis' defaults, as a user would make it.
func (s *Server) Client() *redis.Client { return redis.NewClient(&redis.Options{Addr: s.Addr}) }

// Run starts the server of a test binary, hands its address to the tests, runs
// them, and ends it. Call it from TestMain.
func Run(m *testing.M, use func(*Server)) int {
	s, err := Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer s.Stop()
	use(s)
	return m.Run()
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
