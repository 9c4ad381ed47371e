package main

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/headway-go/headway/throttle"
	"github.com/tiktoken-go/tokenizer"
)

// What OpenAI adds to the texts of a chat, in tokens:
// https://cookbook.openai.com/examples/how_to_count_tokens_with_tiktoken.
const (
	perMessage = 3
	perName    = 1
	perAnswer  = 3
)

// counter counts the input of chats as OpenAI does. Its vocabularies are part of
// the program: nothing is downloaded. It is safe for concurrent use.
type counter struct{ newer, older tokenizer.Codec }

func newCounter() (*counter, error) {
	newer, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		return nil, err
	}
	older, err := tokenizer.Get(tokenizer.Cl100kBase)
	return &counter{newer, older}, err
}

// cost is a profile's CostFunc. It names the input only, so that the profile
// still guesses the output. Nil leaves all to the profile: for what is no chat,
// for a body longer than what is read of it, and for pictures, sounds and tools,
// whose tokens do not stand in their text.
func (c *counter) cost(r *http.Request, body []byte) map[string]int64 {
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		return nil
	}
	n, ok := c.chat(body)
	if !ok {
		return nil
	}
	return map[string]int64{throttle.InputTokens: n}
}

// chat counts a chat, false if it has parts that cannot be counted.
func (c *counter) chat(body []byte) (int64, bool) {
	var chat struct {
		Model    string
		Tools    []json.RawMessage
		Messages []struct {
			Role, Name string
			Content    json.RawMessage
		}
	}
	if json.Unmarshal(body, &chat) != nil || len(chat.Messages) == 0 || len(chat.Tools) > 0 {
		return 0, false
	}
	codec, total := c.codec(chat.Model), perAnswer
	for _, m := range chat.Messages {
		texts, ok := texts(m.Content)
		if !ok {
			return 0, false
		}
		total += perMessage
		if m.Name != "" {
			total += perName
		}
		for _, text := range append(texts, m.Role, m.Name) {
			n, err := codec.Count(text)
			if err != nil {
				return 0, false
			}
			total += n
		}
	}
	return int64(total), true
}

// codec returns the vocabulary of a model.
func (c *counter) codec(model string) tokenizer.Codec {
	if model == "gpt-4" || strings.HasPrefix(model, "gpt-4-") || strings.HasPrefix(model, "gpt-3.5") {
		return c.older
	}
	return c.newer
}

// texts returns the texts of a message, which is one text or a list of parts,
// false if a part is something else.
func texts(content json.RawMessage) ([]string, bool) {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []string{text}, true
	}
	var parts []struct{ Type, Text string }
	if json.Unmarshal(content, &parts) != nil {
		return nil, false
	}
	var all []string
	for _, p := range parts {
		if p.Type != "text" {
			return nil, false
		}
		all = append(all, p.Text)
	}
	return all, true
}
