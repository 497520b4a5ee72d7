package openai

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// decoder builds a reply from the chunks of one stream.
type decoder struct {
	reply     llm.Reply
	req       llm.Request
	aliases   *aliases
	chunk     completion // the latest; its memory is reused for the next
	text      strings.Builder
	refusal   bool
	reasoning thinking
	calls     []*call
	reason    string // finish_reason
	done      bool   // "[DONE]" was received
	usage     *usage
	tier      string // the tier that served it
}

// call is the part of a tool call received so far.
type call struct {
	index    int
	id, name string
	args     strings.Builder
}

func newDecoder(route string, req llm.Request, a *aliases) *decoder {
	return &decoder{reply: llm.Reply{Route: route}, req: req, aliases: a}
}

func (d *decoder) read(r io.Reader, streamed bool, emit func(llm.Chunk) bool) (bool, error) {
	if streamed {
		return d.run(r, emit)
	}
	return d.whole(r, emit)
}

func (d *decoder) run(r io.Reader, emit func(llm.Chunk) bool) (bool, error) {
	events := wire.NewEvents(r, wire.MaxEvent)
	for !d.done {
		ev, err := events.Next()
		if err != nil {
			return d.end(err)
		}
		if string(ev.Data) == "[DONE]" {
			d.done = true
			break
		}
		more, err := d.event(ev.Data, emit)
		if err != nil {
			return d.end(err)
		}
		if !more {
			return false, nil
		}
	}
	return true, d.finish()
}

func (d *decoder) whole(r io.Reader, emit func(llm.Chunk) bool) (bool, error) {
	body, err := io.ReadAll(io.LimitReader(r, wire.MaxEvent))
	if err != nil {
		return d.end(err)
	}
	if more, err := d.event(body, emit); err != nil || !more {
		return false, err
	}
	d.done = len(d.reply.Parts) > 0 || d.reason != ""
	if !d.done {
		return d.end(io.EOF)
	}
	return true, d.finish()
}

// end handles a stream that broke or stopped. Nothing is lost if the finish reason had already arrived.
func (d *decoder) end(err error) (bool, error) {
	e := cut(err)
	if d.reason != "" && (e.Kind == llm.KindStreamCut || e.Kind == llm.KindTimeout) {
		return true, d.finish()
	}
	return false, e
}

// event processes one chunk and reports whether more are wanted.
func (d *decoder) event(data []byte, emit func(llm.Chunk) bool) (bool, error) {
	c := &d.chunk
	clear(c.Choices)
	*c = completion{Choices: c.Choices[:0]}
	if err := json.Unmarshal(data, c); err != nil {
		return false, brokenEvent(err)
	}
	if isSet(c.Error) || c.Object == "error" || isSet(c.Detail) {
		return false, classify(200, data)
	}
	if c.Usage != nil {
		d.usage = c.Usage
	}
	if c.Tier != "" {
		d.tier = c.Tier
	}
	if c.ID != "" {
		d.reply.ID = c.ID
	}
	for i := range c.Choices[:min(len(c.Choices), 1)] {
		ch := &c.Choices[i]
		if ch.Usage != nil {
			d.usage = ch.Usage
		}
		if !d.message(&ch.Delta, emit) || !d.message(&ch.Message, emit) {
			return false, nil
		}
		if ch.FinishReason != nil && *ch.FinishReason != "" {
			d.reason = *ch.FinishReason
		}
	}
	return true, nil
}

func (d *decoder) message(m *message, emit func(llm.Chunk) bool) bool {
	if s := d.reasoning.add(m); s != "" && !emit(llm.Chunk{Reasoning: s}) {
		return false
	}
	if m.Refusal != "" {
		d.refusal = true
	}
	if s := m.Content.text + m.Refusal; s != "" {
		d.text.WriteString(s)
		if !emit(llm.Chunk{Text: s}) {
			return false
		}
	}
	deltas := m.ToolCalls
	if f := m.FunctionCall; f != nil {
		zero := 0
		deltas = append(deltas, toolCall{Index: &zero, Function: *f})
	}
	for _, t := range deltas {
		c := d.call(t)
		c.args.WriteString(string(t.Function.Arguments))
		if !emit(llm.Chunk{Call: &llm.CallDelta{Name: d.aliases.ours(c.name), Args: string(t.Function.Arguments)}}) {
			return false
		}
	}
	return true
}

