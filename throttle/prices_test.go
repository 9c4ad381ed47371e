package throttle

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/lanes"
)

func prices(t *testing.T, table PriceTable) *Prices {
	t.Helper()
	p, err := NewPrices(USD, table)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Money is one more unit: estimated from the guess, settled by the vendor's
// count, limited by the day for the key and by the hour for background work.
func TestMoney(t *testing.T) {
	t.Parallel()
	hour := Per(USD, Micros(1), time.Hour)
	hour.Lane = lanes.Background.Name
	c := models(PerMinute(Requests, 1000))
	c.Key = []Limit{PerDay(USD, Micros(5)), hour}
	c.Prices = prices(t, PriceTable{"m*": {InputTokens: PerMillion(2.5), CachedTokens: PerMillion(1.25), OutputTokens: PerMillion(10)}})
	onBoth(t, c, func(t *testing.T, p *pair) {
		spent := func() (day, hour int64) {
			t.Helper()
			s, err := p.b.Status(t.Context(), "key", "m")
			if err != nil {
				t.Fatal(err)
			}
			return s.Limits[0].Used, s.Limits[1].Used
		}
		c := call()
		c.Guess = tokens(100_000, 25_000)
		c.Lane = lanes.Background
		held := reserve(t, p.a, c)
		if day, hour := spent(); day != 500_000 || hour != 500_000 {
			t.Fatalf("spent %d of the day and %d of the hour, want half a dollar each", day, hour)
		}
		actual := Cost{InputTokens: 100_000, OutputTokens: 5_000, UncachedTokens: 20_000, CachedTokens: 80_000, CacheWriteTokens: 0}
		settle(t, held, actual) // 0.05 + 0.10 + 0.05
		if day, hour := spent(); day != 200_000 || hour != 200_000 {
			t.Errorf("spent %d of the day and %d of the hour after settling, want 0.2 dollars each", day, hour)
		}
		c.Guess = tokens(320_000, 0) // 0.8
		reserve(t, p.a, c)
		if e := refuse(t, p.a, c); e.Unit != USD || !strings.Contains(e.Limit, "per 1h0m0s") {
			t.Errorf("refused by %q in %q, want the hour's money", e.Limit, e.Unit)
		}
		c.Lane, c.Guess = lanes.Live, tokens(0, 350_000) // the day has 4 dollars left
		reserve(t, p.b, c)
		if e := refuse(t, p.b, c); e.Unit != USD || !strings.Contains(e.Limit, "per 24h0m0s") {
			t.Errorf("refused by %q in %q, want the day's money", e.Limit, e.Unit)
		}
	})
}

// A model without a price, or a call that names nothing with a price, is an error under a limit of money.
func TestMissingPrice(t *testing.T) {
	t.Parallel()
	c := Config{Key: []Limit{PerDay(USD, 100)}, Prices: prices(t, PriceTable{"priced": {"segments": Each(0.01)}})}
	onBoth(t, c, func(t *testing.T, p *pair) {
		for _, tc := range []struct {
			call Call
			want string
		}{
			{Call{Key: "key", Model: "new", Cost: Cost{"segments": 1}}, `Prices: no price for what a call to "new" takes, and 100 usd_micros per 24h0m0s limits it`},
			{Call{Key: "key", Model: "priced", Cost: Cost{Requests: 1}}, `Prices: no price for what a call to "priced" takes`},
		} {
			if _, err := p.a.Reserve(t.Context(), tc.call); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Reserve() = %v, want ErrInvalid with %q", err, tc.want)
			}
		}
		c := Call{Key: "key", Model: "new", Cost: Cost{USD: 40}} // the caller knows
		if got := reserve(t, p.a, c).Cost()[USD]; got != 40 {
			t.Errorf("Cost() = %d, want 40", got)
		}
	})
}

