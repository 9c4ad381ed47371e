// Package vendorsim is an AI vendor on the loopback interface. It keeps limits
// of its own, by its own arithmetic, and remembers every call: it judges whether
// a client that promises to stay within limits does.
//
// It speaks OpenAI's chat and Responses APIs and Anthropic's Messages API, plain
// and streamed, over HTTP/1.1 and unencrypted HTTP/2. All methods of a [Server]
// may be called at any time from any goroutine.
package vendorsim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// maxScopes bounds the pairs of key and model whose limits are kept; calls that
// would open more are answered 500.
const maxScopes = 100_000

// Config is what a vendor enforces and how it answers. The zero value enforces
// nothing and answers at once.
type Config struct {
	Models     map[string][]Limit              // limits of one model of one key; models not named have none
	Key        []Limit                         // limits of all calls of one key together
	OneAccount bool                            // true: all keys share the limits, as keys of one account do
	Dialect    Dialect                         // how a 429 names the wait; zero: Retry-After in seconds
	LaneHeader string                          // request header recorded as Arrival.Lane; "": X-Lane
	Chunks     int                             // content chunks of a stream; 0: 4
	Gap        time.Duration                   // between the events of a stream
	Delay      time.Duration                   // between judging a call and answering it
	Usage      func(q Request) (in, out int64) // tokens to count, called without a lock; nil: DefaultUsage
	Now        func() time.Time                // the vendor's clock; must not call the server; nil: time.Now
}

// Server is a vendor. It is an [http.Handler] as it is; Start puts it on a port.
type Server struct {
	cfg  Config
	http *http.Server
	addr net.Addr
	done chan struct{} // closed by Close
	busy sync.WaitGroup

	mu      sync.Mutex
	last    time.Time // latest time used: the clock never goes back
	gauges  map[scope][]*gauge
	scripts map[string][]Answer
	refused map[Key]bool
	gate    chan struct{} // non-nil: answers are held until it is closed
	conns   int64
	log     record
}

// scope is what limits hang under; the model "" stands for the whole key.
type scope struct {
	key   Key
	model string
}

// New checks cfg and returns a vendor that does not listen yet. The error names
// the field that is wrong.
func New(cfg Config) (*Server, error) {
	for i, l := range cfg.Key {
		if err := l.check(); err != nil {
			return nil, fmt.Errorf("vendorsim: key: limit %d: %w", i, err)
		}
	}
	models := map[string][]Limit{} // the caller's map and slices stay the caller's
	for model, limits := range cfg.Models {
		models[model] = slices.Clone(limits)
		if model == "" {
			return nil, errors.New("vendorsim: models: a model has no name")
		}
		for i, l := range limits {
			if err := l.check(); err != nil {
				return nil, fmt.Errorf("vendorsim: models: %s: limit %d: %w", model, i, err)
			}
		}
	}
	switch {
	case cfg.Chunks < 0:
		return nil, errors.New("vendorsim: chunks: must not be negative")
	case cfg.Dialect < DialectSeconds || cfg.Dialect > DialectUnnamed:
		return nil, fmt.Errorf("vendorsim: dialect: %d is not known", cfg.Dialect)
	}
	cfg.Models, cfg.Key = models, slices.Clone(cfg.Key)
	if cfg.Chunks == 0 {
		cfg.Chunks = 4
	}
	if cfg.LaneHeader == "" {
		cfg.LaneHeader = "X-Lane"
	}
	if cfg.Usage == nil {
		cfg.Usage = DefaultUsage
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Server{
		cfg: cfg, done: make(chan struct{}), last: cfg.Now(), gauges: map[scope][]*gauge{},
		scripts: map[string][]Answer{}, refused: map[Key]bool{},
	}, nil
}

// Start is New and then listening on a free port of 127.0.0.1. The caller must
// Close the server.
func Start(cfg Config) (*Server, error) {
	s, err := New(cfg)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("vendorsim: listen: %w", err)
	}
	s.addr = l.Addr()
	s.http = &http.Server{
		Handler:     s,
		Protocols:   new(http.Protocols),
		ErrorLog:    log.New(io.Discard, "", 0),
		ConnContext: s.number,
	}
	s.http.Protocols.SetHTTP1(true)
	s.http.Protocols.SetUnencryptedHTTP2(true)
	s.busy.Go(func() { _ = s.http.Serve(l) }) // returns when Close closes l
	return s, nil
}

// TB is the part of testing.TB that Run needs, so that programs can use this
// package without the testing package.
type TB interface {
	Helper()
	Fatal(args ...any)
	Cleanup(func())
}

// Run is Start for a test: it ends the test on an error and closes the server
// when the test ends.
func Run(t TB, cfg Config) *Server {
	t.Helper()
	s, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// URL is http://127.0.0.1:port, without a slash at the end, or "" when the
// server does not listen.
func (s *Server) URL() string {
	if s.addr == nil {
		return ""
	}
	return "http://" + s.addr.String()
}

// Close cuts every connection and returns when nothing of the server runs any
// more. What was counted stays readable. Only the first Close does anything.
func (s *Server) Close() {
	s.mu.Lock()
	select {
	case <-s.done:
	default:
		close(s.done)
	}
	s.mu.Unlock()
	if s.http != nil {
		_ = s.http.Close()
	}
	s.busy.Wait()
}

type connKey struct{}

func (s *Server) number(ctx context.Context, _ net.Conn) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns++
	return context.WithValue(ctx, connKey{}, s.conns)
}

// tick is the time; the lock is held.
func (s *Server) tick() time.Time {
	if now := s.cfg.Now(); now.After(s.last) {
		s.last = now
	}
	return s.last
}
