package main

import (
	"context"
	"errors"
	"testing"

	"github.com/headway-go/headway/internal/sdktest"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// The row of docs/sdks.md, with the retries that the SDK makes when nothing is
// said.
func TestSDK(t *testing.T) {
	retries := option.WithMaxRetries(2)
	sdktest.Run(t, sdktest.SDK{
		Name:   "openai-go",
		Module: "github.com/openai/openai-go/v3",
		New: func(w *sdktest.Wire, url string) (sdktest.Client, error) {
			client := newClient(w, url)
			return sdktest.Client{
				Call: func(ctx context.Context, model string) error {
					_, err := client.Chat.Completions.New(ctx, ask(model), retries)
					return err
				},
				Stream: func(ctx context.Context, model string, first func()) error {
					params := ask(model)
					params.StreamOptions.IncludeUsage = openai.Bool(true)
					stream := client.Chat.Completions.NewStreaming(ctx, params, retries)
					defer stream.Close()
					for stream.Next() {
						first()
					}
					return stream.Err()
				},
				Status: func(err error) int {
					if e, ok := errors.AsType[*openai.Error](err); ok {
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
