package transport

import (
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport/profiles"
)

// judge gives the answer its verdict and reports it, before the caller sees the
// answer: the pause must be there before the caller's next call.
func (c *call) judge(resp *http.Response) {
	a := c.answer(resp)
	if resp.StatusCode >= 400 || c.profile.ReadOK && isJSON(resp) {
		a.Body, c.judged = peek(resp)
	}
	v := c.profile.Judge(a)
	c.report(v)
	if !c.transport.NoFeedback {
		c.held.Heed(c.profile.Left(resp.Header, a.Now)...)
	}
	c.mark(resp)
	if slices.Contains(c.profile.Free, resp.StatusCode) && v.Class != pause.ClientError {
		c.cancel()
		c.settled = true
	}
}

func (c *call) answer(resp *http.Response) profiles.Answer {
	a := profiles.Answer{Status: resp.StatusCode, Header: resp.Header, Model: c.ask.Model, Now: time.Now()}
	if a.Model == throttle.NoModel {
		a.Model = "" // a dash in the vendor's words does not name a model
	}
	return a
}

func isJSON(resp *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind == "application/json" || strings.HasSuffix(kind, "+json")
}

// mark tells SDKs not to wait for a vendor's "later" inside of a worker, see
// [Transport.NoRetries].
func (c *call) mark(resp *http.Response) {
	wait := c.ask.MaxWait
	if wait == 0 {
		wait = c.ask.Lane.MaxWait
	}
	if c.transport.NoRetries && resp.StatusCode == http.StatusTooManyRequests && wait <= 0 {
		resp.Header = resp.Header.Clone() // the base may keep its own
		resp.Header.Set(shouldRetry, "false")
	}
}
