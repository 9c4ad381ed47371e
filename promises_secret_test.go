package headway_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway/fingerprint"
	"github.com/headway-go/headway/internal/vendorsim"
	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
)

// heap gathers everything that anybody could read. It is an io.Writer for logs.
type heap struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (h *heap) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(b)
}

// add takes a value the way a program would print it.
func (h *heap) add(values ...any) {
	for _, v := range values {
		fmt.Fprintf(h, "%v\n%+v\n%#v\n", v, v, v)
	}
}

// Promise 24: the API key, and every piece of it, is nowhere (S27).
func TestPromise24_TheKeyIsNowhere(t *testing.T) {
	t.Parallel()
	const secret, pepper = "zQ9xV7kPt3mWc5RbN8sLd2Hf", "Yj4GuT6eKw1oXn0C"
	basic := base64.StdEncoding.EncodeToString([]byte("user:" + secret))
	h := &heap{}
	logger := slog.New(slog.NewJSONHandler(h, &slog.HandlerOptions{Level: slog.LevelDebug}))

	c := models(throttle.PerMinute(throttle.Requests, 100), throttle.PerMinute(throttle.Tokens, 10_000))
	c.Logger, c.Policy = logger, pause.Policy{Refused: 100 * ms}
	w := newWire(t, c, vendorsim.Config{})
	c.StoreTimeout = 50 * ms
	dead := newHost(t, deadRedis(), c)
	for _, host := range []*host{w.a, w.b} {
		host.tap.record()
	}
	for _, tr := range w.transports {
		tr.Logger, tr.Pepper = logger, fingerprint.Pepper(pepper)
	}
	bearer := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+secret) }
	places := map[string]func(*http.Request){
		"bearer":    bearer,
		"x-api-key": func(r *http.Request) { r.Header.Del("Authorization"); r.Header.Set("X-Api-Key", secret) },
		"query":     func(r *http.Request) { r.Header.Del("Authorization"); r.URL.RawQuery = "key=" + secret },
		"basic":     func(r *http.Request) { r.SetBasicAuth("user", secret) },
		"userinfo":  func(r *http.Request) { r.Header.Del("Authorization"); r.URL.User = url.UserPassword("user", secret) },
		"a word":    func(r *http.Request) { r.Header.Set("Authorization", secret) },
	}
	// try makes a call and keeps what the caller gets to see of Headway. The
	// vendor's own answer is not Headway's: it goes to the caller as it is.
	try := func(tr *transport.Transport, a ask) {
		req := w.request(t, a)
		if key, err := tr.Fingerprint(req); err == nil {
			h.add(key)
			if s, err := w.b.Status(t.Context(), key, "m"); err == nil {
				h.add(s)
			}
		}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			h.add(err, errors.Unwrap(err))
			return
		}
		if refused, ok := transport.FromResponse(resp); ok {
			h.add(refused, resp.Header)
			io.Copy(h, resp.Body)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	for name, put := range places {
		host := len(name)
		tr := w.transports[host%2]
		answers := &transport.Transport{Limiter: w.each(host).Limiter, Base: tr.Base, Refusals: transport.AsResponse, Logger: logger}
		large := &transport.Transport{Limiter: w.each(host).Limiter, Cost: throttle.Cost{throttle.Requests: 101}, Logger: logger}
		away := &transport.Transport{Limiter: dead.Limiter, Logger: logger}
		h.add(tr, answers)
		try(tr, ask{edit: put})
		try(large, ask{edit: put})
		try(away, ask{edit: put})
		try(tr, ask{model: "n", edit: func(r *http.Request) { put(r); r.URL.Host = "127.0.0.1:1" }}) // nobody listens
		w.vendor.Script("m", vendorsim.Answer{Cut: vendorsim.CutBefore})
		try(tr, ask{edit: put})
		w.vendor.RefuseKey(secret, true) // the vendor repeats the whole key in its answer
		try(tr, ask{edit: put})
		w.vendor.RefuseKey(secret, false)
		try(tr, ask{lane: lanes.Background, edit: put})
		try(answers, ask{edit: put}.now())
		w.vendor.Script("m", vendorsim.RateLimited(time.Minute, vendorsim.DialectText))
		try(tr, ask{edit: put})
		try(answers, ask{edit: put}.now())
	}
	h.add(fingerprint.Key(secret), fingerprint.Pepper(pepper), struct{ C fingerprint.Credential }{fingerprint.Key(secret)})
	h.add(vendorsim.Key(secret)) // test output

	for _, e := range append(append(w.a.news.all(), w.b.news.all()...), dead.news.all()...) {
		h.add(e)
	}
	for _, cmd := range append(w.a.tap.recorded(), w.b.tap.recorded()...) {
		for _, arg := range cmd.args {
			fmt.Fprintf(h, "%s\n", arg)
		}
		fmt.Fprintf(h, "%s\n", cmd.reply)
	}
	eventually(t, "both hosts are announced", func() bool {
		return w.db.Exists(t.Context(), w.names(w.call(t, ask{edit: bearer}).Key).Fleet()).Val() == 1
	})
	for _, k := range scan(t, w.db, w.prefix) {
		fmt.Fprintf(h, "%s %s %s %v %v\n", k, w.db.Dump(t.Context(), k).Val(), w.db.Get(t.Context(), k).Val(),
			w.db.HGetAll(t.Context(), k).Val(), w.db.ZRange(t.Context(), k, 0, -1).Val())
	}

	h.mu.Lock()
	defer h.mu.Unlock()
	text := h.text.String()
	for _, want := range []string{w.call(t, ask{edit: bearer}).Key, "store unavailable", "too large", "connection refused", "pause began", "key paused", "model paused", "Kind:", "evalsha"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not among what was gathered, so the test does not see everything", want)
		}
	}
	for _, hidden := range []string{secret, basic, pepper} {
		for i, piece := range parts(hidden, 8) {
			if at := strings.Index(text, piece); at >= 0 {
				around := strings.ReplaceAll(text[max(0, at-60):at], "\n", " ")
				t.Errorf("bytes %d to %d of a secret stand behind %q", i, i+8, around)
			}
		}
	}
}
