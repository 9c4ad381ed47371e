package vendorsim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// maxBody is the largest request body read, in bytes; more is answered 413.
const maxBody = 32 << 20

// Shape is the API a call speaks, told by its path.
type Shape int

// The shapes, each with its path.
const (
	Unknown   Shape = iota // any other path: 404
	Chat                   // OpenAI, POST /v1/chat/completions
	Responses              // OpenAI, POST /v1/responses
	Anthropic              // Anthropic, POST /v1/messages
)

func shapeOf(path string) Shape {
	switch path {
	case "/v1/chat/completions":
		return Chat
	case "/v1/responses":
		return Responses
	case "/v1/messages":
		return Anthropic
	}
	return Unknown
}

// Request is what the vendor read of one call.
type Request struct {
	Shape        Shape
	Path         string
	Key          Key
	Model        string
	Lane         string
	Stream       bool
	IncludeUsage bool  // stream_options.include_usage
	MaxTokens    int64 // the most output tokens asked for, 0: not said
	Body         []byte
}

// DefaultUsage counts a call that [Config.Usage] does not: a quarter of the
// body's bytes in, half of the most tokens asked for out, 64 if none was said.
func DefaultUsage(q Request) (in, out int64) {
	if q.MaxTokens > 0 {
		return int64(len(q.Body)) / 4, q.MaxTokens / 2
	}
	return int64(len(q.Body)) / 4, 64
}

// read understands a call. The second result is non-nil when there is no call
// to judge, only an answer to give.
func read(w http.ResponseWriter, r *http.Request, laneHeader string) (Request, *Answer) {
	q := Request{Shape: shapeOf(r.URL.Path), Path: r.URL.Path, Key: keyOf(r), Lane: r.Header.Get(laneHeader)}
	var err error
	q.Body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	reject := func(status int, message, kind string) (Request, *Answer) {
		a := fail(q, status, message, oaError{"invalid_request_error", nil}, kind)
		return q, &a
	}
	var body struct {
		Model   string `json:"model"`
		Stream  bool   `json:"stream"`
		Options struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		MaxTokens           int64 `json:"max_tokens"`
		MaxCompletionTokens int64 `json:"max_completion_tokens"`
		MaxOutputTokens     int64 `json:"max_output_tokens"`
	}
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return reject(413, "The request is too large.", "request_too_large")
	}
	switch {
	case q.Shape == Unknown:
		return reject(404, "Unknown request URL.", "not_found_error")
	case r.Method != http.MethodPost:
		return reject(405, "Not allowed to "+r.Method+" here.", "invalid_request_error")
	case q.Key == "":
		a := fail(q, 401, "You didn't provide an API key.", oaError{"invalid_request_error", nil}, "authentication_error")
		return q, &a
	case err != nil:
		return reject(400, "The body could not be read.", "invalid_request_error")
	case json.Unmarshal(q.Body, &body) != nil:
		return reject(400, "The body is not the JSON that this path takes.", "invalid_request_error")
	case body.Model == "":
		return reject(400, "You must provide a model parameter.", "invalid_request_error")
	}
	q.Model, q.Stream, q.IncludeUsage = body.Model, body.Stream, body.Options.IncludeUsage
	q.MaxTokens = max(0, body.MaxTokens, body.MaxCompletionTokens, body.MaxOutputTokens)
	return q, nil
}

// keyOf reads x-api-key on Anthropic's path, and a Bearer token on all.
func keyOf(r *http.Request) Key {
	if k := r.Header.Get("X-Api-Key"); k != "" && shapeOf(r.URL.Path) == Anthropic {
		return Key(strings.TrimSpace(k))
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return Key(strings.TrimSpace(token))
}

// object is a JSON object.
type object map[string]any

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("vendorsim: encode: " + err.Error()) // every value is built here, of types JSON has
	}
	return string(b)
}

// oaError is the type and code of OpenAI's error object; code may be nil.
type oaError struct {
	kind string
	code any
}

func openAIError(message string, e oaError) string {
	return encode(object{"error": object{"message": message, "type": e.kind, "param": nil, "code": e.code}})
}

// fail is an error in the shape of the call.
func fail(q Request, status int, message string, oa oaError, anthropic string) Answer {
	if q.Shape != Anthropic {
		return Answer{Status: status, Body: openAIError(message, oa)}
	}
	return Answer{Status: status, Body: encode(object{
		"type": "error", "error": object{"type": anthropic, "message": message}, "request_id": "req_sim",
	})}
}

// geminiError is Gemini's 429. RetryInfo alone names the wait.
func geminiError(model, message string, r refusal) string {
	per := "PerMinute"
	if r.limit.Window >= 24*time.Hour {
		per = "PerDay"
	}
	details := []object{{
		"@type": "type.googleapis.com/google.rpc.QuotaFailure",
		"violations": []object{{
			"quotaId":         "GenerateRequestsPerModel" + per + "-Sim",
			"quotaDimensions": object{"model": model}, "quotaValue": fmt.Sprint(r.limit.Amount),
		}},
	}}
	if !r.tooLarge {
		wait := max(0, r.wait)
		whole, rest := wait/time.Second, wait%time.Second
		details = append(details, object{
			"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": fmt.Sprintf("%d.%09ds", whole, rest),
		})
	}
	return encode(object{"error": object{"code": 429, "status": "RESOURCE_EXHAUSTED", "message": message, "details": details}})
}
