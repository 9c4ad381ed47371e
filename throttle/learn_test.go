package throttle

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// traffic is a mix of calls to one model: what is guessed of a call, and what it
// takes in the end.
type traffic struct {
	name string
	call func(r *rand.Rand) (guess, took Cost)
}

func tokens(input, output int64) Cost { return Cost{InputTokens: input, OutputTokens: output} }

// around returns a number near mean, as answers vary: seldom below a third of
// it, seldom above three times.
func around(r *rand.Rand, mean float64) int64 {
	return int64(math.Exp(r.NormFloat64()*0.4) * mean)
}

// near returns n times about by: texts of one kind differ by a tenth or so.
func near(r *rand.Rand, n int64, by float64) int64 {
	return int64(float64(n) * by * math.Exp(r.NormFloat64()*0.1))
}

// The mixes differ in where the guess goes wrong: the caps, the language, both.
var mixes = []traffic{
	{"chat with generous caps", func(r *rand.Rand) (guess, took Cost) {
		input := around(r, 600)
		return tokens(input, 4096), tokens(near(r, input, 1.1), min(4096, around(r, 250)))
	}},
	{"long documents in another alphabet, no caps", func(r *rand.Rand) (guess, took Cost) {
		input := around(r, 8000)
		return tokens(input, 1024), tokens(near(r, input, 1.9), around(r, 120))
	}},
	{"short and long calls, three caps, two answers each", func(r *rand.Rand) (guess, took Cost) {
		limit := []int64{256, 1024, 16384}[r.IntN(3)]
		input := around(r, []float64{80, 2000}[r.IntN(2)])
		return tokens(input, 2*limit), tokens(near(r, input, 0.9), 2*min(limit, around(r, float64(limit)/12)))
	}},
}

// After 50 settled calls the estimate is at most half as wrong as the guess, and
// what is reserved fits what is taken, also on a host that has just begun.
func TestEstimatesLearn(t *testing.T) {
	t.Parallel()
	for _, mix := range mixes {
		t.Run(mix.name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, models(PerMinute(Tokens, MaxAmount)), func(t *testing.T, p *pair) {
				r := rand.New(rand.NewPCG(7, 11))
				c := call()
				c.Cost = nil
				one := func(l *Limiter) (guess, estimate, took int64) {
					var actual Cost
					c.Guess, actual = mix.call(r)
					held := reserve(t, l, c)
					settle(t, held, actual)
					return c.Guess[InputTokens] + c.Guess[OutputTokens], held.Cost()[Tokens], actual[InputTokens] + actual[OutputTokens]
				}
				for range 50 {
					one(p.a)
				}
				one(p.b) // the other host hears of it with its first answer
				var guessed, estimated, wrong, wrongBefore, taken int64
				for i := range 200 {
					guess, estimate, took := one(p.each(i))
					guessed, estimated, taken = guessed+guess, estimated+estimate, taken+took
					wrongBefore += max(guess-took, took-guess)
					wrong += max(estimate-took, took-estimate)
				}
				ratio := float64(estimated) / float64(taken)
				t.Logf("wrong by %.2f of the guess's error; reserved %.2f of what was taken, the guess %.2f",
					float64(wrong)/float64(wrongBefore), ratio, float64(guessed)/float64(taken))
				if 2*wrong > wrongBefore {
					t.Errorf("the estimates were wrong by %d, the guesses by %d: want half at most", wrong, wrongBefore)
				}
				if ratio < 0.9 || ratio > 1.3 {
					t.Errorf("reserved %.2f of what was taken, want 0.9 to 1.3", ratio)
				}
			})
		})
	}
}

