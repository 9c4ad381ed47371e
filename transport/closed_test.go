package transport

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// closing is a body that notes that it was closed.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

// Whoever closes the body of an error closes the vendor's, read to its end or not.
func TestErrorBodyIsClosed(t *testing.T) {
	t.Parallel()
	for _, length := range []int{0, 10, maxPeek, 4 * maxPeek} {
		body := &closing{Reader: strings.NewReader(strings.Repeat("x", length))}
		base := roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 500, ContentLength: -1, Header: http.Header{}, Body: body, Request: r}, nil
		})
		tr := &Transport{reserve: (&book{}).reserve, DefaultKeyID: "test", Base: base}
		resp, err := tr.RoundTrip(post(t, "http://vendor.example/", "{}"))
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || !body.closed {
			t.Errorf("%d bytes: Close() = %v, closed %v", length, err, body.closed)
		}
	}
}
