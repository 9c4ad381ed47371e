package throttle

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
)

// USD is the usual unit of money: millionths of a dollar. A limit of 5 dollars a
// day is PerDay(USD, Micros(5)).
const USD = "usd_micros"

// Micros returns an amount of money in millionths, rounded to the nearest.
func Micros(amount float64) int64 { return int64(math.Round(amount * million)) }

// Price is what units cost: Micros millionths of the currency for Per units.
// [PerMillion] and [Each] make the usual ones.
type Price struct{ Micros, Per int64 }

// PerMillion is the price of a unit of which a million cost so much, such as
// tokens.
func PerMillion(amount float64) Price { return Price{Micros(amount), million} }

// Each is the price of one unit, such as a segment of a text message.
func Each(amount float64) Price { return Price{Micros(amount), 1} }

// PriceTable holds prices by model and by unit. A name of a model that ends in
// "*" stands for all names that begin so; the longest that matches wins.
//
// [CachedTokens] and [CacheWriteTokens] without a price of their own cost what
// [InputTokens] do. A unit without a price costs nothing.
type PriceTable map[string]map[string]Price

// Prices is a price table in use. It turns the other units of a call into money,
// rounded up to whole millionths for each unit, which is one more unit for
// limits to count. It is safe for concurrent use, and [Prices.Set] replaces the
// table while limiters use it: the prices are the user's, and change.
type Prices struct {
	unit  string
	table atomic.Pointer[PriceTable]
}

// NewPrices returns a price table whose money is counted in a unit, such as
// [USD].
func NewPrices(unit string, table PriceTable) (*Prices, error) {
	if unit == "" || len(unit) > 64 {
		return nil, fmt.Errorf("throttle: Prices: unit: must have 1 to 64 bytes, got %d", len(unit))
	}
	p := &Prices{unit: unit}
	return p, p.Set(table)
}

// Set replaces the table for the calls from now on. A wrong table is an error
// that names the price, and leaves the old one in use.
func (p *Prices) Set(table PriceTable) error {
	if table == nil {
		return errors.New("throttle: Prices: table: must not be nil")
	}
	own := make(PriceTable, len(table))
	for _, model := range slices.Sorted(maps.Keys(table)) {
		own[model] = maps.Clone(table[model])
		for unit, price := range own[model] {
			if price.Micros < 0 || price.Micros > MaxAmount || price.Per < 1 {
				return fmt.Errorf("throttle: Prices[%q][%q]: must be 0 to 2^53-1 micros for at least 1 unit, got %d for %d",
					model, unit, price.Micros, price.Per)
			}
		}
	}
	p.table.Store(&own)
	return nil
}

// of returns the price of a call, by the name it used or by that of its budget;
// false if it has none.
func (p *Prices) of(t *target, c Cost) (total int64, ok bool) {
	table := *p.table.Load()
	prices, ok := match(table, t.called)
	if !ok {
		prices, ok = match(table, t.model)
	}
	if !ok {
		return 0, false
	}
	priced := false
	add := func(price Price, unit string) {
		if n, named := c[unit]; named {
			total, priced = min(sum(total, price.times(n)), MaxAmount), true
		}
	}
	_, parted := c[UncachedTokens]
	for unit, price := range prices {
		switch {
		case unit == InputTokens && parted:
			add(price, UncachedTokens)
			for _, part := range [...]string{CachedTokens, CacheWriteTokens} {
				if _, own := prices[part]; !own {
					add(price, part)
				}
			}
		case (unit == CachedTokens || unit == CacheWriteTokens) && !parted: // they are in the input
		default:
			add(price, unit)
		}
	}
	return total, priced
}

// times returns the price of n units, rounded up, at most MaxAmount.
func (p Price) times(n int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(p.Micros))
	if hi >= uint64(p.Per) {
		return MaxAmount
	}
	whole, rest := bits.Div64(hi, lo, uint64(p.Per))
	if rest > 0 {
		whole++
	}
	return int64(min(whole, MaxAmount))
}
