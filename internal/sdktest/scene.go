package sdktest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/lanes"
	"github.com/headway-go/headway/throttle"
	"github.com/headway-go/headway/transport"
)

// atOnce is the longest that a refusal takes. The shortest backoff of the SDKs
// here is longer.
const atOnce = 300 * time.Millisecond

// Run plays the scene and records its row.
func Run(t *testing.T, s SDK) {
	row := Row{SDK: s.Name, Module: s.Module}
	t.Run("call", func(t *testing.T) { row.Call = call(t, s) })
	t.Run("stream", func(t *testing.T) { row.Stream = stream(t, s) })
	t.Run("refusal", func(t *testing.T) { refusal(t, s, &row) })
	t.Run("vendor 429", func(t *testing.T) { row.TooMany = tooMany(t, s) })
	t.Run("refused key", func(t *testing.T) { row.Key = refusedKey(t, s) })
	Record(t, row)
}

func call(t *testing.T, s SDK) string {
	r := newRig(t, s, lanes.Live)
	if err := r.client.Call(t.Context(), Model); err != nil {
		t.Fatal(err)
	}
	if requests, _ := r.used(Model); requests != 1 {
		t.Errorf("used %d requests, want 1", requests)
	}
	if counted := r.vendor.Counted(); !r.settles(counted) {
		_, units := r.used(Model)
		t.Errorf("used %d units, want the vendor's %d", units, counted)
	}
	return "yes, settled"
}

