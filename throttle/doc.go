// Package throttle decides when a call to a paid API may go, for a fleet of
// processes that share a store: Redis, or the memory of one process.
//
// # On a whiteboard
//
// A vendor limits a key, and each model of a key. The store keeps three kinds
// of state for that, all in its own time:
//
//	scope   a key, or one model of it: until when is it closed, and why
//	tape    one for each limit: what went, and when
//	line    who waits, in order
//
// One script reads and writes all of them at once. It admits a call when
//
//	both scopes are open                          the key's and the model's
//	and on every tape, in the window ending now:  what went
//	                                            + what waits ahead of it
//	                                            + its own cost
//	                                           <= what its lane may fill
//
// and then puts the cost on every tape. Otherwise nothing changes, and it knows
// from the tapes when there will be room. A lane that waits takes a place in
// line and asks again at that time; one that does not gets a [RefusedError] with
// the time to come back.
//
// # A call
//
// [Limiter.Wait] and [Limiter.Reserve] admit it and return a [Reservation], with
// an estimate charged. The caller sends the call, and then tells
//
//	Settle    what the vendor counted
//	Report    what the vendor answered, which may close or open a scope
//	Cancel    instead of both, that it was never sent
//
// Package transport does all of this around an http.Client. Use this package by
// itself for calls that are not HTTP.
//
// # Pauses
//
// A scope that a vendor closed stays closed for everyone until its time. After a
// refused key, or a pause longer than the policy obeys, one call goes first: the
// probe. Package pause holds that machine and the lengths of the pauses.
//
// # When the store does not answer
//
// No answer within Config.StoreTimeout begins an outage, in which each lane has
// its policy: calls that can wait go on with this process' part of every limit,
// others end in an *[OutageError], which matches [ErrStoreUnavailable] and is no
// refusal. Nothing is sent twice: what was charged by a question without an
// answer stays charged.
package throttle
