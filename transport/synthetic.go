package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/headway-go/headway/throttle"
)

// Refusals says in which form a refused call comes back.
type Refusals int

const (
	// Auto answers calls of SDKs that would retry an error with a response, and
	// all others with the error. Such an SDK is known by its own header,
	// X-Stainless-Retry-Count (openai-go, anthropic-sdk-go).
	Auto Refusals = iota

	// AsError always returns the error.
	AsError

	// AsResponse always answers with a response.
	AsResponse
)

// The headers of a response that Headway made itself.
const (
	// RefusedHeader marks it and holds the reason, such as "model paused". For
	// an outage of the store it is "store unavailable".
	RefusedHeader = "Headway-Refused"

	// DetailHeader holds the other fields of the refusal, as a URL query.
	DetailHeader = "Headway-Refusal"
)

const (
	stainless   = "X-Stainless-Retry-Count"
	shouldRetry = "X-Should-Retry"
	storeReason = "store unavailable"

	// maxWaitMS is the longest wait that a time.Duration holds, in milliseconds.
	maxWaitMS = int64(math.MaxInt64 / time.Millisecond)
)

// refuse answers a call that was not sent: with the error, or with a response.
// Only refusals and outages become responses: every other error is a mistake in
// the program, or the context's.
func (t *Transport) refuse(req *http.Request, err error) (*http.Response, error) {
	t.log(req.Context(), "transport: not sent", slog.Any("error", err))
	remember(req.Context(), err)
	asResponse := t.Refusals == AsResponse || t.Refusals == Auto && req.Header.Get(stainless) != ""
	if !asResponse {
		return nil, err
	}
	var refused *throttle.RefusedError
	switch {
	case errors.As(err, &refused):
		return refusedResponse(req, refused), nil
	case errors.Is(err, throttle.ErrStoreUnavailable):
		return response(req, http.StatusServiceUnavailable, storeReason, err.Error(), "api_error", "UNAVAILABLE"), nil
	}
	return nil, err
}

// refusedResponse is the synthetic 429, or 413 for a call that no wait can help,
// so that nobody takes it for "later".
func refusedResponse(req *http.Request, e *throttle.RefusedError) *http.Response {
	status, kind, name := http.StatusTooManyRequests, "rate_limit_error", "RESOURCE_EXHAUSTED"
	if e.Reason == throttle.TooLarge {
		status, kind, name = http.StatusRequestEntityTooLarge, "request_too_large", "INVALID_ARGUMENT"
	}
	resp := response(req, status, e.Reason.String(), e.Error(), kind, name)
	detail := url.Values{"deferred": {strconv.FormatBool(e.Deferred)}}
	for field, value := range map[string]string{"key": e.Key, "model": e.Model, "lane": e.Lane, "limit": e.Limit, "unit": e.Unit} {
		if value != "" {
			detail.Set(field, value)
		}
	}
	resp.Header.Set(DetailHeader, detail.Encode())
	if e.RetryAfter > 0 {
		resp.Header.Set("Retry-After", ceil(e.RetryAfter, time.Second))
		resp.Header.Set("Retry-After-Ms", ceil(e.RetryAfter, time.Millisecond))
	}
	return resp
}

// ceil writes d in whole units, rounded up.
func ceil(d, unit time.Duration) string {
	n := d / unit
	if d%unit > 0 {
		n++
	}
	return strconv.FormatInt(int64(n), 10)
}

// response builds an answer whose body the SDKs of OpenAI and Anthropic
// (error.type, error.message), Google (error.code, error.status) and Twilio
// (code, message, status) decode.
func response(req *http.Request, status int, reason, message, kind, name string) *http.Response {
	type inner struct {
		Type    string `json:"type"`
		Message string `json:"message"`
		Code    int    `json:"code"`
		Status  string `json:"status"`
	}
	body, _ := json.Marshal(struct { // strings and numbers always marshal
		Type    string `json:"type"`
		Error   inner  `json:"error"`
		Message string `json:"message"`
		Code    int    `json:"code"`
		Status  int    `json:"status"`
	}{"error", inner{kind, message, status, name}, message, status, status})
	header := http.Header{}
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set(shouldRetry, "false")
	header.Set(RefusedHeader, reason)
	return &http.Response{
		Status:        fmt.Sprintf("%d %s", status, http.StatusText(status)),
		StatusCode:    status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        header,
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       req,
	}
}

// FromResponse returns the refusal that a response stands for, and whether it
// stands for one: it does not if the vendor answered, or if the store was out
// (see [RefusedHeader]). It reads headers only, so the body may be used up, as
// in an SDK's error:
//
//	var e *openai.Error
//	if errors.As(err, &e) {
//		if refused, ok := transport.FromResponse(e.Response); ok { ... }
//	}
//
// RetryAfter comes back in whole milliseconds, rounded up, and never negative
// whatever the header says. resp may be nil.
func FromResponse(resp *http.Response) (*throttle.RefusedError, bool) {
	if resp == nil {
		return nil, false
	}
	name := resp.Header.Get(RefusedHeader)
	for _, reason := range []throttle.Reason{throttle.NoRoom, throttle.ModelPaused, throttle.KeyPaused, throttle.TooLarge} {
		if reason.String() != name {
			continue
		}
		detail, _ := url.ParseQuery(resp.Header.Get(DetailHeader))
		ms, _ := strconv.ParseInt(resp.Header.Get("Retry-After-Ms"), 10, 64)
		return &throttle.RefusedError{
			Reason:     reason,
			Key:        detail.Get("key"),
			Model:      detail.Get("model"),
			Lane:       detail.Get("lane"),
			Limit:      detail.Get("limit"),
			Unit:       detail.Get("unit"),
			RetryAfter: time.Duration(min(max(ms, 0), maxWaitMS)) * time.Millisecond,
			Deferred:   detail.Get("deferred") == "true",
		}, true
	}
	return nil, false
}
