package vendorsim

import (
	"context"
	"io"
	"maps"
	"net/http"
	"strconv"
	"time"
)

// send writes the answer and tells whether all of it went out. It panics with
// http.ErrAbortHandler to cut the connection.
func (s *Server) send(w http.ResponseWriter, r *http.Request, c *call) bool {
	frames := c.frames()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	if frames == nil {
		body := c.body()
		frames = []string{body}
		h.Set("Content-Type", "application/json")
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	maps.Copy(h, c.headers)
	maps.Copy(h, c.answer.Header)
	status, now := s.answering(c)
	h.Set("Date", now.UTC().Format(http.TimeFormat))
	w.WriteHeader(status)

	left := c.answer.Cut // bytes until the cut; 0: none
	for i, frame := range frames {
		if i > 0 && !s.sleep(r.Context(), c.gap) {
			panic(http.ErrAbortHandler) // a plain return would end the stream as if it were whole
		}
		cut := left > 0 && len(frame) >= left
		if cut {
			frame = frame[:left]
		}
		if cut || i == len(frames)-1 {
			s.end(c.arrival)
		}
		_, err := io.WriteString(w, frame)
		if err != nil || http.NewResponseController(w).Flush() != nil {
			return false
		}
		if cut {
			panic(http.ErrAbortHandler)
		}
		left = max(0, left-len(frame))
	}
	return true
}

// frames is the stream to send; nil: send the body.
func (c *call) frames() []string {
	a := c.answer
	if a.Events == nil && a.Body == "" && a.asksLimits() && c.request.Stream {
		return stream(c.request, c.arrival.In, c.arrival.Out, c.chunks)
	}
	return a.Events
}

func (c *call) body() string {
	if c.answer.Body == "" && c.answer.asksLimits() {
		return plain(c.request, c.arrival.In, c.arrival.Out)
	}
	return c.answer.Body
}

// answering logs the status that is about to be sent.
func (s *Server) answering(c *call) (status int, now time.Time) {
	status = c.answer.Status
	if status == 0 {
		status = http.StatusOK
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.arrival.Status = status
	s.log.change()
	return status, s.tick()
}

// end logs the end of an answer before its last bytes go out, so that a client
// that sends one call after the other is never seen with two open.
func (s *Server) end(a *Arrival) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.end(a, s.tick())
}

// finish logs how an answer ended.
func (s *Server) finish(a *Arrival, broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.Broken = broken
	s.log.end(a, s.tick())
}

// held waits for the gate; false: the caller left or the server closed before.
func (s *Server) held(ctx context.Context, gate chan struct{}) bool {
	if gate == nil {
		return true
	}
	select {
	case <-gate:
		return true
	case <-ctx.Done():
	case <-s.done:
	}
	return false
}

// sleep waits d; false: the caller left or the server closed before.
func (s *Server) sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-s.done:
	}
	return false
}
