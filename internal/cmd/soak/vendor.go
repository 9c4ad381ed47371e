package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/headway-go/headway/internal/vendorsim"
)

// lies are what a vendor, or somebody between, may put in the place of a time.
var lies = []string{"-1", "NaN", "1e400", "99999999999999999999", "", "soon", "0x10", "1,5", "Thu, 01 Jan 1970 00:00:00 GMT", strings.Repeat("9", 4000)}

// vendorFaults makes the vendor answer what vendors answer.
func (s *stage) vendorFaults(ctx context.Context, r *rand.Rand) error {
	models := []string{"sliding", "bucket", "tokens"}
	// next sets the next answers of one model: several, since calls are under way.
	next := func(r *rand.Rand, a vendorsim.Answer) {
		model := models[r.IntN(len(models))]
		for range 1 + r.IntN(3) {
			s.vendor.Script(model, a)
		}
	}
	script := func(name string, a func(*rand.Rand) vendorsim.Answer) fault {
		return fault{name, func(_ context.Context, r *rand.Rand, _ time.Duration) error {
			next(r, a(r))
			return nil
		}}
	}
	always := func(a vendorsim.Answer) func(*rand.Rand) vendorsim.Answer {
		return func(*rand.Rand) vendorsim.Answer { return a }
	}
	later := func(r *rand.Rand) vendorsim.Answer {
		return vendorsim.RateLimited(between(r, 500*time.Millisecond, 3*time.Second), vendorsim.Dialect(r.IntN(int(vendorsim.DialectUnnamed)+1)))
	}
	faults := []fault{
		script("later", later), script("later", later), script("later", later),
		script("later, a lie", func(r *rand.Rand) vendorsim.Answer {
			h := http.Header{"Retry-After": {lies[r.IntN(len(lies))]}, "Retry-After-Ms": {lies[r.IntN(len(lies))]}}
			return vendorsim.Answer{Status: 429, Header: h, Body: `{"error":{"message":"later"}}`}
		}),
		script("overloaded", always(vendorsim.Overloaded529())),
		script("quota gone", always(vendorsim.Quota429())),
		script("server error", always(vendorsim.ServerError500())),
		script("model forbidden", always(vendorsim.ModelForbidden403())),
		script("cut before the answer", always(vendorsim.Answer{Cut: vendorsim.CutBefore})),
		script("cut inside the answer", func(r *rand.Rand) vendorsim.Answer { return vendorsim.Answer{Cut: 1 + r.IntN(300)} }),
		script("slow bytes", func(r *rand.Rand) vendorsim.Answer {
			return vendorsim.Answer{Gap: between(r, 20*time.Millisecond, 300*time.Millisecond)}
		}),
		script("slow error", func(r *rand.Rand) vendorsim.Answer {
			return vendorsim.Answer{Status: 500, Events: []string{`{"err`, `or":`, `{}}`}, Gap: between(r, 100*time.Millisecond, 600*time.Millisecond)}
		}),
		script("late answer", func(r *rand.Rand) vendorsim.Answer {
			return vendorsim.Answer{Delay: between(r, 100*time.Millisecond, 3*time.Second)}
		}),
		{"key refused for a while", func(ctx context.Context, r *rand.Rand, d time.Duration) error {
			key := keys[r.IntN(len(keys))]
			s.vendor.RefuseKey(key, true) // its answer repeats the whole key
			_ = wait(ctx, d)
			s.vendor.RefuseKey(key, false)
			return nil
		}},
	}
	return s.stageAll(ctx, r, [2]time.Duration{100 * time.Millisecond, 1500 * time.Millisecond}, [2]time.Duration{300 * time.Millisecond, 4 * time.Second}, faults)
}
