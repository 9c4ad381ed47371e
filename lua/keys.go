package lua

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
)

// layout is the version of what the keys hold. Two layouts never share a key.
const layout = "1"

// maxName is the longest name of a model or unit that appears in a key as it is.
const maxName = 64

// Names spells the keys of one vendor key. All of them carry the fingerprint as
// their hash tag, so that they share a slot of a Redis Cluster.
type Names struct{ base string }

// NewNames returns the names under prefix of the key with this fingerprint.
func NewNames(prefix, fingerprint string) Names {
	return Names{prefix + ":" + layout + ":{" + plain(fingerprint) + "}:"}
}

// Has reports whether name is one of these names.
func (n Names) Has(name string) bool { return strings.HasPrefix(name, n.base) }

// Key is the scope of the key itself.
func (n Names) Key() string { return n.base + "k" }

// Model is the scope of one model.
func (n Names) Model(model string) string { return n.base + "m:" + plain(model) }

// Fleet lists the processes that use the key.
func (n Names) Fleet() string { return n.base + "f" }

// Line is where the calls of the owner, a scope, wait.
func (n Names) Line(scope string) string { return scope + ":line" }

// Tape is what went under one limit of the owner, a scope: of every lane, or of
// the one named. A limit of another window, or with another kind of clock, has
// another tape.
func (n Names) Tape(scope, unit string, window int64, fixed bool, lane string) string {
	name := scope + ":" + plain(unit) + ":" + strconv.FormatInt(window, 10)
	if fixed {
		name += "f"
	}
	if lane != "" {
		name += ":" + plain(lane)
	}
	return name
}

// Tag is a tape's name as a number below 2^53.
func Tag(tape string) int64 {
	h := sha256.Sum256([]byte(tape))
	return int64(binary.LittleEndian.Uint64(h[:8]) >> 11)
}

// plain returns the name itself when it is short and harmless, and its hash
// otherwise, so that a hostile name can neither grow a key nor look like
// another one. The two forms cannot be equal: only a hash begins with '#'.
func plain(name string) string {
	if name == "" || len(name) > maxName {
		return hashed(name)
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.', c == '/', c == '@':
		default:
			return hashed(name)
		}
	}
	return name
}

func hashed(name string) string {
	h := sha256.Sum256([]byte(name))
	return "#" + hex.EncodeToString(h[:16])
}
