package profiles_test

import (
	"bytes"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/headway-go/headway/transport/profiles"
)

type units = map[string]int64

// ask reads a request as the transport does: its body is read from elsewhere.
func ask(t *testing.T, p *profiles.Profile, url, kind, body string, length int64) profiles.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url, io.NopCloser(strings.NewReader("not to be read")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	req.ContentLength = length
	return p.Read(req, strings.NewReader(body))
}

// tokens is the guess of a request of these lengths in bytes.
func tokens(text int, output int64) units {
	return units{"input_tokens": int64(text+3) / 4, "output_tokens": output}
}

// What a request of each API is taken for.
func TestEstimates(t *testing.T) {
	const openai, gemini = "https://api.openai.com/v1", "https://generativelanguage.googleapis.com/v1beta/models"
	const vertex, bedrock = "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers", "https://bedrock-runtime.us-east-1.amazonaws.com/model/"
	for _, tc := range []struct {
		name    string
		profile *profiles.Profile
		url     string
		body    string
		output  int64
		cost    units // beside tokens
	}{
		{"chat", profiles.OpenAI(), openai + "/chat/completions", `{"model":"m","messages":[]}`, 1024, nil},
		{"chat, both caps and copies", profiles.OpenAI(), openai + "/chat/completions", `{"max_tokens":10,"max_completion_tokens":30,"n":3}`, 90, nil},
		{"completion, best_of", profiles.OpenAI(), openai + "/completions", `{"prompt":"a","max_tokens":10,"n":2,"best_of":5}`, 50, nil},
		{"responses", profiles.OpenAI(), openai + "/responses", `{"input":"a","max_output_tokens":300}`, 300, nil},
		{"responses, no cap", profiles.OpenAI(), openai + "/responses", `{"input":"a","max_output_tokens":null}`, 1024, nil},
		{"count", profiles.OpenAI(), openai + "/responses/input_tokens", `{"input":"a"}`, 0, nil},
		{"embeddings", profiles.OpenAI(), openai + "/embeddings", `{"input":["a","b"]}`, 0, nil},
		{"moderation", profiles.OpenAI(), openai + "/moderations", `{"input":"a"}`, 0, nil},
		{"batch", profiles.OpenAI(), openai + "/batches", `{"input_file_id":"file-1"}`, 0, nil},
		{"speech", profiles.OpenAI(), openai + "/audio/speech", `{"input":"héllo"}`, 1024, units{"characters": 5}},
		{"images", profiles.OpenAI(), openai + "/images/generations", `{"prompt":"a","n":4}`, 4 * 1056, units{"images": 4}},
		{"one image", profiles.OpenAI(), openai + "/images/generations", `{"prompt":"a"}`, 1056, units{"images": 1}},
		{"Azure", profiles.Azure(), "https://demo.openai.azure.com/openai/deployments/d/embeddings?api-version=1", `{"input":"a"}`, 0, nil},
		{"messages", profiles.Anthropic(), "https://api.anthropic.com/v1/messages", `{"max_tokens":64,"messages":[]}`, 64, nil},
		{"old completion", profiles.Anthropic(), "https://api.anthropic.com/v1/complete", `{"max_tokens_to_sample":65}`, 65, nil},
		{"count_tokens", profiles.Anthropic(), "https://api.anthropic.com/v1/messages/count_tokens", `{"messages":[]}`, 0, nil},
		{"message batch", profiles.Anthropic(), "https://api.anthropic.com/v1/messages/batches", `{"requests":[{"params":{"max_tokens":64}}]}`, 0, nil},
		{"generateContent", profiles.Gemini(), gemini + "/m:generateContent", `{"generationConfig":{"maxOutputTokens":7,"candidateCount":2}}`, 14, nil},
		{"streamGenerateContent", profiles.Gemini(), gemini + "/m:streamGenerateContent?alt=sse", `{"contents":[]}`, 1024, nil},
		{"countTokens", profiles.Gemini(), gemini + "/m:countTokens", `{"contents":[]}`, 0, nil},
		{"embedContent", profiles.Gemini(), gemini + "/m:embedContent", `{"content":{}}`, 0, nil},
		{"Imagen", profiles.Gemini(), gemini + "/imagen-4.0-generate-001:predict", `{"instances":[],"parameters":{"sampleCount":3}}`, 3 * 1056, units{"images": 3}},
		{"cached content", profiles.Gemini(), "https://generativelanguage.googleapis.com/v1beta/cachedContents", `{"model":"models/m"}`, 0, nil},
		{"Vertex, embeddings", profiles.Vertex(), vertex + "/google/models/text-embedding-005:predict", `{"instances":[]}`, 0, nil},
		{"Vertex, Imagen", profiles.Vertex(), vertex + "/google/models/imagen-4.0-generate-001:predict", `{"instances":[]}`, 1056, units{"images": 1}},
		{"Vertex, Claude", profiles.Vertex(), vertex + "/anthropic/models/claude-x:rawPredict", `{"max_tokens":9}`, 9, nil},
		{"Vertex, Claude counts", profiles.Vertex(), vertex + "/anthropic/models/count-tokens:rawPredict", `{"messages":[]}`, 0, nil},
		{"Bedrock, converse", profiles.Bedrock(), bedrock + "anthropic.claude-x/converse", `{"inferenceConfig":{"maxTokens":50}}`, 50, nil},
		{"Bedrock, embeddings", profiles.Bedrock(), bedrock + "amazon.titan-embed-text-v2%3A0/invoke", `{"inputText":"a"}`, 0, nil},
		{"Bedrock, images", profiles.Bedrock(), bedrock + "amazon.nova-canvas-v1%3A0/invoke", `{"imageGenerationConfig":{"numberOfImages":2}}`, 0, units{"images": 2}},
		{"Cohere, chat", profiles.Cohere(), "https://api.cohere.com/v2/chat", `{"max_tokens":40}`, 40, nil},
		{"Cohere, rerank", profiles.Cohere(), "https://api.cohere.com/v2/rerank", `{"query":"a","documents":["b"]}`, 0, nil},
		{"Cohere, embed", profiles.Cohere(), "https://api.cohere.com/v2/embed", `{"texts":["b"]}`, 0, nil},
		{"Mistral, conversation", profiles.Mistral(), "https://api.mistral.ai/v1/conversations", `{"completion_args":{"max_tokens":11}}`, 11, nil},
		{"Mistral, classification", profiles.Mistral(), "https://api.mistral.ai/v1/classifications", `{"input":"a"}`, 0, nil},
		{"Together, rerank", profiles.Together(), "https://api.together.xyz/v1/rerank", `{"query":"a"}`, 0, nil},
		{"ElevenLabs", profiles.ElevenLabs(), "https://api.elevenlabs.io/v1/text-to-speech/v", `{"text":"hello"}`, 0, units{"characters": 5}},
		{"ElevenLabs, no text", profiles.ElevenLabs(), "https://api.elevenlabs.io/v1/voices/v/edit", `{"name":"hello"}`, 0, units{"characters": 0}},
		{"Deepgram, speech", profiles.Deepgram(), "https://api.deepgram.com/v1/speak?model=m", `{"text":"hello"}`, 0, units{"characters": 5}},
		{"Deepgram, by URL", profiles.Deepgram(), "https://api.deepgram.com/v1/listen?model=m", `{"url":"https://a.example/a.wav"}`, 0, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ask(t, tc.profile, tc.url, "application/json", tc.body, int64(len(tc.body)))
			guess := tokens(len(tc.body), tc.output)
			for _, unit := range []string{"input_tokens", "output_tokens"} {
				if got.Guess[unit] != guess[unit] {
					t.Errorf("Guess[%s] = %d, want %d", unit, got.Guess[unit], guess[unit])
				}
			}
			if !maps.Equal(got.Cost, tc.cost) {
				t.Errorf("Cost = %v, want %v", got.Cost, tc.cost)
			}
		})
	}
}

