package transport

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"

	"github.com/headway-go/headway/fingerprint"
	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport/profiles"
)

var (
	errNoLimiter = errors.New("transport: Limiter: must not be nil")
	errNoURL     = errors.New("transport: URL of the request: must not be nil")
	errNoAnswer  = errors.New("transport: Base: returned neither an answer nor an error")
)

// call is one call on its way through the transport.
type call struct {
	transport *Transport
	profile   *profiles.Profile
	ctx       context.Context // the caller's
	req       *http.Request   // the caller's, never changed
	out       *http.Request   // what is sent
	ask       throttle.Call
	held      reservation
	settled   bool // nothing is left to settle
	judged    bool // by the whole answer
}

// read makes a call of a request: whose key, which model, what cost.
func (t *Transport) read(req *http.Request) (*call, error) {
	ctx := req.Context()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case t.Limiter == nil && t.reserve == nil:
		return nil, errNoLimiter
	case req.URL == nil:
		return nil, errNoURL
	}
	c := &call{transport: t, profile: t.profileOf(req), ctx: ctx, req: req}
	c.ask = throttle.Call{Model: t.modelOf(ctx), Lane: t.laneOf(ctx), MaxWait: t.maxWaitOf(ctx)}
	fixed := t.costOf(ctx)
	c.out = req.WithContext(ctx) // a shallow copy
	if c.out.Header == nil {
		c.out.Header = http.Header{}
	}
	var seen profiles.Request
	var err error
	asked := c.profile.CostFunc != nil || c.profile.Message != nil || c.profile.KeyInBody()
	if c.ask.Model == "" || asked || !names(fixed, throttle.Tokens, throttle.InputTokens, throttle.OutputTokens) {
		if seen, err = sniff(c.profile, c.out); err != nil {
			return nil, err
		}
	}
	if c.ask.Key, err = t.keyOf(c.profile, req, seen.Credential); err != nil {
		return nil, err
	}
	if c.ask.Model == "" {
		c.ask.Model = seen.Model
	}
	if c.ask.Model == "" {
		c.ask.Model = throttle.NoModel
	}
	c.ask.Cost, c.ask.Guess = throttle.Cost{throttle.Requests: 1}, seen.Guess
	maps.Copy(c.ask.Cost, seen.Cost)
	maps.Copy(c.ask.Cost, fixed)
	return c, nil
}

func (t *Transport) profileOf(req *http.Request) *profiles.Profile {
	if t.Profile != nil {
		return t.Profile
	}
	t.once.Do(func() { t.builtin = profiles.Builtin() })
	return profiles.Choose(t.builtin, req)
}

// Fingerprint returns the fingerprint that a request would count under, as
// Status, Pause and Resume of the limiter take it. It errs with
// [ErrNoCredential], and neither sends nor changes the request: a key in the body is
// found only if the request has a GetBody.
func (t *Transport) Fingerprint(req *http.Request) (string, error) {
	if req.URL == nil {
		return "", errNoURL
	}
	p, inBody := t.profileOf(req), fingerprint.Credential{}
	if p.KeyInBody() && req.GetBody != nil {
		seen, err := sniff(p, req)
		if err != nil {
			return "", err
		}
		inBody = seen.Credential
	}
	return t.keyOf(p, req, inBody)
}

func (t *Transport) keyOf(p *profiles.Profile, req *http.Request, inBody fingerprint.Credential) (string, error) {
	credential := fingerprint.Account(t.keyIDOf(req.Context()))
	if credential.IsZero() {
		credential = inBody
	}
	if credential.IsZero() {
		credential, _ = fingerprint.Find(req, p.KeyPlaces...)
	}
	if credential.IsZero() {
		credential = fingerprint.Account(t.DefaultKeyID)
	}
	if credential.IsZero() {
		return "", ErrNoCredential
	}
	scope := fingerprint.Scope{
		Profile: p.Name,
		Headers: fingerprint.Headers(req.Header, p.ScopeHeaders...),
		Pepper:  t.Pepper,
	}
	if p.PerHost || !p.Owns(req.URL.Hostname()) {
		scope.Host = fingerprint.Host(req)
	}
	return scope.Fingerprint(credential)
}

// names reports whether cost has all the units.
func names(cost throttle.Cost, units ...string) bool {
	for _, u := range units {
		if _, ok := cost[u]; !ok {
			return false
		}
	}
	return true
}

// reserve waits until the call may go. It errs if the call must not be sent.
func (c *call) reserve() error {
	t := c.transport
	var err error
	if t.reserve != nil {
		c.held, err = t.reserve(c.ctx, c.ask)
	} else {
		// Not straight into c.held: a nil pointer in an interface is not nil.
		var r *throttle.Reservation
		if r, err = t.Limiter.Wait(c.ctx, c.ask); err == nil {
			c.held = r
		}
	}
	if err == nil && c.ctx.Err() != nil {
		c.cancel()
		return c.ctx.Err()
	}
	return err
}

// settle replaces what was reserved by what the call took. Units that it does
// not name stay as they were estimated. A count that is not final cannot lower
// the estimate (S19).
func (c *call) settle(actual throttle.Cost, final bool) {
	if c.profile.Caps == profiles.CapsCharged && actual[throttle.Tokens] <= c.held.Cost()[throttle.Tokens] {
		delete(actual, throttle.Tokens)
	}
	c.tell("settle", func(ctx context.Context) error {
		if !final {
			return c.held.SettleAtLeast(ctx, actual)
		}
		return c.held.Settle(ctx, actual)
	})
}

// cancel gives back what was reserved: the call never went out.
func (c *call) cancel() { c.tell("cancel", c.held.Cancel) }

// report tells the fleet what an answer means.
func (c *call) report(v pause.Verdict) {
	c.tell("report", func(ctx context.Context) error { return c.held.Report(ctx, v) })
}

// tell runs one act of bookkeeping. It must not die with the caller's context
// (S18), and ends within the limiter's StoreTimeout. A failure is the store's:
// the limiter makes it visible, and the answer reaches the caller all the same.
func (c *call) tell(act string, do func(context.Context) error) {
	ctx := context.WithoutCancel(c.ctx)
	if err := do(ctx); err != nil {
		c.transport.log(ctx, "transport: bookkeeping failed", slog.String("act", act), slog.Any("error", err))
	}
}

func closeBody(body io.Closer) {
	if body != nil {
		body.Close()
	}
}
