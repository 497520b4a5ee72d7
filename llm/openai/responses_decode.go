package openai

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// responseDecoder builds a reply from the events of one stream. Deltas are shown; the reply consists of the items
// in their final form.
type responseDecoder struct {
	reply   llm.Reply
	history []llm.Message
	aliases *aliases
	items   []*item
	size    int  // bytes of the reply, for the estimate
	counted bool // the vendor gave its usage
}

// item is the part of one output entry received so far.
type item struct {
	aliases   *aliases
	index     int
	done      bool
	raw       json.RawMessage // once done
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Phase     string          `json:"phase"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments arguments       `json:"arguments"`
	Encrypted string          `json:"encrypted_content"`
	Summary   []itemText      `json:"summary"`
	Content   []itemText      `json:"content"`

	streamed strings.Builder // text, reasoning or arguments
	section  int             // of the reasoning
	refused  bool
}

type itemText struct {
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

// responseEvent is the union of the events that are read.
type responseEvent struct {
	Type     string          `json:"type"`
	Index    int             `json:"output_index"`
	Summary  int             `json:"summary_index"`
	Content  int             `json:"content_index"`
	Delta    string          `json:"delta"`
	Text     string          `json:"text"`      // of a part that is done
	Args     arguments       `json:"arguments"` // of a call that is done
	Item     json.RawMessage `json:"item"`
	Response json.RawMessage `json:"response"`
	Error    json.RawMessage `json:"error"`
}

type response struct {
	ID         string            `json:"id"`
	Status     string            `json:"status"`
	Tier       string            `json:"service_tier"`
	Output     []json.RawMessage `json:"output"`
	Error      json.RawMessage   `json:"error"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage *struct {
		Input   wire.Count `json:"input_tokens"`
		Output  wire.Count `json:"output_tokens"`
		Details struct {
			Cached wire.Count `json:"cached_tokens"`
			Write  wire.Count `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
		OutputDetails struct {
			Reasoning wire.Count `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
}

func newResponseDecoder(route string, req llm.Request, a *aliases) *responseDecoder {
	return &responseDecoder{reply: llm.Reply{Route: route}, history: req.Messages, aliases: a}
}

// errStop says that the consumer stopped.
var errStop = errors.New("stop")

func (d *responseDecoder) read(r io.Reader, streamed bool, emit func(llm.Chunk) bool) (bool, error) {
	err := d.run(r, streamed, emit)
	if errors.Is(err, errStop) {
		return false, nil
	}
	return err == nil, err
}

// run reads up to the terminal event; the vendor may leave the connection open after it.
func (d *responseDecoder) run(r io.Reader, streamed bool, emit func(llm.Chunk) bool) error {
	if !streamed {
		body, err := io.ReadAll(io.LimitReader(r, wire.MaxEvent))
		if err != nil {
			return wire.Cut(err)
		}
		return d.end(body, "", emit)
	}
	events := wire.NewEvents(r, wire.MaxEvent)
	for {
		ev, err := events.Next()
		if err != nil {
			return wire.Cut(err)
		}
		if last, err := d.event(ev.Data, emit); last || err != nil {
			return err
		}
	}
}

// event processes one event and reports whether it was the last. Unknown ones are skipped, even if they use a known
// field for something else.
func (d *responseDecoder) event(data []byte, emit func(llm.Chunk) bool) (bool, error) {
	if string(data) == "[DONE]" { // from gateways; the API has none
		return false, wire.Cut(io.EOF)
	}
	var ev responseEvent
	var other *json.UnmarshalTypeError
	if err := json.Unmarshal(data, &ev); errors.As(err, &other) {
		return false, nil
	} else if err != nil {
		return false, brokenEvent(err)
	}
	switch ev.Type {
	case "response.output_item.added", "response.output_item.done":
		return false, d.item(ev, emit)
	case "response.output_text.delta", "response.refusal.delta":
		it := d.at(ev.Index, "message")
		it.refused = it.refused || ev.Type == "response.refusal.delta"
		return false, it.show(ev.Delta, emit)
	case "response.output_text.done": // some bridges send no deltas before it
		if it := d.at(ev.Index, "message"); it.streamed.Len() == 0 {
			return false, it.show(ev.Text, emit)
		}
	case "response.function_call_arguments.done":
		if it := d.at(ev.Index, "function_call"); it.streamed.Len() == 0 {
			return false, it.show(string(ev.Args), emit)
		}
	case "response.reasoning_summary_text.delta":
		return false, d.at(ev.Index, "reasoning").think(ev.Summary, ev.Delta, emit)
	case "response.reasoning_text.delta":
		return false, d.at(ev.Index, "reasoning").think(ev.Content, ev.Delta, emit)
	case "response.function_call_arguments.delta":
		return false, d.at(ev.Index, "function_call").show(ev.Delta, emit)
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		return true, d.end(ev.Response, strings.TrimPrefix(ev.Type, "response."), emit)
	case "error":
		return false, failed(data)
	case "":
		if isSet(ev.Error) {
			return false, failed(data)
		}
	}
	return false, nil
}

func failed(data []byte) error {
	e := classify(200, data)
	if e.Code == "error" { // the event's own type, if the error has no code
		e.Code = ""
	}
	return e
}

// at returns the item with that index, a new one if there is none.
func (d *responseDecoder) at(index int, kind string) *item {
	for i := len(d.items) - 1; i >= 0; i-- {
		if d.items[i].index == index {
			return d.items[i]
		}
	}
	it := &item{aliases: d.aliases, index: index, Type: kind}
	d.items = append(d.items, it)
	return it
}

// item processes an item that begins or is done.
func (d *responseDecoder) item(ev responseEvent, emit func(llm.Chunk) bool) error {
	it := d.at(ev.Index, "")
	if it.done { // from a server that does not number them
		it = &item{aliases: d.aliases, index: ev.Index}
		d.items = append(d.items, it)
	}
	if ev.Type == "response.output_item.done" {
		return it.finish(ev.Item, emit)
	}
	if err := it.read(ev.Item); err != nil {
		return err
	}
	if it.Type == "function_call" {
		return it.show("", emit)
	}
	return nil
}

// read decodes the fields of an item. An unknown type may use them for something else.
func (it *item) read(raw json.RawMessage) error {
	err := json.Unmarshal(raw, it)
	var other *json.UnmarshalTypeError
	if errors.As(err, &other) && it.Type != "message" && it.Type != "function_call" && it.Type != "reasoning" {
		return nil
	}
	if err != nil {
		return brokenEvent(err)
	}
	return nil
}

// finish decodes the item in its final form. Parts that were not streamed are shown now.
func (it *item) finish(raw json.RawMessage, emit func(llm.Chunk) bool) error {
	if err := it.read(raw); err != nil {
		return err
	}
	it.done, it.raw = true, append(json.RawMessage(nil), raw...)
	if it.streamed.Len() > 0 {
		return nil
	}
	return it.show(it.text(), emit)
}

// think adds to a section of reasoning.
func (it *item) think(section int, delta string, emit func(llm.Chunk) bool) error {
	if section != it.section && it.streamed.Len() > 0 {
		delta = "\n\n" + delta
	}
	it.section = section
	return it.show(delta, emit)
}

// show forwards an addition.
func (it *item) show(delta string, emit func(llm.Chunk) bool) error {
	it.streamed.WriteString(delta)
	var c llm.Chunk
	switch {
	case it.Type == "function_call":
		c.Call = &llm.CallDelta{Name: it.aliases.ours(it.Name), Args: delta}
	case delta == "":
		return nil
	case it.Type == "reasoning":
		c.Reasoning = delta
	case it.Type == "message":
		c.Text = delta
	default: // not asked for
		return nil
	}
	if !emit(c) {
		return errStop
	}
	return nil
}

// text returns the item's text, reasoning or arguments: from the final item, or else as far as it was streamed.
func (it *item) text() string {
	var texts []string
	sep := ""
	switch it.Type {
	case "function_call":
		texts = []string{string(it.Arguments)}
	case "message":
		for _, c := range it.Content {
			texts = append(texts, c.Text+c.Refusal)
		}
	case "reasoning":
		sep = "\n\n"
		for _, s := range it.Summary {
			texts = append(texts, s.Text)
		}
		if len(texts) == 0 {
			for _, c := range it.Content {
				texts = append(texts, c.Text)
			}
		}
	}
	if s := strings.Join(texts, sep); s != "" {
		return s
	}
	return it.streamed.String()
}

// end processes the final response. status comes from the event's type.
func (d *responseDecoder) end(raw json.RawMessage, status string, emit func(llm.Chunk) bool) error {
	var r response
	if err := json.Unmarshal(raw, &r); err != nil {
		return brokenEvent(err)
	}
	if d.reply.ID = r.ID; r.Status == "" {
		r.Status = status
	}
	for i, raw := range r.Output {
		if i >= len(d.items) {
			d.items = append(d.items, &item{aliases: d.aliases, index: i})
		}
		if it := d.items[i]; !it.done {
			if err := it.finish(raw, emit); err != nil {
				return err
			}
		}
	}
	if r.Status == "" && len(d.items) == 0 { // an error in the form of a gateway
		return failed(raw)
	}
	stop, err := d.stop(r)
	if err != nil {
		return err
	}
	d.reply.Stop = stop
	d.assemble(stop)
	if u := r.Usage; u != nil {
		d.counted = true
		d.reply.Usage = split(int(u.Input), int(u.Details.Cached), int(u.Details.Write), int(u.Output), int(u.OutputDetails.Reasoning))
		d.reply.Usage.Tier = wire.Tier(r.Tier)
	}
	return nil
}

func (d *responseDecoder) stop(r response) (llm.Stop, error) {
	switch {
	case r.Status == "incomplete":
		switch r.Incomplete.Reason {
		case "max_output_tokens":
			return llm.StopLength, nil
		case "content_filter":
			return llm.StopRefusal, nil
		}
		return llm.StopOther, nil
	case isSet(r.Error):
		return "", failed(r.Error)
	case r.Status != "completed":
		return "", &llm.Error{Kind: llm.KindTransient, Message: "the response was not completed: " + r.Status}
	}
	stop := llm.StopEnd
	for _, it := range d.items {
		switch {
		case it.Type == "function_call":
			return llm.StopCalls, nil
		case it.refusal():
			stop = llm.StopRefusal
		}
	}
	return stop, nil
}

func (it *item) refusal() bool {
	for _, c := range it.Content {
		if c.Refusal != "" {
			return true
		}
	}
	return it.refused
}

// assemble makes the parts of the reply. A reasoning item can only go back if it holds the thought itself,
// encrypted or open: the vendor stores nothing.
func (d *responseDecoder) assemble(stop llm.Stop) {
	a := newAssembly(d.reply.Route)
	ids := ids{CallIDs: wire.CallIDs{History: d.history}}
	for _, it := range d.items {
		text := it.text()
		d.size += len(text)
		switch it.Type {
		case "reasoning":
			var back json.RawMessage
			if it.Encrypted != "" || len(it.Content) > 0 {
				back = it.raw
			}
			a.thought(text, back)
		case "message":
			a.message(text, it.ID, it.Phase)
		case "function_call":
			d.size += len(it.Name)
			a.call(ids.call(it.CallID, d.aliases.ours(it.Name), text, stop), it.ID)
		}
	}
	d.reply.Parts = a.done()
}

func (d *responseDecoder) result(requestBytes int) *llm.Reply {
	if !d.counted {
		d.reply.Usage = estimated(requestBytes, d.size)
	}
	return &d.reply
}
