package vendorsim

import (
	"net/http"
	"time"
)

// CutBefore, as [Answer.Cut], closes the connection before any byte of an answer.
const CutBefore = -1

// Answer is one scripted answer. The zero value is the normal answer.
//
// With Status 0 or 2xx the limits are asked and charged as for any call; while
// they refuse, the script waits. Any other status is given without asking or
// charging them.
type Answer struct {
	Status int           // 0: 200
	Header http.Header   // added to the answer's own; Content-Type replaces it
	Body   string        // "" with Status 0 or 2xx: the normal body
	Events []string      // in Body's place: raw bytes of a stream, each flushed, Gap apart
	Gap    time.Duration // 0: the server's
	Delay  time.Duration // before the answer, added to the server's
	Cut    int           // 0: never; n: close the connection after n bytes of body; CutBefore

	fill func(q Request, now time.Time) Answer // makes the answer when the call is known
}

func (a Answer) asksLimits() bool { return a.Status == 0 || a.Status/100 == 2 }

// Script sets the next answers for a model, in order, behind those already set.
// The model "" stands for every call; a model's own script goes first.
func (s *Server) Script(model string, answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts[model] = append(s.scripts[model], answers...)
}

// next is the scripted answer for a call, and a function that uses it up.
func (s *Server) next(q Request, now time.Time) (Answer, func()) {
	for _, model := range []string{q.Model, ""} {
		if list := s.scripts[model]; len(list) > 0 {
			a := list[0]
			if a.fill != nil {
				a = a.fill(q, now)
			}
			return a, func() { s.scripts[model] = list[1:] }
		}
	}
	return Answer{}, func() {}
}

// RateLimited is a 429 that names the wait d in a dialect, whatever the limits
// say. A negative d is spelled as such.
func RateLimited(d time.Duration, dialect Dialect) Answer {
	return Answer{Status: http.StatusTooManyRequests, fill: func(q Request, now time.Time) Answer {
		return refuse(q, now, dialect, refusal{limit: Limit{Unit: Requests}, wait: d})
	}}
}

// Overloaded529 is Anthropic's overloaded_error, or OpenAI's server_is_overloaded under the same status.
func Overloaded529() Answer {
	return failure(529, "Overloaded", oaError{"service_unavailable_error", "server_is_overloaded"}, "overloaded_error")
}

// KeyRefused401 refuses the key without naming it.
func KeyRefused401() Answer {
	return failure(401, "Incorrect API key provided.", oaError{"invalid_request_error", "invalid_api_key"}, "authentication_error")
}

// Quota429 is OpenAI's insufficient_quota, or Anthropic's enforced_spend_limit_reached: no wait helps and none is named.
func Quota429() Answer {
	return Answer{Status: 429, fill: func(q Request, _ time.Time) Answer {
		const message = "You exceeded your current quota, please check your plan and billing details."
		if q.Shape != Anthropic {
			return Answer{Status: 429, Body: openAIError(message, oaError{"insufficient_quota", "insufficient_quota"})}
		}
		return Answer{Status: 429, Body: encode(object{"type": "error", "request_id": "req_sim", "error": object{
			"type": "rate_limit_error", "message": message,
			"details": object{"error_code": "enforced_spend_limit_reached"},
		}})}
	}}
}

// ServerError500 is the vendor's own failure.
func ServerError500() Answer {
	return failure(500, "The server had an error.", oaError{"server_error", nil}, "api_error")
}

// ModelForbidden403 says that the key works but not for this model.
func ModelForbidden403() Answer {
	return Answer{Status: 403, fill: func(q Request, _ time.Time) Answer {
		message := "Your API key does not have permission to use model " + q.Model + "."
		if q.Shape != Anthropic {
			message = "Project `proj_sim` does not have access to model `" + q.Model + "`"
		}
		return fail(q, 403, message, oaError{"invalid_request_error", "model_not_found"}, "permission_error")
	}}
}

// failure is an error whose text does not depend on the call.
func failure(status int, message string, oa oaError, anthropic string) Answer {
	return Answer{Status: status, fill: func(q Request, _ time.Time) Answer {
		return fail(q, status, message, oa, anthropic)
	}}
}
