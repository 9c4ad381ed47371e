package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport/profiles"
)

const pad = 400 << 10 // longer than a peek

func TestCostAndModel(t *testing.T) {
	long := strings.Repeat("x ", pad/2)
	for _, tc := range []struct {
		name, body string
		model      string
		tokens     int64
	}{
		{"no cap", `{"model":"m"}`, "m", 4 + 1024},
		{"cap", `{"model":"m","max_tokens":10}`, "m", 8 + 10},
		{"largest cap", `{"max_tokens":10,"max_completion_tokens":30,"max_output_tokens":20,"model":"m"}`, "m", 20 + 30},
		{"copies", `{"model":"m","max_tokens":10,"n":3}`, "m", 9 + 30},
		{"copies of nothing named", `{"model":"m","n":3}`, "m", 5 + 3*1024},
		{"junk", `model=m`, "-", 2 + 1024},
		{"hostile caps", `{"max_tokens":-5,"max_output_tokens":1e99,"n":9999999999999999999}`, "-", 17 + 1024},
		{"huge product", `{"max_tokens":9007199254740991,"n":9007199254740991}`, "-", throttle.MaxAmount},
		{"model inside of something else", `{"messages":[{"model":"no"}],"metadata":{"model":"no"}}`, "-", 14 + 1024},
		{"model after a long prompt", `{"messages":"` + long + `","model":"m"}`, "m", (pad+13+13)/4 + 1 + 1024},
		{"escapes", `{"a":"\"model\":\"no\"","mod\u0065l":"m\/1"}`, "m/1", 11 + 1024},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := &Transport{reserve: (&book{}).reserve, DefaultKeyID: "test"}
			c, err := tr.read(post(t, "http://vendor.example/v1/chat/completions", tc.body))
			if err != nil {
				t.Fatal(err)
			}
			if c.ask.Model != tc.model {
				t.Errorf("Model = %q, want %q", c.ask.Model, tc.model)
			}
			want := throttle.Cost{"requests": 1, "tokens": tc.tokens}
			got := estimated(c.ask)
			got["tokens"] = min(got["tokens"], throttle.MaxAmount)
			if !maps.Equal(got, want) {
				t.Errorf("Cost = %v, Guess %v, want a guess of %v (body of %d bytes)", c.ask.Cost, c.ask.Guess, want, len(tc.body))
			}
		})
	}
}

func TestFixedSettings(t *testing.T) {
	onTransport := &Transport{
		reserve: (&book{}).reserve, DefaultKeyID: "default", KeyID: "one", Model: "m1",
		Lane: lanes.Background, MaxWait: time.Second, Cost: throttle.Cost{"images": 2},
	}
	req := post(t, "http://vendor.example/", `{"model":"no","max_tokens":6}`)
	c, err := onTransport.read(req)
	if err != nil {
		t.Fatal(err)
	}
	first := c.ask
	if first.Model != "m1" || first.Lane != lanes.Background || first.MaxWait != time.Second {
		t.Errorf("read() = %+v, want the transport's settings", first)
	}
	if want := (throttle.Cost{"requests": 1, "tokens": 8 + 6, "images": 2}); !maps.Equal(estimated(first), want) {
		t.Errorf("Cost = %v, want %v", estimated(first), want)
	}
	custom := lanes.Lane{Name: "batch", Share: 0.2}
	ctx := WithModel(WithKeyID(WithCost(WithMaxWait(lanes.With(req.Context(), custom), time.Hour), throttle.Cost{"requests": 4, "tokens": 5}), "two"), "m2")
	if c, err = onTransport.read(req.WithContext(ctx)); err != nil {
		t.Fatal(err)
	}
	if c.ask.Model != "m2" || c.ask.Lane != custom || c.ask.MaxWait != time.Hour || c.ask.Key == first.Key {
		t.Errorf("read() = %+v, want the context's settings", c.ask)
	}
	if want := (throttle.Cost{"requests": 4, "tokens": 5}); !maps.Equal(c.ask.Cost, want) || len(onTransport.Cost) != 1 {
		t.Errorf("Cost = %v, want %v", c.ask.Cost, want)
	}
	none := &Transport{reserve: (&book{}).reserve, DefaultKeyID: "test"}
	if c, err = none.read(post(t, "http://vendor.example/", "{}")); err != nil || c.ask.Lane != lanes.Live {
		t.Errorf("Lane = %v, %v, want live", c.ask.Lane, err)
	}
}

// S28: the same key is one key however it is spelled; another vendor, host or
// project makes it another.
func TestKeys(t *testing.T) {
	tr := &Transport{reserve: (&book{}).reserve}
	key := func(url string, lines ...string) string {
		t.Helper()
		req := post(t, url, "{}")
		for _, line := range lines {
			name, value, _ := strings.Cut(line, ": ")
			req.Header.Set(name, value)
		}
		c, err := tr.read(req)
		if err != nil {
			t.Fatal(err)
		}
		return c.ask.Key
	}
	const openai = "https://api.openai.com/v1/x"
	base := key(openai, "Authorization: Bearer K")
	if got := key(openai+"?y=1", "Authorization: bearer  K"); got != base {
		t.Error("another spelling gave another key")
	}
	for name, other := range map[string]string{
		"project":        key(openai, "Authorization: Bearer K", "OpenAI-Project: p"),
		"gateway":        key("https://gateway.example/v1/x", "Authorization: Bearer K"),
		"gateway's port": key("https://gateway.example:8443/v1/x", "Authorization: Bearer K"),
		"vendor":         key("https://api.anthropic.com/v1/x", "Authorization: Bearer K"),
		"key":            key(openai, "Authorization: Bearer K2"),
		"Vertex":         key("https://us-east1-aiplatform.googleapis.com/v1", "Authorization: Bearer K"),
	} {
		if other == base {
			t.Errorf("another %s gave the same key", name)
		}
	}
	if key("https://us-east1-aiplatform.googleapis.com/v1", "Authorization: Bearer K") == key("https://us-west1-aiplatform.googleapis.com/v1", "Authorization: Bearer K") {
		t.Error("two regions of Vertex gave the same key")
	}
	if _, err := tr.read(post(t, openai, "{}")); !errors.Is(err, ErrNoCredential) {
		t.Errorf("read() without a credential: error %v, want %v", err, ErrNoCredential)
	}
}

