package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport/profiles"
)

var (
	errCut    = errors.New("cut off")
	errClosed = errors.New("read on a closed body")
)

// scripted is a body that comes in chunks of random sizes, and then ends, breaks
// off, or is silent until it is closed or its context ends.
type scripted struct {
	ctx    context.Context
	r      *rand.Rand // of the reader
	end    error      // nil: silent
	both   bool       // the end comes with the last bytes
	closed chan struct{}

	mu     sync.Mutex
	left   []byte
	closes int
}

func (s *scripted) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closes > 0 {
		return 0, errClosed
	}
	if len(s.left) > 0 {
		n := copy(b, s.left[:1+s.r.IntN(min(len(s.left), 200))])
		if s.left = s.left[n:]; len(s.left) == 0 && s.both && s.end != nil {
			return n, s.end
		}
		return n, nil
	}
	if s.end != nil {
		return 0, s.end
	}
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-s.closed:
		return 0, errClosed
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

func (s *scripted) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closes++; s.closes == 1 {
		close(s.closed)
	}
	return nil
}

// meterBody is an answer and what it says to those who saw so much of it.
type meterBody struct{ kind, text string }

// counted is what a call that was estimated at cost settles with, after so many
// bytes; nil for nothing.
func (m meterBody) counted(n int, eof bool, cost throttle.Cost) throttle.Cost {
	s := profiles.OpenAI().Scan(profiles.Answer{Status: 200, Header: http.Header{"Content-Type": {m.kind}}})
	io.WriteString(s, m.text[:n])
	u, final, ok := s.Usage(eof)
	actual := throttle.Cost(u.Cost())
	if !ok || !final && actual[throttle.Tokens] <= cost[throttle.Tokens] {
		return nil
	}
	return actual
}

// TestMeterRaces reads, closes and cancels in every order, at once, in real
// goroutines: each byte passes unchanged, and the call settles once at most, with
// what the bytes say that had passed when it ended.
func TestMeterRaces(t *testing.T) {
	const sse, doc = "text/event-stream", "application/json"
	large := `data: {"usage":{"prompt_tokens":50000,"completion_tokens":1}}` + "\n\n"
	bodies := []meterBody{
		{sse, strings.Join(twenty(usageEvent, doneEvent), "")}, {sse, strings.Join(twenty(), "")}, {sse, large + strings.Join(twenty(usageEvent, textEvent), "")},
		{sse, textEvent + large + "data: {\"error\":{\"code\":\"server_error\"}}\n\n" + textEvent}, {doc, jsonAnswer}, {doc, "[" + jsonAnswer + "," + jsonAnswer + "]"}, {doc, `{"usage":`},
	}
	leaks := noLeaks(t)
	settled, early, none := 0, 0, 0
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 3))
		m := bodies[r.IntN(len(bodies))]
		ctx, cancel := context.WithCancel(t.Context())
		body := &scripted{ctx: ctx, r: rand.New(rand.NewPCG(seed, 4)), left: []byte(m.text), closed: make(chan struct{}), both: r.IntN(2) == 0}
		body.end = []error{io.EOF, io.EOF, errCut, nil}[r.IntN(4)]
		b := &book{}
		tr := &Transport{reserve: b.reserve, DefaultKeyID: "test", Profile: profiles.OpenAI(), Base: roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, ContentLength: -1, Header: http.Header{"Content-Type": {m.kind}}, Body: body, Request: r}, nil
		})}
		resp, err := tr.RoundTrip(post(t, "http://vendor.example/", "{}").WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}

		// Somebody closes or cancels when the reader has come so far, and goes on
		// while it reads; or nobody does, and the reader closes at the end.
		at := r.IntN(len(m.text) + 1)
		alone := r.IntN(3) == 0 && body.end != nil
		if alone {
			at = len(m.text) + 1
		}
		acts := []func(){func() { resp.Body.Close() }, cancel, func() { resp.Body.Close(); cancel() }}
		act, closers := acts[r.IntN(len(acts))], 1+r.IntN(2)
		there := make(chan struct{})
		reached := sync.OnceFunc(func() { close(there) })
		var others sync.WaitGroup
		for range closers {
			others.Go(func() {
				if <-there; !alone {
					act()
				}
			})
		}
		var got bytes.Buffer
		ends := map[int]bool{0: true} // where the reads ended: there the call may have been settled
		var end error
		for end == nil {
			if got.Len() >= at {
				reached()
			}
			part := make([]byte, 1+r.IntN(300))
			var n int
			n, end = resp.Body.Read(part)
			got.Write(part[:n])
			ends[got.Len()] = true
		}
		reached()
		if alone && r.IntN(2) == 0 {
			cancel() // after the end
		}
		resp.Body.Close()
		others.Wait()
		cancel()

		if !strings.HasPrefix(m.text, got.String()) || end == io.EOF && got.Len() != len(m.text) {
			t.Fatalf("seed %d: read %q, %v, want %q", seed, got.String(), end, m.text)
		}
		if body.end != nil && alone && end != body.end || end != io.EOF && end != errCut && end != errClosed && end != context.Canceled {
			t.Fatalf("seed %d: ended with %v, want %v", seed, end, body.end)
		}
		cost := estimated(b.last(t).call)
		var may []throttle.Cost // what the call may have settled with
		if alone {
			may = append(may, m.counted(got.Len(), end == io.EOF, cost))
		} else {
			for n := range ends {
				if n >= at || n == got.Len() {
					may = append(may, m.counted(n, false, cost))
				}
			}
			if end == io.EOF {
				may = append(may, m.counted(got.Len(), true, cost))
			}
		}
		right := func() bool {
			h := b.last(t)
			for _, want := range may {
				if len(h.settled) == 0 && want == nil || len(h.settled) == 1 && want != nil && maps.Equal(h.settled[0], want) {
					return true
				}
			}
			return false
		}
		leaks() // whoever settles is done
		h := b.last(t)
		if !right() || h.cancels != 0 || h.dead || len(h.settled) > 1 {
			t.Fatalf("seed %d: settled %v after %d of %d bytes, %v, from %d; want one of %v", seed, h.settled, got.Len(), len(m.text), end, at, may)
		}
		switch {
		case len(h.settled) == 0:
			none++
		case end == io.EOF:
			settled++
		default:
			early++
		}
	}
	if settled < 50 || early < 50 || none < 50 {
		t.Errorf("%d settled at the end, %d before, %d not at all, want 50 of each", settled, early, none)
	}
}
