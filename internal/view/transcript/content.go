package transcript

import (
	"context"
	"encoding/json"
	"io"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Content is the logged content of a span, without secrets and images. For a request to a model, it has only messages
// that are new since the previous request, in the form of the semantic conventions.
type Content struct {
	Input, Output     []Message // of a request to a model
	Arguments, Result string    // of a call
}

// Message follows the schemas gen-ai-input-messages and gen-ai-output-messages.
type Message struct {
	Role   string        `json:"role"`
	Parts  []MessagePart `json:"parts"`
	Finish string        `json:"finish_reason,omitempty"`
}

// MessagePart is a part of a Message: text, reasoning, tool_call or tool_call_response.
type MessagePart struct {
	Type      string          `json:"type"`
	Content   string          `json:"content,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Response  string          `json:"response,omitempty"`
}

// mostContent bounds the bytes of a text, because receivers bound the size of requests.
const mostContent = 16 << 10

// contents collects the content of spans.
type contents struct {
	heard []Message         // new since the last request
	args  map[string]string // arguments, by call id
}

// hear records the messages and arguments in an event.
func (c *contents) hear(b event.Body) {
	if c == nil {
		return
	}
	switch b := b.(type) {
	case event.Said:
		c.heard = append(c.heard, Message{Role: "user", Parts: messageParts(b.Parts)})
	case event.Steered:
		c.heard = append(c.heard, Message{Role: "user", Parts: messageParts(b.Parts)})
	case event.Ended:
		c.heard = append(c.heard, Message{Role: "tool", Parts: []MessagePart{
			{Type: "tool_call_response", ID: b.Call, Response: text.Cut(b.Parts.Text(), mostContent)},
		}})
	case event.Replied:
		if c.args == nil {
			c.args = map[string]string{}
		}
		for _, call := range b.Parts.Calls() {
			c.args[call.ID] = string(call.Args)
		}
	}
}

// asked returns the content of a new request.
func (c *contents) asked() *Content {
	if c == nil {
		return nil
	}
	heard := c.heard
	c.heard = nil
	return &Content{Input: heard}
}

// called returns the content of a starting call.
func (c *contents) called(call string) *Content {
	if c == nil {
		return nil
	}
	args := c.args[call]
	delete(c.args, call)
	return &Content{Arguments: args}
}

// replied adds the reply.
func (c *Content) replied(b event.Replied) {
	if c != nil {
		c.Output = []Message{{Role: "assistant", Parts: messageParts(b.Parts), Finish: finish(b.Stop)}}
	}
}

// ended adds the result.
func (c *Content) ended(b event.Ended) {
	if c != nil {
		c.Result = text.Cut(b.Parts.Text(), mostContent)
	}
}

// finish returns the conventions' name of a finish reason.
func finish(stop llm.Stop) string {
	switch stop {
	case llm.StopEnd:
		return "stop"
	case llm.StopCalls:
		return "tool_call"
	case llm.StopLength, llm.StopWindow:
		return "length"
	case llm.StopRefusal:
		return "content_filter"
	}
	return string(stop)
}

func messageParts(parts llm.Parts) []MessagePart {
	out := []MessagePart{}
	for _, part := range parts {
		switch p := part.(type) {
		case llm.Text:
			out = append(out, MessagePart{Type: "text", Content: text.Cut(p.Text, mostContent)})
		case llm.Reasoning:
			out = append(out, MessagePart{Type: "reasoning", Content: text.Cut(p.Text, mostContent)})
		case llm.Call:
			args := p.Args
			if len(args) > mostContent || !json.Valid(args) {
				args, _ = json.Marshal(text.Cut(string(args), mostContent)) // text can always be encoded
			}
			out = append(out, MessagePart{Type: "tool_call", ID: p.ID, Name: p.Name, Arguments: args})
		}
	}
	return out
}

// content adds the content of a span, as far as the conventions have names for it.
func (x *otlpBuilder) content(span Span, a otlpValues) otlpValues {
	c := span.Content
	if c == nil {
		return a
	}
	if x.hasMessages {
		for _, of := range []struct {
			key  string
			list []Message
		}{{"gen_ai.input.messages", c.Input}, {"gen_ai.output.messages", c.Output}} {
			if raw, err := json.Marshal(of.list); err == nil && len(of.list) > 0 {
				a = a.text(of.key, string(raw))
			}
		}
	}
	if x.hasCached { // the versions with cache attributes have these too
		a = a.text("gen_ai.tool.call.arguments", text.Cut(c.Arguments, mostContent)).text("gen_ai.tool.call.result", c.Result)
	}
	return a
}

// ImageData returns the data of an image, which may be a blob of its session; nil if it is gone or has more than most
// bytes. Blobs may be nil.
func ImageData(ctx context.Context, blobs tool.Blobs, p llm.Image, most int64) []byte {
	if p.Data != nil || blobs == nil {
		return p.Data
	}
	r, err := blobs.Get(ctx, p.Digest)
	if err != nil {
		return nil
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil || int64(len(data)) > most {
		return nil
	}
	return data
}
