package vendorsim

import (
	"fmt"
	"slices"
	"time"
)

// RefuseKey answers every later call of key with 401 invalid_api_key while on,
// before scripts and limits. The body repeats the whole key in its message, as
// vendors have been seen to do.
func (s *Server) RefuseKey(key string, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[Key(key)] = on
}

// SetDelay sets the time between judging a call and answering it, for calls
// that arrive later.
func (s *Server) SetDelay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.Delay = d
}

// SetDialect sets how later 429s name the wait.
func (s *Server) SetDialect(d Dialect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.Dialect = d
}

// SetUsage sets what later calls are counted; nil is [DefaultUsage].
func (s *Server) SetUsage(usage func(q Request) (in, out int64)) {
	if usage == nil {
		usage = DefaultUsage
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.Usage = usage
}

// SetStream sets the content chunks of later streams and the gap between events.
// Less than one chunk is none.
func (s *Server) SetStream(chunks int, gap time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.Chunks, s.cfg.Gap = max(0, chunks), gap
}

// SetLimits replaces the limits of one model, or with "" of the whole key, for
// every key. The new limits start unused. None removes them. On an error
// nothing changes.
func (s *Server) SetLimits(model string, limits ...Limit) error {
	for i, l := range limits {
		if err := l.check(); err != nil {
			return fmt.Errorf("vendorsim: limit %d: %w", i, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if model == "" {
		s.cfg.Key = slices.Clone(limits)
	} else {
		s.cfg.Models[model] = slices.Clone(limits)
	}
	for sc := range s.gauges {
		if sc.model == model {
			delete(s.gauges, sc)
		}
	}
	return nil
}

// Hold judges and logs later calls as always but keeps their answers back until
// Release: a slow vendor, without a guess at how slow.
func (s *Server) Hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gate == nil {
		s.gate = make(chan struct{})
	}
}

// Release lets all held answers go, and later ones pass.
func (s *Server) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gate != nil {
		close(s.gate)
		s.gate = nil
	}
}
