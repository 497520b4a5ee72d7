package openai

import (
	"encoding/json"
	"strings"

	"github.com/inspan/inspan/llm"
)

// thoughts is the Opaque of reasoning: the field in which the server wrote it.
type thoughts struct {
	Content   *string         `json:"reasoning_content,omitempty"`
	Reasoning *string         `json:"reasoning,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"` // parts of the content
	Details   json.RawMessage `json:"reasoning_details,omitempty"`
}

// detail is one entry of OpenRouter's reasoning_details. A stream repeats the
// entry's index and adds to its texts.
type detail struct {
	Type      string  `json:"type"`
	Text      *string `json:"text,omitempty"`
	Summary   *string `json:"summary,omitempty"`
	Data      *string `json:"data,omitempty"`
	Signature *string `json:"signature,omitempty"`
	ID        *string `json:"id,omitempty"`
	Format    *string `json:"format,omitempty"`
	Index     *int    `json:"index,omitempty"`
}

// thinking collects reasoning from any of its fields.
type thinking struct {
	content, reasoning, parts *strings.Builder // nil until the field was seen
	details                   []detail
}

// add processes the fields of m and returns the text to show.
func (t *thinking) add(m *message) string {
	shown := ""
	if m.ReasoningContent != nil {
		shown = m.ReasoningContent.words()
		appendTo(&t.content, shown)
	}
	if s := m.Content.thinking; s != "" {
		shown += s
		appendTo(&t.parts, s)
	}
	for _, s := range []*content{m.Reasoning, m.ReasoningText, m.Thinking} {
		if s != nil && m.ReasoningContent == nil {
			shown += s.words()
			appendTo(&t.reasoning, s.words())
		}
	}
	for _, d := range m.Details {
		t.detail(d)
		if shown == "" && m.Reasoning == nil {
			shown = value(d.Text) + value(d.Summary)
		}
	}
	return shown
}

func appendTo(b **strings.Builder, s string) {
	if *b == nil {
		*b = &strings.Builder{}
	}
	(*b).WriteString(s)
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// detail adds to the entry with the same index and type, or begins one.
func (t *thinking) detail(d detail) {
	for i := range t.details {
		known := &t.details[i]
		if d.Index == nil || known.Index == nil || *known.Index != *d.Index || known.Type != d.Type {
			continue
		}
		join(&known.Text, d.Text)
		join(&known.Summary, d.Summary)
		join(&known.Data, d.Data)
		last(&known.Signature, d.Signature)
		last(&known.ID, d.ID)
		last(&known.Format, d.Format)
		return
	}
	t.details = append(t.details, d)
}

func join(to **string, s *string) {
	if s != nil {
		all := value(*to) + *s
		*to = &all
	}
}

func last(to **string, s *string) {
	if s != nil {
		*to = s
	}
}

func (t *thinking) size() int { return len(t.shown()) }

func (t *thinking) shown() string {
	switch {
	case t.content != nil:
		return t.content.String()
	case t.reasoning != nil:
		return t.reasoning.String()
	case t.parts != nil:
		return t.parts.String()
	}
	var b strings.Builder
	for _, d := range t.details {
		b.WriteString(value(d.Text) + value(d.Summary))
	}
	return b.String()
}

// part returns the reasoning of the reply, false if there was none. An empty reasoning_content counts: DeepSeek
// requires it back.
func (t *thinking) part(route string) (llm.Reasoning, bool) {
	var th thoughts
	switch {
	case len(t.details) > 0:
		th.Details, _ = json.Marshal(t.details) // strings and numbers only
	case t.content != nil:
		s := t.content.String()
		th.Content = &s
	case t.reasoning != nil && t.reasoning.Len() > 0:
		s := t.reasoning.String()
		th.Reasoning = &s
	case t.parts != nil:
		s := t.parts.String()
		th.Thinking = &s
	default:
		return llm.Reasoning{}, false
	}
	opaque, _ := json.Marshal(th) // valid by construction
	return llm.Reasoning{Text: t.shown(), Opaque: opaque, Route: route}, true
}
