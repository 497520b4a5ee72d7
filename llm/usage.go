package llm

import (
	"slices"
	"time"
)

// Usage counts the tokens of one exchange. The five fields never overlap:
// the prompt was Input+CacheRead+CacheWrite tokens, the reply Output, of
// which Reasoning were spent thinking.
type Usage struct {
	Input      int  `json:"input,omitempty"`       // prompt tokens neither read from nor written to a cache
	CacheRead  int  `json:"cache_read,omitempty"`  // prompt tokens read from a cache
	CacheWrite int  `json:"cache_write,omitempty"` // prompt tokens written to a cache
	Output     int  `json:"output,omitempty"`      // all reply tokens, reasoning included
	Reasoning  int  `json:"reasoning,omitempty"`   // the part of Output that was reasoning
	Estimated  bool `json:"estimated,omitempty"`   // the provider gave no figures; these are ours
}

// Prompt returns the size of the whole prompt in tokens.
func (u Usage) Prompt() int { return u.Input + u.CacheRead + u.CacheWrite }

// Add returns the sum of two usages.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input:      u.Input + v.Input,
		CacheRead:  u.CacheRead + v.CacheRead,
		CacheWrite: u.CacheWrite + v.CacheWrite,
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

	// From is the first day the price holds, "2026-10-07" in UTC; empty: ever since.
	From string `json:"from,omitempty" toml:"from"`
	// Long is what the whole exchange costs if the prompt has more than Above
	// tokens; nil: the same.
	Above int    `json:"above,omitempty" toml:"above"`
	Long  *Price `json:"long,omitempty" toml:"long"`
}

// For returns the price of an exchange that used u: p, or Long.
func (p Price) For(u Usage) Price {
	if p.Long != nil && u.Prompt() > p.Above {
		return *p.Long
	}
	return p
}

// Cost returns the price of u in US dollars.
func (p Price) Cost(u Usage) float64 {
	p = p.For(u)
	return (float64(u.Input)*p.Input + float64(u.CacheRead)*p.CacheRead +
		float64(u.CacheWrite)*p.CacheWrite + float64(u.Output)*p.Output) / 1e6
}

// Prices are what one model has cost, costs, and will cost as far as it is
// announced, oldest first. None means that the price is not known.
type Prices []Price

// At returns the price that holds at a time, and whether one is known.
func (p Prices) At(t time.Time) (Price, bool) {
	day := t.UTC().Format(time.DateOnly)
	for _, price := range slices.Backward(p) {
		if price.From <= day {
			return price, true
		}
	}
	return Price{}, false
}
