package openai

import (
	"strings"

	"github.com/inspan/inspan/llm/internal/wire"
)

// effort is a server's way to ask for reasoning.
type effort int

const (
	effortField   effort = iota // "reasoning_effort":"low"
	effortObject                // "reasoning":{"effort":"low"}
	effortHigh                  // "reasoning_effort":"high", the only value that all its models accept
	effortSwitch                // "thinking":{"type":"enabled"}
	effortUnasked               // never: the model decides
)

// writeEffort asks for reasoning if the request does and id accepts the field.
func (d dialect) writeEffort(w *wire.Writer, id, word string, tools bool) {
	if word == "" || d.takesEffort != nil && !d.takesEffort(id, tools) {
		return
	}
	word = knownEffort(id, word)
	switch d.effort {
	case effortField:
		w.Raw(`,"reasoning_effort":`).Str(word)
	case effortObject:
		w.Raw(`,"reasoning":{"effort":`).Str(word).Raw(`}`)
	case effortHigh:
		if word != "low" && word != "medium" {
			w.Raw(`,"reasoning_effort":"high"`)
		}
	case effortSwitch:
		w.Raw(`,"thinking":{"type":"enabled"}`)
	case effortUnasked:
	}
}

// knownEffort is the effort up to the maximum of a model: xhigh came after GPT-5.1, and nothing is above it.
func knownEffort(id, word string) string {
	name := id[strings.LastIndexByte(id, '/')+1:]
	late := strings.HasPrefix(name, "gpt-5.") && !strings.HasPrefix(name, "gpt-5.1")
	if late || strings.HasPrefix(name, "gpt-6") || strings.HasPrefix(name, "gpt-5.1-codex-max") {
		return wire.EffortUpTo("xhigh", word)
	}
	return wire.EffortUpTo("high", word)
}

// ownEffort: OpenAI refuses the field for models that do not reason and, since GPT-5.4, together with tools:
// reasoning with tools is for its Responses API. Without the field its default holds.
func ownEffort(id string, tools bool) bool {
	late := strings.HasPrefix(id, "gpt-6") || id >= "gpt-5.4" && strings.HasPrefix(id, "gpt-5.")
	return reasons(id) && (!tools || !late)
}

// gptOSS: Groq's other reasoning models have their own values.
func gptOSS(id string, _ bool) bool { return strings.Contains(id, "gpt-oss") }

func reasoningGrok(id string, _ bool) bool { return !strings.Contains(id, "non-reasoning") }

// reasons reports whether the model is one of OpenAI's reasoning models, wherever it is served.
func reasons(id string) bool {
	name := id[strings.LastIndexByte(id, '/')+1:]
	generation, isGPT := strings.CutPrefix(name, "gpt-")
	if !isGPT {
		generation, isGPT = strings.CutPrefix(name, "o")
		return isGPT && generation != "" && isDigit(generation[0]) && !strings.Contains(id, "-chat")
	}
	return generation != "" && generation[0] >= '5' && generation[0] <= '9' && !strings.Contains(id, "-chat")
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
