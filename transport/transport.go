package transport

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/headway-go/headway/fingerprint"
	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport/profiles"
)

// ErrNoCredential says that a request carries no credential that Headway
// recognises, and neither KeyID nor DefaultKeyID stands in. Such calls are
// refused: they must not share one budget by accident.
var ErrNoCredential = errors.New("transport: credential: the request carries none, set KeyID or DefaultKeyID")

// Limiter decides whether a call may go. *[throttle.Limiter] is one.
type Limiter interface {
	Wait(ctx context.Context, c throttle.Call) (*throttle.Reservation, error)
}

// Transport is an [http.RoundTripper] that keeps its calls inside the limits of
// a Limiter. Set Limiter; every other field may stay zero. The fields must not
// change, and the Transport must not be copied, after the first call; then it
// is safe for concurrent use.
//
// What a context carries ([lanes.With], [WithModel], [WithKeyID], [WithCost],
// [WithMaxWait]) goes before the fields.
type Transport struct {
	// Limiter holds the budget. Nil is an error at every call.
	Limiter Limiter

	// Base sends the calls. Nil is [http.DefaultTransport].
	Base http.RoundTripper

	// Profile says how the vendor is read. Nil chooses one of
	// [profiles.Builtin] by the request's host, else by its headers, else
	// OpenAI's, whose dialect most vendors speak.
	Profile *profiles.Profile

	// Lane is the lane of the calls. Zero is [lanes.Live].
	Lane lanes.Lane

	// Model is the model of the calls. Empty takes it from each request; a
	// request that names none counts under the model "-".
	Model string

	// KeyID is a stable name that takes the place of the credential, for keys
	// that rotate and for several keys of one account. Empty takes the
	// credential from each request. It is no secret.
	KeyID string

	// DefaultKeyID takes the place of the credential for requests that carry
	// none. Empty refuses them with [ErrNoCredential].
	DefaultKeyID string

	// Pepper is the secret of the fingerprints, the same in the whole fleet.
	// Nil is none.
	Pepper fingerprint.Pepper

	// Cost is what a call takes, by unit. Units that it does not name are
	// estimated: one request; in tokens a quarter of the body's bytes plus the most
	// output that the request allows (1,024 if it does not say, times the answers
	// it asks for), each times what the fleet's calls to the model took of their
	// estimates lately (see [throttle.Call]); and what the profile knows of the
	// API, such as images and characters. A limit in any other unit makes the call
	// an error that matches [throttle.ErrInvalid] and names the unit.
	Cost throttle.Cost

	// MaxWait is the longest wait for room. Zero is the lane's own, below zero is
	// none.
	MaxWait time.Duration

	// Refusals says in which form a refusal reaches the caller. Zero is Auto.
	Refusals Refusals

	// NoFeedback ignores what the vendor says is left of its limits. False takes
	// from the fleet's budget what others used of the same key: a vendor that has
	// less left than the fleet thinks is believed, one that has more is not. See
	// [throttle.Reservation.Heed].
	NoFeedback bool

	// NoRetries adds "X-Should-Retry: false" to the vendor's own 429 in lanes that
	// do not wait (see MaxWait), and changes nothing else. openai-go and
	// anthropic-sdk-go then return it, instead of sleeping for its Retry-After
	// inside of a worker, without an upper bound in the latter. False leaves
	// every answer as the vendor sent it, byte for byte.
	NoRetries bool

	// Logger gets refusals and failures of the store, at Debug. Nil discards
	// them. It never gets a key, a URL or a body.
	Logger *slog.Logger

	once    sync.Once
	builtin []*profiles.Profile

	// reserve stands in for Limiter in tests.
	reserve func(context.Context, throttle.Call) (reservation, error)
}

// reservation is what the transport needs of a *throttle.Reservation.
type reservation interface {
	Cost() throttle.Cost
	Settle(ctx context.Context, actual throttle.Cost) error
	SettleAtLeast(ctx context.Context, seen throttle.Cost) error
	Cancel(ctx context.Context) error
	Report(ctx context.Context, v pause.Verdict) error
	Heed(left ...throttle.Left)
}

// RoundTrip sends a call as soon as the budget has room for it, and returns the
// vendor's answer, whatever its status. It blocks while it waits for room, at
// most as long as the lane allows, and until the answer's header is there, for
// answers with an error status until the first 64 KiB of its body are, or what
// comes within a second.
//
// Its own errors are *[throttle.RefusedError] (see [Refusals]), errors that
// match [throttle.ErrStoreUnavailable], [throttle.ErrInvalid] or
// [throttle.ErrClosed], [ErrNoCredential], the error of the request's GetBody,
// and the context's. In all these cases nothing was sent. Errors of Base are
// returned as they are. What the call reserved is given back if Base's error
// came before it had a connection; otherwise the vendor may have counted it.
//
// An http.Client follows a redirect by another RoundTrip: every hop is a call of
// its own, which reserves, pays, is judged, and settles. What another host
// answers never counts for this key: the fingerprint has the host in it, unless
// the host is one of the vendor's own, and where http.Client has dropped the
// credential on the way the hop ends in ErrNoCredential (see DefaultKeyID).
//
// The caller must close the answer's body, as always: the call settles when the
// body ends, is closed, or the request's context does.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	c, err := t.read(req)
	if err != nil {
		if req.Context().Err() != nil {
			go closeBody(req.Body) // its Close may block while somebody reads
		} else {
			closeBody(req.Body)
		}
		return nil, err
	}
	if err := c.reserve(); err != nil {
		closeBody(c.out.Body)
		return t.refuse(req, err)
	}
	resp, err := c.send()
	if err != nil {
		return nil, err
	}
	c.judge(resp)
	c.meter(resp)
	resp.Request = req
	return resp, nil
}

// Do is RoundTrip under the name that SDKs give to the client they take. Unlike
// an http.Client it follows no redirects, and does not wrap errors in a
// *url.Error, which some SDKs replace by an error of their own.
func (t *Transport) Do(req *http.Request) (*http.Response, error) { return t.RoundTrip(req) }

// CloseIdleConnections closes the idle connections of Base if it can.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (t *Transport) base() http.RoundTripper {
	if t.Base != nil {
		return t.Base
	}
	return http.DefaultTransport
}

func (t *Transport) log(ctx context.Context, msg string, attrs ...slog.Attr) {
	if t.Logger != nil {
		t.Logger.LogAttrs(ctx, slog.LevelDebug, msg, attrs...)
	}
}
