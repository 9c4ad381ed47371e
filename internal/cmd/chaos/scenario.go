package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// scenario is one row: what is broken, how, and what must hold.
type scenario struct {
	name     string
	injected string // what is done, in words
	setup    func(*stage) error
	inject   func(*stage) error // nil: it is broken from the start, by setup
	heal     func(*stage) error // nil: there is nothing to mend
	away     time.Duration      // from inject to heal; zero is 2 s
	delay    time.Duration      // by which the injection makes answers late; the margin of the limit covers it
	members  int                // Config.Members; zero: the fleet hears it from Redis
	warm     time.Duration      // before inject; zero: until every limiter has heard of the fleet
	bounds   bounds
}

// outage says whether limiters must take what happens for the loss of the store.
type outage int

const (
	mustLose outage = iota // at least one tells that the store is lost, and that it is back
	mayLose
	mustKeep // none does
)

// bounds is what must hold in a row beside what must hold in each (see judge).
type bounds struct {
	outage outage
	keeps  bool   // Redis loses nothing: its count and the calls that went are compared
	met    string // the beginning of an error that at least one command must have met
	none   bool   // nothing may go while it is broken
}

// scenarios returns all rows in the order of the table.
func scenarios() []scenario {
	return slices.Concat(killing(), wire(), full(), loading(), access(), failover(), cluster())
}

// tries is how often a row is played at most: again only when a bound is broken
// and the machine itself was late.
const tries = 3

// fairly plays the row until what it measures is about the limiters.
func (s scenario) fairly(ctx context.Context) (result, error) {
	var before []string
	for try := 1; ; try++ {
		r, err := s.play(ctx)
		r.before = before
		if err != nil || len(r.broken) == 0 || r.stall <= stallBound+s.delay || try == tries {
			return r, err
		}
		before = append(before, fmt.Sprintf("%s, and the machine was %d ms late", strings.Join(r.broken, "; "), r.stall.Milliseconds()))
	}
}

// play plays the row and judges it.
func (s scenario) play(ctx context.Context) (result, error) {
	st, err := newStage(s)
	if err != nil {
		return result{}, err
	}
	defer st.end()
	if err := st.open(); err != nil {
		return result{}, err
	}
	if s.inject != nil {
		if err := pass(ctx, s.warmUp()); err != nil {
			return result{}, err
		}
		st.injected = time.Now()
		if err := s.inject(st); err != nil {
			return result{}, fmt.Errorf("inject: %w", err)
		}
	}
	away := s.away
	if away == 0 {
		away = 2 * time.Second
	}
	if err := pass(ctx, away); err != nil {
		return result{}, err
	}
	if s.heal != nil {
		if err := s.heal(st); err != nil {
			return result{}, fmt.Errorf("heal: %w", err)
		}
		if err := st.awaitServing(); err != nil {
			return result{}, err
		}
	}
	if err := st.awaitBack(ctx); err != nil {
		return result{}, err
	}
	if err := st.stop(); err != nil {
		return result{}, err
	}
	return st.judge()
}

// warmUp is how long a fleet calls before anything is broken: until every process
// has announced itself three times, and so knows all others.
func (s scenario) warmUp() time.Duration {
	switch {
	case s.warm > 0:
		return s.warm
	case s.members > 0:
		return time.Second
	}
	return 2 * time.Second
}

// pass lets time pass: what is measured here is what happens in real time.
func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
