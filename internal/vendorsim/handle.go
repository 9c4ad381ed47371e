package vendorsim

import (
	"crypto/sha256"
	"net/http"
	"time"
)

// call is one judged call on its way to its answer.
type call struct {
	arrival *Arrival
	request Request
	answer  Answer
	headers http.Header   // the vendor's own rate headers
	gate    chan struct{} // nil: not held
	delay   time.Duration
	gap     time.Duration
	chunks  int
}

// ServeHTTP implements [http.Handler]. A call is judged once its body is whole,
// is then held and delayed, and answered last. A cut connection ends it by a
// panic with [http.ErrAbortHandler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.busy.Done()
	q, early := read(w, r, s.cfg.LaneHeader)
	c := s.judge(q, early, s.count(q, early), r)
	broken := true
	defer func() { s.finish(c.arrival, broken) }()
	if !s.held(r.Context(), c.gate) || !s.sleep(r.Context(), c.delay) || c.answer.Cut < 0 {
		panic(http.ErrAbortHandler)
	}
	broken = !s.send(w, r, c)
}

// enter counts a handler in, unless the server is closed.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.done:
		return false
	default:
		s.busy.Add(1)
		return true
	}
}

// use is what a call is counted, in tokens.
type use struct{ in, out int64 }

func (s *Server) count(q Request, early *Answer) use {
	if early != nil {
		return use{}
	}
	s.mu.Lock()
	usage := s.cfg.Usage
	s.mu.Unlock()
	in, out := usage(q)
	return use{max(0, in), max(0, out)}
}

// judge decides what a call is answered, charges it and logs it, in one step.
func (s *Server) judge(q Request, early *Answer, u use, r *http.Request) *call {
	conn, _ := r.Context().Value(connKey{}).(int64)
	sum := sha256.Sum256(q.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.tick()
	a := &Arrival{
		Received: now, Path: q.Path, Shape: q.Shape, Key: q.Key, Model: q.Model, Lane: q.Lane,
		Body: sum, BodyLen: int64(len(q.Body)), Conn: conn, Remote: r.RemoteAddr,
	}
	c := &call{arrival: a, request: q, headers: http.Header{}, gate: s.gate, gap: s.cfg.Gap, chunks: s.cfg.Chunks}
	switch {
	case early != nil:
		c.answer = *early
	case s.refused[q.Key]:
		c.answer = fail(q, http.StatusUnauthorized, "Incorrect API key provided: "+string(q.Key)+".",
			oaError{"invalid_request_error", "invalid_api_key"}, "authentication_error")
	default:
		scripted, useUp := s.next(q, now)
		if scripted.asksLimits() {
			if no := s.admit(c, now, u); no != nil {
				c.answer = *no
				break
			}
			a.Accepted, a.In, a.Out = true, u.in, u.out
		}
		useUp()
		c.answer = scripted
	}
	c.delay = s.cfg.Delay + c.answer.Delay
	if c.answer.Gap > 0 {
		c.gap = c.answer.Gap
	}
	if c.answer.Status == http.StatusTooManyRequests {
		s.log.refused++
	}
	s.log.add(a)
	return c
}

// admit charges every limit of the call, or none and returns the refusal that
// names the longest wait.
func (s *Server) admit(c *call, now time.Time, u use) *Answer {
	q := c.request
	gauges, ok := s.gaugesOf(q, now)
	if !ok {
		a := fail(q, http.StatusInternalServerError, "Too many keys.", oaError{"server_error", nil}, "api_error")
		return &a
	}
	var worst *refusal
	for _, g := range gauges {
		r := refusal{limit: g.Limit, used: g.used(now), cost: g.Unit.cost(u.in, u.out)}
		if r.tooLarge = r.cost > g.capacity(); !r.tooLarge {
			r.wait = g.wait(now, r.cost)
		}
		if (r.tooLarge || r.wait > 0) && (worst == nil || r.tooLarge || !worst.tooLarge && r.wait > worst.wait) {
			worst = &r
		}
	}
	if worst != nil {
		a := refuse(q, now, s.cfg.Dialect, *worst)
		return &a
	}
	tightest := map[Unit]int64{}
	for _, g := range gauges {
		g.take(now, g.Unit.cost(u.in, u.out))
		left := g.capacity() - g.used(now)
		if least, ok := tightest[g.Unit]; s.cfg.Dialect == DialectHeaders && (!ok || left < least) {
			tightest[g.Unit] = left
			rateHeaders(c.headers, q.Shape, now, g.Limit, g.used(now), g.idle(now))
		}
	}
	return nil
}

// gaugesOf is the limits of the call's key and model; false: no room for more.
func (s *Server) gaugesOf(q Request, now time.Time) ([]*gauge, bool) {
	account := q.Key
	if s.cfg.OneAccount {
		account = ""
	}
	var all []*gauge
	for _, sc := range []scope{{account, ""}, {account, q.Model}} {
		limits := s.cfg.Models[sc.model]
		if sc.model == "" {
			limits = s.cfg.Key
		}
		if _, known := s.gauges[sc]; !known && len(limits) > 0 {
			if len(s.gauges) >= maxScopes {
				return nil, false
			}
			for _, l := range limits {
				s.gauges[sc] = append(s.gauges[sc], newGauge(l, now))
			}
		}
		all = append(all, s.gauges[sc]...)
	}
	return all, true
}
