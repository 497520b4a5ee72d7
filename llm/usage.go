package llm

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Usage counts the tokens of one exchange. The prompt was Input+CacheRead+CacheWrite tokens, the reply Output.
type Usage struct {
	Input      int  `json:"input,omitempty"`       // prompt tokens neither read from nor written to a cache
	CacheRead  int  `json:"cache_read,omitempty"`  // prompt tokens read from a cache
	CacheWrite int  `json:"cache_write,omitempty"` // prompt tokens written to a cache
	CacheHour  int  `json:"cache_hour,omitempty"`  // the part of CacheWrite that is kept for an hour
	Output     int  `json:"output,omitempty"`      // all reply tokens, reasoning included
	Reasoning  int  `json:"reasoning,omitempty"`   // the part of Output that was reasoning
	Estimated  bool `json:"estimated,omitempty"`   // the provider gave no figures; these are estimates

	// Tier is how the provider served the exchange if not by its standard, in the words of [Price.Tiers],
	// separated by spaces: "priority", "batch", "fast region". A sum has none.
	Tier string `json:"tier,omitempty"`
}

// Prompt returns the size of the whole prompt in tokens.
func (u Usage) Prompt() int { return u.Input + u.CacheRead + u.CacheWrite }

// Add returns the sum of two usages.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input:      u.Input + v.Input,
		CacheRead:  u.CacheRead + v.CacheRead,
		CacheWrite: u.CacheWrite + v.CacheWrite,
		CacheHour:  u.CacheHour + v.CacheHour,
		Output:     u.Output + v.Output,
		Reasoning:  u.Reasoning + v.Reasoning,
		Estimated:  u.Estimated || v.Estimated,
	}
}

// Price is what a provider charges, in US dollars per million tokens.
type Price struct {
	Input      float64 `json:"input" toml:"input"`
	CacheRead  float64 `json:"cache_read" toml:"cache_read"`
	CacheWrite float64 `json:"cache_write" toml:"cache_write"`
	Output     float64 `json:"output" toml:"output"`

	// CacheHour is the price of cache entries kept for an hour. If zero, it is CacheWrite.
	CacheHour float64 `json:"cache_hour,omitempty" toml:"cache_hour"`
	// From is the first day of the price, "2026-10-07" in UTC; empty means since the beginning.
	From string `json:"from,omitempty" toml:"from"`
	// Long is the price of the whole exchange if the prompt has more than Above tokens; nil if it is the same.
	Above int    `json:"above,omitempty" toml:"above"`
	Long  *Price `json:"long,omitempty" toml:"long"`
	// Tiers multiply the price of an exchange that was not served by the standard, for example "batch" by 0.5.
	Tiers map[string]float64 `json:"tiers,omitempty" toml:"tiers"`
}

// For returns the price of an exchange with usage u, and whether its tier has a known price. An unknown tier is
// charged like the standard.
func (p Price) For(u Usage) (price Price, known bool) {
	factor, known := 1.0, true
	for tier := range strings.FieldsSeq(u.Tier) {
		f, ok := p.Tiers[tier]
		if !ok {
			known = false
			continue
		}
		factor *= f
	}
	if p.Long != nil && u.Prompt() > p.Above {
		p = *p.Long
	}
	p.CacheHour = cmp.Or(p.CacheHour, p.CacheWrite)
	p.times(factor)
	return p, known
}

func (p *Price) times(factor float64) {
	for _, x := range []*float64{&p.Input, &p.CacheRead, &p.CacheWrite, &p.CacheHour, &p.Output} {
		*x *= factor
	}
}

// Cost returns the price of u in US dollars.
func (p Price) Cost(u Usage) float64 {
	p, _ = p.For(u)
	return (float64(u.Input)*p.Input + float64(u.CacheRead)*p.CacheRead +
		float64(u.CacheWrite-u.CacheHour)*p.CacheWrite + float64(u.CacheHour)*p.CacheHour + float64(u.Output)*p.Output) / 1e6
}

// Prices are the past, present and announced prices of a model, the oldest first. If empty, the price is
// unknown.
type Prices []Price

// At returns the price at a time, and whether it is known.
func (p Prices) At(t time.Time) (Price, bool) {
	day := t.UTC().Format(time.DateOnly)
	for _, price := range slices.Backward(p) {
		if price.From <= day {
			return price, true
		}
	}
	return Price{}, false
}

// In returns the prices for a place or a tier, such as "region", that applies to all exchanges. A price without
// such a tier is unchanged.
func (p Prices) In(tier string) Prices {
	out := slices.Clone(p)
	for i, price := range out {
		f, ok := price.Tiers[tier]
		if !ok {
			continue
		}
		tiers := maps.Clone(price.Tiers)
		tiers[tier] = 1 // it is counted once
		out[i].Tiers = tiers
		out[i].times(f)
		if price.Long != nil {
			long := *price.Long
			long.times(f)
			out[i].Long = &long
		}
	}
	return out
}

// Free reports whether the model is free, now and in the future.
func (p Prices) Free() bool {
	return len(p) > 0 && !slices.ContainsFunc(p, func(price Price) bool {
		return price.Input != 0 || price.CacheRead != 0 || price.CacheWrite != 0 || price.CacheHour != 0 || price.Output != 0 || price.Long != nil
	})
}

// Bill returns the cost of an exchange in US dollars, and whether its price is known.
func (p Prices) Bill(t time.Time, u Usage) (dollars float64, known bool) {
	price, known := p.At(t)
	_, tier := price.For(u)
	return price.Cost(u), known && tier
}
