package main

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/headway-go/headway/transport/profiles"
)

func newTest(t *testing.T) *counter {
	t.Helper()
	c, err := newCounter()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// OpenAI counts 19 tokens for this chat in the reference of its API:
// https://developers.openai.com/api/reference/resources/chat.
const documented = `{"model":"%s","messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":"Hello!"}]}`

func TestCost(t *testing.T) {
	c := newTest(t)
	const chat = "https://api.openai.com/v1/chat/completions"
	for _, tc := range []struct {
		name, url, body string
		want            int64 // -1: left to the profile
	}{
		{"documented", chat, fmt.Sprintf(documented, "gpt-5"), 19},
		{"documented, older vocabulary", chat, fmt.Sprintf(documented, "gpt-4"), 19},
		{"parts", chat, `{"messages":[{"role":"user","content":[{"type":"text","text":"Hello"},{"type":"text","text":"!"}]}]}`, 9},
		{"named", chat, `{"messages":[{"role":"user","name":"ann","content":"Hello!"}]}`, 11},
		{"picture", chat, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"a"}}]}]}`, -1},
		{"tools", chat, `{"tools":[{"type":"function"}],"messages":[{"role":"user","content":"Hello!"}]}`, -1},
		{"cut off", chat, documented[:60], -1},
		{"another API", "https://api.openai.com/v1/embeddings", `{"input":"Hello!"}`, -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), "POST", tc.url, strings.NewReader("not read"))
			if err != nil {
				t.Fatal(err)
			}
			p := profiles.OpenAI()
			p.CostFunc = c.cost
			got := p.Read(req, strings.NewReader(tc.body))
			n, named := got.Cost["input_tokens"]
			if named != (tc.want >= 0) || named && n != tc.want {
				t.Errorf("Cost = %v, want %d", got.Cost, tc.want)
			}
			if got.Guess["output_tokens"] == 0 && strings.HasSuffix(tc.url, "/completions") {
				t.Error("the output is not guessed any more")
			}
		})
	}
}

func TestConcurrentUse(t *testing.T) {
	c := newTest(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if n, ok := c.chat(fmt.Appendf(nil, documented, "gpt-5")); n != 19 || !ok {
					t.Errorf("chat() = %d, %v, want 19", n, ok)
				}
			}
		})
	}
	wg.Wait()
}

// The program prints what the vendor counts, and a tokenizer's count is that.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 1+len(prompts) {
		t.Fatalf("printed %d lines, want %d:\n%s", len(lines), 1+len(prompts), &out)
	}
	for _, line := range lines[1:] {
		var name string
		var plain, counted, vendor int64
		if _, err := fmt.Sscan(line, &name, &plain, &counted, &vendor); err != nil || counted != vendor || plain == vendor || vendor == 0 {
			t.Errorf("%q: want the tokenizer's count to be the vendor's, and the plain one another", line)
		}
	}
	if want := "greeting"; !strings.HasPrefix(lines[1], want) || !strings.HasSuffix(lines[1], " 19") {
		t.Errorf("%q: want %s with the documented 19", lines[1], want)
	}
}
