package throttle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/lua"
)

// Call is one call to a vendor.
type Call struct {
	// Key is the fingerprint of the API key, from package fingerprint. It must
	// not be empty, and must never be the key itself.
	Key string

	// Model is the vendor-side thing that owns limits. Empty is "-".
	Model string

	// Lane is the call's priority. Zero is [lanes.Live].
	Lane lanes.Lane

	// Cost is what the call takes, by unit. Together with Guess it must name every
	// unit that a limit of the call counts. Neither may change until the
	// reservation has ended.
	Cost Cost

	// Guess is what the call will probably take, in units that Cost does not
	// name. [InputTokens] and [OutputTokens] are set right by what the fleet's
	// calls to the model took of their guesses lately, once ten have settled. A
	// guess, and what follows from one, is lowered to what the lane may fill
	// where it is above that, instead of being refused as too large.
	Guess Cost

	// MaxWait replaces the lane's longest wait when it is above zero; below
	// zero the call does not wait.
	MaxWait time.Duration
}

// Names of models that no vendor has.
const (
	NoModel    = "-" // of a call that has none
	OtherModel = "+" // of all models that Models does not name, beyond the first thousand
)

// maxStrangers is how many models that Models does not name have a budget of
// their own: names that come from outside must not fill the store.
const maxStrangers = 1000

// stranger returns the name itself, or OtherModel once there are too many. l.mu
// is held.
func (l *Limiter) stranger(model string) string {
	if _, known := l.strangers[model]; !known {
		if len(l.strangers) >= maxStrangers {
			return OtherModel
		}
		l.strangers[model] = struct{}{}
	}
	return model
}

// target is one model of one key: its names in the store and its limits, laid
// out for each lane that calls it. It is safe for concurrent use.
type target struct {
	key, model string // fingerprint; name after aliases
	called     string // the name before
	names      lua.Names
	scope      string
	tag        int64 // of scope
	line       string
	limits     []boundLimit
	limited    bool     // a limit of Models or Default applies
	layouts    sync.Map // lane without its MaxWait -> *layout

	// What the model's calls take of their guesses, as last heard; see lua.Answer.Lately.
	input, output atomic.Int64

	heeded sync.Map // tape -> when this process last said what went to others
}

// boundLimit is a limit and the scope that it belongs to.
type boundLimit struct {
	Limit
	scope string
}

// layout is what a call of one lane to a target takes: a row for each limit,
// the cost still missing.
type layout struct {
	ofKey  int // how many of the rows, the first ones, are limits of the key
	rows   []lua.Row
	limits []Limit // of each row
	names  []string
}

// newTarget looks up what limits a model of a key.
func (l *Limiter) newTarget(key, model string) *target {
	if model == "" {
		model = NoModel
	}
	called := model
	if to, ok := match(l.config.Aliases, model); ok {
		model = to
	}
	limits, ok := match(l.config.Models, model)
	if !ok {
		limits, ok = l.config.Default, len(l.config.Default) > 0
		model = l.stranger(model)
	}
	t := &target{key: key, model: model, called: called, names: lua.NewNames(l.config.Prefix, key)}
	t.scope = t.names.Model(model)
	t.tag, t.line = lua.Tag(t.scope), t.names.Line(t.scope)
	for _, limit := range l.config.Key {
		t.limits = append(t.limits, boundLimit{limit, t.names.Key()})
		t.line = t.names.Line(t.names.Key()) // models that share a limit share a line
	}
	t.limited = ok
	for _, limit := range limits {
		t.limits = append(t.limits, boundLimit{limit, t.scope})
	}
	return t
}

func (t *target) layout(lane lanes.Lane) *layout {
	lane.MaxWait = 0
	if y, ok := t.layouts.Load(lane); ok {
		return y.(*layout)
	}
	y := &layout{}
	add := func(b boundLimit, name string) {
		y.rows = append(y.rows, b.row(t.names, lane))
		y.limits = append(y.limits, b.Limit)
		y.names = append(y.names, name)
		if b.scope != t.scope {
			y.ofKey++
		}
	}
	for _, b := range t.limits {
		if b.Lane != "" && b.Lane != lane.Name {
			continue
		}
		add(b, b.String())
		if b.Shape == Bucket && lane.Share < 1 && b.Lane == "" { // metered at its share beside the common meter
			own := b
			own.Lane = "share of " + lane.Name // not the tape of a limit that is the lane's own
			own.Amount, own.Burst = lane.Ceiling(b.Amount), lane.Ceiling(b.Burst)
			add(own, b.String())
		}
	}
	t.layouts.Store(lane, y)
	return y
}

// margin is what the limit adds to its window.
func (l Limit) margin() time.Duration {
	if l.Shape == Fixed {
		return 0
	}
	return l.Margin
}

// String describes the limit, such as "500 requests per 1m0s".
func (l Limit) String() string { return fmt.Sprintf("%d %s per %v", l.Amount, l.Unit, l.Window) }

// row is the limit as the calls of a lane see it.
func (b boundLimit) row(names lua.Names, lane lanes.Lane) lua.Row {
	r := lua.Row{
		Window:  int64((b.Window + b.margin()) / time.Microsecond),
		Ceiling: lane.Ceiling(b.Amount),
		Amount:  b.Amount,
		Margin:  int64(b.Margin / time.Microsecond),
	}
	if b.Lane != "" {
		r.Ceiling = b.Amount
	}
	switch b.Shape {
	case Fixed:
		r.Burst = -1
	case Bucket:
		r.Burst = b.Burst
	}
	r.Tape = names.Tape(b.scope, b.Unit, r.Window, b.Shape == Fixed, b.Lane)
	r.Tag = lua.Tag(r.Tape)
	return r
}

