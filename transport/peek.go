package transport

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/headway-go/headway/transport/profiles"
)

const (
	// maxPeek is how much of an answer is read to judge it, in bytes.
	maxPeek = 64 << 10

	// peekTime is how long that may take. Then the verdict makes do with what has
	// come.
	peekTime = time.Second
)

// peek returns the beginning of an answer's body, decompressed if the caller
// asked for gzip itself, and whether that is all of it. The caller reads the same
// bytes all the same.
func peek(resp *http.Response) (head []byte, whole bool) {
	p := &peeked{body: resp.Body}
	p.more.L = &p.mu
	resp.Body = p
	go p.ahead()
	head, whole = p.wait(peekTime)
	if strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		head = profiles.Gunzip(head, maxPeek)
	}
	return head, whole
}

// peeked is a body whose beginning is read ahead. Its reader gets what came
// ahead, and then the rest from the body itself.
type peeked struct {
	body io.ReadCloser

	mu   sync.Mutex // guards what follows; not held while the body is read
	more sync.Cond  // signals every change
	head []byte     // all that came ahead
	read int        // how much of it the caller has
	err  error      // of the body, after head
	over bool       // nothing more comes ahead: the body is the reader's
	late bool       // peekTime is over
}

// ahead reads the beginning of the body. It ends with the body, or when that is
// closed, as every reader of it would.
func (p *peeked) ahead() {
	for buf, over := make([]byte, 4<<10), false; !over; {
		n, err := p.body.Read(buf[:min(len(buf), maxPeek-len(p.head))]) // head has no other writer
		p.mu.Lock()
		p.head = append(p.head, buf[:n]...)
		over = err != nil || len(p.head) == maxPeek
		p.err, p.over = err, over
		p.more.Broadcast()
		p.mu.Unlock()
	}
}

// wait returns what came ahead within d, and whether that is the whole body.
func (p *peeked) wait(d time.Duration) (head []byte, whole bool) {
	timer := time.AfterFunc(d, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.late = true
		p.more.Broadcast()
	})
	defer timer.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.over && !p.late {
		p.more.Wait()
	}
	return p.head[:len(p.head):len(p.head)], p.err == io.EOF
}

func (p *peeked) Read(b []byte) (int, error) {
	p.mu.Lock()
	for len(b) > 0 && p.read == len(p.head) && !p.over {
		p.more.Wait()
	}
	n := copy(b, p.head[p.read:])
	p.read += n
	rest, err := p.read == len(p.head) && p.over, p.err
	p.mu.Unlock()
	switch {
	case n > 0 || len(b) == 0:
		return n, nil
	case rest && err == nil:
		return p.body.Read(b)
	}
	return 0, err // where the body had it
}

func (p *peeked) Close() error { return p.body.Close() }
