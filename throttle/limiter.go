package throttle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/headway-go/headway/lua"
)

// Limiter decides when calls may go, together with every other limiter on the
// same store. Make one with [New]; it is safe for concurrent use.
//
// Wait is for callers who can wait, Reserve for those who cannot. Both return a
// [Reservation], which its owner ends with Settle or Cancel.
type Limiter struct {
	config Config
	store  store
	log    *slog.Logger

	mu        sync.Mutex
	groups    map[string]*group // by fingerprint
	targets   map[[2]string]*target
	strangers map[string]struct{} // models that Models does not name, see maxStrangers
	unknown   map[string]struct{} // those without limits that were warned about
	beating   bool

	strays  atomic.Int32 // calls of the store that are out beyond their time
	outage  outage
	pending pending // calls of the store and goroutines that are out, and callers who wait
	closed  chan struct{}
	close   sync.Once
}

// maxNames bounds the names of models that a limiter remembers the limits of.
// Names beyond it cost a little time, not memory.
const maxNames = 4096

// longestName is the longest name of a model, in bytes, that is kept as it is. A
// longer one keeps its beginning, with its hash behind it.
const longestName = 256

// New returns a limiter. It does not connect; a wrong configuration is an
// error that names the field.
func New(c Config) (*Limiter, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.Prefix == "" {
		c.Prefix = "headway"
	}
	if c.StoreTimeout == 0 {
		c.StoreTimeout = defaultStoreTimeout
	}
	c.Policy = c.Policy.WithDefaults()
	c.Key, c.Default, c.Aliases = slices.Clone(c.Key), slices.Clone(c.Default), maps.Clone(c.Aliases)
	c.Models = maps.Clone(c.Models)
	for name, limits := range c.Models {
		c.Models[name] = slices.Clone(limits)
	}
	if c.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "host"
		}
		c.Name = fmt.Sprintf("%s-%d-%s", host, os.Getpid(), uuid.NewString()[:8])
	}
	l := &Limiter{
		config: c, log: c.Logger,
		groups: map[string]*group{}, targets: map[[2]string]*target{}, strangers: map[string]struct{}{}, unknown: map[string]struct{}{},
		closed: make(chan struct{}),
	}
	l.outage.memory, l.outage.groups, l.outage.debts = NewMemory(), map[string]*group{}, map[string]*debt{}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.Redis != nil:
		l.store = redisStore{c.Redis}
	case c.Memory != nil:
		l.store = c.Memory
	default:
		l.store = NewMemory()
	}
	return l, nil
}

// Reserve admits the call now or refuses it, and books nothing. It blocks for
// one answer of the store at most.
//
// A refusal is a *[RefusedError]; other errors match [ErrInvalid],
// [ErrStoreUnavailable], [ErrClosed], or are the context's own.
func (l *Limiter) Reserve(ctx context.Context, c Call) (*Reservation, error) {
	c.MaxWait = -1
	return l.Wait(ctx, c)
}

// Wait admits the call, waiting for room as long as its lane allows and its
// context leaves time for the call itself. When it cannot be in time it is
// refused at once. The errors are those of [Limiter.Reserve].
func (l *Limiter) Wait(ctx context.Context, c Call) (*Reservation, error) {
	l.pending.begin()
	defer l.pending.end()
	g, p, err := l.prepare(ctx, c)
	if err == nil {
		patience, began := l.patience(ctx, p, c), time.Now()
		var r *Reservation
		admit := g.admit
		if l.outage.over.Load() {
			admit = func(ctx context.Context, p *plan, d time.Duration) (*Reservation, error) {
				return l.handOver(ctx, g, p, d)
			}
		}
		if r, err = admit(ctx, p, patience); errors.Is(err, ErrStoreUnavailable) {
			r, err = l.alone(ctx, g, p, max(0, patience-time.Since(began)), err)
		}
		if err == nil {
			r.announce(time.Since(began))
			return r, nil
		}
	}
	if e, ok := err.(*RefusedError); ok {
		if g != nil {
			g.tally.refused(e)
		}
		l.emit(Event{Kind: RefusedCall, Key: e.Key, Model: e.Model, Lane: e.Lane, Wait: e.RetryAfter, Err: e})
	}
	return nil, err
}

// prepare finds the group and the plan of a call.
func (l *Limiter) prepare(ctx context.Context, c Call) (*group, *plan, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if c.Key == "" {
		return nil, nil, fmt.Errorf("%w: Key: must not be empty", ErrInvalid)
	}
	select {
	case <-l.closed:
		return nil, nil, ErrClosed
	default:
	}
	g, t := l.find(c.Key, c.Model)
	l.use(g, t)
	if !t.limited {
		l.warnUnlimited(t)
	}
	p, err := l.plan(t, c)
	return g, p, err
}

// find returns the group of a key and the target of one of its models.
func (l *Limiter) find(key, model string) (*group, *target) {
	if len(model) > longestName {
		h := sha256.Sum256([]byte(model))
		model = strings.ToValidUTF8(model[:longestName-2*len(h)], "") + hex.EncodeToString(h[:])
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[key]
	if g == nil {
		g = &group{l: l, store: l.store, key: key, names: lua.NewNames(l.config.Prefix, key),
			rooms: map[string]*room{}, held: map[string]time.Time{}}
		l.groups[key] = g
	}
	t := l.targets[[2]string{key, model}]
	if t == nil {
		if len(l.targets) >= maxNames {
			clear(l.targets)
		}
		t = l.newTarget(key, model)
		l.targets[[2]string{key, model}] = t
	}
	return g, t
}

// allGroups returns the groups of all keys.
func (l *Limiter) allGroups() []*group {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.groups))
}

// use notes that the process calls the model, and lets the fleet know.
func (l *Limiter) use(g *group, t *target) {
	g.tally.use(t.model)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beat()
}

func (l *Limiter) warnUnlimited(t *target) {
	l.mu.Lock()
	_, known := l.unknown[t.model]
	if full := len(l.unknown) >= maxNames; !known && !full {
		l.unknown[t.model] = struct{}{}
	} else {
		known = true
	}
	l.mu.Unlock()
	if !known {
		l.emit(Event{Kind: UnlimitedModel, Key: t.key, Model: t.model})
	}
}

// patience is the longest wait of the call: its lane's, cut so that the
// context's deadline leaves time for the call itself.
func (l *Limiter) patience(ctx context.Context, p *plan, c Call) time.Duration {
	wait := p.lane.MaxWait
	if c.MaxWait != 0 {
		wait = max(0, c.MaxWait)
	}
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		reserve := l.config.DeadlineReserve
		if reserve == 0 {
			reserve = min(time.Second, left/10)
		}
		wait = min(wait, left-max(0, reserve))
	}
	return max(0, wait)
}

// Close ends the limiter: waiting calls return [ErrClosed] and give their places
// back, new ones are refused with it, what is still to be told to the store is
// sent, and the process leaves the fleet's list. It blocks until that is done
// or ctx ends, whose error it then returns. Closing twice is harmless.
// Reservations may still be settled afterwards.
func (l *Limiter) Close(ctx context.Context) error {
	l.close.Do(func() { close(l.closed) })
	select {
	case <-l.pending.idle():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