// Units of a vendor's other APIs are named all the same, by 0: a limit of the
// whole key counts them, and a call that does not name its unit is an error.
func TestUnitsOfOtherAPIs(t *testing.T) {
	for _, tc := range []struct {
		profile *profiles.Profile
		url     string
		unit    string
	}{
		{profiles.OpenAI(), "https://api.openai.com/v1/chat/completions", "images"},
		{profiles.OpenAI(), "https://api.openai.com/v1/images/generations", "characters"},
		{profiles.ElevenLabs(), "https://api.elevenlabs.io/v1/voices", "characters"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", tc.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := tc.profile.Read(req, strings.NewReader(""))
		if n, named := got.Guess[tc.unit]; !named || n != 0 || got.Guess["input_tokens"] != 0 || got.Guess["output_tokens"] != 0 || got.Cost != nil {
			t.Errorf("%s: Read() = %+v, want all of it 0, and %s named", tc.url, got, tc.unit)
		}
	}
}

// A picture in base64 is one picture, and not a text as long as it.
func TestEstimateOfMedia(t *testing.T) {
	picture := strings.Repeat("iVBORw0KGgo/", 40<<10/12) // 40 KiB
	for _, tc := range []struct {
		name, body string
		read       int // of the body, 0 is all
		text       int
		media      int64
	}{
		{"Anthropic's", `{"source":{"type":"base64","data":"` + picture + `"}}`, 0, 37, 1},
		{"OpenAI's", `{"image_url":{"url":"data:image/png;base64,` + picture + `"}}`, 0, 23, 1},
		{"slashes escaped", `{"data":"` + strings.ReplaceAll(picture, "/", `\/`) + `"}`, 0, 10, 1},
		{"two", `{"data":["` + picture + `","` + picture + `"]}`, 0, 15, 2},
		{"a long text", `{"data":"` + strings.Repeat("word ", 1000) + `"}`, 0, 5011, 0},
		{"longer than what is read", `{"data":"` + strings.Repeat(picture, 10) + `"}`, profiles.PeekBytes, 9, 1},
		{"a text longer than what is read", `{"data":"` + strings.Repeat("word ", 100_000) + `"}`, profiles.PeekBytes, 500_011, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			read := tc.body
			if tc.read > 0 {
				read = tc.body[:tc.read]
			}
			got := ask(t, profiles.OpenAI(), "https://api.openai.com/v1/chat/completions", "application/json", read, int64(len(tc.body)))
			if got.Media != tc.media {
				t.Errorf("Media = %d, want %d", got.Media, tc.media)
			}
			want := int64(tc.text)/4 + tc.media*profiles.MediaTokens
			if n := got.Guess["input_tokens"]; n < want || n > want+2 {
				t.Errorf("Guess[input_tokens] = %d, want about %d", n, want)
			}
		})
	}
}

