package profiles

import (
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
	// Ends are the ends of the API's URL paths, such as "/embeddings".
	Ends []string

	// Output is how many tokens one answer takes where the request has no cap.
	Output int64

	// BytesPerToken is how much of the whole body, files included, makes a token
	// of input. Zero counts text only, 4 bytes a token.
	BytesPerToken int64

	// Characters are paths in the request of a text whose length in characters is
	// what the call costs in the unit "characters". Nil names no such cost.
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
	for i := range p.Shapes {
		if slices.ContainsFunc(p.Shapes[i].Ends, func(end string) bool { return strings.HasSuffix(path, end) }) {
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
	if r.Body == nil || r.Body == http.NoBody || p.Message != nil {
		return
	}
	s := p.shape(r.URL.Path)
	input := (got.Text+bytesPerToken-1)/bytesPerToken + got.Media*MediaTokens
	if s.BytesPerToken > 0 {
		input = max(r.ContentLength, got.Text) / s.BytesPerToken
	}
	output := got.Output
	if output < 0 {
		output = s.Output
	}
	output = min(output, maxWhole/got.Copies) * got.Copies
	got.Guess[throttle.InputTokens], got.Guess[throttle.OutputTokens] = input, output
	if p.Caps != CapsIgnored {
		got.Guess[throttle.Tokens] = min(input+output, maxWhole) // and not what the model's calls took lately
	}
	if s.Images || s.Characters != nil {
		cost := map[string]int64{}
		if s.Images {
			cost[ImagesUnit] = got.Copies
		}
		for _, path := range s.Characters {
			cost[CharactersUnit] = max(cost[CharactersUnit], int64(utf8.RuneCountInString(fields[path])))
		}
		if s.Characters != nil && cost[CharactersUnit] == 0 {
			cost[CharactersUnit] = got.Text // longer than what is read of a field
		}
		for unit, n := range got.Cost {
			cost[unit] = n
		}
		got.Cost = cost
	}
}
