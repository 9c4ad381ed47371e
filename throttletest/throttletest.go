// Package throttletest helps to test programs that use Headway, without Redis,
// without a network and without waiting.
//
// A [Clock] that the test moves drives a memory store, and a [Vendor] answers
// calls from a script:
//
//	clock := throttletest.NewClock()
//	vendor := throttletest.NewVendor(throttletest.Answer{Status: 429, Header: map[string]string{"Retry-After": "20"}})
//	limiter, err := throttle.New(throttle.Config{Memory: throttle.NewMemoryClock(clock.Now), ...})
//	client := &http.Client{Transport: &transport.Transport{Limiter: limiter, Base: vendor}}
//
// Calls that wait sleep in real time whatever the clock says: use lanes that do
// not wait, or run the test in a bubble of testing/synctest, in which the plain
// memory store of throttle.NewMemory follows the bubble's clock by itself.
package throttletest

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Clock is a clock that stands still until it is moved. It is safe for
// concurrent use. Make one with [NewClock].
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that shows a fixed moment.
func NewClock() *Clock { return &Clock{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)} }

// Now returns the moment that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock forward; a negative d is ignored.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(max(0, d))
}

// Answer is one answer of a [Vendor].
type Answer struct {
	Status int               // zero is 200
	Header map[string]string // added to Content-Type: application/json
	Body   string            // empty is "{}"
	Err    error             // when set, the call fails with it and gets no answer
}

// Request is one call that a [Vendor] received.
type Request struct {
	Method string
	URL    string
	Header http.Header
	Body   string
}

// Vendor is an [http.RoundTripper] that answers from a script: its answers in
// order, and 200 with "{}" when there are no more. It is safe for concurrent use.
type Vendor struct {
	mu       sync.Mutex
	answers  []Answer
	requests []Request
}

// NewVendor returns a vendor with these answers.
func NewVendor(answers ...Answer) *Vendor { return &Vendor{answers: answers} }

// Script adds answers behind those that are left.
func (v *Vendor) Script(answers ...Answer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answers = append(v.answers, answers...)
}

// Requests returns the calls received so far, in order.
func (v *Vendor) Requests() []Request {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]Request(nil), v.requests...)
}

// RoundTrip records the call and gives the next answer.
func (v *Vendor) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		body, err = io.ReadAll(req.Body)
		req.Body.Close()
		if err != nil {
			return nil, err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.requests = append(v.requests, Request{req.Method, req.URL.String(), req.Header.Clone(), string(body)})
	var a Answer
	if len(v.answers) > 0 {
		a, v.answers = v.answers[0], v.answers[1:]
	}
	if a.Err != nil {
		return nil, a.Err
	}
	return a.response(req), nil
}

func (a Answer) response(req *http.Request) *http.Response {
	if a.Status == 0 {
		a.Status = http.StatusOK
	}
	if a.Body == "" {
		a.Body = "{}"
	}
	h := http.Header{"Content-Type": {"application/json"}}
	if strings.HasPrefix(a.Body, "data:") || strings.HasPrefix(a.Body, "event:") {
		h.Set("Content-Type", "text/event-stream")
	}
	for name, value := range a.Header {
		h.Set(name, value)
	}
	return &http.Response{
		Status: http.StatusText(a.Status), StatusCode: a.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(bytes.NewReader([]byte(a.Body))), ContentLength: int64(len(a.Body)), Request: req,
	}
}
