// Package genai puts Headway under google.golang.org/genai, Google's own SDK.
package genai

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/headway-go/headway/internal/sdktest"
	"github.com/headway-go/headway/transport/profiles"
	"google.golang.org/genai"
)

// newClient puts t, a *transport.Transport, under the SDK, which does not retry
// unless HTTPOptions.RetryOptions is set. Leave that nil.
func newClient(t http.RoundTripper, url string) (*genai.Client, error) {
	return genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey:      sdktest.Key,
		Backend:     genai.BackendGeminiAPI,
		HTTPClient:  &http.Client{Transport: t},
		HTTPOptions: genai.HTTPOptions{BaseURL: url},
	})
}

func TestSDK(t *testing.T) {
	sdktest.Run(t, sdktest.SDK{
		Name:    "google.golang.org/genai",
		Module:  "google.golang.org/genai",
		Vendor:  gemini,
		Profile: profiles.Gemini(), // a program leaves it to the host
		New: func(w *sdktest.Wire, url string) (sdktest.Client, error) {
			client, err := newClient(w, url)
			return sdktest.Client{
				Call: func(ctx context.Context, model string) error {
					_, err := client.Models.GenerateContent(ctx, model, genai.Text("hello"), config())
					return err
				},
				Stream: func(ctx context.Context, model string, first func()) error {
					for _, err := range client.Models.GenerateContentStream(ctx, model, genai.Text("hello"), config()) {
						if err != nil {
							return err
						}
						first()
					}
					return nil
				},
				Status: func(err error) int {
					if e, ok := errors.AsType[genai.APIError](err); ok {
						return e.Code
					}
					return 0
				},
			}, err
		},
	})
}

func config() *genai.GenerateContentConfig {
	return &genai.GenerateContentConfig{MaxOutputTokens: 100}
}

// gemini answers as https://ai.google.dev/api/generate-content says.
func gemini() sdktest.Vendor {
	const (
		content = `"candidates":[{"content":{"role":"model","parts":[{"text":"ok "}]}}]`
		usage   = `"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":5,"totalTokenCount":12}`
	)
	return &sdktest.Canned{
		OK:         sdktest.Answer{Body: `{` + content + `,` + usage + `}`},
		StreamPath: ":streamGenerateContent",
		Stream: sdktest.Answer{
			Header: map[string]string{"Content-Type": "text/event-stream"},
			Events: []string{
				"data: {" + content + "}\r\n\r\n",
				"data: {" + content + "," + usage + "}\r\n\r\n",
			},
		},
		TooMany: sdktest.Answer{
			Status: http.StatusTooManyRequests,
			Body: `{"error":{"code":429,"message":"Resource has been exhausted.","status":"RESOURCE_EXHAUSTED",
				"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1s"}]}}`,
		},
		Refused: sdktest.Answer{
			Status: http.StatusForbidden,
			Body:   `{"error":{"code":403,"message":"Permission denied: Consumer has been suspended.","status":"PERMISSION_DENIED"}}`,
		},
		Count: 12,
	}
}
