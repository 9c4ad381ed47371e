package profiles

import (
	"bytes"
	"io"
	"iter"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/headway-go/headway/fingerprint"
)

// In says in which part of a request a [Place] is.
type In int

const (
	Body  In = iota // a field of the JSON object or form; Name is its path
	Path            // the URL path; Name is the segment before the model's
	Query           // the URL's query; Name is the parameter

	// Before is the URL path too; Name is the segment after the model's.
	Before

	// Resource is a resource of Google's in the URL path, Name/{id}:{method}. The
	// model is Name, a slash and the id; see [Profile.TrimModel].
	Resource
)

// Place is where a request may name its model.
type Place struct {
	In   In
	Name string
}

// Request is what a profile learns from a request. The zero Request is one
// without a body.
type Request struct {
	Model string           // "" if the request names none
	Cost  map[string]int64 // from CostFunc, Message or the request's Shape; nil without them
	Guess map[string]int64 // input and output tokens, and 0 in units of the vendor's other APIs; see [Profile.Shapes]

	// Credential is the key that stands in the body, zero if KeyPlaces name no
	// place there, or it has none. It prints as "[redacted]".
	Credential fingerprint.Credential

	// Text is the length in bytes of what the vendor counts as text: the body, but
	// of a multipart form only the fields that are no files, and nothing of an
	// image, a sound, a video or an application/octet-stream, or of what stands in
	// a JSON document in base64: Media is how many of these there are. Where a body
	// of unknown length was not read to its end, it is what was read.
	Text, Media int64

	// Output is the most tokens that one answer may have, -1 if the request does
	// not say. Copies is how many answers it asks for, at least 1.
	Output, Copies int64
}

// Read learns from r and its body, of which it reads no more than it needs: a
// JSON document to its end, other data not at all. It neither reads nor changes
// r.Body. An unreadable body is no error: it just names nothing.
func (p *Profile) Read(r *http.Request, body io.Reader) Request {
	got := Request{Output: -1, Copies: 1}
	if p.ModelFunc != nil || p.CostFunc != nil {
		head, rest := split(body)
		bare := *r
		bare.Body, bare.GetBody = nil, nil
		if p.ModelFunc != nil {
			got.Model = p.ModelFunc(&bare, head)
		}
		if p.CostFunc != nil {
			got.Cost = p.CostFunc(&bare, head)
		}
		body = rest
	}
	count := &counter{r: body}
	fields := p.fields(r.Header.Get("Content-Type"), count)
	switch {
	case fields.apart:
		got.Text = fields.text
	case r.ContentLength > 0:
		got.Text = r.ContentLength
	default:
		got.Text = count.n
	}
	got.Text, got.Media = max(0, got.Text-fields.mediaBytes), fields.media
	if fields.inMedia { // the rest of it was not read
		got.Text = min(got.Text, count.n-fields.mediaBytes)
	}
	if got.Model == "" {
		got.Model = p.model(r.URL, fields.values)
	}
	for place := range p.bodyKeys() {
		if got.Credential.IsZero() {
			got.Credential = fingerprint.Key(fields.values[place])
		}
	}
	if len(p.Message) > 0 && got.Cost == nil {
		got.Cost = map[string]int64{SegmentsUnit: p.segments(fields, got.Text)}
	}
	for _, path := range p.OutputCaps {
		if n, ok := whole(fields.values[path]); ok {
			got.Output = max(got.Output, n)
		}
	}
	for _, path := range p.Copies {
		if n, ok := whole(fields.values[path]); ok {
			got.Copies = max(got.Copies, n)
		}
	}
	p.estimate(r, &got, fields.values)
	return got
}

// KeyInBody reports whether the vendor's key may stand in the body.
func (p *Profile) KeyInBody() bool {
	for range p.bodyKeys() {
		return true
	}
	return false
}

// bodyKeys yields the paths of the fields that may hold the key.
func (p *Profile) bodyKeys() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, place := range p.KeyPlaces {
			if path, ok := strings.CutPrefix(place, "body:"); ok && !yield(path) {
				return
			}
		}
	}
}

// SegmentsUnit is the unit of [Profile.Message].
const SegmentsUnit = "segments"

// segments returns what a request's text takes, see [Profile.Message].
func (p *Profile) segments(fields formFields, body int64) int64 {
	each := min(body, 1)
	for _, path := range slices.Backward(p.Message) {
		if text := fields.values[path]; text != "" {
			each = Segments(text)
		}
	}
	return each * max(1, fields.recipients)
}

// sharedEndpoint is not a resource but Vertex' endpoint for all models, in
// OpenAI's dialect.
const sharedEndpoint = "openapi"

