package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
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
	last     string // piece of the arguments
	repeats  bool   // each piece begins with the one before it
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
		if ev.Name == "error" {
			return d.end(classify(http.StatusOK, ev.Data))
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
	// One value, or one for each chunk where a gateway has dropped the frames of the events.
	for values := json.NewDecoder(bytes.NewReader(body)); ; {
		var value json.RawMessage
		err := values.Decode(&value)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return d.end(brokenEvent(err))
		}
		if more, err := d.event(value, emit); err != nil || !more {
			return false, err
		}
	}
	if d.done = d.begun() || d.reason != ""; !d.done {
		return d.end(classify(http.StatusOK, body))
	}
	return true, d.finish()
}

// end handles a stream that broke or stopped. Nothing is lost if the finish reason had already arrived.
func (d *decoder) end(err error) (bool, error) {
	e := wire.Cut(err)
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
	if u := cmp.Or(c.Usage, c.Groq.Usage); u != nil {
		d.usage = u
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
		if isSet(ch.Error) {
			return false, classify(http.StatusOK, ch.Error)
		}
		if !d.message(&ch.Delta, emit) {
			return false, nil
		}
		// MiniMax and some gateways repeat the whole message at the end of a stream.
		if !d.begun() && !d.message(&ch.Message, emit) {
			return false, nil
		}
		if ch.FinishReason != nil && *ch.FinishReason != "" {
			d.reason = *ch.FinishReason
		}
	}
	return true, nil
}

// begun reports whether something of the reply has arrived.
func (d *decoder) begun() bool { return d.text.Len() > 0 || len(d.calls) > 0 || d.reasoning.size() > 0 }

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
		zero := wire.Count(0)
		deltas = append(deltas, toolCall{Index: &zero, Function: *f})
	}
	for _, t := range deltas {
		c := d.call(t)
		c.write(t.Function.args())
		if !emit(llm.Chunk{Call: &llm.CallDelta{Name: d.aliases.ours(c.name), Args: t.Function.args()}}) {
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
			c.index = int(*t.Index)
		}
		d.calls = append(d.calls, c)
	}
	if c.id == "" {
		c.id = string(t.ID)
	}
	switch name := t.Function.Name; {
	case c.name == "":
		c.name = name
	case !d.offered(d.aliases.ours(c.name)) && d.offered(d.aliases.ours(c.name+name)):
		c.name += name // in pieces
	}
	return c
}

// write adds a piece of the arguments. Some servers begin with an empty object, some repeat in each piece all that
// came before it.
func (c *call) write(piece string) {
	if piece == "" {
		return
	}
	if c.args.String() == "{}" {
		c.args.Reset()
	}
	c.repeats = c.args.Len() == 0 || c.repeats && strings.HasPrefix(piece, c.last)
	c.args.WriteString(piece)
	c.last = piece
}

// whole returns the arguments.
func (c *call) whole() string {
	if all := c.args.String(); !c.repeats || json.Valid([]byte(all)) || !json.Valid([]byte(c.last)) {
		return all
	}
	return c.last
}

// known returns the call that a delta continues, nil if it begins one.
//
//   - A known id decides, whatever the index: some servers number every call 0, or restart in each chunk. But with a
//     name and other arguments than the complete ones of that call it begins one: some give all calls the same id.
//   - A new id that comes with a name begins a call, and so does one with a new index. A new id without
//     either comes from a server that invents an id for each chunk.
//   - Without an id the index decides, if some call has it. A name with it begins a call if arguments
//     come along and those of the last call are complete.
//   - A delta with neither continues the last call, unless it has a name or that call is complete.
func (d *decoder) known(t toolCall) *call {
	var same, at, last *call
	for _, c := range d.calls {
		if t.ID != "" && c.id == string(t.ID) {
			same = c
		}
		if t.Index != nil && c.index == int(*t.Index) {
			at = c
		}
		last = c
	}
	named, args := t.Function.Name != "", t.Function.args()
	switch {
	case last == nil:
		return nil
	case same != nil && named && complete(same) && same.whole() != "{}" && strings.HasPrefix(args, "{") && !strings.HasPrefix(args, same.whole()):
		return nil
	case same != nil:
		return same
	case t.ID != "" && at != nil && at.id != "" && named, t.ID != "" && at == nil && (named || t.Index != nil):
		return nil
	case at == nil && (named || complete(last) && args != ""):
		return nil
	case at == nil:
		return last
	case t.ID == "" && named && args != "" && complete(at):
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
	ids := ids{CallIDs: wire.CallIDs{History: d.req.Messages}}
	for _, c := range d.calls {
		d.reply.Parts = append(d.reply.Parts, ids.call(c.id, d.aliases.ours(c.name), c.whole(), stop))
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
		d.reply.Usage = split(int(max(u.Prompt, u.Input)), int(max(u.Details.Cached, u.CacheHit, u.Cached)), int(u.Details.Write),
			int(max(u.Completion, u.Wrote)), int(u.Output.Reasoning))
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
