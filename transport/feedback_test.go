package transport

import (
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/headway-go/headway/pause"
	"github.com/headway-go/headway/throttle"
)

// What an answer says is left reaches the limiter before the caller has the
// answer, of accepted and refused calls alike, and not with NoFeedback.
func TestFeedback(t *testing.T) {
	t.Parallel()
	url := vendor(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Ratelimit-Remaining-Requests", "7")
		w.Header().Set("X-Ratelimit-Reset-Requests", "1.5s")
		w.Header().Set("X-Ratelimit-Remaining-Tokens", "many")
		w.WriteHeader(map[string]int{"/ok": 200, "/later": 429}[r.URL.Path])
	})
	for _, path := range []string{"/ok", "/later"} {
		for _, ignore := range []bool{false, true} {
			b := &book{}
			client := b.client(t, func(tr *Transport) {
				openAI(tr)
				tr.NoFeedback = ignore
			})
			resp := do(t, client, post(t, url+path, "{}"))
			want := []throttle.Left{{Unit: throttle.Requests, Window: time.Minute, Scope: pause.Model, Units: 7, Reset: 1500 * time.Millisecond}}
			if ignore {
				want = nil
			}
			if got := b.last(t).left; !slices.Equal(got, want) {
				t.Errorf("%s, NoFeedback %v: the limiter heard %+v, want %+v", path, ignore, got, want)
			}
			resp.Body.Close()
		}
	}
}