func TestMultipartModel(t *testing.T) {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	file, _ := w.CreateFormFile("file", "a.wav")
	file.Write(make([]byte, pad))
	w.WriteField("model", "whisper-1")
	w.WriteField("language", "en")
	w.Close()
	for _, oneShot := range []bool{false, true} {
		req := post(t, "http://vendor.example/v1/audio/transcriptions", form.String())
		req.Header.Set("Content-Type", w.FormDataContentType())
		want := "whisper-1"
		if oneShot {
			req.GetBody, want = nil, "-" // it lies behind the file, beyond the peek
		}
		tr := &Transport{reserve: (&book{}).reserve, DefaultKeyID: "test"}
		c, err := tr.read(req)
		if err != nil {
			t.Fatal(err)
		}
		if c.ask.Model != want {
			t.Errorf("Model = %q, want %q", c.ask.Model, want)
		}
		if got := c.ask.Cost[throttle.Tokens]; got > 1024+3 {
			t.Errorf("tokens = %d, want the file to be left out", got)
		}
		if got := readAll(t, c.out.Body); got != form.String() {
			t.Errorf("body of %d bytes, want %d unchanged", len(got), form.Len())
		}
	}
}

// A call without a body generates nothing.
func TestNoBody(t *testing.T) {
	tr := &Transport{reserve: (&book{}).reserve, DefaultKeyID: "test"}
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://vendor.example/v1/models", nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := tr.read(req)
	if err != nil {
		t.Fatal(err)
	}
	if want := (throttle.Cost{"requests": 1, "tokens": 0}); !maps.Equal(estimated(c.ask), want) {
		t.Errorf("Cost = %v, want %v", estimated(c.ask), want)
	}
}

func TestCostFunc(t *testing.T) {
	p := profiles.Generic("sms")
	p.CostFunc = func(r *http.Request, body []byte) map[string]int64 {
		if r.Body != nil || r.GetBody != nil {
			t.Error("CostFunc got a body to read")
		}
		return map[string]int64{"segments": int64(bytes.Count(body, []byte("s")))}
	}
	tr := &Transport{reserve: (&book{}).reserve, DefaultKeyID: "test", Profile: p}
	req := post(t, "http://sms.example/", "text="+strings.Repeat("s", 3))
	req.GetBody = nil
	c, err := tr.read(req)
	if err != nil {
		t.Fatal(err)
	}
	if c.ask.Cost["segments"] != 3 || c.ask.Cost["requests"] != 1 || c.ask.Guess["segments"] != 0 {
		t.Errorf("Cost = %v, Guess %v, want 3 segments for certain", c.ask.Cost, c.ask.Guess)
	}
	if got := readAll(t, c.out.Body); got != "text=sss" {
		t.Errorf("body = %q, want it whole", got)
	}
}

// S11: a body whose writer stands still is not waited for beyond the context,
// even if its Close waits for the read that is out, as that of a server's request.
func TestSniffEndsWithTheContext(t *testing.T) {
	leaks := noLeaks(t)
	for _, kind := range []string{"application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=edge"} {
		r, w := io.Pipe()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		req := post(t, "http://vendor.example/", "").WithContext(ctx)
		req.Body, req.GetBody, req.ContentLength = &slowClose{r: r}, nil, -1
		req.Header.Set("Content-Type", kind)
		go io.WriteString(w, `{"model":"m","messages":[`)
		tr := &Transport{reserve: (&book{}).reserve, DefaultKeyID: "test"}
		done := make(chan error, 1)
		go func() {
			_, err := tr.RoundTrip(req)
			done <- err
		}()
		select {
		case err := <-done:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: error %v, want %v", kind, err, context.DeadlineExceeded)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("%s: RoundTrip() waits for the writer", kind)
		}
		cancel()
		w.Close()
	}
	leaks()
}

// slowClose is a body that cannot be closed while it is being read.
type slowClose struct {
	mu sync.Mutex
	r  *io.PipeReader
}

func (s *slowClose) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.r.Read(b)
}

func (s *slowClose) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.r.Close()
}

// A body that is still being written must not be waited for once the document
// has ended, nor if it is none.
func TestSniffDoesNotWait(t *testing.T) {
	for head, kind := range map[string]string{
		`{"model":"m"}`:  "application/json",
		"\x00\x01binary": "application/json",
		"--edge\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n" +
			"--edge\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nx": "multipart/form-data; boundary=edge",
		"x": "audio/wav",
	} {
		r, w := io.Pipe()
		req := post(t, "http://vendor.example/", "")
		req.Body, req.GetBody, req.ContentLength = r, nil, -1
		req.Header.Set("Content-Type", kind)
		go io.WriteString(w, head)
		tr := &Transport{reserve: (&book{}).reserve, DefaultKeyID: "test"}
		read := make(chan error, 1)
		go func() {
			_, err := tr.read(req)
			read <- err
		}()
		select {
		case err := <-read:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("read() waits for more than %q", head)
		}
		w.Close()
	}
}
