package throttle

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/lua"
	"github.com/headway-go/headway/pause"
)

// Status is what the fleet knows about one key at one moment.
type Status struct {
	Key    string // fingerprint
	State  ScopeStatus
	Limits []LimitStatus // of the whole key
	Models []ModelStatus
	Fleet  []Member

	// Outage is set while the store does not answer. Then the rest is what this
	// process knows and decides by itself.
	Outage *OutageStatus
}

// OutageStatus says since when the store does not answer, and why.
type OutageStatus struct {
	Since time.Time
	Cause string
}

// ScopeStatus says whether a key or model may be called.
type ScopeStatus struct {
	Phase pause.Phase
	// Left is what remains of the pause, or of the lease of the probe that is
	// out; zero when calls may go.
	Left time.Duration
	// Why says what the pause is for, such as "rate_limited" or "operator";
	// empty when there is none.
	Why string
}

// ModelStatus is one model of the key.
type ModelStatus struct {
	Model   string
	State   ScopeStatus
	Waiting int // calls of the fleet in line; of all models where limits of the key join their lines
	Limits  []LimitStatus
}

// LimitStatus is what is used of one limit in the window that ends now.
type LimitStatus struct {
	Limit
	Used int64
}

// Member is one process that uses the key.
type Member struct {
	Name   string
	Seen   time.Time // by the store's clock
	Report Report
}

// Status reads the state of a key and of the named models, or of all that the
// fleet has called lately when none is named. It changes nothing and blocks for
// two answers of the store. During an outage it is no error: see Status.Outage.
func (l *Limiter) Status(ctx context.Context, key string, models ...string) (Status, error) {
	if key == "" {
		return Status{}, errors.New("throttle: Status: key: must not be empty")
	}
	g, _ := l.find(key, "")
	s := Status{Key: key, Outage: l.outage.status()}
	var err error
	if s.Outage != nil {
		report, _ := g.tally.report(time.Now())
		g, s.Fleet = l.ownGroup(g), []Member{{Name: l.config.Name, Seen: time.Now(), Report: report}}
	} else if s.Fleet, err = g.fleet(ctx); err != nil {
		return Status{}, err
	}
	if len(models) == 0 {
		models = called(s.Fleet)
	}
	return s, g.look(ctx, &s, models)
}

// fleet lists the processes that use the key.
func (g *group) fleet(ctx context.Context) ([]Member, error) {
	ctx, cancel := context.WithTimeout(ctx, g.l.config.StoreTimeout)
	defer cancel()
	members, err := g.store.members(ctx, g.names)
	if err != nil {
		return nil, &lostError{cause: err, sent: true}
	}
	fleet := make([]Member, len(members))
	for i, m := range members {
		fleet[i] = Member{Name: m.Name, Seen: time.UnixMicro(m.Seen)}
		if json.Unmarshal([]byte(m.Report), &fleet[i].Report) != nil {
			fleet[i].Report = Report{} // of another version
		}
	}
	return fleet, nil
}

// called lists the models that the fleet has called lately.
func called(fleet []Member) (models []string) {
	for _, m := range fleet {
		models = append(models, m.Report.Models...)
	}
	slices.Sort(models)
	return slices.Compact(models)
}

// look reads the scopes and tapes in one batch.
func (g *group) look(ctx context.Context, s *Status, models []string) error {
	l := g.l
	var ops []lua.Op
	var fill []func(lua.Answer)
	see := func(t *target, on string, state *ScopeStatus, waiting *int, limits *[]LimitStatus) {
		op := lua.Op{Kind: lua.Look, Key: t.names.Key(), Model: t.scope, Line: t.line, On: on}
		ops = append(ops, op)
		fill = append(fill, func(a lua.Answer) {
			*state = scopeStatus(a)
			if waiting != nil {
				*waiting = int(a.ModelGen)
			}
		})
		for _, b := range t.limits {
			if b.scope != on {
				continue
			}
			r := b.row(t.names, lanes.Live)
			if b.Shape == Fixed {
				r.Zone = zone(b.Limit, time.Now())
			}
			op.Rows = []lua.Row{r}
			ops = append(ops, op)
			fill = append(fill, func(a lua.Answer) { *limits = append(*limits, LimitStatus{b.Limit, a.At}) })
		}
	}
	s.Models = make([]ModelStatus, len(models))
	for i, model := range models {
		_, t := l.find(s.Key, model)
		s.Models[i].Model = t.model
		see(t, t.scope, &s.Models[i].State, &s.Models[i].Waiting, &s.Models[i].Limits)
	}
	_, t := l.find(s.Key, "")
	see(t, t.names.Key(), &s.State, nil, &s.Limits)
	answers, err := g.do(ctx, ops...)
	if err != nil {
		return err
	}
	for i, a := range answers {
		fill[i](a)
	}
	return nil
}

func scopeStatus(a lua.Answer) ScopeStatus {
	s := ScopeStatus{Phase: pause.Phase(a.Status), Left: time.Duration(a.Wait) * time.Microsecond}
	if s.Phase == pause.Running && s.Left == 0 {
		return s
	}
	s.Why = why(a.KeyGen)
	return s
}

// why puts the reason of a pause, as the store keeps it, into words.
func why(code int64) string {
	if code == byOperator {
		return "operator"
	}
	return pause.Class(code).String()
}
