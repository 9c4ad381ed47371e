package transport

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"runtime"
	"testing"

	"github.com/headway-go/headway/transport/profiles"
)

// endless reads as whatever was in the buffer.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// letters reads as one letter without an end.
type letters byte

func (l letters) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(l)
	}
	return len(b), nil
}

// bomb compresses size letters.
func bomb(t *testing.T, head string, size int64) []byte {
	t.Helper()
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	io.WriteString(z, head)
	io.CopyN(z, letters(' '), size)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// S09, S10: whatever comes, memory is bounded, and every byte arrives.
func TestMemory(t *testing.T) {
	const mib = 1 << 20
	small := bomb(t, `{"usage":{"prompt_tokens":7}`, 64*mib)
	for _, tc := range []struct {
		name     string
		status   int
		kind     string
		encoding string
		body     io.Reader
		size     int64
	}{
		{"error of 1 GiB", 500, "application/json", "", io.LimitReader(endless{}, 1<<30), 1 << 30},
		{"refusal of one long string", 429, "application/json", "", io.MultiReader(bytes.NewReader([]byte(`{"error":{"code":"`)), io.LimitReader(letters('x'), 32*mib)), 32*mib + 18},
		{"refusal that is a gzip bomb", 429, "application/json", "gzip", bytes.NewReader(small), int64(len(small))},
		{"answer that is a gzip bomb", 200, "application/json", "gzip", bytes.NewReader(small), int64(len(small))},
		{"answer of one long string", 200, "application/json", "", io.MultiReader(bytes.NewReader([]byte(`{"data":"`)), io.LimitReader(letters('x'), 32*mib)), 32*mib + 9},
		{"array of one long number", 200, "application/json", "", io.MultiReader(bytes.NewReader([]byte(`[[`)), io.LimitReader(letters('1'), 32*mib)), 32*mib + 2},
		{"event of one line of 20 MiB", 200, "text/event-stream", "", io.MultiReader(bytes.NewReader([]byte(`data: {"usage":"`)), io.LimitReader(letters('x'), 20*mib)), 20*mib + 16},
		{"event of 20 MiB in short lines", 200, "text/event-stream", "", bytes.NewReader(bytes.Repeat([]byte("data: x\n"), 20*mib/8)), 20 * mib},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := &Transport{reserve: (&book{}).reserve, DefaultKeyID: "test", Profile: profiles.Gemini(), Base: roundTrip(func(*http.Request) (*http.Response, error) {
				h := http.Header{"Content-Type": {tc.kind}}
				if tc.encoding != "" {
					h.Set("Content-Encoding", tc.encoding)
				}
				return &http.Response{StatusCode: tc.status, Header: h, ContentLength: -1, Body: io.NopCloser(tc.body)}, nil
			})}
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			resp, err := tr.RoundTrip(post(t, "http://vendor.example/", "{}"))
			if err != nil {
				t.Fatal(err)
			}
			n, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{resp.Body}, make([]byte, 32<<10))
			resp.Body.Close()
			runtime.ReadMemStats(&after)
			if n != tc.size || err != nil {
				t.Errorf("read %d bytes, error %v, want %d", n, err, tc.size)
			}
			allocated := after.TotalAlloc - before.TotalAlloc
			t.Logf("%d MiB on the wire, %d KiB allocated in all", n>>20, allocated>>10)
			if allocated > 12*mib {
				t.Errorf("allocated %d MiB, want at most 12", allocated>>20)
			}
		})
	}
}
