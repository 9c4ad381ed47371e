package profiles

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/headway-go/headway/throttle"
)

// Caps says what a vendor makes of the most output that a request allows.
type Caps int

const (
	// CapsIgnored: what was generated counts, so a call is estimated at what the
	// model's calls took of their caps lately.
	CapsIgnored Caps = iota

	// CapsHeld: the whole cap counts until the call is over, and then what was
	// generated. So a call is estimated at its cap, and settled.
	CapsHeld

	// CapsCharged: the whole cap counts, whatever is generated. So tokens stay at
	// their estimate, or at the vendor's count where that is higher.
	CapsCharged
)

// Shape says how the requests of one API of a vendor are estimated, where that
// differs from text that is answered with text: a token for every 4 bytes, and
// the request's cap, or [DefaultOutput], for every answer asked for.
type Shape struct {
	// Ends are the ends of the API's URL paths, such as "/embeddings". In
	// "embed*/invoke" what is before the star may stand anywhere before that end.
	Ends []string

	// Output is how many tokens one answer takes where the request has no cap.
	Output int64

	// BytesPerToken is how much of the whole body, files included, makes a token
	// of input; a body of unknown length is at least MediaTokens. Zero counts text
	// only, 4 bytes a token.
	BytesPerToken int64

	// Characters are paths in the request of a text whose length in characters is
	// what the call costs in the unit "characters". Nil is none.
	Characters []string

	// Images makes the call cost one "images" for every answer asked for.
	Images bool
}

// What a request is taken for that does not say.
const (
	// DefaultOutput is the output, in tokens, of a request without a cap.
	DefaultOutput = 1024

	// MediaTokens is the input, in tokens, of a picture, a sound or a document
	// that stands in a JSON request in base64.
	MediaTokens = 1000
)

const bytesPerToken = 4

// The units of [Shape].
const (
	CharactersUnit = "characters"
	ImagesUnit     = "images"
)

// shape returns the shape of the API that a path names.
func (p *Profile) shape(path string) *Shape {
	fits := func(end string) bool {
		before, end, wild := strings.Cut(end, "*")
		if !wild {
			return strings.HasSuffix(path, before)
		}
		rest, ok := strings.CutSuffix(path, end)
		return ok && strings.Contains(rest, before)
	}
	for i := range p.Shapes {
		if slices.ContainsFunc(p.Shapes[i].Ends, fits) {
			return &p.Shapes[i]
		}
	}
	return &Shape{Output: DefaultOutput}
}

// estimate fills in what a request costs, from what was read of it. A request
// without a body asks for nothing to be generated, and no more does a text
// message.
func (p *Profile) estimate(r *http.Request, got *Request, fields map[string]string) {
	got.Guess = map[string]int64{throttle.InputTokens: 0, throttle.OutputTokens: 0}
	s, asks := p.shape(r.URL.Path), r.Body != nil && r.Body != http.NoBody
	p.units(s, got, fields, asks)
	if !asks || p.Message != nil {
		return
	}
	input := (got.Text+bytesPerToken-1)/bytesPerToken + got.Media*MediaTokens
	if s.BytesPerToken > 0 {
		if input = max(r.ContentLength, got.Text) / s.BytesPerToken; r.ContentLength < 0 {
			input = max(input, MediaTokens) // a file whose length is not known
		}
	}
	output := got.Output
	if output < 0 {
		output = s.Output
	}
	output = min(output, maxWhole/got.Copies) * got.Copies
	got.Guess[throttle.InputTokens], got.Guess[throttle.OutputTokens] = input, output
	if p.Caps != CapsIgnored { // the sum counts as it is, and not what the model's calls took lately
		got.Guess[throttle.Tokens] = min(known(got, throttle.InputTokens)+known(got, throttle.OutputTokens), maxWhole)
	}
}

// known returns what a request costs in a unit, by CostFunc or by the estimate.
func known(got *Request, unit string) int64 {
	if n, named := got.Cost[unit]; named {
		return n
	}
	return got.Guess[unit]
}

// units fills in what a request costs in the units of shapes. In those of the
// vendor's other APIs it is 0: limits of the whole key may count them.
func (p *Profile) units(s *Shape, got *Request, fields map[string]string, asks bool) {
	for _, other := range p.Shapes {
		if other.Images {
			got.Guess[ImagesUnit] = 0
		}
		if other.Characters != nil {
			got.Guess[CharactersUnit] = 0
		}
	}
	cost := map[string]int64{}
	if s.Images && asks {
		cost[ImagesUnit] = got.Copies
	}
	if s.Characters != nil && asks {
		length := got.Text // where it is longer than what is read of a field
		if length <= maxValue {
			length = 0
		}
		for _, path := range s.Characters {
			if n := utf8.RuneCountInString(fields[path]); n > 0 {
				length = int64(n)
			}
		}
		cost[CharactersUnit] = length
	}
	if len(cost) > 0 {
		maps.Copy(cost, got.Cost)
		got.Cost = cost
	}
}