// S10: the client has the first piece while the vendor still sends.
// S19: without a count the estimate stays.
func stream(t *testing.T, s SDK) string {
	r := newRig(t, s, lanes.Live)
	if r.client.Stream == nil {
		return "none"
	}
	open := r.stream.shut()
	var estimate int64
	err := r.client.Stream(t.Context(), Model, func() {
		if estimate == 0 {
			_, estimate = r.used(Model)
		}
		open()
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.stream.forced.Load() {
		t.Errorf("the SDK held no piece of the answer %v after the vendor had sent it", patience)
	}
	want, cell := r.vendor.Counted(), "live, settled"
	if s.BlindStream {
		want, cell = estimate, "live, the estimate stays"
	}
	if estimate == 0 || !r.settles(want) {
		_, units := r.used(Model)
		t.Errorf("used %d units, and %d in the end, want an estimate and %d", estimate, units, want)
	}
	return cell
}

func refusal(t *testing.T, s SDK, row *Row) {
	r := newRig(t, s, lanes.Background)
	ctx := lanes.With(t.Context(), lanes.Background)
	share := lanes.Background.Ceiling(requests)
	for range share {
		if err := r.client.Call(ctx, Model); err != nil {
			t.Fatal(err)
		}
	}
	ctx = transport.Watch(ctx)
	took := time.Duration(math.MaxInt64) // of the fastest: the machine may be busy
	var err error
	for range 3 {
		r.wire.attempts.Store(0)
		began := time.Now()
		err = r.client.Call(ctx, Model)
		took = min(took, time.Since(began))
		row.Attempts = max(row.Attempts, int(r.wire.attempts.Load()))
	}
	if row.Attempts != 1 {
		t.Errorf("%d attempts, want 1", row.Attempts)
	}
	if took > atOnce {
		t.Errorf("the refusal took %v, want it at once", took)
	}
	row.Lost = "none"
	if got := int64(r.calls.Load()); got != share {
		t.Errorf("the vendor saw %d calls, want %d", got, share)
	}
	refused, ways := r.recover(ctx, err)
	if refused == nil {
		t.Fatalf("error %v (%T) carries no refusal", err, err)
	}
	if refused.Reason != throttle.NoRoom || refused.Limit != "10 requests per 1m0s" || refused.Lane != "background" ||
		!errors.Is(refused, throttle.ErrDeferred) || refused.RetryAfter <= 0 {
		t.Errorf("refusal %+v, want no room in 10 requests per 1m0s for background, deferred", refused)
	}
	row.Reason = strings.Join(ways, ", or ")
}

// recover returns the refusal behind an error of the SDK, nil if there is none,
// and every way that leads to it. ctx is the one that Watch returned.
func (r *rig) recover(ctx context.Context, err error) (refused *throttle.RefusedError, ways []string) {
	if errors.As(err, &refused) {
		ways = append(ways, "`errors.As`")
	}
	if r.client.Refusal != nil {
		if got := r.client.Refusal(err); got != nil {
			refused, ways = got, append(ways, "`"+r.client.RefusalBy+"`")
		}
	}
	var restored *throttle.RefusedError
	if !errors.As(err, &restored) && errors.As(transport.Restore(ctx, err), &restored) {
		refused, ways = restored, append(ways, "`transport.Restore`")
	}
	return refused, ways
}

// tooMany has the vendor refuse one call. What an SDK then sends again is a new
// call: it waits for the end of the pause, and spends budget.
func tooMany(t *testing.T, s SDK) string {
	r := newRig(t, s, lanes.Live)
	r.vendor.Later()
	ctx := transport.Watch(t.Context())
	began := time.Now()
	err := r.client.Call(ctx, Model)
	attempts := r.wire.attempts.Load()
	counted := int64(r.calls.Load())
	if s.Profile != nil && slices.Contains(s.Profile.Free, http.StatusTooManyRequests) {
		counted--
	}
	if requests, _ := r.used(Model); requests != counted {
		t.Errorf("%d requests spent, want %d", requests, counted)
	}
	if err == nil {
		if r.since(began) < time.Second {
			t.Errorf("the vendor saw the retry after %v, before the second that it named", r.since(began))
		}
		return fmt.Sprintf("%d attempts: the last one goes out after the pause", attempts)
	}
	if got := r.calls.Load(); got != 1 {
		t.Errorf("the vendor saw %d calls, want 1", got)
	}
	if refused, _ := r.recover(ctx, err); refused != nil {
		if !paused(refused) {
			t.Errorf("refusal %+v, want a pause", refused)
		}
		return fmt.Sprintf("%d attempts: the last one is refused, %v", attempts, refused.Reason)
	}
	cell := fmt.Sprintf("%d attempt: %s", attempts, r.status(err, http.StatusTooManyRequests))
	// The next call is held: it waits for the end of the pause, or cannot.
	ctx = transport.Watch(t.Context())
	err = r.client.Call(ctx, Model)
	if refused, _ := r.recover(ctx, err); refused != nil && paused(refused) {
		return cell
	}
	if err != nil || r.since(began) < time.Second {
		t.Errorf("the next call got %v after %v, want it held for the second that the vendor named", err, r.since(began))
	}
	return cell
}

func paused(e *throttle.RefusedError) bool {
	return e.Reason == throttle.ModelPaused || e.Reason == throttle.KeyPaused
}

// refusedKey has the vendor refuse the key: that stops every model of the key.
func refusedKey(t *testing.T, s SDK) string {
	r := newRig(t, s, lanes.Live)
	r.vendor.RefuseKey()
	err := r.client.Call(t.Context(), Model)
	if err == nil {
		t.Fatal("a refused key is no error")
	}
	cell := fmt.Sprintf("%d attempt: %s", r.wire.attempts.Load(), r.status(err, http.StatusUnauthorized, http.StatusForbidden))
	ctx := transport.Watch(t.Context())
	err = r.client.Call(ctx, Another)
	refused, _ := r.recover(ctx, err)
	if refused == nil || refused.Reason != throttle.KeyPaused || refused.RetryAfter < 4*time.Minute {
		t.Fatalf("the call to another model got %v, want the key paused for five minutes", err)
	}
	if got := r.calls.Load(); got != 1 {
		t.Errorf("the vendor saw %d calls, want 1", got)
	}
	return cell
}

// status says how the SDK's error tells the vendor's status, which must be one
// of those wanted.
func (r *rig) status(err error, want ...int) string {
	r.t.Helper()
	for _, status := range want {
		if r.client.Status != nil && r.client.Status(err) == status {
			return strconv.Itoa(status)
		}
		if r.client.Status == nil && strings.Contains(err.Error(), strconv.Itoa(status)) {
			return strconv.Itoa(status) + " in its text"
		}
	}
	r.t.Errorf("error %v (%T), want the vendor's %v", err, err, want)
	return ""
}
