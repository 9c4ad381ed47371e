package transport

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/headway-go/headway/transport/profiles"
)

// maxCopy bounds how far a fresh copy of a body is read, in bytes. It takes no
// memory, and vendors accept no larger requests; models often come last.
const maxCopy = 64 << 20

// sniff reads what the profile wants to know of a request that is about to be
// sent. Where the request has a GetBody it reads a fresh copy and leaves Body
// untouched. Otherwise it reads the beginning of Body, at most 256 KiB, and
// gives out, which is the transport's own, a body that begins with those bytes;
// it waits for them as long as the request's context lasts.
func sniff(p *profiles.Profile, out *http.Request) (profiles.Request, error) {
	switch {
	case out.Body == nil || out.Body == http.NoBody:
		return p.Read(out, bytes.NewReader(nil)), nil
	case out.GetBody != nil:
		fresh, err := out.GetBody()
		if err != nil {
			return profiles.Request{}, fmt.Errorf("transport: GetBody of the request: %w", err)
		}
		defer fresh.Close()
		return p.Read(out, io.LimitReader(fresh, maxCopy)), nil
	}
	body := out.Body
	var head bytes.Buffer
	seen := p.Read(out, io.TeeReader(io.LimitReader(&leaving{out.Context(), body}, profiles.PeekBytes), &head))
	if err := out.Context().Err(); err != nil {
		return profiles.Request{}, err
	}
	out.Body = &stitched{Reader: io.MultiReader(&head, body), Closer: body}
	return seen, nil
}

// leaving reads a body whose writer may take long, and stops when the context
// ends. The read that is out then goes on until the body's Close ends it, or what
// is behind a body whose Close does nothing.
type leaving struct {
	ctx  context.Context
	body io.Reader
}

func (l *leaving) Read(b []byte) (int, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		own := make([]byte, len(b)) // b is the caller's again when the context ends
		n, err := l.body.Read(own)
		done <- result{own[:n], err}
	}()
	select {
	case r := <-done:
		return copy(b, r.data), r.err
	case <-l.ctx.Done():
		return 0, l.ctx.Err()
	}
}

// stitched is a body of which the beginning was read and put back.
type stitched struct {
	io.Reader
	io.Closer
}
