package throttle

import (
	"context"
	"log/slog"
	"time"

	"github.com/headway-go/headway/pause"
)

// EventKind says what happened.
type EventKind int

const (
	Admitted       EventKind = iota // a call went; Wait is how long it waited
	RefusedCall                     // a call was refused or deferred; Err says why
	PauseBegan                      // a model or key is held for For from now; Why says why
	PauseGrew                       // the pause that is running became longer: For from now
	Resumed                         // a model or key is open again
	ProbeSent                       // this process sends the probe of a model or key
	ProbeEnded                      // the probe learned nothing; the next call probes
	StoreLost                       // the store does not answer; Err says why
	StoreBack                       // the store answers again
	UnlimitedModel                  // the first call to a model that no limit names
)

var eventNames = [...]string{"admitted", "refused", "pause began", "pause grew", "resumed", "probe sent", "probe ended without an answer", "store lost", "store back", "model without a limit"}

// String returns the kind in words, such as "pause began".
func (k EventKind) String() string {
	if k < 0 || int(k) >= len(eventNames) {
		return "unknown"
	}
	return eventNames[k]
}

// Event is something that happened. Fields that do not apply are zero. It never
// holds a secret.
type Event struct {
	Kind  EventKind
	Key   string      // fingerprint
	Model string      // empty when the event is about the whole key
	Lane  string      // Admitted, RefusedCall
	Scope pause.Scope // what a pause or probe is about
	Why   string      // why a pause began or grew, such as "rate_limited", or "operator"
	Wait  time.Duration
	For   time.Duration
	Err   error
}

// level is Warn for what an operator wants to be told, Debug for decisions.
func (k EventKind) level() slog.Level {
	switch k {
	case Admitted, RefusedCall:
		return slog.LevelDebug
	case Resumed, ProbeSent, ProbeEnded, PauseGrew, StoreBack:
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// emit logs the event and hands it to the hook. No lock may be held.
func (l *Limiter) emit(e Event) {
	ctx := context.Background()
	if level := e.Kind.level(); l.log.Enabled(ctx, level) {
		attrs := make([]slog.Attr, 0, 8)
		text := func(key, v string) {
			if v != "" {
				attrs = append(attrs, slog.String(key, v))
			}
		}
		text("key", e.Key)
		text("model", e.Model)
		text("lane", e.Lane)
		if e.Scope != pause.None {
			text("scope", e.Scope.String())
		}
		text("why", e.Why)
		if e.Wait > 0 {
			attrs = append(attrs, slog.Duration("wait", e.Wait))
		}
		if e.For > 0 {
			attrs = append(attrs, slog.Duration("for", e.For))
		}
		if e.Err != nil {
			text("error", e.Err.Error())
		}
		l.log.LogAttrs(ctx, level, "throttle: "+e.Kind.String(), attrs...)
	}
	if l.config.OnEvent == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			l.log.Error("throttle: OnEvent panicked", "event", e.Kind.String())
		}
	}()
	l.config.OnEvent(e)
}