// A sound is estimated by its size, a minute and a megabyte being a thousand
// tokens, and its text by itself.
func TestEstimateOfAudio(t *testing.T) {
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	form.WriteField("model", "whisper-x")
	file, err := form.CreateFormFile("file", "a.wav")
	if err != nil {
		t.Fatal(err)
	}
	file.Write(make([]byte, 3_000_000))
	form.Close()
	const url = "https://api.openai.com/v1/audio/transcriptions"
	for _, tc := range []struct {
		name   string
		length int64
		want   int64
	}{
		{"known length", int64(b.Len()), 3000},
		{"unknown length", -1, profiles.MediaTokens},
	} {
		got := ask(t, profiles.OpenAI(), url, form.FormDataContentType(), b.String(), tc.length)
		if got.Model != "whisper-x" || got.Guess["input_tokens"] != tc.want || got.Guess["output_tokens"] != 256 {
			t.Errorf("%s: Read() = %+v, want whisper-x, %d tokens in and 256 out", tc.name, got, tc.want)
		}
	}
	raw := ask(t, profiles.Deepgram(), "https://api.deepgram.com/v1/listen?model=m", "audio/wav", "RIFF", 3_000_000)
	if raw.Guess["input_tokens"] != 0 || raw.Guess["output_tokens"] != 0 || raw.Model != "m" {
		t.Errorf("Deepgram: Read() = %+v, want no tokens", raw)
	}
}

// Where a cap counts in full, a tokenizer's count of the input counts in the sum.
func TestCapsWithTokenizer(t *testing.T) {
	for _, p := range []*profiles.Profile{profiles.Azure(), profiles.Bedrock(), profiles.OpenAI()} {
		p.CostFunc = func(*http.Request, []byte) map[string]int64 { return map[string]int64{"input_tokens": 5} }
		got := ask(t, p, "https://vendor.example/", "application/json", `{"max_tokens":100,"prompt":"a long text"}`, 41)
		want, named := int64(105), p.Caps != profiles.CapsIgnored
		if sum, ok := got.Guess["tokens"]; ok != named || ok && sum != want {
			t.Errorf("%s: Guess[tokens] = %d, %v, want %d, %v", p.Name, sum, ok, want, named)
		}
	}
}

