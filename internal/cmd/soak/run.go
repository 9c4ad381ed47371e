package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// hostRun is one place in the fleet and the process that is in it now.
type hostRun struct {
	s     *stage
	n     int
	proxy *proxy

	mu    sync.Mutex
	cmd   *exec.Cmd
	in    io.WriteCloser
	done  chan error // gets the process' end
	lives int
}

func newHostRun(s *stage, n int) (*hostRun, error) {
	p, err := newProxy(s.server.Addr)
	if err != nil {
		return nil, err
	}
	return &hostRun{s: s, n: n, proxy: p}, nil
}

// start starts a process in the place.
func (h *hostRun) start() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	h.lives++
	name := fmt.Sprintf("host%d.%d", h.n, h.lives)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), hostEnv+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	log, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	h.s.diary.began()
	h.cmd, h.in, h.done = cmd, in, make(chan error, 1)
	if err := json.NewEncoder(in).Encode(order{name, h.proxy.addr(), h.s.vendor.URL(), keys, h.s.seed + uint64(100*h.n+h.lives), h.s.idle}); err != nil {
		return err
	}
	done := h.done
	go func() {
		var both sync.WaitGroup
		both.Go(func() { h.s.hear(h.n, name, out) })
		both.Go(func() { h.s.read(name, log) })
		both.Wait()
		done <- cmd.Wait()
	}()
	return nil
}

// hear takes in the notes of a process.
func (s *stage) hear(n int, name string, out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		s.leaks.scan("what a process says", lines.Bytes())
		var word note
		if err := json.Unmarshal(lines.Bytes(), &word); err != nil {
			continue // the process was killed in the middle of a line
		}
		s.diary.add(n, name, word)
	}
}

// read looks at the log of a process, whose lines are JSON. Anything else is a
// word of Go's runtime, or of the process about its end.
func (s *stage) read(name string, log io.Reader) {
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadString('\n')
		s.leaks.scan("logs", []byte(line))
		if line != "" && !strings.HasPrefix(line, "{") && strings.HasSuffix(line, "\n") {
			s.diary.fail(fmt.Errorf("%s: %s", name, strings.TrimSpace(line)))
		}
		if err != nil {
			return
		}
	}
}

// kill ends the process as an operator or the kernel would: at once.
func (h *hostRun) kill() error {
	h.mu.Lock()
	err := h.cmd.Process.Kill()
	h.mu.Unlock()
	<-h.done
	return err
}

// freeze stops the process without ending it; thaw lets it go on.
func (h *hostRun) freeze() error { return h.cmd.Process.Signal(syscall.SIGSTOP) }
func (h *hostRun) thaw() error   { return h.cmd.Process.Signal(syscall.SIGCONT) }

// rest tells the process to stop calling.
func (h *hostRun) rest() { _ = h.in.Close() }

// await waits for the process to end well.
func (h *hostRun) await(d time.Duration) error {
	select {
	case err := <-h.done:
		h.done <- err
		if err != nil {
			return fmt.Errorf("host%d: %w", h.n, err)
		}
		return nil
	case <-time.After(d):
		return errors.Join(fmt.Errorf("host%d: did not end within %v", h.n, d), h.kill())
	}
}

// end leaves nothing behind.
func (h *hostRun) end() {
	h.proxy.close()
	if h.cmd != nil {
		_ = h.cmd.Process.Kill() // ended already, unless something failed
	}
}
