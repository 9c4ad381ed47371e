// Package sdktest plays one scene through a vendor's own SDK: a call, a stream,
// a refusal of Headway's, a vendor that asks for a pause, and a refused key. It
// measures what the SDK makes of each, with the SDK's own defaults.
//
// The tests under examples/ use it, one SDK each, and docs/sdks.md is the table
// of what they measured; see internal/cmd/sdktable.
package sdktest

import (
	"context"

	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport/profiles"
)

// What every scene uses.
const (
	// Key is the API key. It opens nothing.
	Key = "sk-loopback-0000000000"

	// Model is the model of every call but one, and Another the model of that
	// one.
	Model   = "model-a"
	Another = "model-b"
)

// SDK is one SDK under test, or one way to put Headway under it.
type SDK struct {
	// Name is its name in the table, and Module the Go module whose version the
	// table shows.
	Name   string
	Module string

	// Vendor makes the vendor that its clients talk to. Nil is vendorsim.
	Vendor func() Vendor

	// Profile is the profile that Headway reads the calls with. Nil lets the
	// transport choose.
	Profile *profiles.Profile

	// Unit is what the vendor counts, beside the calls. Empty is tokens.
	Unit string

	// NoContext says that the SDK's calls take no context, so that the lane must
	// be set on the transport.
	NoContext bool

	// BlindStream says that Headway cannot read the vendor's count in a stream:
	// the estimate stays.
	BlindStream bool

	// New makes a client whose calls go through w to the vendor at url, with the
	// SDK's own defaults for retries.
	New func(w *Wire, url string) (Client, error)
}

// Client is a client of the SDK, as functions.
type Client struct {
	// Call makes one call to a model.
	Call func(ctx context.Context, model string) error

	// Stream makes one call that streams, calls first as soon as it holds the
	// first piece of the answer, and reads on to the end. Nil says that the SDK
	// has no streams.
	Stream func(ctx context.Context, model string, first func()) error

	// Status returns the vendor's status in an error of the SDK, 0 if it has
	// none. Nil says that the status is only in the error's text.
	Status func(err error) int

	// Refusal returns Headway's refusal in an error of the SDK that errors.As
	// does not look into, nil if there is none. Its name in the table is
	// RefusalBy. Nil says that there is no such way.
	Refusal   func(err error) *throttle.RefusedError
	RefusalBy string
}
