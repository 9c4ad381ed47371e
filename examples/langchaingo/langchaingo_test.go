// Package langchaingo puts Headway under two models of langchaingo.
package langchaingo

import (
	"context"
	"net/http"
	"testing"

	"github.com/headway-go/headway/internal/sdktest"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/anthropic"
	"github.com/tmc/langchaingo/llms/openai"
)

// doer is an http.Client, or a *transport.Transport itself.
type doer interface {
	Do(*http.Request) (*http.Response, error)
}

// newOpenAI puts d under the OpenAI model. Give it a *transport.Transport: the
// SDK replaces every error that an http.Client wraps, and the refusal with it.
func newOpenAI(d doer, url string) (llms.Model, error) {
	return openai.New(openai.WithBaseURL(url+"/v1"), openai.WithToken(sdktest.Key), openai.WithHTTPClient(d))
}

// newAnthropic puts d, an http.Client or a *transport.Transport, under the
// Anthropic model.
func newAnthropic(d doer, url string) (llms.Model, error) {
	return anthropic.New(anthropic.WithBaseURL(url+"/v1"), anthropic.WithToken(sdktest.Key), anthropic.WithHTTPClient(d))
}

func TestSDK(t *testing.T) {
	direct := func(w *sdktest.Wire) doer { return w }
	wrapped := func(w *sdktest.Wire) doer { return &http.Client{Transport: w} }
	for _, tc := range []struct {
		name  string
		model func(doer, string) (llms.Model, error)
		doer  func(*sdktest.Wire) doer
	}{
		{"langchaingo openai, Transport as its client", newOpenAI, direct},
		{"langchaingo openai, http.Client", newOpenAI, wrapped},
		{"langchaingo anthropic", newAnthropic, wrapped},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sdktest.Run(t, sdktest.SDK{
				Name:   tc.name,
				Module: "github.com/tmc/langchaingo",
				New: func(w *sdktest.Wire, url string) (sdktest.Client, error) {
					model, err := tc.model(tc.doer(w), url)
					return client(model), err
				},
			})
		})
	}
}

func client(m llms.Model) sdktest.Client {
	ask := func(ctx context.Context, model string, options ...llms.CallOption) error {
		options = append(options, llms.WithModel(model), llms.WithMaxTokens(100))
		_, err := llms.GenerateFromSinglePrompt(ctx, m, "hello", options...)
		return err
	}
	return sdktest.Client{
		Call: func(ctx context.Context, model string) error { return ask(ctx, model) },
		Stream: func(ctx context.Context, model string, first func()) error {
			return ask(ctx, model, llms.WithStreamingFunc(func(context.Context, []byte) error {
				first()
				return nil
			}))
		},
	}
}