// call returns the call that a delta belongs to, a new one if necessary.
func (d *decoder) call(t toolCall) *call {
	c := d.known(t)
	if c == nil {
		c = &call{index: len(d.calls)}
		if t.Index != nil {
			c.index = *t.Index
		}
		d.calls = append(d.calls, c)
	}
	if c.id == "" {
		c.id = t.ID
	}
	if c.name == "" {
		c.name = t.Function.Name
	}
	return c
}

// known returns the call that a delta continues, nil if it begins one.
//
//   - A known id decides, whatever the index: some servers number every call 0, or restart in each chunk.
//   - A new id that comes with a name begins a call, and so does one with a new index. A new id without
//     either comes from a server that invents an id for each chunk.
//   - Without an id the index decides, if some call has it. A name with it begins a call if arguments
//     come along and those of the last call are complete.
//   - A delta with neither continues the last call, unless it has a name or that call is complete.
func (d *decoder) known(t toolCall) *call {
	var at, last *call
	for _, c := range d.calls {
		if t.ID != "" && c.id == t.ID {
			return c
		}
		if t.Index != nil && c.index == *t.Index {
			at = c
		}
		last = c
	}
	named := t.Function.Name != ""
	switch {
	case last == nil:
		return nil
	case t.ID != "" && at != nil && at.id != "" && named, t.ID != "" && at == nil && (named || t.Index != nil):
		return nil
	case at == nil && (named || complete(last) && t.Function.Arguments != ""):
		return nil
	case at == nil:
		return last
	case t.ID == "" && named && t.Function.Arguments != "" && complete(at):
		return nil
	}
	return at
}

// complete reports whether the arguments of a call are complete.
func complete(c *call) bool { return c.args.Len() > 0 && json.Valid([]byte(c.args.String())) }

// finish turns the received chunks into the reply. The error is one that the server put into the finish reason.
func (d *decoder) finish() error {
	d.unwrap()
	stop, err := d.stop()
	if err != nil {
		return err
	}
	d.reply.Stop = stop
	// An empty thought is kept only with calls: DeepSeek requires it back there.
	if p, ok := d.reasoning.part(d.reply.Route); ok && (p.Text != "" || len(d.reasoning.details)+len(d.calls) > 0) {
		d.reply.Parts = append(d.reply.Parts, p)
	}
	if d.text.Len() > 0 {
		d.reply.Parts = append(d.reply.Parts, llm.Text{Text: d.text.String()})
	}
	ids := newIDs(d.req.Messages)
	for _, c := range d.calls {
		d.reply.Parts = append(d.reply.Parts, ids.call(c.id, d.aliases.ours(c.name), c.args.String(), stop))
	}
	d.count()
	return nil
}

func (d *decoder) stop() (llm.Stop, error) {
	switch d.reason {
	case "length", "max_tokens", "MAX_TOKENS":
		return llm.StopLength, nil
	case "content_filter", "refusal", "sensitive":
		return llm.StopRefusal, nil
	case "model_context_window_exceeded":
		return llm.StopWindow, nil
	case "pause_turn":
		return llm.StopPause, nil
	case "error", "network_error", "abort":
		return "", &llm.Error{Kind: llm.KindTransient, Code: d.reason, Message: "the server ended the reply with an error"}
	case "insufficient_system_resource":
		return "", &llm.Error{Kind: llm.KindOverloaded, Code: d.reason, Message: "the server ran out of resources"}
	}
	switch {
	case len(d.calls) > 0:
		return llm.StopCalls, nil
	case !finished(d.reason):
		return llm.StopOther, nil
	case d.refusal:
		return llm.StopRefusal, nil
	}
	return llm.StopEnd, nil
}

// finished reports whether the reason says that the model ended on its own. Without calls, the reasons for calls
// mean no more than that.
func finished(reason string) bool {
	switch reason {
	case "", "null", "stop", "end", "tool_calls", "function_call", "tool_use", "eos", "eos_token", "end_turn", "stop_sequence", "STOP":
		return true
	}
	return false
}

// count splits the vendor's figures into fields that do not overlap.
func (d *decoder) count() {
	if u := d.usage; u != nil {
		d.reply.Usage = split(u.Prompt, max(u.Details.Cached, u.CacheHit, u.Cached), u.Details.Write, u.Completion, u.Output.Reasoning)
	}
	d.reply.Usage.Tier = wire.Tier(d.tier)
}

func (d *decoder) result(requestBytes int) *llm.Reply {
	if d.usage == nil {
		n := d.text.Len() + d.reasoning.size()
		for _, c := range d.calls {
			n += len(c.name) + c.args.Len()
		}
		d.reply.Usage = estimated(requestBytes, n)
		d.reply.Usage.Tier = wire.Tier(d.tier)
	}
	return &d.reply
}
