package throttle

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/headway-go/headway/lua"
	"github.com/redis/go-redis/v9"
)

const (
	// tryLongest is the longest time between two attempts to reach the store.
	tryLongest = 400 * time.Millisecond

	// handover is how long calls stay within their process' part as well, once
	// the store is back: until every process has noticed (go-redis may need a
	// second to dial again) and told the store what it spent meanwhile.
	handover = 1500 * time.Millisecond
)

// outage is how a limiter does without its store. While the store answers, it
// keeps what the store said that would matter: what this process spent, and
// what was held. While it does not, calls are decided by the policy of their
// lane, and what they spend is told to the store when it is back.
type outage struct {
	down   atomic.Bool
	over   atomic.Bool // the store is back, and the handover runs
	memory *Memory     // what this process knows and decides by itself

	mu     sync.Mutex
	since  time.Time // zero when the store answers
	cause  error
	round  int               // counts the outages
	groups map[string]*group // by fingerprint, on memory
	debts  map[string]*debt  // by tape
}

// debt is what was spent of one limit while the store was away.
type debt struct {
	op    lua.Op // key and model
	row   lua.Row
	spent memTape
}

// lostError is the error of a store that did not answer. The cause is told, not
// matched: an SDK must not take it for its own deadline.
type lostError struct {
	cause error
	sent  bool   // what was asked may have been done
	rider *rider // of a call whose answer may still come, nil when it will not
}

func (e *lostError) Error() string        { return ErrStoreUnavailable.Error() + ": " + e.cause.Error() }
func (e *lostError) Is(target error) bool { return target == ErrStoreUnavailable }

// lost returns the error of a store that did not answer what was sent. The first
// one begins an outage, unless it is the answer to this one call only. The rider
// is the call's when its answer may still come.
func (g *group) lost(cause error, r *rider) error {
	l, err := g.l, &lostError{cause, !neverRan(cause), r}
	if onlyThisCall(cause) || !l.outage.begin(cause) {
		return err
	}
	for _, g := range l.allGroups() {
		g.alone()
	}
	l.pending.begin()
	go l.recover(g)
	l.emit(Event{Kind: StoreLost, Err: err}) // last: whoever listens may take their time
	return err
}

// begin reports whether this is the beginning of an outage.
func (o *outage) begin(cause error) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.down.Load() {
		return false
	}
	o.since, o.cause = time.Now(), cause
	o.round++
	o.over.Store(false)
	o.down.Store(true)
	return true
}

// end ends an outage and begins its handover; it returns the handover's round.
func (o *outage) end() (round int, lasted time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	lasted = time.Since(o.since)
	o.since, o.cause = time.Time{}, nil
	o.over.Store(true)
	o.down.Store(false)
	return o.round, lasted
}

// handedOver ends the handover of a round, unless another outage has begun.
func (o *outage) handedOver(round int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.round == round {
		o.over.Store(false)
	}
}

// why returns the cause of the outage.
func (o *outage) why() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cause == nil {
		return errors.New("it has just come back")
	}
	return o.cause
}

// status returns what there is to say of an outage, nil when there is none.
func (o *outage) status() *OutageStatus {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		return nil
	}
	return &OutageStatus{Since: o.since, Cause: o.cause.Error()}
}

// onlyThisCall reports whether Redis works but cannot carry out the script on
// these keys.
func onlyThisCall(err error) bool {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	return strings.HasPrefix(reply.Error(), "WRONGTYPE") || strings.HasPrefix(reply.Error(), "ERR ")
}

// neverRan reports whether it is certain that the script did not run: there was
// no connection, or Redis refused to begin.
func neverRan(err error) bool {
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		return true
	}
	return slices.ContainsFunc([]string{"LOADING ", "READONLY ", "OOM ", "MISCONF ", "BUSY ", "NOAUTH ", "NOPERM ", "WRONGPASS ", "MASTERDOWN ", "CLUSTERDOWN "},
		func(prefix string) bool { return redis.HasErrorPrefix(err, prefix) })
}

// recover tries to reach the store, about twice a second, until it answers the
// group that lost it: in a Redis Cluster another key's node may be well.
// Then it ends the outage and tells the store what was spent and held meanwhile.
func (l *Limiter) recover(g *group) {
	defer l.pending.end()
	if !l.reach(g) {
		return // closed
	}
	l.tellHeld() // before any call asks the store
	round, lasted := l.outage.end()
	l.repay()
	l.tellHeld() // what has come meanwhile
	l.emit(Event{Kind: StoreBack, For: lasted})
	select {
	case <-time.After(handover):
	case <-l.closed:
	}
	l.outage.handedOver(round)
	l.repay() // what was still on its way when the outage ended
}

// tellHeld tells the store what this process knows to be held.
func (l *Limiter) tellHeld() {
	for _, g := range l.allGroups() {
		g.tell(l.heldAlone(g))
	}
}

// reach announces this process until the store answers, and reports false when
// the limiter is closed first. An attempt that is late still counts when it ends.
func (l *Limiter) reach(g *group) bool {
	pace := backoff.NewExponentialBackOff(backoff.WithInitialInterval(50*time.Millisecond),
		backoff.WithMaxInterval(tryLongest), backoff.WithMaxElapsedTime(0))
	ended := make(chan error, maxStray)
	for out := 0; ; {
		timer := time.NewTimer(pace.NextBackOff())
		select {
		case <-timer.C:
		case err := <-ended:
			timer.Stop()
			if out--; err == nil || onlyThisCall(err) {
				return true
			}
			continue
		case <-l.closed:
			timer.Stop()
			return false
		}
		if out+int(l.strays.Load()) < maxStray {
			out++
			l.relocate()
			go func() { ended <- g.say(Report{}, false) }()
		}
	}
}

// relocate has the client of a Redis Cluster read again who serves which slot.
// By itself it does so once a minute, or when a node sends it elsewhere, which a
// dead master cannot. It does not block.
func (l *Limiter) relocate() {
	if c, ok := l.config.Redis.(interface{ ReloadState(context.Context) }); ok {
		c.ReloadState(context.Background())
	}
}
