// Package fingerprint turns a vendor's API key into a one-way id.
//
// All shared state of a key hangs under its fingerprint, so the fingerprint is
// what reaches Redis, logs and refusals; the key itself does not. [Find] takes
// the credential out of a request, and [Scope.Fingerprint] names it:
//
//	HMAC-SHA-256(pepper, profile, host, credential, headers...), 128 bits kept
//
// Every function is pure, does no I/O and is safe for concurrent use.
package fingerprint

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
)

// publicKey keys the HMAC when there is no pepper. It is no secret: it only
// keeps these hashes apart from those of other programs. Changing it, or the
// order of the parts below, gives every key of every fleet a new fingerprint.
const publicKey = "headway/fingerprint/1"

// wireSpace is what net/http trims off a header's value when it sends it.
const wireSpace = " \t\r\n"

// ErrNoCredential is the error of [Scope.Fingerprint] for the zero Credential.
// Calls without a credential must not share one fingerprint by accident.
var ErrNoCredential = errors.New("fingerprint: credential: none given")

var errNoVendor = errors.New("fingerprint: Profile: must not be empty where Host is empty too")

// Credential is what a vendor knows its customer by, or an account's name in
// its place. It holds a SHA-256 of the secret, never the secret, and prints as
// "[redacted]". Two Credentials are == if they stand for the same thing.
//
// The zero Credential is no credential.
type Credential struct {
	sum [sha256.Size]byte
}

// Key returns the Credential of an API key, space around it trimmed. It is for
// keys that [Find] does not see, such as one in a form field. An empty key
// gives the zero Credential.
func Key(secret string) Credential {
	return newCredential("key", strings.Trim(secret, wireSpace))
}

// Account returns a Credential for a name of the caller's choice, space around
// it trimmed. It takes the place of a key that rotates, such as an OAuth token,
// or of several keys of one account, which then share all limits and pauses.
// No account equals a key, even if both are spelled alike. An empty name gives
// the zero Credential.
func Account(name string) Credential {
	return newCredential("account", strings.Trim(name, wireSpace))
}

// newCredential hashes value within its kind, so that kinds never meet.
func newCredential(kind, value string) Credential {
	if value == "" {
		return Credential{}
	}
	return Credential{sum: sha256.Sum256(appendPart(appendPart(nil, kind), value))}
}

// IsZero reports whether c is no credential.
func (c Credential) IsZero() bool { return c == Credential{} }

// Scope is where a credential counts: the same key string in another scope is
// another key.
type Scope struct {
	// Profile names the vendor, such as "openai". It may be empty only where
	// Host is not.
	Profile string

	// Host is the host as [Host] returns it, taken as it is. Leave it empty
	// where the host is the vendor's own and all its hosts share their limits.
	Host string

	// Headers are the vendor's own scope headers as [Headers] returns them,
	// in the profile's order. Nil and empty are the same.
	Headers []string

	// Pepper is optional. With it, who reads the store cannot test a guessed
	// key. It must be the same on every host of the fleet.
	Pepper Pepper
}

// Pepper is a secret key for the HMAC, of any length; 32 random bytes are a
// good one. Nil or empty stands for a fixed public key. It prints as
// "[redacted]".
type Pepper []byte

// Fingerprint returns the one-way id of c within s: 32 lower-case hex
// characters. It returns [ErrNoCredential] for the zero Credential, and an
// error if both Profile and Host are empty.
func (s Scope) Fingerprint(c Credential) (string, error) {
	if c.IsZero() {
		return "", ErrNoCredential
	}
	if s.Profile == "" && s.Host == "" {
		return "", errNoVendor
	}
	key := []byte(s.Pepper)
	if len(key) == 0 {
		key = []byte(publicKey)
	}
	parts := appendPart(nil, s.Profile)
	parts = appendPart(parts, s.Host)
	parts = appendPart(parts, string(c.sum[:]))
	for _, line := range s.Headers {
		parts = appendPart(parts, line)
	}
	h := hmac.New(sha256.New, key)
	h.Write(parts) // never errs
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// appendPart appends the part's length and the part, so that "ab", "c" and
// "a", "bc" differ.
func appendPart(b []byte, part string) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(part))), part...)
}