// Prices change while limiters run; a wrong table leaves the old one in use.
func TestPricesAreReloaded(t *testing.T) {
	t.Parallel()
	c := models(PerDay(USD, Micros(1)))
	c.Prices = prices(t, PriceTable{"m": {"segments": Each(0.01)}})
	l := newLimiter(t, c)
	ask := call()
	ask.Cost = Cost{"segments": 3}
	if got := reserve(t, l, ask).Cost()[USD]; got != 30_000 {
		t.Errorf("Cost() = %d, want 30000", got)
	}
	for name, table := range map[string]PriceTable{
		`Prices: table: must not be nil`:                          nil,
		`Prices["m"]["segments"]: must be 0 to 2^53-1 micros for`: {"m": {"segments": Price{1, 0}}},
		`Prices["n"]["tokens"]: must be 0 to 2^53-1 micros`:       {"m": {}, "n": {Tokens: Each(-1)}},
	} {
		if err := c.Prices.Set(table); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("Set(%v) = %v, want %q", table, err, name)
		}
	}
	if err := c.Prices.Set(PriceTable{"m": {"segments": Each(0.02)}}); err != nil {
		t.Fatal(err)
	}
	if got := reserve(t, l, ask).Cost()[USD]; got != 60_000 {
		t.Errorf("Cost() = %d with the new price, want 60000", got)
	}
	if _, err := NewPrices(USD, nil); err == nil {
		t.Error("NewPrices(nil) = nil, want an error")
	}
	if _, err := NewPrices("", PriceTable{}); err == nil || !strings.Contains(err.Error(), "unit") {
		t.Errorf("NewPrices(\"\") = %v, want an error that names the unit", err)
	}
}

func TestPriceOf(t *testing.T) {
	t.Parallel()
	table := PriceTable{
		"chat":   {InputTokens: PerMillion(3), CachedTokens: PerMillion(0.3), CacheWriteTokens: PerMillion(3.75), OutputTokens: PerMillion(15)},
		"plain":  {InputTokens: PerMillion(1), OutputTokens: PerMillion(2)},
		"chat-*": {Requests: Each(0.5)},
		"*":      {"segments": Price{79, 10_000}},
		"huge":   {Tokens: Price{MaxAmount, 1}},
		"family": {Requests: Each(2)},
	}
	p := prices(t, table)
	parts := Cost{InputTokens: 100, UncachedTokens: 30, CachedTokens: 60, CacheWriteTokens: 10, OutputTokens: 20}
	for _, tc := range []struct {
		name, called, model string
		cost                Cost
		want                int64
		ok                  bool
	}{
		{"parts", "chat", "chat", parts, 90 + 18 + 38 + 300, true}, // 37.5 rounded up
		{"parts without prices of their own", "plain", "plain", parts, 30 + 60 + 10 + 40, true},
		{"no parts", "chat", "chat", tokens(100, 20), 300 + 300, true},
		{"pattern", "chat-x", "chat-x", Cost{Requests: 2}, 1_000_000, true},
		{"longest pattern goes first, and names no such unit", "chat-x", "chat-x", Cost{"segments": 2}, 0, false},
		{"rounded up", "sms", "sms", Cost{"segments": 1}, 1, true},
		{"free", "sms", "sms", Cost{"segments": 0}, 0, true},
		{"no more than can be counted", "huge", "huge", Cost{Tokens: MaxAmount}, MaxAmount, true},
		{"its own name goes before its budget's", "plain", "family", Cost{Requests: 1}, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, ok := p.of(&target{called: tc.called, model: tc.model}, tc.cost)
			if got != tc.want || ok != tc.ok {
				t.Errorf("of() = %d, %v, want %d, %v", got, ok, tc.want, tc.ok)
			}
		})
	}
	delete(table, "*")
	if got, ok := prices(t, table).of(&target{called: "dated", model: "family"}, Cost{Requests: 1}); got != 2_000_000 || !ok {
		t.Errorf("of() = %d, %v, want the price of its budget's name", got, ok)
	}
}
