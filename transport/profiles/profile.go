// Package profiles describes vendors as data: where a request names its model,
// what it will cost, what an answer means and where it counts the usage.
//
// A [Profile] is a table over decoders that all vendors share. [Builtin]
// lists those that are complete, such as [OpenAI] and [Twilio]; [Generic] knows
// the statuses of HTTP and leaves the rest to functions of the caller. Take one,
// change the fields that need it and hand it to the transport:
//
//	p := profiles.OpenAI()
//	p.Rules = append([]profiles.Rule{{
//		Fields: []string{"error.code"}, Values: []string{"team_budget_spent"},
//		Class: pause.QuotaExhausted, Scope: pause.Key,
//	}}, p.Rules...)
//
// Nothing here does I/O of its own, and nothing keeps a request or an answer.
package profiles

import (
	"net/http"
	"slices"
	"strings"

	"github.com/headway-go/headway/pause"
)

// Profile says how one vendor is read. It must not change once it is in use;
// then it is safe for concurrent use. The zero Profile works like [Generic]
// without a name and a model.
//
// A path names a value in a JSON document by its keys, joined by dots, such as
// "error.code". Arrays on the way are looked through: any element will do.
type Profile struct {
	// Name is part of the key's fingerprint: the same key string at another
	// vendor is another key.
	Name string

	// Hosts are the vendor's own, in lower case. "*.example.com" stands for
	// every host below example.com, "*-api.example.com" for every one that ends so,
	// "api.*.example.com" for every one that begins and ends so.
	// Calls to another host with this profile have their own budget per host.
	Hosts []string

	// PerHost gives each of Hosts its own budget as well, for vendors whose
	// regions or resources have limits of their own.
	PerHost bool

	// Marks are headers of requests that only this vendor's API has. They choose
	// the profile for hosts that no profile names, such as a gateway's.
	Marks []string

	// KeyPlaces are where the vendor looks for its key first, as
	// fingerprint.Find takes them, or "body:" and the path of a field of the JSON
	// document or form. A key in the body goes before all other places. The body is
	// read for it only if one of them says so.
	KeyPlaces []string

	// ScopeHeaders are headers of the request that choose the budget, beside the
	// key. They are part of the fingerprint.
	ScopeHeaders []string

	// Model lists where the request may name its model; the first place that has
	// one wins. None: every call counts under the model "-".
	Model []Place

	// TrimModel is cut off the beginning of a model's name, for vendors that
	// spell it with and without. Empty cuts nothing.
	TrimModel string

	// Shapes are the APIs of the vendor whose requests are estimated otherwise than
	// text that is answered with text; the first whose path fits counts. Caps says
	// what the vendor makes of OutputCaps.
	Shapes []Shape
	Caps   Caps

	// OutputCaps are paths in the request of the most tokens that the answer may
	// have; the largest of those present counts. Copies are paths of the number
	// of answers asked for.
	OutputCaps []string
	Copies     []string

	// Message lists paths in the request of the text of a text message. Not nil,
	// it makes every call cost "segments", see [Segments]: what the first text
	// present takes, 1 for a body without a text (a template, a picture), 0
	// without a body. It costs no tokens then.
	Message []string

	// Recipients are paths in the request of who gets a text message, in an array
	// or divided by commas or "<". It costs its segments for each of them. A
	// call to more than a limit lets through is too large: split it, or set the
	// transport's Cost where the vendor queues.
	Recipients []string

	// HeadersPath is the path of an object in an error that holds the header of
	// somebody behind the vendor. A wait that the answer itself does not name is
	// looked for there. Empty is nowhere.
	HeadersPath string

	// StatusPath is the path of a status in an error. Where the answer's own
	// status says that all is well, such as inside of a stream, the error is
	// judged by this one. Empty is nowhere.
	StatusPath string

	// ErrorHeader is a header of answers with an error's code. Rules find the
	// code among their Fields under this name, in its canonical spelling, without
	// a namespace or address around it. Empty is none.
	ErrorHeader string

	// Rules give an answer its verdict; the first that matches wins. An answer
	// that none matches is judged by its status, see [ByStatus].
	Rules []Rule

	// Texts are the paths of an error's words, which Rule.Text is matched with.
	Texts []string

	// ReadOK makes the transport read the beginning of a JSON answer with a
	// status below 400 before it hands it on, for vendors that put refusals
	// there.
	ReadOK bool

	// Free lists the statuses of answers that the vendor documents not to count.
	// What such a call reserved is given back, unless a rule says that the answer
	// is a client error. None: every answered call stays charged.
	Free []int

	// Usage says where an answer counts what the call took. StreamEnds are the values of
	// "type" of the last event of a stream; "[DONE]" always is one.
	Usage      UsageFields
	StreamEnds []string

	// LeftHeaders say what is left of the vendor's limits.
	LeftHeaders []LeftHeaders

	// Presets are limits that the vendor documents, see [Profile.Limits].
	Presets []Preset

	// The functions go before the data above. Each may be nil. They may be
	// called by many goroutines at once and must neither change nor keep what
	// they get. The request has no body; body is its first 256 KiB.

	// ModelFunc returns the model, "" to go on with Model.
	ModelFunc func(r *http.Request, body []byte) string

	// CostFunc returns what the call costs, by unit, nil to go on with Message.
	// What it does not name is estimated, see Shapes: a tokenizer, for instance,
	// names "input_tokens" and leaves the output to the estimate.
	CostFunc func(r *http.Request, body []byte) map[string]int64

	// JudgeFunc returns the verdict, false to go on with Rules. A verdict
	// without a hint gets the one that the answer names.
	JudgeFunc func(Answer) (pause.Verdict, bool)

	// UsageFunc returns what a finished answer counts by unit, false if nothing.
	// body is whole, at most 1 MiB and not compressed; for longer bodies it is
	// not called.
	UsageFunc func(header http.Header, body []byte) (map[string]int64, bool)
}

// Builtin returns new copies of the profiles that are chosen by a request's
// host, the one for unknown hosts last.
func Builtin() []*Profile {
	return []*Profile{
		Anthropic(), Azure(), Bedrock(), Cohere(), Deepgram(), DeepSeek(), ElevenLabs(), Gemini(), Groq(), Mistral(),
		OpenRouter(), Perplexity(), Together(), Vertex(), XAI(),
		Mailgun(), MessageBird(), Plivo(), SendGrid(), Sinch(), SNS(), Telnyx(), Twilio(), Vonage(), WhatsApp(),
		OpenAI(),
	}
}

// Choose returns the profile for a request: the one that names its host, else
// the one whose mark its header carries, else the last of list. It returns nil
// for an empty list.
func Choose(list []*Profile, r *http.Request) *Profile {
	if len(list) == 0 {
		return nil
	}
	if i := slices.IndexFunc(list, func(p *Profile) bool { return p.Owns(r.URL.Hostname()) }); i >= 0 {
		return list[i]
	}
	marked := func(p *Profile) bool {
		return slices.ContainsFunc(p.Marks, func(name string) bool { return r.Header.Get(name) != "" })
	}
	if i := slices.IndexFunc(list, marked); i >= 0 {
		return list[i]
	}
	return list[len(list)-1]
}

// Owns reports whether host, without a port, is one of the vendor's own.
func (p *Profile) Owns(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return slices.ContainsFunc(p.Hosts, func(h string) bool {
		if start, end, wild := strings.Cut(h, "*"); wild {
			return strings.HasPrefix(host, start) && strings.HasSuffix(host, end) && len(host) > len(start)+len(end)
		}
		return host == h
	})
}
