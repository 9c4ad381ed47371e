package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httputil"
	"net/url"

	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
)

// laneHeader is the header of a request that names its lane, "live" or
// "background". Without it a request is live. The vendor does not see it.
const laneHeader = "X-Headway-Lane"

// newGateway returns a proxy in front of the vendor, whose calls go through
// limiter. The API key is the caller's own, and passes through.
//
// Streams pass live: httputil.ReverseProxy flushes every piece of an answer of
// unknown length.
//
// Refused calls are answered with 429, Retry-After and X-Should-Retry: false,
// which the official SDKs obey, and with a header that tells them from the
// vendor's own; see [transport.RefusedHeader].
func newGateway(vendor *url.URL, limiter transport.Limiter) http.Handler {
	proxy := &httputil.ReverseProxy{
		Transport: &transport.Transport{Limiter: limiter, Refusals: transport.AsResponse},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(vendor)
			r.Out.Header.Del(laneHeader)
		},
		ErrorHandler: fail,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lane, ok := map[string]lanes.Lane{
			"": lanes.Live, lanes.Live.Name: lanes.Live, lanes.Background.Name: lanes.Background,
		}[r.Header.Get(laneHeader)]
		if !ok {
			http.Error(w, laneHeader+": want live or background", http.StatusBadRequest)
			return
		}
		// A vendor that answers at once would otherwise be cut off: Go's server
		// closes a request's body when its answer begins, and Go's client may
		// look once more whether the body has ended. An error says that the
		// server is not one of HTTP/1, and leaves the body open anyway.
		http.NewResponseController(w).EnableFullDuplex()
		proxy.ServeHTTP(w, r.WithContext(lanes.With(r.Context(), lane)))
	})
}

// fail answers a call that got no answer of the vendor. The errors of the
// network stay here: their text is not for the caller.
func fail(w http.ResponseWriter, _ *http.Request, err error) {
	switch {
	case errors.Is(err, context.Canceled): // the caller has gone
	case errors.Is(err, transport.ErrNoCredential):
		http.Error(w, err.Error(), http.StatusUnauthorized)
	case errors.Is(err, throttle.ErrInvalid):
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		http.Error(w, "the vendor gave no answer", http.StatusBadGateway)
	}
}
