package profiles

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/headway-go/headway/throttle"
)

// Usage is what a vendor counted for one call.
type Usage struct {
	// Input is the whole prompt in tokens, what came from a cache included.
	// Cached is the part of it that was read from a cache, Written the part that
	// was written to one. Output is all that was generated, reasoning included.
	Input, Cached, Written, Output int64

	// Counted is the part of Input that the vendor counts against its limits.
	Counted int64

	// Units are counts in other units, from UsageFunc or UsageFields.Units. Nil is
	// none.
	Units map[string]int64
}

// Cost returns the usage by unit: "tokens", which is "input_tokens" and
// "output_tokens" together, as the vendor's limits count them; "cached_tokens",
// "cache_write_tokens" and "uncached_tokens" as it bills the input; and Units.
func (u Usage) Cost() map[string]int64 {
	cost := map[string]int64{}
	if u.Input+u.Output > 0 {
		cost[throttle.Tokens], cost[throttle.InputTokens], cost[throttle.OutputTokens] = u.Counted+u.Output, u.Counted, u.Output
		cost[throttle.CachedTokens], cost[throttle.CacheWriteTokens] = u.Cached, u.Written
		cost[throttle.UncachedTokens] = max(0, u.Input-u.Cached-u.Written)
	}
	maps.Copy(cost, u.Units)
	return cost
}

// UsageFields says where an answer counts what the call took. The zero UsageFields is
// nowhere. The fields below At are relative to it, and the first one present
// counts.
type UsageFields struct {
	// At lists the paths of the object with the counts, in the answer or in an
	// event of its stream.
	At []string

	// Input and Output are the counts of tokens. Total, where there is one,
	// corrects Output: some vendors leave reasoning out of it.
	Input, Output, Total []string

	// Cached is the part of the input that was read from a cache, Written the part
	// that was written to one. Beside lists counts that Input leaves out and the
	// whole prompt includes. Thoughts lists counts that Output leaves out and all
	// that was generated includes.
	Cached, Written, Beside, Thoughts []string

	// CachedFree says that the vendor's limits do not count what was read from a
	// cache.
	CachedFree bool

	// Units are counts in other units than tokens: their paths in the answer, by
	// unit. A count may be a string. A zero says that the vendor has not counted
	// yet.
	Units map[string]string
}

// tally gathers the counts of one answer. Vendors repeat counts in a stream as
// they grow, so the last value of a field replaces those before it.
type tally struct {
	fields *UsageFields
	paths  []string
	counts map[string]int64 // by path below At
	units  map[string]int64 // by unit
	broken bool             // one of the values was no count, so none is to be trusted
}

// maxTokens is the most tokens that one answer can count. More would be a mistake
// that empties every budget.
const maxTokens = 1e9

func (f *UsageFields) tally() *tally {
	t := &tally{fields: f, counts: map[string]int64{}, units: map[string]int64{}}
	for _, at := range f.At {
		for _, field := range slices.Concat(f.Input, f.Output, f.Total, f.Cached, f.Written, f.Beside, f.Thoughts) {
			t.paths = append(t.paths, at+"."+field)
		}
	}
	for _, path := range f.Units {
		t.paths = append(t.paths, path)
	}
	return t
}

// count takes one value of the answer.
func (t *tally) count(path, value string, k kind) {
	n, ok := whole(value)
	ok = ok && n <= maxTokens
	for unit, at := range t.fields.Units {
		if path == at {
			if ok && n > 0 {
				t.units[unit] = n
			}
			return
		}
	}
	if !ok || k != literal {
		t.broken = true
		return
	}
	for _, at := range t.fields.At {
		if field, ok := strings.CutPrefix(path, at+"."); ok {
			t.counts[field] = n
		}
	}
}

// first returns the count of the first field that has one.
func (t *tally) first(fields []string) (int64, bool) {
	for _, f := range fields {
		if n, ok := t.counts[f]; ok {
			return n, true
		}
	}
	return 0, false
}

// usage returns what was counted, or false if that is nothing. Tokens count
// nothing if one of their values was negative, a fraction, no number, or too
// large to be true, and if all are zero: no call takes none, so the vendor did
// not count.
func (t *tally) usage() (Usage, bool) {
	u, ok := t.tokens()
	if len(t.units) > 0 {
		u.Units = maps.Clone(t.units)
	}
	return u, ok || u.Units != nil
}

func (t *tally) tokens() (Usage, bool) {
	input, hasInput := t.first(t.fields.Input)
	output, _ := t.first(t.fields.Output)
	cached, _ := t.first(t.fields.Cached)
	written, _ := t.first(t.fields.Written)
	for _, f := range t.fields.Beside {
		input += t.counts[f]
	}
	for _, f := range t.fields.Thoughts {
		output += t.counts[f]
	}
	if total, ok := t.first(t.fields.Total); ok && total > input && hasInput {
		output = max(output, total-input)
	}
	if t.broken || input+output == 0 {
		return Usage{}, false
	}
	u := Usage{Input: input, Cached: cached, Written: written, Output: output, Counted: input}
	if t.fields.CachedFree {
		u.Counted = max(0, input-cached)
	}
	return u, true
}

// mentions reports whether doc may hold one of the objects with counts. It is a
// cheap test before a document is read in full: OpenAI sends "usage":null in
// every event but the last.
func (f *UsageFields) mentions(doc []byte) bool {
	found := func(path string) bool {
		key, rest := quoted(path), doc
		for {
			_, after, ok := bytes.Cut(rest, key)
			if !ok {
				return false
			}
			if !bytes.HasPrefix(bytes.TrimLeft(after, ": \t"), []byte("null")) {
				return true
			}
			rest = after
		}
	}
	return slices.ContainsFunc(f.At, found) || slices.ContainsFunc(slices.Collect(maps.Values(f.Units)), found)
}

// quoted returns the last key of a path as JSON spells it. Inside of a JSON
// string the quotes would be escaped, so what is found is a key, or a whole value.
func quoted(path string) []byte {
	return []byte(`"` + path[strings.LastIndexByte(path, '.')+1:] + `"`)
}
