package openai

import (
	"regexp"

	"github.com/inspan/inspan/internal/models/catalog"
	"github.com/inspan/inspan/llm"
)

// known returns the price book's entry for a model of OpenAI's own API.
func known(id string) llm.Info { return catalog.Find("openai", id) }

// regionalHost matches the addresses that keep data in one region, at a higher price for newer models, see
// https://developers.openai.com/api/docs/guides/data-residency.
var regionalHost = regexp.MustCompile(`^https://[a-z]{2}\.api\.openai\.com(/|$)`)
