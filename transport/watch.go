package transport

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/headway-go/headway/throttle"
)

type watchKey struct{}

// watch is where RoundTrip leaves the refusal of a call.
type watch struct {
	mu  sync.Mutex
	err error
}

// Watch returns a context that remembers why a call under it was refused, for
// SDKs that replace the error of their client by words of their own. [Restore]
// gives it back:
//
//	ctx = transport.Watch(ctx)
//	answer, err := sdk.Generate(ctx, prompt)
//	err = transport.Restore(ctx, err)
//
// It remembers refusals (*[throttle.RefusedError]) and outages
// ([throttle.ErrStoreUnavailable]), in whichever form they reached the SDK. Watch
// anew for every call of an SDK: of several calls under one context, also at the
// same time, the last refusal counts, and nothing forgets it.
func Watch(ctx context.Context) context.Context {
	return context.WithValue(ctx, watchKey{}, new(watch))
}

// Restore returns err with the refusal or outage that ctx remembers, so that
// errors.Is and errors.As find both. A nil err stays nil: the SDK tried again,
// and it went well. It returns err itself if ctx remembers nothing, or nothing
// that err lacks. Safe for concurrent use.
func Restore(ctx context.Context, err error) error {
	w, ok := ctx.Value(watchKey{}).(*watch)
	if err == nil || !ok {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil || errors.Is(err, w.err) {
		return err
	}
	return fmt.Errorf("%w: %w", err, w.err)
}

// remember leaves a refusal or an outage where Restore finds it.
func remember(ctx context.Context, err error) {
	w, ok := ctx.Value(watchKey{}).(*watch)
	if !ok || !errors.Is(err, throttle.ErrRefused) && !errors.Is(err, throttle.ErrStoreUnavailable) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}
