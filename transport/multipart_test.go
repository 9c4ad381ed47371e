package transport

import (
	"strings"
	"testing"
)

// The model of a form is one of its fields, never a part of a file.
func TestMultipartForms(t *testing.T) {
	const kind = `multipart/form-data; boundary=edge`
	field := func(name, value string) string {
		return "--edge\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
	}
	file := func(name, content string) string {
		return "--edge\r\nContent-Disposition: form-data; name=\"" + name + "\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\n" + content + "\r\n"
	}
	const end = "--edge--\r\n"
	other := strings.ReplaceAll(field("model", "no"), "--edge", "--other")
	for _, tc := range []struct{ name, kind, body, model string }{
		{"field first", kind, field("model", "m") + file("file", "x") + end, "m"},
		{"field last", kind, file("file", strings.Repeat("x", pad)) + field("model", "m") + end, "m"},
		{"field and no end", kind, field("model", "m") + file("file", "x"), "m"},
		{"file named model", kind, file("model", "no") + field("model", "m") + end, "m"},
		{"file named by RFC 5987", kind, strings.Replace(file("model", "no"), `filename="a.wav"`, `filename*=UTF-8''a.wav`, 1) + end, "-"},
		{"file that is a form", kind, file("file", other+"--other--") + end, "-"},
		{"file that is JSON", kind, file("file", `{"model":"no"}`) + end, "-"},
		{"file with the edge inside of a line", kind, file("file", `x--edge`+"\r\n"+`Content-Disposition: form-data; name="model"`+"\r\n\r\nno") + end, "-"},
		{"two fields: the first counts", kind, field("model", "m") + field("model", "no") + end, "m"},
		{"other fields", kind, field("language", "en") + field("models", "no") + end, "-"},
		{"edge in quotes, another case", `Multipart/Form-Data; Boundary="edge"`, field("model", "m") + end, "m"},
		{"another edge", `multipart/form-data; boundary=other`, field("model", "no") + end, "-"},
		{"no edge", `multipart/form-data`, field("model", "no") + end, "-"},
		{"no form", `text/plain`, field("model", "no") + end, "-"},
		{"bare newlines", kind, strings.ReplaceAll(field("model", "m")+end, "\r\n", "\n"), "m"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, oneShot := range []bool{false, true} {
				if oneShot && len(tc.body) > pad {
					continue // beyond what is read of such a body
				}
				req := post(t, "http://vendor.example/v1/audio/transcriptions", tc.body)
				req.Header.Set("Content-Type", tc.kind)
				if oneShot {
					req.GetBody = nil
				}
				c, err := (&Transport{reserve: (&book{}).reserve, DefaultKeyID: "test"}).read(req)
				if err != nil {
					t.Fatal(err)
				}
				if c.ask.Model != tc.model {
					t.Errorf("one-shot %v: Model = %q, want %q", oneShot, c.ask.Model, tc.model)
				}
				if got := readAll(t, c.out.Body); got != tc.body {
					t.Errorf("one-shot %v: body of %d bytes, want %d unchanged", oneShot, len(got), len(tc.body))
				}
			}
		})
	}
}
