// Command openai puts Headway under openai-go, the vendor's own SDK.
//
// It talks to a vendor on the loopback interface, so that it needs no key. For
// the real one leave option.WithBaseURL away.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

const (
	model  = "gpt-demo"
	apiKey = "sk-loopback-0000000000"
)

// newClient returns an SDK client whose calls pass through t.
//
// Its own retries are off: Headway waits for room before a call goes out, and
// every retry is a new call that spends budget.
func newClient(t http.RoundTripper, url string) openai.Client {
	return openai.NewClient(
		option.WithBaseURL(url+"/v1"),
		option.WithAPIKey(apiKey),
		option.WithHTTPClient(&http.Client{Transport: t}),
		option.WithMaxRetries(0),
	)
}

// ask is the question that every call of this program asks.
func ask(model string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:               model,
		Messages:            []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")},
		MaxCompletionTokens: openai.Int(100),
	}
}

// refusal returns the refusal of Headway behind an error of the SDK, nil if it
// is the vendor's or another error. The text of the SDK's error does not tell
// them apart: both are "429 Too Many Requests".
func refusal(err error) *throttle.RefusedError {
	var e *openai.Error
	if errors.As(err, &e) {
		if refused, ok := transport.FromResponse(e.Response); ok {
			return refused
		}
	}
	return nil
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "openai:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	vendor, err := vendorsim.Start(vendorsim.Config{})
	if err != nil {
		return err
	}
	defer vendor.Close()

	limiter, err := throttle.New(throttle.Config{Models: map[string][]throttle.Limit{
		model: {throttle.PerMinute(throttle.Requests, 2), throttle.PerMinute(throttle.Tokens, 1000)},
	}})
	if err != nil {
		return err
	}
	defer limiter.Close(ctx)
	client := newClient(&transport.Transport{Limiter: limiter}, vendor.URL())

	answer, err := client.Chat.Completions.New(ctx, ask(model))
	if err != nil {
		return err
	}
	fmt.Printf("live:       %q, %d tokens\n", answer.Choices[0].Message.Content, answer.Usage.TotalTokens)

	_, err = client.Chat.Completions.New(lanes.With(ctx, lanes.Background), ask(model))
	fmt.Println("background:", err)
	if refused := refusal(err); refused != nil {
		fmt.Println("            by Headway:", refused)
	}
	return nil
}
