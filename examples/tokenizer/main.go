// Command tokenizer makes Headway count the input of a call with a tokenizer,
// instead of guessing it by the length of its text.
//
// It talks to a vendor on the loopback interface, which counts by the same
// vocabulary as the real one.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
	"github.com/headway-go/headway/transport/profiles"
)

const (
	model  = "gpt-demo"
	apiKey = "sk-loopback-0000000000"
)

var prompts = []struct{ name, text string }{
	{"greeting", "Hello!"},
	{"English", "The quick brown fox jumps over the lazy dog, and then it rests in the shade of an old oak tree until evening."},
	{"German", "Die Donaudampfschifffahrtsgesellschaft veröffentlicht jährlich ihren Geschäftsbericht."},
	{"Chinese", "今天天气很好，我们一起去公园散步吧。"},
	{"code", "for i := range 10 {\n\tif i%2 == 0 {\n\t\tfmt.Println(i)\n\t}\n}"},
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tokenizer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	count, err := newCounter()
	if err != nil {
		return err
	}
	vendor, err := vendorsim.Start(vendorsim.Config{Usage: func(q vendorsim.Request) (in, out int64) {
		in, _ = count.chat(q.Body)
		return in, 10
	}})
	if err != nil {
		return err
	}
	defer vendor.Close()
	limiter, err := throttle.New(throttle.Config{Default: []throttle.Limit{throttle.PerMinute(throttle.InputTokens, 10_000)}})
	if err != nil {
		return err
	}
	defer limiter.Close(ctx)

	plain, counted := profiles.OpenAI(), profiles.OpenAI()
	counted.CostFunc = count.cost
	client := &http.Client{Transport: &transport.Transport{Limiter: limiter, Profile: counted}}

	fmt.Fprintf(out, "%-10s %6s %10s %7s\n", "input", "plain", "tokenizer", "vendor")
	for _, p := range prompts {
		body, err := json.Marshal(map[string]any{"model": model, "messages": []map[string]string{
			{"role": "system", "content": "You are a helpful assistant."}, {"role": "user", "content": p.text},
		}})
		if err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(ctx, "POST", vendor.URL()+"/v1/chat/completions", bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+apiKey)
		req.Header.Set("Content-Type", "application/json")
		guessed := plain.Read(req, bytes.NewReader(body)).Guess[throttle.InputTokens]
		exact := counted.Read(req, bytes.NewReader(body)).Cost[throttle.InputTokens]
		took, err := send(client, req)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%-10s %6d %10d %7d\n", p.name, guessed, exact, took)
	}
	return nil
}

// send makes the call, and returns what the vendor counted as its input.
func send(client *http.Client, req *http.Request) (int64, error) {
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var answer struct {
		Usage struct {
			Prompt int64 `json:"prompt_tokens"`
		}
	}
	err = json.NewDecoder(resp.Body).Decode(&answer)
	return answer.Usage.Prompt, err
}
