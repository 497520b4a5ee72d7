package openai

import (
	"regexp"

	"github.com/inspan/inspan/llm"
)

// dated matches the end of a snapshot's id.
var dated = regexp.MustCompile(`-\d{4}-\d{2}-\d{2}$`)

// known returns what is known of a model of OpenAI's own API, and nothing for
// one that is not there.
//
// Figures from the model pages (developers.openai.com/api/docs/models) and
// release notes that quote the pricing page, as of 2026-11-21. GPT-5.4 and
// later cost more for prompts above 272,000 tokens (twice the input, half as
// much again for the output), which this table does not hold. Where no price of
// cache writes is published, they cost what input does.
func known(id string) llm.Info {
	type row struct {
		id                string
		window, maxOutput int
		price             llm.Price
	}
	const m, k400, k128 = 1_050_000, 400_000, 128_000
	rows := [...]row{
		{"gpt-6-astra", m, k128, llm.Price{Input: 10, CacheRead: 1, CacheWrite: 10, Output: 50}},
		{"gpt-6-sol", m, k128, llm.Price{Input: 2, CacheRead: 0.2, CacheWrite: 2.5, Output: 10}},
		{"gpt-6-luna", m, k128, llm.Price{Input: 0.1, CacheRead: 0.01, CacheWrite: 0.125, Output: 0.5}},
		{"gpt-5.4", m, k128, llm.Price{Input: 2.5, CacheRead: 0.25, CacheWrite: 2.5, Output: 15}},
		{"gpt-5", k400, k128, llm.Price{Input: 1.25, CacheRead: 0.125, CacheWrite: 1.25, Output: 10}},
	}
	name := dated.ReplaceAllString(id, "")
	for _, r := range rows {
		if r.id == name {
			return llm.Info{Window: r.window, MaxOutput: r.maxOutput, Prices: llm.Prices{r.price}, Images: true}
		}
	}
	return llm.Info{}
}
