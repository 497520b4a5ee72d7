package openai

import (
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/catalog"
)

// known returns what the price book knows of a model of OpenAI's own API.
func known(id string) llm.Info { return catalog.Find("openai", id) }
