// Package anthropic puts Headway under anthropic-sdk-go, the vendor's own SDK.
package anthropic

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/headway-go/headway/internal/sdktest"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
)

// newClient puts t, a *transport.Transport, under the SDK. In a program add
// option.WithMaxRetries(0): Headway waits before a call goes out.
func newClient(t http.RoundTripper, url string) anthropic.Client {
	return anthropic.NewClient(
		option.WithBaseURL(url),
		option.WithAPIKey(sdktest.Key),
		option.WithHTTPClient(&http.Client{Transport: t}),
	)
}

// refusal returns Headway's refusal behind an error of the SDK, nil if there is
// none. The SDK would retry a refusal that comes as an error, so it gets one
// that comes as an answer.
func refusal(err error) *throttle.RefusedError {
	if e, ok := errors.AsType[*anthropic.Error](err); ok {
		if refused, ok := transport.FromResponse(e.Response); ok {
			return refused
		}
	}
	return nil
}

func TestSDK(t *testing.T) {
	sdktest.Run(t, sdktest.SDK{
		Name:   "anthropic-sdk-go",
		Module: "github.com/anthropics/anthropic-sdk-go",
		New: func(w *sdktest.Wire, url string) (sdktest.Client, error) {
			client := newClient(w, url)
			return sdktest.Client{
				Call: func(ctx context.Context, model string) error {
					_, err := client.Messages.New(ctx, ask(model))
					return err
				},
				Stream: func(ctx context.Context, model string, first func()) error {
					stream := client.Messages.NewStreaming(ctx, ask(model))
					defer stream.Close()
					for stream.Next() {
						if stream.Current().Type == "content_block_delta" {
							first()
						}
					}
					return stream.Err()
				},
				Status: func(err error) int {
					if e, ok := errors.AsType[*anthropic.Error](err); ok {
						return e.StatusCode
					}
					return 0
				},
				Refusal:   refusal,
				RefusalBy: "transport.FromResponse(e.Response)",
			}, nil
		},
	})
}

func ask(model string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model:     anthropic.Model(model),
		MaxTokens: 100,
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hello"))},
	}
}
