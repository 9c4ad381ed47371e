// Package transport puts Headway on the wire: an http.RoundTripper that takes
// the cost of every call from the fleet's budget before it goes out, and reports
// back what the vendor answered.
//
//	client := &http.Client{Transport: &transport.Transport{Limiter: limiter}}
//
// A call passes through five steps, see [Transport.RoundTrip]: it is read (whose
// key, which model, what cost), reserved, sent, judged, and metered while the
// caller reads the answer.
//
// # What the wire sees
//
// The vendor receives byte for byte what the caller sent, and the caller byte
// for byte what the vendor answered, live when it streams. Headway never sends a
// call again: a retry of the caller's is a new call. The caller's request is
// never changed, and its body is closed on every exit.
//
// # Refusals
//
// A refused call ends in a *[throttle.RefusedError], which errors.As finds
// through http.Client. SDKs that would retry an error get an answer in the
// vendor's manner instead, see [Refusals] and [FromResponse]. For SDKs that
// replace the error by words of their own there are [Watch] and [Restore].
//
// The vendor's own refusals reach the caller as they are. An SDK that sleeps for
// their Retry-After blocks its worker; [Transport.NoRetries] is for these.
//
// # Secrets
//
// The API key is hashed before anything else sees it. But http.Client puts the
// URL into its own errors: a key in the query (?key=) is in the text of every
// *url.Error, whoever the transport is.
package transport
