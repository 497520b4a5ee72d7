package loop

import (
	"fmt"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/models/reaction"
	"github.com/inspan/inspan/llm"
)

// Healings, the mildest first.
const (
	HealReasoning event.Healing = "reasoning" // the models' thinking is left out
	HealImages    event.Healing = "images"    // images become a line of text
	HealCalls     event.Healing = "calls"     // calls and results become text
)

// A provider that refuses a conversation would refuse it forever, because every later request holds the same
// messages. So the conversation is simplified, one level at each refusal, until the provider accepts it or no
// simpler form is left. The log keeps the original.

// healing returns the next simplification after a failure, and whether there is one. It skips levels that would
// change nothing.
func (s *State) healing() (event.Healed, bool) {
	f := s.Run.Failed
	if f == nil {
		return event.Healed{}, false
	}
	var levels []event.Healing
	switch reaction.To(f.Cause) {
	case reaction.Heal:
		levels = []event.Healing{HealReasoning, HealImages, HealCalls}
	case reaction.Shrink:
		levels = []event.Healing{HealImages}
	}
	for _, level := range levels {
		if _, changed := healed(s.Messages, level); changed {
			return event.Healed{Level: level, Cause: f.Cause}, true
		}
	}
	return event.Healed{}, false
}

// healed returns a copy of the messages simplified to a level, and whether it differs.
func healed(messages []llm.Message, level event.Healing) (out []llm.Message, changed bool) {
	out = make([]llm.Message, len(messages))
	for i, m := range messages {
		parts, differs := healedParts(m.Parts, level)
		changed = changed || differs
		out[i] = llm.Message{Role: m.Role, Parts: parts}
	}
	return out, changed
}

func healedParts(parts llm.Parts, level event.Healing) (out llm.Parts, changed bool) {
	out = make(llm.Parts, 0, len(parts))
	for _, part := range parts {
		simple, differs := healedPart(part, level)
		changed = changed || differs
		if simple != nil {
			out = append(out, simple)
		}
	}
	return out, changed
}

// healedPart returns a part simplified to a level, or nil if the level drops it.
func healedPart(part llm.Part, level event.Healing) (simple llm.Part, changed bool) {
	switch p := part.(type) {
	case llm.Reasoning:
		if level == HealReasoning {
			return nil, true
		}
	case llm.Image:
		if level == HealImages {
			return llm.Text{Text: "[an image was here; it is no longer sent]"}, true
		}
	case llm.Call:
		if level == HealCalls {
			return llm.Text{Text: fmt.Sprintf("[called %s with %s]", p.Name, p.Args)}, true
		}
	case llm.Result:
		if level == HealCalls {
			return llm.Text{Text: fmt.Sprintf("[result of %s]\n%s", p.Name, strings.TrimSpace(p.Parts.Text()))}, true
		}
		inner, differs := healedParts(p.Parts, level)
		p.Parts = inner
		return p, differs
	}
	return part, false
}
