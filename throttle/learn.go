package throttle

import (
	"math"
	"time"

	"github.com/headway-go/headway/lua"
)

// learned is what a model's calls took of what was guessed, see take.lua.
type learned struct {
	at            int64
	calls         int64
	guessed, took lua.Parts
}

const (
	lately      = 256 // calls that are remembered, at most
	enough      = 10  // calls before what they say is believed
	learnedLife = int64(24 * time.Hour / time.Microsecond)
	million     = 1_000_000
)

// lately learns from one more call, unless it was not guessed, and returns what
// calls of the model take of their guesses, in millionths.
func (t *turn) lately(model string, guessed, took lua.Parts) lua.Parts {
	l := t.learn[model]
	if l == nil || l.at+learnedLife <= t.now {
		l = &learned{}
	}
	if guessed.Input+guessed.Output > 0 {
		l.at, l.calls = t.now, l.calls+1
		l.guessed.Input, l.took.Input = l.guessed.Input+guessed.Input, l.took.Input+took.Input
		l.guessed.Output, l.took.Output = l.guessed.Output+guessed.Output, l.took.Output+took.Output
		if l.calls == lately {
			for _, n := range []*int64{&l.calls, &l.guessed.Input, &l.took.Input, &l.guessed.Output, &l.took.Output} {
				*n /= 2
			}
		}
		t.learn[model] = l
	}
	return lua.Parts{Input: l.share(l.took.Input, l.guessed.Input), Output: l.share(l.took.Output, l.guessed.Output)}
}

func (l *learned) share(took, guessed int64) int64 {
	if l.calls < enough || guessed == 0 {
		return 0
	}
	return min(1000*million, max(1, int64(math.Floor(float64(took)*million/float64(guessed)))))
}
