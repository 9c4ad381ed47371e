package profiles

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"testing/iotest"
)

// seed is one recorded call as the fuzz targets begin with it.
type seed struct {
	url, kind, sent string // the request, its body as it is sent
	status          int
	header          http.Header
	body            string
}

func seeds(f *testing.F) (list []seed) {
	f.Helper()
	for _, file := range []string{"testdata/cases.json", "testdata/more_cases.json"} {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var cases []struct {
			Request struct {
				URL     string
				Headers map[string]string
				Body    json.RawMessage
			}
			Response struct {
				Status  int
				Headers map[string]string
				Body    json.RawMessage
			}
		}
		if err := json.Unmarshal(data, &cases); err != nil {
			f.Fatal(err)
		}
		text := func(raw json.RawMessage) (s string) {
			if json.Unmarshal(raw, &s) != nil {
				var plain bytes.Buffer
				json.Compact(&plain, raw)
				s = plain.String()
			}
			return s
		}
		for _, c := range cases {
			header := http.Header{}
			for name, value := range c.Response.Headers {
				header.Set(name, value)
			}
			list = append(list, seed{
				c.Request.URL, c.Request.Headers["Content-Type"], text(c.Request.Body),
				c.Response.Status, header, text(c.Response.Body),
			})
		}
	}
	return list
}

// everyProfile returns the built-in profiles and those that users choose by hand.
func everyProfile() []*Profile {
	return append(Builtin(), WhatsAppNumbers(), Generic("demo"))
}

// cuts calls piece with b in pieces. Their lengths are those in lengths, over and
// over; a zero is an empty piece, and no lengths is one piece.
func cuts(b, lengths []byte, piece func([]byte)) {
	if !bytes.ContainsFunc(lengths, func(r rune) bool { return r != 0 }) {
		piece(b)
		return
	}
	for i := 0; len(b) > 0; i++ {
		n := min(int(lengths[i%len(lengths)]), len(b))
		piece(b[:n:n])
		b = b[n:]
	}
}

// readers returns b in the ways that a body may come.
func readers(b string) map[string]func() io.Reader {
	whole := func() io.Reader { return bytes.NewReader([]byte(b)) }
	return map[string]func() io.Reader{
		"whole":         whole,
		"byte by byte":  func() io.Reader { return iotest.OneByteReader(whole()) },
		"in halves":     func() io.Reader { return iotest.HalfReader(whole()) },
		"data with EOF": func() io.Reader { return iotest.DataErrReader(whole()) },
	}
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

// finding spells out one finding, for comparisons.
func finding(path, value string, k kind) string { return fmt.Sprintf("%s=%q/%d", path, value, k) }
