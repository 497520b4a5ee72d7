package ollama

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// decoder builds a reply from the lines of one stream.
type decoder struct {
	model    string
	history  []llm.Message
	reply    llm.Reply
	thinking strings.Builder
	text     strings.Builder
	calls    []llm.Call
}

// line is one JSON object of the stream; the one with Done is the last.
type line struct {
	Message struct {
		Content   string `json:"content"`
		Thinking  string `json:"thinking"`
		ToolCalls []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"message"`
	Done       bool            `json:"done"`
	DoneReason string          `json:"done_reason"`
	Prompt     wire.Count      `json:"prompt_eval_count"` // cached tokens included
	Cached     wire.Count      `json:"prompt_eval_cached_count"`
	Output     wire.Count      `json:"eval_count"`
	Error      json.RawMessage `json:"error"`
}

// run reads the stream to its end. It returns true if the reply is complete, false without an error if the consumer
// stopped.
func (d *decoder) run(r io.Reader, emit func(llm.Chunk) bool) (bool, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 32<<10), wire.MaxEvent)
	var first []byte
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		if first == nil {
			first = slices.Clone(lines.Bytes())
		}
		var l line
		var other *json.UnmarshalTypeError
		err := json.Unmarshal(lines.Bytes(), &l)
		if errors.As(err, &other) { // as below
			return false, classify(d.model, 200, lines.Bytes())
		}
		if err != nil {
			if lines.Err() != nil { // the last piece before the stream broke
				break
			}
			return false, &llm.Error{Kind: llm.KindStreamCut, Message: "broken line", Err: err}
		}
		if len(l.Error) > 0 {
			return false, classify(d.model, 200, lines.Bytes())
		}
		if !d.message(&l, emit) {
			return false, nil
		}
		if l.Done {
			return d.finish(&l)
		}
	}
	err := lines.Err()
	if err == nil && first != nil && d.text.Len()+d.thinking.Len()+len(d.calls) == 0 && json.Valid(first) { // an error in the form of a gateway
		return false, classify(d.model, 200, first)
	}
	return false, wire.Cut(cmp.Or(err, io.EOF))
}

func (d *decoder) message(l *line, emit func(llm.Chunk) bool) bool {
	m := &l.Message
	d.thinking.WriteString(m.Thinking)
	if m.Thinking != "" && !emit(llm.Chunk{Reasoning: m.Thinking}) {
		return false
	}
	d.text.WriteString(m.Content)
	if m.Content != "" && !emit(llm.Chunk{Text: m.Content}) {
		return false
	}
	for _, c := range m.ToolCalls {
		args, invalid := wire.Args(string(c.Function.Arguments), "")
		d.calls = append(d.calls, llm.Call{ID: c.ID, Name: c.Function.Name, Args: args, Invalid: invalid})
		if !emit(llm.Chunk{Call: &llm.CallDelta{Name: c.Function.Name, Args: string(c.Function.Arguments)}}) {
			return false
		}
	}
	return true
}

// finish turns the received lines into the reply. A model that was only loaded or unloaded has not answered.
func (d *decoder) finish(l *line) (bool, error) {
	switch l.DoneReason {
	case "load", "unload":
		return false, &llm.Error{Kind: llm.KindTransient, Code: l.DoneReason, Message: "the server did not answer, it only did: " + l.DoneReason}
	case "", "stop":
		d.reply.Stop = llm.StopEnd
	case "length":
		d.reply.Stop = llm.StopLength
	default:
		d.reply.Stop = llm.StopOther
	}
	if d.reply.Stop == llm.StopEnd && len(d.calls) > 0 {
		d.reply.Stop = llm.StopCalls
	}
	cached := min(l.Cached, l.Prompt)
	d.reply.Usage = llm.Usage{Input: int(l.Prompt - cached), CacheRead: int(cached), Output: int(l.Output)}
	if d.thinking.Len() > 0 {
		w := wire.Writer{}
		opaque := w.Raw(`{"thinking":`).Str(d.thinking.String()).Raw(`}`).Buf
		d.reply.Parts = append(d.reply.Parts, llm.Reasoning{Text: d.thinking.String(), Opaque: opaque, Route: d.reply.Route})
	}
	if d.text.Len() > 0 {
		d.reply.Parts = append(d.reply.Parts, llm.Text{Text: d.text.String()})
	}
	ids := wire.CallIDs{History: d.history}
	for i, c := range d.calls {
		c.ID = ids.Of(c.ID, i) // older servers do not number calls
		d.reply.Parts = append(d.reply.Parts, c)
	}
	return true, nil
}

// fill distinguishes a reply that filled the window from one cut by its own limit.
func (d *decoder) fill(window int) {
	if u := d.reply.Usage; window > 0 && d.reply.Stop == llm.StopLength && u.Prompt()+u.Output >= window {
		d.reply.Stop = llm.StopWindow
	}
}
