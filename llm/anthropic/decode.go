package anthropic

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// decoder builds a reply from the events of one stream.
type decoder struct {
	reply  llm.Reply
	blocks []*block // in the order they began
	open   map[int]*block
	seen   bool // a stop reason came: the reply is complete even without the last event
	names  *wire.Aliases
}

// block is the part of one content block received so far.
type block struct {
	kind      string
	text      strings.Builder // text, thinking, or the arguments of a call
	signature strings.Builder
	id, name  string
	raw       json.RawMessage // a block that is kept unchanged
}

func newDecoder(route string, names *wire.Aliases) *decoder {
	return &decoder{reply: llm.Reply{Route: route, Stop: llm.StopOther}, open: map[int]*block{}, names: names}
}

// event is the union of the fields of all events that are read.
type event struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		ID    string `json:"id"`
		Usage usage  `json:"usage"`
	} `json:"message"`
	ContentBlock json.RawMessage `json:"content_block"`
	Delta        struct {
		Type        string `json:"type"`
		Text        string `json:"text"`
		Thinking    string `json:"thinking"`
		Signature   string `json:"signature"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
	Usage usage           `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// usage has pointers because a later event repeats only some of the figures.
type usage struct {
	Input      *wire.Count `json:"input_tokens"`
	CacheRead  *wire.Count `json:"cache_read_input_tokens"`
	CacheWrite *wire.Count `json:"cache_creation_input_tokens"`
	Output     *wire.Count `json:"output_tokens"`
	Lives      struct {
		Minutes *wire.Count `json:"ephemeral_5m_input_tokens"`
		Hour    *wire.Count `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Details struct {
		Thinking *wire.Count `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
	Tier  string `json:"service_tier"`
	Speed string `json:"speed"`
	Geo   string `json:"inference_geo"`
}

// serverSent reads the data of the events of the vendor's own stream.
func serverSent(r io.Reader) func() ([]byte, error) {
	events := wire.NewEvents(r, wire.MaxEvent)
	return func() ([]byte, error) {
		ev, err := events.Next()
		if err == nil && ev.Name == "error" && !bytes.Contains(ev.Data, []byte(`"error"`)) { // of a gateway
			return wrapped(ev.Data), nil
		}
		return ev.Data, err
	}
}

// eventsOf converts a message that arrived as one object, or an error in its place, into the events of a stream.
func eventsOf(body []byte) [][]byte {
	var m struct {
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"`
		Stop    string          `json:"stop_reason"`
		Usage   json.RawMessage `json:"usage"`
		Error   json.RawMessage `json:"error"`
	}
	err := json.Unmarshal(body, &m)
	switch {
	case err == nil && (m.Type == "error" || len(m.Error) > 0), err != nil && !json.Valid(body):
		return [][]byte{body}
	case err != nil || m.Stop == "" && m.Content == nil: // an error in the form of a gateway
		return [][]byte{wrapped(body)}
	}
	var blocks []json.RawMessage
	if json.Unmarshal(m.Content, &blocks) != nil { // a text
		blocks = []json.RawMessage{slices.Concat([]byte(`{"type":"text","text":`), m.Content, []byte("}"))}
	}
	var events [][]byte
	add := func(e map[string]any) {
		b, _ := json.Marshal(e) // of valid JSON
		events = append(events, b)
	}
	for i, block := range blocks {
		var signed struct {
			Signature string `json:"signature"`
		}
		add(map[string]any{"type": "content_block_start", "index": i, "content_block": block})
		if json.Unmarshal(block, &signed) == nil && signed.Signature != "" {
			add(map[string]any{"type": "content_block_delta", "index": i, "delta": map[string]string{"type": "signature_delta", "signature": signed.Signature}})
		}
		add(map[string]any{"type": "content_block_stop", "index": i})
	}
	last := map[string]any{"type": "message_delta", "delta": map[string]string{"stop_reason": m.Stop}}
	if len(m.Usage) > 0 {
		last["usage"] = m.Usage
	}
	add(last)
	if m.Stop != "" {
		add(map[string]any{"type": "message_stop"})
	}
	return events
}

// wrapped returns an error in the form of a gateway as an event.
func wrapped(data []byte) []byte {
	if !json.Valid(data) {
		data, _ = json.Marshal(string(data)) // a string always marshals
	}
	return slices.Concat([]byte(`{"type":"error","error":`), data, []byte("}"))
}

// run reads the stream to its end. It returns the complete reply, or nil without an error if the consumer stopped.
func (d *decoder) run(next func() ([]byte, error), emit func(llm.Chunk) bool) (*llm.Reply, error) {
	for {
		data, err := next()
		if err != nil {
			return d.end(err)
		}
		chunk, done, err := d.event(data)
		if err != nil {
			return d.end(err)
		}
		if done {
			return d.finish(), nil
		}
		if chunk != (llm.Chunk{}) && !emit(chunk) {
			return nil, nil //nolint:nilnil // the consumer has stopped
		}
	}
}

// end handles a stream that broke or stopped. Nothing is lost if the stop reason had already arrived.
func (d *decoder) end(err error) (*llm.Reply, error) {
	if e := wire.Cut(err); !d.seen || e.Kind == llm.KindCancelled {
		return nil, e
	}
	return d.finish(), nil
}

// event processes one event. Unknown ones, such as ping, are ignored.
func (d *decoder) event(data []byte) (chunk llm.Chunk, done bool, err error) {
	var ev event
	if err := json.Unmarshal(data, &ev); err != nil {
		return chunk, false, &llm.Error{Kind: llm.KindStreamCut, Message: "broken event", Err: err}
	}
	switch ev.Type {
	case "message_start":
		d.count(ev.Message.Usage)
		d.reply.ID = ev.Message.ID
	case "content_block_start":
		return d.begin(ev), false, nil
	case "content_block_delta":
		return d.delta(ev), false, nil
	case "content_block_stop":
		delete(d.open, ev.Index)
	case "message_delta":
		d.count(ev.Usage)
		if ev.Delta.StopReason != "" {
			d.seen = true
			d.reply.Stop = stop(ev.Delta.StopReason)
		}
	case "message_stop":
		return chunk, true, nil
	case "error":
		return chunk, false, classify(200, data)
	case "":
		if len(ev.Error) > 0 && string(ev.Error) != "null" { // from a gateway
			return chunk, false, classify(200, data)
		}
	}
	return chunk, false, nil
}

func (d *decoder) begin(ev event) llm.Chunk {
	var head struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Thinking string          `json:"thinking"`
		ID       string          `json:"id"`
		Name     string          `json:"name"`
		Input    json.RawMessage `json:"input"`
	}
	if json.Unmarshal(ev.ContentBlock, &head) != nil {
		return llm.Chunk{}
	}
	b := d.add(ev.Index, head.Type)
	b.id, b.name = head.ID, d.names.Ours(head.Name)
	b.text.WriteString(head.Text + head.Thinking)
	switch head.Type {
	case "redacted_thinking":
		b.raw = ev.ContentBlock
	case "tool_use":
		if len(head.Input) > 2 { // a gateway may send the whole input at once
			b.text.Write(head.Input)
		}
		return llm.Chunk{Call: &llm.CallDelta{Name: b.name, Args: b.text.String()}}
	}
	return llm.Chunk{Text: head.Text, Reasoning: head.Thinking}
}

func (d *decoder) add(index int, kind string) *block {
	b := &block{kind: kind}
	d.blocks = append(d.blocks, b)
	d.open[index] = b
	return b
}

// delta adds to an open block. Text and thinking without a start, seen from
// gateways, begin a block of their own.
func (d *decoder) delta(ev event) llm.Chunk {
	b := d.open[ev.Index]
	switch ev.Delta.Type {
	case "text_delta":
		if b == nil {
			b = d.add(ev.Index, "text")
		}
		b.text.WriteString(ev.Delta.Text)
		return llm.Chunk{Text: ev.Delta.Text}
	case "thinking_delta":
		if b == nil {
			b = d.add(ev.Index, "thinking")
		}
		b.text.WriteString(ev.Delta.Thinking)
		return llm.Chunk{Reasoning: ev.Delta.Thinking}
	case "signature_delta":
		if b != nil {
			b.signature.WriteString(ev.Delta.Signature)
		}
	case "input_json_delta":
		if b != nil && ev.Delta.PartialJSON != "" {
			if b.text.String() == "{}" { // an empty object that a gateway put before the arguments
				b.text.Reset()
			}
			b.text.WriteString(ev.Delta.PartialJSON)
			return llm.Chunk{Call: &llm.CallDelta{Name: b.name, Args: ev.Delta.PartialJSON}}
		}
	}
	return llm.Chunk{}
}

// count stores the figures of an event; later ones are cumulative.
func (d *decoder) count(u usage) {
	set := func(to *int, from *wire.Count) {
		if from != nil {
			*to = int(*from)
		}
	}
	set(&d.reply.Usage.Input, u.Input)
	set(&d.reply.Usage.CacheRead, u.CacheRead)
	if m, h := u.Lives.Minutes, u.Lives.Hour; m != nil && h != nil {
		d.reply.Usage.CacheWrite = int(*m + *h)
	}
	set(&d.reply.Usage.CacheHour, u.Lives.Hour)
	set(&d.reply.Usage.CacheWrite, u.CacheWrite)
	set(&d.reply.Usage.Output, u.Output)
	set(&d.reply.Usage.Reasoning, u.Details.Thinking)
	d.reply.Usage.CacheHour = min(d.reply.Usage.CacheHour, d.reply.Usage.CacheWrite)
	region := ""
	if u.Geo == "us" { // the only one with a surcharge
		region = "region"
	}
	if tier := wire.Tier(u.Tier, u.Speed, region); tier != "" {
		d.reply.Usage.Tier = tier
	}
}

// finish turns the blocks into parts.
func (d *decoder) finish() *llm.Reply {
	for _, b := range d.blocks {
		switch b.kind {
		case "text":
			if b.text.Len() > 0 {
				d.reply.Parts = append(d.reply.Parts, llm.Text{Text: b.text.String()})
			}
		case "thinking", "redacted_thinking":
			if p, ok := b.reasoning(d.reply.Route); ok {
				d.reply.Parts = append(d.reply.Parts, p)
			}
		case "tool_use":
			args, invalid := wire.Args(b.text.String(), d.reply.Stop)
			d.reply.Parts = append(d.reply.Parts, llm.Call{ID: b.id, Name: b.name, Args: args, Invalid: invalid})
		}
	}
	if d.reply.Stop == llm.StopEnd && len(d.reply.Calls()) > 0 {
		d.reply.Stop = llm.StopCalls
	}
	return &d.reply
}

// reasoning returns the block in the form in which it must be sent back. Thinking without its signature was cut
// off, and the vendor rejects it.
func (b *block) reasoning(route string) (llm.Part, bool) {
	if b.raw != nil {
		return llm.Reasoning{Opaque: b.raw, Route: route}, true
	}
	if b.signature.Len() == 0 {
		return nil, false
	}
	opaque := wire.AppendString([]byte(`{"type":"thinking","thinking":`), b.text.String())
	opaque = wire.AppendString(append(opaque, `,"signature":`...), b.signature.String())
	return llm.Reasoning{Text: b.text.String(), Opaque: append(opaque, '}'), Route: route}, true
}

func stop(reason string) llm.Stop {
	switch reason {
	case "end_turn", "stop_sequence":
		return llm.StopEnd
	case "tool_use":
		return llm.StopCalls
	case "max_tokens":
		return llm.StopLength
	case "pause_turn":
		return llm.StopPause
	case "refusal", "sensitive":
		return llm.StopRefusal
	case "model_context_window_exceeded":
		return llm.StopWindow
	}
	return llm.StopOther
}
