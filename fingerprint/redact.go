package fingerprint

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[redacted]"

// String returns "[redacted]".
func (Credential) String() string { return redacted }

// GoString returns "[redacted]".
func (Credential) GoString() string { return redacted }

// Format writes "[redacted]" whatever the verb and its flags.
func (Credential) Format(f fmt.State, _ rune) { io.WriteString(f, redacted) }

// LogValue returns "[redacted]".
func (Credential) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText returns "[redacted]", also for encoding/json. It never errs.
func (Credential) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// String returns "[redacted]".
func (Pepper) String() string { return redacted }

// GoString returns "[redacted]".
func (Pepper) GoString() string { return redacted }

// Format writes "[redacted]" whatever the verb and its flags.
func (Pepper) Format(f fmt.State, _ rune) { io.WriteString(f, redacted) }

// LogValue returns "[redacted]".
func (Pepper) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText returns "[redacted]", also for encoding/json. It never errs.
func (Pepper) MarshalText() ([]byte, error) { return []byte(redacted), nil }