// A text that is longer than what is read of a field counts by its bytes.
func TestLongCharacters(t *testing.T) {
	body := `{"text":"` + strings.Repeat("word ", 8_000) + `"}`
	got := ask(t, profiles.ElevenLabs(), "https://api.elevenlabs.io/v1/text-to-speech/v", "application/json", body, int64(len(body)))
	if n := got.Cost["characters"]; n < 40_000 || n > int64(len(body)) {
		t.Errorf("Cost[characters] = %d, want about 40000", n)
	}
}

// What was read from a cache and written to one, where the vendors say so.
func TestUsageOfCaches(t *testing.T) {
	for _, tc := range []struct {
		profile *profiles.Profile
		body    string
		want    units // tokens as limits count them, and the parts of the prompt
	}{
		{profiles.OpenAI(), `{"usage":{"prompt_tokens":100,"completion_tokens":10,"prompt_tokens_details":{"cached_tokens":60}}}`,
			units{"tokens": 110, "input_tokens": 100, "output_tokens": 10, "cached_tokens": 60, "cache_write_tokens": 0, "uncached_tokens": 40}},
		{profiles.OpenRouter(), `{"usage":{"prompt_tokens":194,"completion_tokens":2,"cost":0.95,"prompt_tokens_details":{"cached_tokens":50,"cache_write_tokens":100}}}`,
			units{"tokens": 196, "input_tokens": 194, "output_tokens": 2, "cached_tokens": 50, "cache_write_tokens": 100, "uncached_tokens": 44}},
		{profiles.DeepSeek(), `{"usage":{"prompt_tokens":100,"completion_tokens":10,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}}`,
			units{"tokens": 110, "input_tokens": 100, "output_tokens": 10, "cached_tokens": 64, "cache_write_tokens": 0, "uncached_tokens": 36}},
		{profiles.Groq(), `{"usage":{"prompt_tokens":100,"completion_tokens":10,"prompt_tokens_details":{"cached_tokens":60}}}`,
			units{"tokens": 50, "input_tokens": 40, "output_tokens": 10, "cached_tokens": 60, "cache_write_tokens": 0, "uncached_tokens": 40}},
		{profiles.Anthropic(), `{"usage":{"input_tokens":5,"output_tokens":10,"cache_read_input_tokens":60,"cache_creation_input_tokens":30}}`,
			units{"tokens": 45, "input_tokens": 35, "output_tokens": 10, "cached_tokens": 60, "cache_write_tokens": 30, "uncached_tokens": 5}},
		{profiles.Bedrock(), `{"usage":{"inputTokens":5,"outputTokens":10,"cacheReadInputTokens":60,"cacheWriteInputTokens":30}}`,
			units{"tokens": 45, "input_tokens": 35, "output_tokens": 10, "cached_tokens": 60, "cache_write_tokens": 30, "uncached_tokens": 5}},
		{profiles.Gemini(), `{"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":10,"cachedContentTokenCount":60,"totalTokenCount":110}}`,
			units{"tokens": 110, "input_tokens": 100, "output_tokens": 10, "cached_tokens": 60, "cache_write_tokens": 0, "uncached_tokens": 40}},
		{profiles.Cohere(), `{"usage":{"billed_units":{"input_tokens":7,"output_tokens":3},"tokens":{"input_tokens":70,"output_tokens":3}}}`,
			units{"tokens": 10, "input_tokens": 7, "output_tokens": 3, "cached_tokens": 0, "cache_write_tokens": 0, "uncached_tokens": 7}},
		{profiles.Cohere(), `{"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}`,
			units{"tokens": 10, "input_tokens": 7, "output_tokens": 3, "cached_tokens": 0, "cache_write_tokens": 0, "uncached_tokens": 7}},
	} {
		s := tc.profile.Scan(profiles.Answer{Status: 200, Header: http.Header{"Content-Type": {"application/json"}}})
		io.WriteString(s, tc.body)
		if u, final, ok := s.Usage(true); !ok || !final || !maps.Equal(u.Cost(), tc.want) {
			t.Errorf("%s: Cost() = %v (final %v, ok %v), want %v", tc.profile.Name, u.Cost(), final, ok, tc.want)
		}
	}
}
