package transport

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/transport/profiles"
)

// meter puts a meter into the answer's body. It leaves a body alone that can
// hold no count, such as audio or an upgraded connection: the estimate stays. An
// answer without a body settles at once.
func (c *call) meter(resp *http.Response) {
	scanner := c.profile.Scan(c.answer(resp))
	if scanner == nil || c.settled {
		return
	}
	m := &meter{call: c, body: resp.Body, scanner: scanner}
	if c.req.Method == http.MethodHead || resp.Body == http.NoBody {
		m.finish(true)
		return
	}
	// A context that ends settles the call even if nobody reads or closes.
	m.stop = context.AfterFunc(c.ctx, func() { m.finish(false) })
	resp.Body = m
	if w, ok := m.body.(io.Writer); ok { // the body goes both ways
		resp.Body = struct {
			*meter
			io.Writer
		}{m, w}
	}
}

// meter is an answer's body. It passes every byte on as soon as it comes, shows
// it to the scanner, and settles once: when the body ends, fails or is closed,
// or the context ends.
type meter struct {
	call *call
	body io.ReadCloser
	stop func() bool

	mu      sync.Mutex        // guards what follows; not held while others' code or the store runs
	scanner *profiles.Scanner // nil once the call is settled
	warned  bool
}

func (m *meter) Read(b []byte) (int, error) {
	n, err := m.body.Read(b)
	if n > 0 {
		m.show(b[:n])
	}
	if err != nil {
		m.stop()
		m.finish(err == io.EOF)
	}
	return n, err
}

func (m *meter) Close() error {
	err := m.body.Close()
	m.stop()
	m.finish(false)
	return err
}

// show lets the scanner see what the caller is about to get. An error inside of
// a stream is reported at once, but not by the goroutine that reads.
func (m *meter) show(b []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.scanner == nil {
		return
	}
	m.scanner.Write(b)
	if a, ok := m.scanner.Trouble(); ok && !m.warned {
		m.warned = true
		go m.call.warn(a)
	}
}

// warn reports an error inside of a stream whose status said that all was well.
func (c *call) warn(a profiles.Answer) {
	if v := c.profile.Judge(a); v.Class != pause.OK && v.Class != pause.ClientError {
		c.report(v)
	}
}

// finish settles by the vendor's count, the first time it is called.
func (m *meter) finish(eof bool) {
	m.mu.Lock()
	scanner, told := m.scanner, m.warned || m.call.judged
	m.scanner = nil
	m.mu.Unlock()
	if scanner == nil {
		return
	}
	if usage, final, ok := scanner.Usage(eof); ok {
		m.call.settle(usage.Cost(), final)
	}
	if a, ok := scanner.Trouble(); ok && !told {
		m.call.warn(a)
	}
}