// What is learned of one model is that model's alone, and wild counts are cut.
func TestLearningIsBounded(t *testing.T) {
	t.Parallel()
	limits := []Limit{PerMinute(Tokens, MaxAmount)}
	onBoth(t, Config{Models: map[string][]Limit{"m": limits, "other": limits}}, func(t *testing.T, p *pair) {
		c := call()
		c.Cost, c.Guess = nil, tokens(1, 1)
		for range 300 { // more than are remembered
			settle(t, reserve(t, p.a, c), tokens(1e12, 1e12))
		}
		c.Guess = tokens(10, 20)
		if got := reserve(t, p.a, c).Cost()[Tokens]; got != 30*1000 {
			t.Errorf("Cost() = %d after wild counts, want 1000 times the guess of 30", got)
		}
		c.Model = "other"
		if got := reserve(t, p.a, c).Cost()[Tokens]; got != 30 {
			t.Errorf("Cost() = %d, want another model's guess as it is", got)
		}
		c.Model, c.Guess = "m", tokens(MaxAmount, MaxAmount)
		if got := reserve(t, newLimiter(t, Config{Models: map[string][]Limit{"m": limits}}), c).Cost()[Tokens]; got != MaxAmount {
			t.Errorf("Cost() = %d, want %d", got, int64(MaxAmount))
		}
		c.Model, c.Guess = "other", tokens(10, 20)
		c.Cost = Cost{Tokens: 7}
		for range 20 {
			settle(t, reserve(t, p.b, c), tokens(100, 200))
		}
		if got := reserve(t, p.b, c).Cost()[Tokens]; got != 7 {
			t.Errorf("Cost() = %d, want the 7 that are known", got)
		}
	})
}

// Only whole counts teach: a cut stream, a call that never went, and ten calls
// that are too few say nothing.
func TestWhatDoesNotTeach(t *testing.T) {
	t.Parallel()
	onBoth(t, models(PerMinute(Tokens, MaxAmount)), func(t *testing.T, p *pair) {
		c := call()
		c.Cost, c.Guess = nil, tokens(100, 1000)
		for range 9 {
			settle(t, reserve(t, p.a, c), tokens(100, 10))
		}
		for range 20 {
			if err := reserve(t, p.a, c).SettleAtLeast(t.Context(), tokens(5000, 10)); err != nil {
				t.Fatal(err)
			}
			if err := reserve(t, p.a, c).Cancel(t.Context()); err != nil {
				t.Fatal(err)
			}
			settle(t, reserve(t, p.a, c), Cost{Tokens: 50})
			settle(t, reserve(t, p.a, c), nil)
		}
		if got := reserve(t, p.a, c).Cost()[Tokens]; got != 1100 {
			t.Errorf("Cost() = %d after 9 whole counts, want the guess of 1100", got)
		}
		settle(t, reserve(t, p.a, c), tokens(100, 10))
		if got := reserve(t, p.a, c).Cost()[Tokens]; got != 110 {
			t.Errorf("Cost() = %d after 10 whole counts, want 110", got)
		}
	})
}

// A count that is not final charges what is above the estimate, and gives nothing back.
func TestSettleAtLeast(t *testing.T) {
	t.Parallel()
	limits := models(PerMinute(Tokens, 10_000), PerMinute(InputTokens, 10_000), PerMinute(OutputTokens, 10_000))
	onBoth(t, limits, func(t *testing.T, p *pair) {
		c := call()
		c.Cost, c.Guess = nil, tokens(100, 1000)
		held := reserve(t, p.a, c)
		if err := held.SettleAtLeast(t.Context(), tokens(300, 10)); err != nil {
			t.Fatal(err)
		}
		settle(t, held, tokens(0, 0)) // ended: no effect
		got := used(t, p.b, "m")
		if got[Tokens] != 1100 || got[InputTokens] != 300 || got[OutputTokens] != 1000 {
			t.Errorf("used %v, want 1100 tokens: 300 of input, 1000 of output", got)
		}
	})
}

func settle(t *testing.T, r *Reservation, actual Cost) {
	t.Helper()
	if err := r.Settle(t.Context(), actual); err != nil {
		t.Fatal(err)
	}
}

// What a model learned is forgotten after a day without calls.
func TestLearningFades(t *testing.T) {
	t.Parallel()
	clock := time.Now()
	m := NewMemoryClock(func() time.Time { return clock })
	c := models(PerMinute(Tokens, MaxAmount))
	c.Memory = m
	l := newLimiter(t, c)
	ask := call()
	ask.Cost, ask.Guess = nil, tokens(100, 1000)
	for range 10 {
		settle(t, reserve(t, l, ask), tokens(100, 10))
	}
	clock = clock.Add(25 * time.Hour)
	again := newLimiter(t, c)
	settle(t, reserve(t, again, ask), tokens(100, 1000))
	if got := reserve(t, again, ask).Cost()[Tokens]; got != 1100 {
		t.Errorf("Cost() = %d a day later, want the guess of 1100", got)
	}
}
