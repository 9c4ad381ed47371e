package transport

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport/profiles"
)

// FuzzRefusal: a refusal comes back from the response that stands for it, also
// over the wire, and the response is one that any client can read.
func FuzzRefusal(f *testing.F) {
	f.Add(0, "00ff", "gpt-4o", "live", "5 requests per 1m0s", "requests", int64(1500*time.Microsecond), true)
	f.Add(1, "", "a&b=c\r\nX-Evil: 1", "\x00", "\xff", "", int64(1), false)
	f.Add(3, "k", "", "", "", "", int64(0), false)
	f.Add(2, "k", "ü", "background", "", "", int64(1<<63-1), true)
	f.Fuzz(func(t *testing.T, reason int, key, model, lane, limit, unit string, wait int64, deferred bool) {
		want := throttle.RefusedError{
			Reason: throttle.Reason(uint(reason) % 4), Key: key, Model: model, Lane: lane, Limit: limit, Unit: unit, Deferred: deferred,
			RetryAfter: time.Duration(max(wait, 0)),
		}
		req := &http.Request{Method: "POST", URL: &url.URL{Path: "/"}}
		resp := refusedResponse(req, &want)
		if resp.ContentLength < 0 || resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Fatalf("status %d, %d bytes", resp.StatusCode, resp.ContentLength)
		}
		var wire bytes.Buffer
		if err := resp.Write(&wire); err != nil {
			t.Fatal(err)
		}
		received, err := http.ReadResponse(bufio.NewReader(&wire), req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(received.Body)
		var decoded struct{ Message string }
		if err != nil || json.Unmarshal(body, &decoded) != nil || utf8.ValidString(want.Error()) && decoded.Message != want.Error() {
			t.Fatalf("body %q, %v, want the words of %q", body, err, want.Error())
		}
		if received.Header.Get("X-Evil") != "" || received.Header.Get(shouldRetry) != "false" {
			t.Fatalf("header %q", received.Header)
		}
		want.RetryAfter = (want.RetryAfter + time.Millisecond - 1).Truncate(time.Millisecond)
		for how, from := range map[string]*http.Response{"as it is": resp, "received": received} {
			got, ok := FromResponse(from)
			if !ok {
				t.Fatalf("%s: no refusal in %q", how, from.Header)
			}
			if wait > 1<<62 {
				got.RetryAfter = want.RetryAfter // what is as long as time itself
			}
			if *got != want {
				t.Fatalf("%s: %+v, want %+v", how, *got, want)
			}
		}
	})
}

// FuzzFromResponse: whatever the header of a response says, the refusal that it
// stands for is one that Headway could have made: no time that is negative.
func FuzzFromResponse(f *testing.F) {
	f.Add("no room", "deferred=true&key=00ff&lane=background&limit=5+requests&model=m&unit=requests", "1500")
	f.Add("too large", "deferred=false", "")
	f.Add("store unavailable", "", "1")
	f.Add("model paused", "%zz;&=", "-1")
	f.Add("key paused", "", "9223372036854775807")
	f.Add("key paused", "", "9223372036854")
	f.Fuzz(func(t *testing.T, reason, detail, ms string) {
		resp := &http.Response{Header: http.Header{}}
		resp.Header.Set(RefusedHeader, reason)
		resp.Header.Set(DetailHeader, detail)
		resp.Header.Set("Retry-After-Ms", ms)
		e, ok := FromResponse(resp)
		if ok != slices.Contains([]string{"no room", "model paused", "key paused", "too large"}, reason) || ok == (e == nil) {
			t.Fatalf("FromResponse() of %q = %v, %v", reason, e, ok)
		}
		if !ok {
			return
		}
		if e.RetryAfter < 0 || e.Reason.String() != reason || !errors.Is(e, throttle.ErrRefused) || e.Error() == "" {
			t.Fatalf("FromResponse() = %+v", *e)
		}
	})
}

// FuzzSniff: whatever is read ahead of a request, what is sent is the caller's
// body byte for byte, and a body that comes once tells the same as one that can
// be had again.
func FuzzSniff(f *testing.F) {
	f.Add("application/json", []byte(`{"model":"m","n":2}`), byte(3))
	f.Add("multipart/form-data; boundary=edge", []byte("--edge\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--edge--"), byte(1))
	f.Add("application/x-www-form-urlencoded", []byte("model=m"), byte(0))
	f.Add("", []byte{}, byte(7))
	list := append(profiles.Builtin(), profiles.Generic("demo"))
	f.Fuzz(func(t *testing.T, kind string, body []byte, how byte) {
		p := list[int(how/4)%len(list)]
		request := func() (*http.Request, *closed) {
			var r io.Reader = bytes.NewReader(body)
			switch how % 4 {
			case 1:
				r = iotest.OneByteReader(r)
			case 2:
				r = iotest.DataErrReader(r)
			case 3:
				r = iotest.HalfReader(r)
			}
			c := &closed{Reader: r}
			return &http.Request{Method: "POST", URL: &url.URL{Path: "/v1/x"}, Header: http.Header{"Content-Type": {kind}}, Body: c, ContentLength: int64(len(body))}, c
		}
		once, body1 := request()
		seen, err := sniff(p, once)
		if err != nil {
			t.Fatal(err)
		}
		again, body2 := request()
		again.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		seen2, err := sniff(p, again)
		if err != nil {
			t.Fatal(err)
		}
		if seen.Model != seen2.Model || seen.Output != seen2.Output || seen.Copies != seen2.Copies || seen.Text != seen2.Text || !maps.Equal(seen.Cost, seen2.Cost) {
			t.Fatalf("%s: once: %+v, again: %+v", p.Name, seen, seen2)
		}
		for _, r := range []*http.Request{once, again} {
			if got, err := io.ReadAll(r.Body); err != nil || !bytes.Equal(got, body) {
				t.Fatalf("%s: %q is sent, %v, want %q", p.Name, got, err, body)
			}
			r.Body.Close()
		}
		if body1.times != 1 || body2.times != 1 {
			t.Fatalf("closed %d and %d times", body1.times, body2.times)
		}
	})
}

// closed counts how often it was closed.
type closed struct {
	io.Reader
	times int
}

func (c *closed) Close() error {
	c.times++
	return nil
}

// FuzzPeek: what is read ahead of an answer is its beginning, and its reader gets
// every byte, and its error, all the same.
func FuzzPeek(f *testing.F) {
	f.Add([]byte(`{"error":{}}`), []byte{1}, byte(0), false)
	f.Add([]byte("\x1f\x8b"), []byte{0, 9}, byte(1), true)
	f.Add(bytes.Repeat([]byte("x"), maxPeek+5), []byte{200}, byte(2), false)
	f.Add([]byte{}, []byte{}, byte(3), true)
	broken := errors.New("cut off")
	f.Fuzz(func(t *testing.T, body, sizes []byte, how byte, fails bool) {
		var r io.Reader = bytes.NewReader(body)
		want := io.EOF
		if fails {
			r, want = io.MultiReader(r, iotest.ErrReader(broken)), broken
		}
		switch how % 3 {
		case 1:
			r = iotest.HalfReader(r)
		case 2:
			r = iotest.DataErrReader(r)
		}
		c := &closed{Reader: r}
		resp := &http.Response{Header: http.Header{}, Body: c}
		if head, _ := peek(resp); !bytes.Equal(head, body[:min(len(body), maxPeek)]) {
			t.Fatalf("%d bytes were read ahead of %d", len(head), len(body))
		}
		var got []byte
		for i := 0; ; i++ {
			size := 512
			if len(sizes) > 0 && i < 1000 {
				size = int(sizes[i%len(sizes)])
			}
			b := make([]byte, size)
			n, err := resp.Body.Read(b)
			got = append(got, b[:n]...)
			if err != nil {
				if err != want {
					t.Fatalf("error %v, want %v", err, want)
				}
				break
			}
			if i > 2000+len(body) {
				t.Fatal("it never ends")
			}
		}
		resp.Body.Close()
		if !bytes.Equal(got, body) || c.times != 1 {
			t.Fatalf("%d bytes, want %d; closed %d times", len(got), len(body), c.times)
		}
	})
}