// zone tells the store how the clock of a fixed window runs; now is the host's
// clock, which only chooses the change of the time zone to tell about. Windows
// of whole days follow such a change, shorter ones go on evenly.
func zone(l Limit, now time.Time) lua.Zone {
	loc := l.Zone
	if loc == nil {
		loc = time.UTC
	}
	then := now.Add(-24 * time.Hour).In(loc) // the host's clock may be wrong: look from a day ago
	_, off := then.Zone()
	z := lua.Zone{Offset: int64(off) * 1e6}
	if l.Window%(24*time.Hour) != 0 { // only where in a window it lands; whole hours must not renumber the minutes
		w := int64(l.Window / time.Microsecond)
		z.Offset = (z.Offset%w + w) % w
	}
	z.Next = z.Offset
	if _, end := then.ZoneBounds(); !end.IsZero() && l.Window%(24*time.Hour) == 0 {
		_, next := end.Zone()
		z.Change, z.Next = end.UnixMicro(), int64(next)*1e6
	}
	return z
}

// plan is a call that is ready to be decided.
type plan struct {
	*target
	lane    lanes.Lane
	op      lua.Op
	units   []string  // of each row
	names   []string  // of each row's limit
	limits  []Limit   // of each row
	cost    Cost      // in the units that the call names
	guessed lua.Parts // of its tokens
}

// plan checks the call and lays out its rows.
func (l *Limiter) plan(t *target, c Call) (*plan, error) {
	lane := c.Lane.Or(lanes.Live)
	if err := lane.Validate(); err != nil {
		return nil, fmt.Errorf("%w: Lane: %w", ErrInvalid, err)
	}
	if err := c.Cost.validate("Cost"); err != nil {
		return nil, err
	}
	if err := c.Guess.validate("Guess"); err != nil {
		return nil, err
	}
	if !t.limited && l.config.Strict {
		return nil, fmt.Errorf("%w: Model: no limit names %q and the limiter is strict", ErrInvalid, t.model)
	}
	y := t.layout(lane)
	named, guessed := t.named(c)
	cost := l.complete(t, named)
	p := &plan{target: t, lane: lane, cost: named, guessed: guessed, limits: y.limits, units: make([]string, 0, len(y.rows)), names: make([]string, 0, len(y.rows)), op: lua.Op{
		Kind: lua.Take, Key: t.names.Key(), Model: t.scope, Line: t.line, Share: lane.Share, ModelTag: t.tag, KeyRows: y.ofKey,
		Rows: make([]lua.Row, 0, len(y.rows)),
	}}
	for i, r := range y.rows {
		n, named := cost[y.limits[i].Unit]
		if !named {
			return nil, l.unnamed(t, y.limits[i].Unit, y.names[i])
		}
		r.Cost = n
		if r.Burst < 0 {
			r.Zone = zone(y.limits[i], time.Now())
		}
		p.op.Rows = append(p.op.Rows, r)
		p.units = append(p.units, y.limits[i].Unit)
		p.names = append(p.names, y.names[i])
	}
	if len(c.Guess) > 0 {
		p.lower(c.Cost)
	}
	for i, r := range p.op.Rows {
		if r.Cost > r.Ceiling {
			return nil, &RefusedError{Reason: TooLarge, Key: t.key, Model: t.model, Lane: lane.Name,
				Limit: p.names[i], Unit: p.units[i], Deferred: lane.MaxWait == 0}
		}
	}
	return p, nil
}

// lower brings every cost that is not known down to the smallest ceiling of its
// unit.
func (p *plan) lower(known Cost) {
	for i, unit := range p.units {
		if _, is := known[unit]; is {
			continue
		}
		for j := range p.units {
			if p.units[j] == unit {
				p.op.Rows[i].Cost = min(p.op.Rows[i].Cost, p.op.Rows[j].Ceiling)
			}
		}
	}
}

// refused turns the answer into the error that the caller gets.
func (p *plan) refused(a lua.Answer) *RefusedError {
	wait := time.Duration(a.Wait) * time.Microsecond
	e := &RefusedError{Key: p.key, Model: p.model, Lane: p.lane.Name, Deferred: p.lane.MaxWait == 0, RetryAfter: wait + jitter(wait)}
	switch {
	case a.By == lua.ByKey:
		e.Reason = KeyPaused
	case a.By == lua.ByModel:
		e.Reason = ModelPaused
	case a.By >= 1 && int(a.By) <= len(p.names):
		e.Reason, e.Limit, e.Unit = NoRoom, p.names[a.By-1], p.units[a.By-1]
	}
	return e
}

// jitter returns a random time up to a tenth of the wait, and 100 ms at least,
// so that deferred work does not return at once.
func jitter(wait time.Duration) time.Duration {
	return rand.N(max(wait/10, 100*time.Millisecond))
}

// delta lays out the change from what the plan was charged to the actual cost.
func (p *plan) delta(actual Cost) []lua.Row {
	rows := slices.Clone(p.op.Rows)
	for i := range rows {
		rows[i].Cost = 0
		if n, named := actual[p.units[i]]; named {
			rows[i].Cost = n - p.op.Rows[i].Cost
		}
	}
	return slices.DeleteFunc(rows, func(r lua.Row) bool { return r.Cost == 0 })
}
