package main

import (
	"io"
	"net"
	"sync"
	"time"
)

// proxy is the network between one process and Redis.
type proxy struct {
	to string
	l  net.Listener

	mu    sync.Mutex
	off   bool // connections are closed as they come
	slow  time.Duration
	conns map[net.Conn]struct{}
}

func newProxy(to string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{to: to, l: l, conns: map[net.Conn]struct{}{}}
	go p.serve()
	return p, nil
}

func (p *proxy) addr() string { return p.l.Addr().String() }

func (p *proxy) close() {
	p.l.Close()
	p.cut(true)
}

// cut ends every connection; while off is true no new one comes about.
func (p *proxy) cut(off bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.off = off
	for c := range p.conns {
		c.Close()
	}
}

// delay holds every piece of a reply back for d.
func (p *proxy) delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow = d
}

func (p *proxy) serve() {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		go p.pass(c)
	}
}

func (p *proxy) pass(host net.Conn) {
	defer host.Close()
	store, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer store.Close()
	if !p.enter(host, store) {
		return
	}
	defer p.leave(host, store)
	go func() {
		_, _ = io.Copy(store, host)
		store.Close()
	}()
	for buf := make([]byte, 64<<10); ; {
		n, err := store.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		slow := p.slow
		p.mu.Unlock()
		time.Sleep(slow)
		if _, err := host.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) enter(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if !p.off {
			p.conns[c] = struct{}{}
		}
	}
	return !p.off
}

func (p *proxy) leave(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.conns, c)
	}
}
