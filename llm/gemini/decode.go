package gemini

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// decoder builds a reply from the chunks of one stream.
type decoder struct {
	reply   llm.Reply
	ids     wire.CallIDs
	names   *wire.Aliases
	blocks  []*block
	usage   usage
	reason  string // the finish reason, once it came
	message string // the vendor's explanation of it
}

// block is the part of one part of the reply received so far.
type block struct {
	kind      string // "text", "thought" or "call"
	text      strings.Builder
	signature string
	id, name  string
	args      json.RawMessage
}

func newDecoder(route string, names *wire.Aliases, history []llm.Message) *decoder {
	return &decoder{reply: llm.Reply{Route: route}, names: names, ids: wire.CallIDs{History: history}}
}

// chunk holds the fields of a chunk that are read.
type chunk struct {
	Candidates []struct {
		Content struct {
			Parts []part `json:"parts"`
		} `json:"content"`
		FinishReason  string `json:"finishReason"`
		FinishMessage string `json:"finishMessage"`
	} `json:"candidates"`
	PromptFeedback struct {
		BlockReason        string `json:"blockReason"`
		BlockReasonMessage string `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	Usage      usage           `json:"usageMetadata"`
	ResponseID string          `json:"responseId"`
	Error      json.RawMessage `json:"error"`
}

type part struct {
	Text         *string `json:"text"`
	Thought      bool    `json:"thought"`
	Signature    string  `json:"thoughtSignature"`
	FunctionCall *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
}

// usage is a running total; a chunk may omit some of it. Prompt includes the cached tokens, and Candidates excludes
// the thoughts.
type usage struct {
	Prompt     wire.Count `json:"promptTokenCount"`
	Cached     wire.Count `json:"cachedContentTokenCount"`
	ToolPrompt wire.Count `json:"toolUsePromptTokenCount"`
	Candidates wire.Count `json:"candidatesTokenCount"`
	Thoughts   wire.Count `json:"thoughtsTokenCount"`

	Tier    string `json:"serviceTier"`
	Traffic string `json:"trafficType"` // from Vertex AI
}

func (u *usage) add(v usage) {
	u.Prompt = max(u.Prompt, v.Prompt)
	u.Cached = max(u.Cached, v.Cached)
	u.ToolPrompt = max(u.ToolPrompt, v.ToolPrompt)
	u.Candidates = max(u.Candidates, v.Candidates)
	u.Thoughts = max(u.Thoughts, v.Thoughts)
	u.Tier, u.Traffic = cmp.Or(v.Tier, u.Tier), cmp.Or(v.Traffic, u.Traffic)
}

func (u *usage) usage() llm.Usage {
	cached := min(u.Cached, u.Prompt)
	return llm.Usage{
		Input: int(u.Prompt - cached + u.ToolPrompt), CacheRead: int(cached),
		Output: int(u.Candidates + u.Thoughts), Reasoning: int(u.Thoughts), Tier: wire.Tier(u.Tier, u.Traffic),
	}
}

// serverSent reads the chunks of a stream.
func serverSent(r io.Reader) func() ([]byte, error) {
	events := wire.NewEvents(r, wire.MaxEvent)
	return func() ([]byte, error) {
		ev, err := events.Next()
		return ev.Data, err
	}
}

// chunksOf returns the list of chunks, or the only one, from a server that does not stream.
func chunksOf(body []byte) (list []json.RawMessage) {
	if json.Unmarshal(body, &list) != nil {
		list = []json.RawMessage{body}
	}
	var fields map[string]json.RawMessage
	if len(list) == 1 && json.Unmarshal(list[0], &fields) == nil && fields["candidates"] == nil && fields["promptFeedback"] == nil &&
		fields["error"] == nil { // an error in the form of a gateway
		list[0] = slices.Concat([]byte(`{"error":`), list[0], []byte("}"))
	}
	return list
}

// run reads the stream to its end, which is only marked by the end of the body. It returns the complete reply, or nil
// without an error if the consumer stopped.
func (d *decoder) run(next func() ([]byte, error), emit func(llm.Chunk) bool) (*llm.Reply, error) {
	for {
		data, err := next()
		if err != nil {
			return d.end(err)
		}
		more, err := d.event(data, emit)
		if err != nil {
			return d.end(err)
		}
		if !more {
			return nil, nil //nolint:nilnil // the consumer has stopped
		}
	}
}

// end handles the end of the stream. Nothing is lost, however it ends, if the finish reason had already arrived.
func (d *decoder) end(err error) (*llm.Reply, error) {
	e := wire.Cut(err)
	switch {
	case d.reason != "" && (e.Kind == llm.KindStreamCut || e.Kind == llm.KindTimeout):
		return d.finish()
	case errors.Is(err, io.EOF) && e.Err == nil:
		e.Message = "the stream ended without a finish reason"
	}
	return nil, e
}

// event processes one chunk and reports whether more are wanted. A chunk may be empty, or hold only a signature.
func (d *decoder) event(data []byte, emit func(llm.Chunk) bool) (bool, error) {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return false, &llm.Error{Kind: llm.KindStreamCut, Message: "broken event", Err: err}
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return false, classify(200, data)
	}
	if reason := c.PromptFeedback.BlockReason; reason != "" && reason != "BLOCK_REASON_UNSPECIFIED" && len(c.Candidates) == 0 {
		message := "the prompt was blocked: " + reason + " " + c.PromptFeedback.BlockReasonMessage
		return false, &llm.Error{Kind: llm.KindRefused, Code: reason, Message: strings.TrimSpace(message), RequestID: c.ResponseID}
	}
	d.usage.add(c.Usage)
	if c.ResponseID != "" {
		d.reply.RequestID, d.reply.ID = c.ResponseID, c.ResponseID
	}
	for _, cand := range c.Candidates[:min(len(c.Candidates), 1)] {
		for _, p := range cand.Content.Parts {
			if out := d.part(p); out != (llm.Chunk{}) && !emit(out) {
				return false, nil
			}
		}
		if cand.FinishReason != "" && cand.FinishReason != "FINISH_REASON_UNSPECIFIED" {
			d.reason, d.message = cand.FinishReason, cand.FinishMessage
		}
	}
	return true, nil
}

// part processes one part. Text continues the block before it, unless one of the two is signed: a signature belongs
// to exactly the part with which it came.
func (d *decoder) part(p part) llm.Chunk {
	if f := p.FunctionCall; f != nil {
		name := d.names.Ours(f.Name)
		d.blocks = append(d.blocks, &block{kind: "call", id: f.ID, name: name, args: f.Args, signature: p.Signature})
		return llm.Chunk{Call: &llm.CallDelta{Name: name, Args: string(f.Args)}}
	}
	text, kind := "", "text"
	if p.Text != nil {
		text = *p.Text
	}
	if p.Thought {
		kind = "thought"
	}
	if text == "" && p.Signature == "" {
		return llm.Chunk{}
	}
	var b *block
	if n := len(d.blocks); n > 0 {
		b = d.blocks[n-1]
	}
	if b == nil || b.kind != kind || b.signature != "" || p.Signature != "" {
		b = &block{kind: kind, signature: p.Signature}
		d.blocks = append(d.blocks, b)
	}
	b.text.WriteString(text)
	if p.Thought {
		return llm.Chunk{Reasoning: text}
	}
	return llm.Chunk{Text: text}
}

// finish turns the blocks into parts.
func (d *decoder) finish() (*llm.Reply, error) {
	stop, err := d.stop()
	if err != nil {
		return nil, err
	}
	d.reply.Stop, d.reply.Usage = stop, d.usage.usage()
	for i, b := range d.blocks {
		if r, ok := b.reasoning(d.reply.Route); ok {
			d.reply.Parts = append(d.reply.Parts, r)
		}
		switch {
		case b.kind == "text" && b.text.Len() > 0:
			d.reply.Parts = append(d.reply.Parts, llm.Text{Text: b.text.String()})
		case b.kind == "call":
			args, invalid := wire.Args(string(b.args), stop)
			id := d.ids.Of(b.id, i) // generations before 3 number no calls
			d.reply.Parts = append(d.reply.Parts, llm.Call{ID: id, Name: b.name, Args: args, Invalid: invalid})
		}
	}
	if d.reply.Stop == llm.StopEnd && len(d.reply.Calls()) > 0 {
		d.reply.Stop = llm.StopCalls
	}
	return &d.reply, nil
}

// reasoning returns the reasoning to send back along with the block: a thought, or the signature of the next part.
// Invisible text is dropped from a request, so its signature is kept with it.
func (b *block) reasoning(route string) (llm.Reasoning, bool) {
	text := b.text.String()
	s := stamp{Signature: b.signature}
	switch {
	case b.kind == "thought":
		s.Text, s.Thought = &text, true
		return llm.Reasoning{Text: text, Opaque: s.opaque(), Route: route}, true
	case b.signature == "":
		return llm.Reasoning{}, false
	case b.kind == "text" && !wire.Visible(text):
		s.Text = &text
	default:
		s.On = b.kind
	}
	return llm.Reasoning{Opaque: s.opaque(), Route: route}, true
}

// stop returns the meaning of the finish reason.
//
// A call that the vendor could not parse (MALFORMED_FUNCTION_CALL and similar) is an error: the reply then holds no
// trace of it, not even the broken text, so there is nothing to tell the model; and as it is a slip of sampling,
// the same request usually succeeds the next time.
func (d *decoder) stop() (llm.Stop, error) {
	fail := func(kind llm.Kind) error {
		message := strings.TrimSpace("the vendor dropped the reply: " + d.reason + " " + d.message)
		return &llm.Error{Kind: kind, Code: d.reason, Message: message, RequestID: d.reply.RequestID}
	}
	switch d.reason {
	case "STOP":
		return llm.StopEnd, nil
	case "MAX_TOKENS", "CONTINUATION":
		return llm.StopLength, nil
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return llm.StopRefusal, nil
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE":
		return "", fail(llm.KindTransient)
	case "MISSING_THOUGHT_SIGNATURE":
		return "", fail(llm.KindHistory)
	}
	return llm.StopOther, nil
}
