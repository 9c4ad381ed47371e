// Package goopenai puts Headway under sashabaranov/go-openai.
package goopenai

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/headway-go/headway/internal/sdktest"
	"github.com/sashabaranov/go-openai"
)

// newClient puts t, a *transport.Transport, under the SDK, which never retries.
func newClient(t http.RoundTripper, url string) *openai.Client {
	config := openai.DefaultConfig(sdktest.Key)
	config.BaseURL = url + "/v1"
	config.HTTPClient = &http.Client{Transport: t}
	return openai.NewClientWithConfig(config)
}

func TestSDK(t *testing.T) {
	sdktest.Run(t, sdktest.SDK{
		Name:   "go-openai",
		Module: "github.com/sashabaranov/go-openai",
		New: func(w *sdktest.Wire, url string) (sdktest.Client, error) {
			client := newClient(w, url)
			return sdktest.Client{
				Call: func(ctx context.Context, model string) error {
					_, err := client.CreateChatCompletion(ctx, ask(model))
					return err
				},
				Stream: func(ctx context.Context, model string, first func()) error {
					params := ask(model)
					params.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
					stream, err := client.CreateChatCompletionStream(ctx, params)
					if err != nil {
						return err
					}
					defer stream.Close()
					for {
						if _, err := stream.Recv(); errors.Is(err, io.EOF) {
							return nil
						} else if err != nil {
							return err
						}
						first()
					}
				},
				Status: func(err error) int {
					if e, ok := errors.AsType[*openai.APIError](err); ok {
						return e.HTTPStatusCode
					}
					return 0
				},
			}, nil
		},
	})
}

func ask(model string) openai.ChatCompletionRequest {
	return openai.ChatCompletionRequest{
		Model:               model,
		MaxCompletionTokens: 100,
		Messages:            []openai.ChatCompletionMessage{{Role: "user", Content: "hello"}},
	}
}
