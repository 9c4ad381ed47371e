package throttle

import (
	"fmt"
	"maps"

	"github.com/headway-go/headway/lua"
)

// Cost is what a call takes, by unit.
type Cost map[string]int64

// Units that have a meaning here or in package transport. Any other name works
// as well: "segments", "images", "characters".
const (
	Requests = "requests"

	// Tokens are those that the vendor counts against a limit of tokens. A cost
	// that names InputTokens and OutputTokens need not name it: it is their sum.
	Tokens = "tokens"

	InputTokens  = "input_tokens"  // of the prompt, as the vendor counts it against a limit
	OutputTokens = "output_tokens" // all that was generated, reasoning included

	// The parts of a prompt, where the vendor tells them apart: what was read from
	// a cache, what was written to one, and the rest. They matter for [Prices].
	CachedTokens     = "cached_tokens"
	CacheWriteTokens = "cache_write_tokens"
	UncachedTokens   = "uncached_tokens"
)

func (c Cost) validate(field string) error {
	for unit, n := range c {
		if n < 0 || n > MaxAmount {
			return fmt.Errorf("%w: %s[%q]: must be 0 to 2^53-1, got %d", ErrInvalid, field, unit, n)
		}
	}
	return nil
}

// named returns what the call is charged in the units that it names: what it
// knows, and what it guesses, set right by what the model's calls took lately.
func (t *target) named(c Call) (cost Cost, guessed lua.Parts) {
	if len(c.Guess) == 0 {
		return c.Cost, guessed
	}
	cost = make(Cost, len(c.Cost)+len(c.Guess)+2)
	maps.Copy(cost, c.Guess)
	maps.Copy(cost, c.Cost)
	part := func(unit string, lately int64) int64 {
		n := c.Guess[unit]
		if _, known := c.Cost[unit]; known || n == 0 {
			return 0
		}
		cost[unit] = scaled(n, lately)
		return n
	}
	guessed.Input, guessed.Output = part(InputTokens, t.input.Load()), part(OutputTokens, t.output.Load())
	return cost, guessed
}

// scaled is n times a share in millionths, rounded up; a share of 0 is unknown.
func scaled(n, share int64) int64 {
	if share == 0 {
		return n
	}
	return Price{Micros: share, Per: million}.times(n)
}

// complete returns the cost with the units that follow from others.
func (l *Limiter) complete(t *target, named Cost) Cost {
	c := maps.Clone(named)
	input, in := c[InputTokens]
	output, out := c[OutputTokens]
	if _, named := c[Tokens]; !named && in && out {
		c[Tokens] = min(sum(input, output), MaxAmount)
	}
	if p := l.config.Prices; p != nil {
		if _, named := c[p.unit]; !named {
			if n, ok := p.of(t, c); ok {
				c[p.unit] = n
			}
		}
	}
	return c
}

// unnamed is the error of a call whose cost lacks a unit that a limit counts.
func (l *Limiter) unnamed(t *target, unit, limit string) error {
	if p := l.config.Prices; p != nil && p.unit == unit {
		return fmt.Errorf("%w: Prices: no price for what a call to %q takes, and %s limits it", ErrInvalid, t.called, limit)
	}
	return fmt.Errorf("%w: Cost: does not name %q, which %s limits", ErrInvalid, unit, limit)
}

// mostLearned is the most tokens of one call that the fleet learns from.
const mostLearned = 1e9

// learn returns what the fleet can learn from what a call took.
func (p *plan) learn(actual Cost) (guessed, took lua.Parts) {
	part := func(guess int64, unit string) (int64, int64) {
		n, named := actual[unit]
		if !named || guess == 0 {
			return 0, 0
		}
		return min(guess, mostLearned), min(n, mostLearned)
	}
	guessed.Input, took.Input = part(p.guessed.Input, InputTokens)
	guessed.Output, took.Output = part(p.guessed.Output, OutputTokens)
	return guessed, took
}

// heard keeps what the fleet has learned of the target.
func (t *target) heard(lately lua.Parts) {
	if lately.Input > 0 {
		t.input.Store(lately.Input)
	}
	if lately.Output > 0 {
		t.output.Store(lately.Output)
	}
}
