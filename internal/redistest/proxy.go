package redistest

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Fault is what a [Proxy] does to what passes. The zero value is nothing.
type Fault struct {
	Mute  bool              // connections are accepted, requests are swallowed, nothing is answered
	Delay time.Duration     // of every reply
	Lose  int64             // one of so many replies is lost, and its connection cut
	Cut   int64             // one of so many replies is cut in its middle, with its connection
	Which func([]byte) bool // which replies Lose and Cut count, by how they come from Redis; nil: none
}

// Proxy stands between a client and a Redis, and breaks what passes.
type Proxy struct {
	Addr     string       // host:port
	Hit      atomic.Int64 // replies that were lost or cut, and requests that were swallowed
	listener net.Listener
	replies  atomic.Int64 // that Lose and Cut have counted

	mu    sync.Mutex
	to    string
	fault Fault
	conns map[net.Conn]bool // those of clients; true: it has lost something and is of no use
}

// NewProxy starts a proxy on a free port. The caller must Close it.
func NewProxy(to string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{Addr: l.Addr().String(), listener: l, to: to, conns: map[net.Conn]bool{}}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(in)
		}
	}()
	return p, nil
}

// Break sets what is done to requests and replies from now on. Connections that
// a former fault has spoiled are cut.
func (p *Proxy) Break(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
	for c, spoiled := range p.conns {
		if spoiled && !f.Mute {
			c.Close()
		}
	}
}

// Point makes later connections go to another server.
func (p *Proxy) Point(to string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to = to
}

// Close ends the proxy and every connection.
func (p *Proxy) Close() {
	p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

func (p *Proxy) now() Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault
}

func (p *Proxy) serve(in net.Conn) {
	defer in.Close()
	p.mu.Lock()
	to := p.to
	p.conns[in] = false
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.conns, in)
		p.mu.Unlock()
	}()
	out, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer out.Close()
	go p.requests(in, out)
	p.answer(in, out)
}

// requests passes on what the client sends, and swallows it while mute.
func (p *Proxy) requests(in, out net.Conn) {
	defer out.Close() // the client has gone
	buf := make([]byte, 64<<10)
	for {
		n, err := in.Read(buf)
		if err != nil {
			return
		}
		if p.now().Mute {
			p.Hit.Add(1)
			p.mu.Lock()
			p.conns[in] = true
			p.mu.Unlock()
			continue
		}
		if _, err := out.Write(buf[:n]); err != nil {
			return
		}
	}
}

// late is a piece of a reply and when it is due.
type late struct {
	piece []byte
	due   time.Time
	last  bool // the connection is cut after it
}

// answer passes on what Redis replies: in order, each piece as late as the fault
// has it, so that a delay does not make the line narrower.
func (p *Proxy) answer(in, out net.Conn) {
	pieces := make(chan late, 1024)
	go func() {
		defer close(pieces)
		buf := make([]byte, 64<<10)
		for {
			n, err := out.Read(buf)
			if err != nil {
				return
			}
			f := p.now()
			piece := late{piece: append([]byte(nil), buf[:n]...), due: time.Now().Add(f.Delay)}
			if f.Which != nil && f.Which(piece.piece) {
				count := p.replies.Add(1)
				switch {
				case f.Lose > 0 && count%f.Lose == 0:
					piece.piece, piece.last = nil, true
				case f.Cut > 0 && count%f.Cut == 0:
					piece.piece, piece.last = piece.piece[:n/2], true
				}
			}
			if piece.last {
				p.Hit.Add(1)
			}
			pieces <- piece
			if piece.last {
				return
			}
		}
	}()
	defer func() {
		out.Close()
		for range pieces { // let the reader go
		}
	}()
	for l := range pieces {
		if rest := time.Until(l.due); rest > 0 {
			time.Sleep(rest)
		}
		if _, err := in.Write(l.piece); err != nil && err != io.EOF {
			return
		}
		if l.last {
			return
		}
	}
}
