package transport

import (
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/headway-go/headway/pause"
)

// send passes the call to the base transport. After an error it gives back what
// was reserved if it is certain that nothing was sent.
func (c *call) send() (*http.Response, error) {
	var w wire
	out := c.out.WithContext(httptrace.WithClientTrace(c.ctx, w.trace()))
	resp, err := c.transport.base().RoundTrip(out)
	if err == nil && resp == nil {
		err = errNoAnswer
	}
	if err == nil {
		if resp.Body == nil {
			resp.Body = http.NoBody
		}
		return resp, nil
	}
	if resp != nil && resp.Body != nil {
		resp.Body.Close() // a base that breaks the contract must not leak
	}
	_, traces := c.transport.base().(*http.Transport)
	if w.neverLeft(traces && c.ctx.Err() != nil) {
		c.cancel()
	} else {
		c.report(pause.Verdict{Class: pause.ServerError})
	}
	return nil, err
}

// wire notes how far a call got. Its hooks may run on any goroutine.
type wire struct{ asked, got atomic.Bool }

func (w *wire) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { w.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { w.got.Store(true) },
	}
}

// neverLeft reports whether not one byte can have been sent: a connection was
// asked for and never came; or it was never asked for, as by an [http.Transport]
// whose call had ended (early). A base that does not trace proves nothing.
func (w *wire) neverLeft(early bool) bool { return (w.asked.Load() || early) && !w.got.Load() }
