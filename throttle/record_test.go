package throttle

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/headway-go/headway/lua"
	"github.com/headway-go/headway/pause"
)

// noted is one operation that a limiter had decided. It was decided between sent
// and got, in microseconds of the clock that this host and its Redis share.
type noted struct {
	sent, got int64
	op        lua.Op
	a         lua.Answer
}

func (n *noted) asked() bool { return n.op.Kind == lua.Take || n.op.Kind == lua.Ask }
func (n *noted) went() bool  { return n.asked() && n.a.Status == lua.Go }

// gen is the generation of a scope that the answer told.
func (n *noted) gen(scope string) int64 {
	if scope == n.op.Key {
		return n.a.KeyGen
	}
	return n.a.ModelGen
}

// covers reports whether the call is one of the scope's.
func (n *noted) covers(scope string) bool { return n.op.Key == scope || n.op.Model == scope }

// record is what a fleet did. What is checked is the record alone: nothing of it
// asks the code that decided.
type record struct {
	mu     sync.Mutex
	notes  []noted
	events []Event
}

func (r *record) event(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// noting is the store of one limiter, which notes what passes.
type noting struct {
	store
	record *record
}

func (r noting) decide(ctx context.Context, b lua.Batch) ([]lua.Answer, error) {
	sent := time.Now().UnixMicro()
	answers, err := r.store.decide(ctx, b)
	got := time.Now().UnixMicro()
	r.record.mu.Lock()
	defer r.record.mu.Unlock()
	for i, a := range answers {
		op := b.Ops[i]
		op.Rows = slices.Clone(op.Rows)
		r.record.notes = append(r.record.notes, noted{sent, got, op, a})
	}
	return answers, err
}

// charged is a change of one tape: units that went at at, or were given back.
type charged struct{ at, sent, units int64 }

// tapes returns what was charged and given back under each limit.
func (r *record) tapes() (rows map[string]lua.Row, went, back map[string][]charged) {
	rows, went, back = map[string]lua.Row{}, map[string][]charged{}, map[string][]charged{}
	for i := range r.notes {
		n := &r.notes[i]
		for _, row := range n.op.Rows {
			switch {
			case n.went():
				rows[row.Tape] = row
				went[row.Tape] = append(went[row.Tape], charged{n.a.At, n.sent, row.Cost})
			case n.op.Kind == lua.Adjust:
				back[row.Tape] = append(back[row.Tape], charged{n.op.At, n.sent, row.Cost})
			}
		}
	}
	return rows, went, back
}

// windows is promise 1: whatever was not given back before, no window holds more
// than the limit. It returns how full the fullest window of each tape was.
func (r *record) windows() (fullest map[string]int64, err error) {
	fullest = map[string]int64{}
	rows, went, back := r.tapes()
	for tape, row := range rows {
		for _, last := range went[tape] {
			in := func(c charged) bool { return c.at > last.at-row.Window && c.at <= last.at }
			n := int64(0)
			for _, c := range went[tape] {
				if in(c) {
					n += c.units
				}
			}
			for _, c := range back[tape] {
				if in(c) && c.sent <= last.at {
					n += c.units
				}
			}
			if n > row.Amount {
				return nil, fmt.Errorf("%d of %d units in the window that ends at %d: %s", n, row.Amount, last.at, tape)
			}
			fullest[tape] = max(fullest[tape], n)
		}
	}
	return fullest, nil
}

// opened reports whether something opened the scope of one of these calls, or a
// place in their line was given up, between two moments.
func (r *record) opened(scopes []string, from, to int64) bool {
	return slices.ContainsFunc(r.notes, func(n noted) bool {
		if n.got < from || n.sent > to {
			return false
		}
		switch n.op.Kind {
		case lua.Answered, lua.Freed, lua.Resume:
			return n.a.Status == lua.Go && slices.Contains(scopes, n.op.On)
		case lua.Leave:
			return slices.Contains(scopes, n.op.Model)
		case lua.Ask:
			return n.a.Status == lua.Refused && slices.Contains(scopes, n.op.Model)
		}
		return false
	})
}

// stand is one call: when it asked first, what it was told in line, and how it went.
type stand struct {
	take *noted
	told []*noted
	went *noted
}

// stands gathers the calls to a model that went.
func (r *record) stands(model string) (all []*stand) {
	byID := map[int64]*stand{}
	for i := range r.notes {
		n := &r.notes[i]
		if !n.asked() || n.op.Model != model {
			continue
		}
		s := byID[n.op.ID]
		if n.op.Kind == lua.Take {
			s = &stand{take: n}
		}
		switch n.a.Status {
		case lua.InLine:
			s.told = append(s.told, n)
			byID[n.a.At] = s
		case lua.Go:
			s.went = n
			all = append(all, s)
		}
	}
	return all
}

// held reports whether a pause of one of the scopes began or grew between two moments.
func (r *record) held(scopes []string, from, to int64) bool {
	return slices.ContainsFunc(r.notes, func(n noted) bool {
		return n.op.Kind == lua.Hold && n.a.Status != lua.Refused && slices.Contains(scopes, n.op.On) && n.got >= from && n.sent <= to
	})
}

// lines is promise 11: of two calls of a model and a lane, the one that asked when
// the other stood in line already does not go before the time that the other was
// told, and takes no room from it: when it goes, the other may go as well. It
// returns how many such pairs there were.
func (r *record) lines(model string) (pairs int, err error) {
	const slack = 50_000 // forecasts are late by a slot of the tape, and a call may be granted early
	all := r.stands(model)
	for _, first := range all {
		for _, second := range all {
			if len(first.told) == 0 || second.take.op.Share != first.take.op.Share || second.take.sent <= first.told[0].got || second.take.sent > first.went.sent {
				continue
			}
			pairs++
			if second.went.got >= first.went.sent {
				continue // it went later
			}
			scopes := []string{first.take.op.Key, model}
			for _, n := range first.told {
				switch {
				case n.got < second.went.sent: // what it was told before; the last counts
					place := n.sent + n.a.Wait
					again := slices.ContainsFunc(first.told, func(m *noted) bool { return m.sent > n.sent && m.got < second.went.sent })
					if !again && second.went.a.At < place-slack && !r.opened(scopes, first.take.sent, second.went.got) {
						return pairs, fmt.Errorf("a call that asked at %d went at %d, before one in line since %d that was told %d", second.take.sent, second.went.a.At, first.take.sent, place)
					}
				default: // what it is told then or afterwards
					if n.a.By > 0 && n.a.Wait > slack && !r.held(scopes, first.take.sent, n.got) && !r.opened(scopes, first.take.sent, n.got) {
						return pairs, fmt.Errorf("a call that asked at %d went at %d, and one in line since %d was told at %d to wait for %d more", second.take.sent, second.went.a.At, first.take.sent, n.sent, n.a.Wait)
					}
				}
			}
		}
	}
	return pairs, nil
}

// pauses is promises 13 and 15: nobody who asks in a pause goes in it, and while
// a probe is out nobody else goes. It returns how many of each began.
func (r *record) pauses(lease int64) (began, probes int, err error) {
	for i := range r.notes {
		p := &r.notes[i]
		for _, scope := range []string{p.op.Key, p.op.Model} {
			var from, until int64
			switch {
			case p.op.Kind == lua.Hold && p.op.On == scope && p.a.Status != lua.Refused:
				began++
				from, until = p.got, p.sent+p.a.Wait
			case p.went() && (scope == p.op.Key && p.a.By&lua.ProbeKey != 0 || scope == p.op.Model && p.a.By&lua.ProbeModel != 0):
				probes++
				from, until = p.got, p.a.At+lease
				for _, n := range r.notes { // its outcome, whatever it is, or an operator's word
					if n.op.On == scope && n.op.Kind != lua.Look && n.a.Status != lua.Refused && n.got > p.sent {
						until = min(until, n.sent)
					}
				}
			default:
				continue
			}
			for _, n := range r.notes {
				if n.went() && n.covers(scope) && n.sent > from && n.a.At < until && !r.opened([]string{scope}, p.sent, n.got) {
					return began, probes, fmt.Errorf("a call asked at %d and went at %d; %s was closed from %d to %d by %+v", n.sent, n.a.At, scope, from, until, p.op)
				}
			}
		}
	}
	return began, probes, nil
}

// late is promise 16: what a call of an earlier generation reports begins no
// pause and ends none, nor a probe; and each generation ends once. It returns how
// many reports came late.
func (r *record) late() (late int, err error) {
	type era struct {
		scope string
		gen   int64
	}
	ended := map[era]bool{}
	for i := range r.notes {
		n := &r.notes[i]
		if n.op.Kind != lua.Hold && n.op.Kind != lua.Answered && n.op.Kind != lua.Freed || n.op.Rule == int64(pause.Operator) && n.op.Kind == lua.Hold {
			continue
		}
		known := int64(0) // of the generations that had begun when it was told
		for j := range r.notes {
			if m := &r.notes[j]; m.asked() && m.got < n.sent && m.covers(n.op.On) {
				known = max(known, m.gen(n.op.On))
			}
		}
		isLate, grew := known > n.op.Gen, n.op.Kind == lua.Hold && n.a.Status == lua.InLine
		if isLate {
			late++
		}
		if n.a.Status == lua.Refused || grew && n.op.Rule == int64(pause.Later) {
			continue
		}
		if isLate {
			return late, fmt.Errorf("a call of generation %d changed %s, which was in %d: %+v", n.op.Gen, n.op.On, known, n.op)
		}
		if grew {
			continue
		}
		if e := (era{n.op.On, n.op.Gen}); ended[e] {
			return late, fmt.Errorf("generation %d of %s ended twice", n.op.Gen, n.op.On)
		} else {
			ended[e] = true
		}
	}
	return late, nil
}
