package profiles

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzModel: the model of a JSON request is what encoding/json finds, and no
// request makes reading fail.
func FuzzModel(f *testing.F) {
	for _, body := range []string{
		`{"model":"gpt-x","max_tokens":5}`, `{"a":"\\\"","mod\u0065l":"m"}`, `{"messages":[{"model":1}],"model":"m","n":2}`, `[`, `{"":{"model":"x"}}`,
	} {
		f.Add(body)
	}
	for _, s := range seeds(f) {
		f.Add(s.sent)
	}
	p := OpenAI()
	r := &http.Request{URL: &url.URL{Path: "/v1/x"}, Header: http.Header{}}
	f.Fuzz(func(t *testing.T, body string) {
		got := p.Read(r, strings.NewReader(body))
		if got.Output < -1 || got.Output > maxWhole || got.Copies < 1 || got.Copies > maxWhole || got.Text < 0 {
			t.Fatalf("Read() = %+v", got)
		}
		var fields map[string]any
		if json.Unmarshal([]byte(body), &fields) != nil || !utf8.ValidString(body) {
			return
		}
		for key := range fields {
			if len(key) > 40 {
				return // a longer key may be one that no path names
			}
		}
		want, ok := fields["model"].(string)
		if ok && want != "" && len(want) < 256 && got.Model != want && strings.Count(body, "model") == 1 && !strings.Contains(body, `\u`) {
			t.Fatalf("model = %q, want %q", got.Model, want)
		}
	})
}

// FuzzRead: whatever its content type, URL and body, a request is read alike
// however its body comes, is not changed, and names nothing beyond bounds.
func FuzzRead(f *testing.F) {
	const form = "application/x-www-form-urlencoded"
	add := func(address, kind, body string, sized bool) {
		for i := 0; i < 28; i += 14 {
			f.Add(byte(i+len(body)), address, kind, body, sized)
		}
	}
	add("https://api.twilio.com/x", form, "To=1&Body=a+b%20c&From=%2B1", true)
	add("https://h/openai/deployments/d%2Fx/chat?api-version=1&model=q", "application/json; charset=utf-8", `{"model":"m","n":3,"max_tokens":9007199254740991}`, false)
	add("https://h/v1/audio", "multipart/form-data; boundary=edge", "--edge\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--edge\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nxx\r\n--edge--", true)
	add("https://h/v1/x", "Multipart/Form-Data; Boundary=\"e\"", "--e\nContent-Disposition: form-data; name=model\n\nm\n--e", false)
	add("/", "audio/wav", "RIFF", true)
	add("*", "text/plain", "model=a", true)
	add("mailto:a", ";", "\x00", false)
	for _, s := range seeds(f) {
		add(s.url, s.kind, s.sent, len(s.sent)%2 == 0)
	}
	list := everyProfile()
	f.Fuzz(func(t *testing.T, which byte, address, kind, body string, sized bool) {
		u, err := url.Parse(address)
		if err != nil {
			return
		}
		r := &http.Request{Method: "POST", URL: u, Header: http.Header{"Content-Type": {kind}, "X-Other": {"1"}}, ContentLength: -1}
		r.Body = io.NopCloser(strings.NewReader("not to be read"))
		if sized {
			r.ContentLength = int64(len(body))
		}
		before, addressed := r.Header.Clone(), *u
		p := list[int(which)%len(list)] // all of them take too long for each
		got := p.Read(r, strings.NewReader(body))
		if got.Output < -1 || got.Output > maxWhole || got.Copies < 1 || got.Copies > maxWhole || got.Text < 0 || got.Text > int64(len(body)) {
			t.Fatalf("%s: Read() = %+v of %d bytes", p.Name, got, len(body))
		}
		if len(got.Model) > len(body)+len(address)+len("publishers/models/") {
			t.Fatalf("%s: a model of %d bytes", p.Name, len(got.Model))
		}
		for unit, n := range got.Cost {
			if n < 0 || n > int64(len(body)) {
				t.Fatalf("%s: %d %s for %d bytes", p.Name, n, unit, len(body))
			}
		}
		for how, from := range readers(body) {
			again := p.Read(r, from())
			if !sized {
				again.Text = got.Text // what was read of a body of unknown length
			}
			if again.Model != got.Model || again.Output != got.Output || again.Copies != got.Copies || again.Text != got.Text || !maps.Equal(again.Cost, got.Cost) {
				t.Fatalf("%s, %s: Read() = %+v, want %+v", p.Name, how, again, got)
			}
		}
		if left, _ := io.ReadAll(r.Body); string(left) != "not to be read" || !reflect.DeepEqual(r.Header, before) || *r.URL != addressed {
			t.Fatal("the request was changed")
		}
	})
}

