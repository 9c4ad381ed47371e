package throttle

import "sync"

// pending counts what a limiter has under way. Unlike a sync.WaitGroup it may
// grow while someone waits for its end: reservations are settled during and
// after Close. The zero pending is ready; it is safe for concurrent use.
type pending struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when n is zero again; nil while nobody waits for that
}

func (p *pending) begin() {
	p.mu.Lock()
	p.n++
	p.mu.Unlock()
}

func (p *pending) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n--; p.n == 0 && p.none != nil {
		close(p.none)
		p.none = nil
	}
}

// idle returns a channel that is closed as soon as nothing is under way.
func (p *pending) idle() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.none == nil {
		p.none = make(chan struct{})
	}
	none := p.none
	if p.n == 0 {
		close(p.none)
		p.none = nil
	}
	return none
}
