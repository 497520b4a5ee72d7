package cost

import (
	"time"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/router"
)

// cacheLife is how long a vendor keeps an unused prompt. Most say five minutes.
const cacheLife = 5 * time.Minute

// caches simulates what models would have cached of a session's prompt under a supposed strategy. A model
// caches the prompt and the answer of its last turn for five minutes, as long as the prompt has only grown. If
// a model would have answered as it did, after the same model as it did, the recorded figures count. A model
// whose price doesn't mention a cache has none.
type caches struct {
	session string
	held    map[string]held // by route
	last    string          // route that would have answered last
	was     string          // route that did answer last
}

type held struct {
	tokens int
	at     time.Time
}

// features returns the facts about a turn that the router would have seen.
func (c *caches) features(t Turn) router.Features {
	if c.session != t.Session || c.held == nil {
		*c = caches{session: t.Session, held: map[string]held{}}
	}
	if t.Cold {
		clear(c.held)
	}
	f := t.Features
	if f.Pin = c.last; !t.Loop {
		f.Pin = ""
	}
	return f
}

// usage returns and records the consumption of a turn if the route had answered it.
func (c *caches) usage(t Turn, r router.Route) llm.Usage {
	route := r.Model.Info().Route()
	price, _ := r.Model.Info().Prices.At(t.At)
	used := t.Usage
	if t.Route != route || c.last != c.was {
		used = c.supposed(t, route, price)
	}
	c.held[route] = held{t.Usage.Prompt() + t.Usage.Output - t.Usage.Reasoning, t.At}
	c.last, c.was = route, t.Route
	return used
}

// supposed splits the tokens of a prompt into those that a cache would have held and the rest.
func (c *caches) supposed(t Turn, route string, price llm.Price) llm.Usage {
	used := llm.Usage{Input: t.Usage.Prompt(), Output: t.Usage.Output, Reasoning: t.Usage.Reasoning, Estimated: true}
	if h, ok := c.held[route]; ok && price.CacheRead > 0 && t.At.Sub(h.at) <= cacheLife {
		used.CacheRead = min(h.tokens, used.Input)
		used.Input -= used.CacheRead
	}
	if price.CacheWrite > 0 {
		used.CacheWrite, used.Input = used.Input, 0
	}
	return used
}