// FuzzForms: a model that a form or a multipart form names comes back as it was
// sent, and nothing that a file holds does.
func FuzzForms(f *testing.F) {
	f.Add("gpt-x", "other", "value", []byte("--edge\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nno"), "edge")
	f.Add("a b&c=d%", "model2", "", []byte{}, "a b?")
	f.Add("\r\n--x", "a\"b", "\r\n", []byte("\r\n--"), "x")
	f.Add("m", "Model", "--x--", []byte("--x--\r\n"), "x")
	p := Generic("demo")
	p.Model = []Place{{In: Body, Name: "model"}}
	r := &http.Request{URL: &url.URL{Path: "/v1/x"}, Header: http.Header{}, ContentLength: -1}
	f.Fuzz(func(t *testing.T, model, name, value string, file []byte, edge string) {
		if model == "" || len(model) > maxValue || name == "model" {
			return
		}
		form := url.Values{"model": {model}, name: {value}}.Encode()
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if got := p.Read(r, strings.NewReader(form)).Model; got != model && len(form) < PeekBytes {
			t.Fatalf("form: model %q, want %q", got, model)
		}
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		if w.SetBoundary(edge) != nil || strings.Contains(model+value+string(file)+"x", edge) {
			return
		}
		part := func(name, content string, more string) {
			h := textproto.MIMEHeader{"Content-Disposition": {mime.FormatMediaType("form-data", map[string]string{"name": name}) + more}}
			if to, err := w.CreatePart(h); err == nil {
				io.WriteString(to, content)
			}
		}
		if mime.FormatMediaType("form-data", map[string]string{"name": name}) != "" {
			part(name, value, "")
		}
		part("model", string(file)+"x", `; filename="a.wav"`)
		part("model", model, "")
		part("model", "no", "")
		w.Close()
		r.Header.Set("Content-Type", w.FormDataContentType())
		for how, from := range readers(b.String()) {
			got := p.Read(r, from())
			if got.Model != model {
				t.Fatalf("multipart form, %s: model %q, want %q of %q", how, got.Model, model, b.String())
			}
			if got.Text > int64(len(model)+len("no")+len(value)) {
				t.Fatalf("multipart form, %s: %d bytes of text", how, got.Text)
			}
		}
	})
}

// FuzzPlaces: a model in the URL comes back as it was, from every kind of place;
// any other URL names what it names whoever wrote it down.
func FuzzPlaces(f *testing.F) {
	for _, name := range []string{"gpt-4o", "a/b", "a%2Fb", "a:b", ":", "publishers/x", "ü", " ", "..", "a?b#c", "\x00", "%", "\xff"} {
		f.Add(name, "/v1/models/"+name+":generate?model=x")
	}
	for _, s := range seeds(f) {
		f.Add("m", s.url)
	}
	in := func(place In, name string) *Profile { return &Profile{Model: []Place{{In: place, Name: name}}} }
	read := func(p *Profile, u *url.URL) string { return p.Read(&http.Request{URL: u}, strings.NewReader("")).Model }
	list := everyProfile()
	f.Fuzz(func(t *testing.T, name, address string) {
		escaped := url.PathEscape(name)
		for _, c := range []struct {
			p    *Profile
			url  string
			want string
		}{
			{in(Path, "models"), "https://h/v1/models/" + escaped + "/x", name},
			{in(Before, "chat"), "https://h/v1/" + escaped + "/chat", name},
			{in(Resource, "models"), "https://h/v1/models/" + escaped + ":generate", "models/" + name},
			{in(Query, "model"), "https://h/v1?a=b&model=" + url.QueryEscape(name) + "&c", name},
		} {
			u, err := url.Parse(c.url)
			if err != nil {
				t.Fatalf("%q: %v", c.url, err)
			}
			if name == "" {
				c.want = ""
			}
			if got := read(c.p, u); got != c.want && name != "models" && name != "chat" {
				t.Fatalf("%q: model %q, want %q", c.url, got, c.want)
			}
		}
		u, err := url.Parse(address)
		if err != nil {
			return
		}
		again, err := url.Parse(u.String())
		if err != nil {
			return
		}
		for _, p := range list {
			got, was := read(p, u), *u
			if twice := read(p, again); twice != got {
				t.Fatalf("%s: model %q, and %q when the URL is written again", p.Name, got, twice)
			}
			if len(got) > 2*len(address)+len("models/") || *u != was {
				t.Fatalf("%s: model of %d bytes, or a changed URL", p.Name, len(got))
			}
		}
	})
}
