// Package bedrock puts Headway under the AWS SDK's bedrockruntime.
package bedrock

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/headway-go/headway/internal/sdktest"
	"github.com/headway-go/headway/transport/profiles"
)

// newClient puts t, a *transport.Transport, under the SDK. It makes up to three
// attempts, but one where it asks a refusal's RetryableError. In a program set
// RetryMaxAttempts to 1: Headway waits before a call goes out.
func newClient(t http.RoundTripper, url string) *bedrockruntime.Client {
	return bedrockruntime.New(bedrockruntime.Options{
		Region:       "us-east-1",
		BaseEndpoint: aws.String(url),
		HTTPClient:   &http.Client{Transport: t},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIALOOPBACK", SecretAccessKey: sdktest.Key}, nil
		}),
	})
}

func TestSDK(t *testing.T) {
	sdktest.Run(t, sdktest.SDK{
		Name:    "aws bedrockruntime",
		Module:  "github.com/aws/aws-sdk-go-v2/service/bedrockruntime",
		Vendor:  func() sdktest.Vendor { return vendor(t) },
		Profile: profiles.Bedrock(),
		New: func(w *sdktest.Wire, url string) (sdktest.Client, error) {
			client := newClient(w, url)
			return sdktest.Client{
				Call: func(ctx context.Context, model string) error {
					_, err := client.Converse(ctx, &bedrockruntime.ConverseInput{
						ModelId: &model, Messages: hello(), InferenceConfig: config(),
					})
					return err
				},
				Stream: func(ctx context.Context, model string, first func()) error {
					out, err := client.ConverseStream(ctx, &bedrockruntime.ConverseStreamInput{
						ModelId: &model, Messages: hello(), InferenceConfig: config(),
					})
					if err != nil {
						return err
					}
					stream := out.GetStream()
					defer stream.Close()
					for event := range stream.Events() {
						if _, ok := event.(*types.ConverseStreamOutputMemberContentBlockDelta); ok {
							first()
						}
					}
					return stream.Err()
				},
				Status: func(err error) int {
					if e, ok := errors.AsType[*awshttp.ResponseError](err); ok {
						return e.HTTPStatusCode()
					}
					return 0
				},
			}, nil
		},
	})
}

func hello() []types.Message {
	return []types.Message{{
		Role:    types.ConversationRoleUser,
		Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: "hello"}},
	}}
}

func config() *types.InferenceConfiguration {
	return &types.InferenceConfiguration{MaxTokens: aws.Int32(100)}
}

func vendor(t *testing.T) sdktest.Vendor {
	const usage = `"usage":{"inputTokens":7,"outputTokens":5,"totalTokens":12},"metrics":{"latencyMs":1}`
	return &sdktest.Canned{
		OK: sdktest.Answer{
			Body: `{"output":{"message":{"role":"assistant","content":[{"text":"ok "}]}},"stopReason":"end_turn",` + usage + `}`,
		},
		StreamPath: "converse-stream",
		Stream: sdktest.Answer{
			Header: map[string]string{"Content-Type": "application/vnd.amazon.eventstream"},
			Events: []string{
				event(t, "contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"ok "}}`),
				event(t, "messageStop", `{"stopReason":"end_turn"}`),
				event(t, "metadata", `{`+usage+`}`),
			},
		},
		TooMany: sdktest.Answer{
			Status: http.StatusTooManyRequests,
			Header: map[string]string{"X-Amzn-Errortype": "ThrottlingException"},
			Body:   `{"message":"Too many requests, please wait before trying again."}`,
		},
		Refused: sdktest.Answer{
			Status: http.StatusForbidden,
			Header: map[string]string{"X-Amzn-Errortype": "UnrecognizedClientException"},
			Body:   `{"message":"The security token included in the request is invalid."}`,
		},
		Count: 12,
	}
}

// event is one message of AWS's binary stream.
func event(t *testing.T, kind, payload string) string {
	t.Helper()
	m := eventstream.Message{Payload: []byte(payload)}
	m.Headers.Set(":message-type", eventstream.StringValue("event"))
	m.Headers.Set(":event-type", eventstream.StringValue(kind))
	m.Headers.Set(":content-type", eventstream.StringValue("application/json"))
	var b bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
