package loop

import (
	"fmt"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

// If a vendor refuses a conversation, it would refuse it forever, since every later request holds the same
// messages. So from that point on the conversation is sent in a simpler form, one level simpler at each
// refusal, until it is accepted or can't get simpler. The log keeps the original.

// healing returns the next simplification after a failure, and whether there is one. Levels that would change
// nothing are skipped.
func (s *State) healing() (event.Healed, bool) {
	f := s.Run.Failed
	if f == nil {
		return event.Healed{}, false
	}
	var levels []event.Healing
	switch f.Cause.Policy() {
	case llm.PolicyHeal:
		levels = []event.Healing{event.HealReasoning, event.HealImages, event.HealCalls}
	case llm.PolicyShrink:
		levels = []event.Healing{event.HealImages}
	}
	for _, level := range levels {
		if _, changed := healed(s.Messages, level); changed {
			return event.Healed{Level: level, Cause: f.Cause}, true
		}
	}
	return event.Healed{}, false
}

func (s *State) heal(b event.Healed) {
	s.Messages, _ = healed(s.Messages, b.Level)
	s.Lacks = s.Lacks || b.Level == event.HealCalls
	s.Run.Failed, s.sight = nil, sight{}
}

// healed returns the messages in the form of a level, and whether they differ. The given messages don't change.
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

// healedPart returns a part in the form of a level, or nil if the level leaves it out.
func healedPart(part llm.Part, level event.Healing) (simple llm.Part, changed bool) {
	switch p := part.(type) {
	case llm.Reasoning:
		if level == event.HealReasoning {
			return nil, true
		}
	case llm.Image:
		if level == event.HealImages {
			return llm.Text{Text: "[an image was here; it is no longer sent]"}, true
		}
	case llm.Call:
		if level == event.HealCalls {
			return llm.Text{Text: fmt.Sprintf("[called %s with %s]", p.Name, p.Args)}, true
		}
	case llm.Result:
		if level == event.HealCalls {
			return llm.Text{Text: fmt.Sprintf("[result of %s]\n%s", p.Name, strings.TrimSpace(p.Parts.Text()))}, true
		}
		inner, differs := healedParts(p.Parts, level)
		p.Parts = inner
		return p, differs
	}
	return part, false
}
