package transport

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport/profiles"
)

// maxPeek is how much of an answer is read to judge it, in bytes.
const maxPeek = 64 << 10

// judge gives the answer its verdict and reports it, before the caller sees the
// answer: the pause must be there before the caller's next call.
func (c *call) judge(resp *http.Response) {
	a := c.answer(resp)
	if resp.StatusCode >= 400 || c.profile.ReadOK && isJSON(resp) {
		a.Body = peek(resp)
	}
	c.report(c.profile.Judge(a))
	if slices.Contains(c.profile.Free, resp.StatusCode) {
		nothing := throttle.Cost{}
		for unit := range c.held.Cost() {
			nothing[unit] = 0
		}
		c.settle(nothing)
		c.settled = true
	}
}

func (c *call) answer(resp *http.Response) profiles.Answer {
	return profiles.Answer{Status: resp.StatusCode, Header: resp.Header, Model: c.ask.Model, Now: time.Now()}
}

func isJSON(resp *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind == "application/json" || strings.HasSuffix(kind, "+json")
}

// peek returns the beginning of an answer's body, decompressed if the caller
// asked for gzip itself, and puts what it read back.
func peek(resp *http.Response) []byte {
	body := resp.Body
	head, err := io.ReadAll(io.LimitReader(body, maxPeek))
	rest := io.Reader(body)
	if err != nil {
		rest = broken{err} // the caller finds the error where it was
	}
	resp.Body = &stitched{Reader: io.MultiReader(bytes.NewReader(head), rest), Closer: body}
	if strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		return profiles.Gunzip(head, maxPeek)
	}
	return head
}

// broken is the rest of a body that failed.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }
