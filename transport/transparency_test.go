package transport

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// seen is all that one side of a call can see of it.
type seen struct {
	Status, Proto     string
	Header, Trailer   http.Header
	Body, Err         string
	Length            int64
	Encoding          []string
	Close, Zipped     bool
	Informational     []string
	Writes            bool // the body goes both ways
	RequestIsCallers  bool
	VendorsHeader     http.Header
	VendorsTrailer    http.Header
	VendorsBody       string
	VendorsLength     int64
	VendorsEncoding   []string
	VendorsHostAndURI string
}

// streamID is what differs from call to call in an error of HTTP/2.
var streamID = regexp.MustCompile(`stream ID \d+`)

func zipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, s)
	z.Close()
	return b.String()
}

// Promise 23: with and without the wrapper, both sides see the same.
func TestTransparency(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 16<<10) // longer than a peek
	gzipIfAsked := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept-Encoding") == "gzip" {
				w.Header().Set("Content-Encoding", "gzip")
				says(status, "application/json", zipped(body))(w, r)
				return
			}
			says(status, "application/json", body)(w, r)
		}
	}
	trailers := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			io.WriteString(w, jsonAnswer)
			w.Header().Set("X-Sum", "42")
			w.Header().Set(http.TrailerPrefix+"X-Late", "43")
		}
	}
	type change = func(*http.Request)
	none := func(*http.Request) {}
	for _, tc := range []struct {
		name   string
		method string
		body   string
		change change
		answer http.HandlerFunc
	}{
		{"JSON", "POST", `{"model":"m"}`, none, says(200, "application/json", jsonAnswer)},
		{"length named", "POST", "{}", none, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "2")
			says(200, "application/json", "{}")(w, r)
		}},
		{"large", "POST", big, none, says(200, "text/plain", big+big)},
		{"large error", "POST", big, none, says(500, "application/json", big+big)},
		{"error", "POST", "{}", none, says(429, "application/json", `{"error":{"code":"x"}}`)},
		{"error without a body", "POST", "{}", none, says(503, "application/json", "")},
		{"stream", "POST", "{}", none, stream(false, twenty(usageEvent, doneEvent)...)},
		{"stream with CRLF, comments, no end", "POST", "{}", none, stream(false, ": hi\r\n", "data: {\r\ndata: }\r\n\r\n", "id: 7")},
		{"stream that is cut", "POST", "{}", none, stream(true, textEvent, usageEvent)},
		{"error that is cut", "POST", "{}", none, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(500)
			stream(true, "half")(w, r)
		}},
		{"JSON array stream", "POST", "{}", none, says(200, "application/json", `[{"usageMetadata":{"promptTokenCount":1}},`)},
		{"gzip, transparent", "POST", "{}", none, gzipIfAsked(200, jsonAnswer)},
		{"gzip of an error, transparent", "POST", "{}", none, gzipIfAsked(429, jsonAnswer)},
		{"gzip, asked for by the caller", "POST", "{}", func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip") }, gzipIfAsked(200, jsonAnswer)},
		{"gzip of an error, asked for by the caller", "POST", "{}", func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip") }, gzipIfAsked(429, jsonAnswer)},
		{"gzip, refused by the caller", "POST", "{}", func(r *http.Request) { r.Header.Set("Accept-Encoding", "identity") }, gzipIfAsked(200, jsonAnswer)},
		{"trailers", "POST", "{}", none, trailers(200)},
		{"trailers of an error", "POST", "{}", none, trailers(500)},
		{"early hints", "POST", "{}", none, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "</style.css>")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusProcessing)
			says(200, "application/json", "{}")(w, r)
		}},
		{"HEAD", "HEAD", "", none, says(200, "application/json", jsonAnswer)},
		{"HEAD of an error", "HEAD", "", none, says(404, "application/json", jsonAnswer)},
		{"204", "DELETE", "", none, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }},
		{"304", "GET", "", none, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }},
		{"connection closes", "POST", "{}", func(r *http.Request) { r.Close = true }, says(200, "application/json", "{}")},
		{"repeated and odd headers", "POST", "{}", func(r *http.Request) {
			r.Header["X-Two"], r.Header["User-Agent"] = []string{"a", "b"}, []string{""}
			r.Host = "other.example"
		}, func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Set-Cookie"] = []string{"a=1", "b=2"}
			w.Header()["X-Should-Retry"] = []string{"true"}
			says(429, "", "")(w, r)
		}},
		{"no GetBody", "POST", big, func(r *http.Request) { r.GetBody = nil }, says(200, "application/json", "{}")},
		{"length unknown", "POST", big, func(r *http.Request) { r.GetBody, r.ContentLength = nil, -1 }, says(200, "application/json", "{}")},
		{"trailers of the request", "POST", "{}", func(r *http.Request) {
			r.ContentLength, r.Trailer = -1, http.Header{"X-Mine": {"1"}}
		}, says(200, "application/json", "{}")},
	} {
		for _, w := range wires() {
			t.Run(tc.name+"/"+w.name, func(t *testing.T) {
				var vendors seen
				url, base := w.open(t, func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					vendors = seen{
						VendorsHeader: r.Header.Clone(), VendorsTrailer: r.Trailer.Clone(), VendorsBody: string(body),
						VendorsLength: r.ContentLength, VendorsEncoding: r.TransferEncoding, VendorsHostAndURI: r.Host + r.RequestURI,
					}
					tc.answer(w, r)
				})
				look := func(rt http.RoundTripper) seen {
					var mu sync.Mutex
					var informational []string
					req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
						Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
							mu.Lock()
							defer mu.Unlock()
							informational = append(informational, fmt.Sprint(code, h))
							return nil
						},
					}), tc.method, url+"/v1/x%2Fy?a=b", strings.NewReader(tc.body))
					if err != nil {
						t.Fatal(err)
					}
					req.Header.Set("Authorization", "Bearer K")
					tc.change(req)
					resp, err := rt.RoundTrip(req)
					if err != nil {
						t.Fatal(err)
					}
					body, err := io.ReadAll(resp.Body)
					resp.Body.Close()
					resp.Header.Del("Date")
					s := vendors
					s.Status, s.Proto, s.Header, s.Trailer, s.Body = resp.Status, resp.Proto, resp.Header, resp.Trailer, string(body)
					s.Err = streamID.ReplaceAllString(fmt.Sprint(err), "")
					s.Length, s.Encoding = resp.ContentLength, resp.TransferEncoding
					s.Close, s.Zipped, s.RequestIsCallers = resp.Close, resp.Uncompressed, resp.Request == req
					_, s.Writes = resp.Body.(io.Writer)
					mu.Lock()
					defer mu.Unlock()
					s.Informational = informational
					return s
				}
				bare := look(base)
				wrapped := look(&Transport{Base: base, reserve: (&book{}).reserve})
				if !reflect.DeepEqual(bare, wrapped) {
					t.Errorf("wrapped: %+v\nbare:    %+v", wrapped, bare)
				}
			})
		}
	}
}

// S10: the first byte of a stream comes as soon through the wrapper as without.
func TestFirstByte(t *testing.T) {
	const rounds = 101
	for _, w := range wires() {
		t.Run(w.name, func(t *testing.T) {
			flushed := make(chan time.Time, 1)
			url, base := w.open(t, func(w http.ResponseWriter, r *http.Request) {
				stream(false, textEvent)(w, r)
				flushed <- time.Now()
				<-r.Context().Done()
			})
			// measure returns the times from the call, and from the vendor's flush, to
			// the first event.
			measure := func(rt http.RoundTripper) (whole, late time.Duration) {
				req, start := post(t, url, `{"model":"m"}`), time.Now()
				resp, err := rt.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if _, err := io.ReadFull(resp.Body, make([]byte, len(textEvent))); err != nil {
					t.Fatal(err)
				}
				read := time.Now()
				return read.Sub(start), read.Sub(<-flushed)
			}
			wrapped := &Transport{Base: base, reserve: (&book{}).reserve, DefaultKeyID: "test"}
			var times [4][]time.Duration
			for range rounds { // side by side, so that the machine's load hits both
				for i, rt := range []http.RoundTripper{wrapped, base} {
					whole, late := measure(rt)
					times[i], times[i+2] = append(times[i], whole), append(times[i+2], late)
				}
			}
			var median [4]time.Duration
			for i := range times {
				slices.Sort(times[i])
				median[i] = times[i][rounds/2]
			}
			t.Logf("median of %d to the first event: wrapped %v, bare %v, ratio %.2f; of that after the flush: %v and %v",
				rounds, median[0], median[1], float64(median[0])/float64(median[1]), median[2], median[3])
			if median[0] > median[1]+20*time.Millisecond {
				t.Error("the wrapper holds up the first event by more than 20 ms")
			}
		})
	}
}