// model looks at the places in their order.
func (p *Profile) model(u *url.URL, fields map[string]string) string {
	for _, place := range p.Model {
		var model string
		switch place.In {
		case Body:
			model = fields[place.Name]
		case Query:
			model = u.Query().Get(place.Name)
		case Path:
			model = segmentBeside(u, place.Name, 1)
		case Before:
			model = segmentBeside(u, place.Name, -1)
		case Resource:
			id := segmentBeside(u, place.Name, 1)
			if i := strings.LastIndexByte(id, ':'); i >= 0 {
				id = id[:i]
			}
			if id != "" && id != sharedEndpoint {
				model = place.Name + "/" + id
			}
		}
		if model = strings.TrimPrefix(model, p.TrimModel); model != "" {
			return model
		}
	}
	return ""
}

// segmentBeside returns the segment of a URL's path that stands so many segments
// after name, decoded.
func segmentBeside(u *url.URL, name string, after int) string {
	segments := strings.Split(u.EscapedPath(), "/")
	i := slices.Index(segments, name)
	if i < 0 || i+after < 0 || i+after >= len(segments) {
		return ""
	}
	s, _ := url.PathUnescape(segments[i+after])
	return s
}

// formFields are the values of a body at the wanted paths.
type formFields struct {
	values map[string]string

	recipients int64 // how many the values at Recipients name

	apart bool  // it is not all text: a multipart form, or a file as it is
	text  int64 // then the length of what is
	mediaCount
}

// fields reads the wanted fields of a JSON document, of a form or of a multipart
// form. A value that comes twice counts as vendors' decoders do it: the last of
// a JSON object, the first of a form. A multipart form is read up to the first
// file behind the model.
func (p *Profile) fields(contentType string, body io.Reader) formFields {
	got := formFields{values: map[string]string{}}
	want := slices.Concat(p.OutputCaps, p.Copies, p.Message, p.Recipients)
	found := func(path, value string) {
		got.values[path] = value
		if value != "" && slices.Contains(p.Recipients, path) {
			got.recipients += 1 + int64(strings.Count(value, ",")+strings.Count(value, "<"))
		}
	}
	for _, s := range p.Shapes {
		want = append(want, s.Characters...)
	}
	want = slices.AppendSeq(want, p.bodyKeys())
	for _, place := range p.Model {
		if place.In == Body {
			want = append(want, place.Name)
		}
	}
	kind, params, _ := mime.ParseMediaType(contentType)
	if class, _, _ := strings.Cut(kind, "/"); class == "image" || class == "audio" || class == "video" || kind == "application/octet-stream" {
		got.apart = true
		return got
	}
	switch kind {
	case "application/x-www-form-urlencoded":
		head, _ := io.ReadAll(io.LimitReader(body, PeekBytes))
		values, _ := url.ParseQuery(string(head))
		for _, name := range want {
			found(name, values.Get(name))
		}
	case "multipart/form-data":
		got.apart = true
		named := func() bool {
			return slices.ContainsFunc(p.Model, func(m Place) bool { return m.In == Body && got.values[m.Name] != "" })
		}
		form := multipart.NewReader(body, params["boundary"])
		for part, err := form.NextRawPart(); err == nil; part, err = form.NextRawPart() {
			if part.FileName() != "" {
				if named() {
					break // a file may be long, or still be written
				}
				continue // the next part skips it
			}
			value, _ := io.ReadAll(io.LimitReader(part, maxValue))
			rest, _ := io.Copy(io.Discard, part)
			got.text += int64(len(value)) + rest
			if name := part.FormName(); slices.Contains(want, name) && got.values[name] == "" {
				found(name, string(value))
			}
		}
	default:
		got.mediaCount = pickText(body, want, found)
	}
	return got
}

// PeekBytes is how much of a request's body the functions of a profile get to
// see, in bytes.
const PeekBytes = 256 << 10

// split reads the beginning of body, and returns it and a reader of all of it.
func split(body io.Reader) ([]byte, io.Reader) {
	head, err := io.ReadAll(io.LimitReader(body, PeekBytes))
	rest := body
	if err != nil {
		rest = strings.NewReader("") // it is broken; what came before is all
	}
	return head, io.MultiReader(bytes.NewReader(head), rest)
}

// counter counts the bytes that pass.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// maxWhole is the largest whole number that counts: 2^53-1.
const maxWhole = 1<<53 - 1

// whole reads a number of units: no fraction, no sign, at most 2^53-1.
func whole(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= 0 && n <= maxWhole && s[0] != '+' && s[0] != '-'
}
