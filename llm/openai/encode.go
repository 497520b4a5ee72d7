package openai

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// Rules of the request's bytes:
//
//   - They are a pure function of the model, the dialect and the request:
//     fields in a fixed order, no maps, no clock. Messages come last, and each
//     depends only on itself and those before it, so that a longer
//     conversation only adds bytes at the end.
//   - Tool messages hold text only. Images of results follow in the user
//     message after them.
//   - Tools and calls use their aliases.
//   - Reasoning goes back to the route that wrote it, in the field in which it
//     came: a list of reasoning_details always; reasoning_content only in
//     messages that call tools or follow their results, because DeepSeek and
//     Moonshot require it there and others ignore or refuse it elsewhere; parts
//     of the content, as Mistral has them, likewise. DeepSeek and Moonshot
//     require the field, even an empty one, in every message of the model once
//     there are tools.
//   - Llama and gpt-oss get parallel calls one after the other, because their
//     templates accept, or show, one call per message.
//   - gpt-oss gets a thought and a text of one message with calls as a thought:
//     its template accepts one of them.

// encode returns the body of the request.
func encode(info llm.Info, d dialect, a *aliases, req llm.Request) []byte {
	e := encoder{Writer: wire.NewWriter(req), d: d, aliases: a}
	turns := wire.Turns(req.Messages, info.Route())
	d.images.Trim(turns)
	if d.oneCall {
		turns = singly(turns)
	}
	e.Raw(`{"model":`).Str(info.Model).Raw(`,"stream":true`)
	if !d.noUsageOption {
		e.Raw(`,"stream_options":{"include_usage":true}`)
	}
	if req.MaxOutput > 0 {
		e.Raw(`,"` + cmp.Or(d.limit, "max_tokens") + `":`).Int(req.MaxOutput)
	}
	d.writeEffort(&e.Writer, info.Model, req.Effort, len(req.Tools) > 0)
	if d.session != "" && req.Session != "" {
		e.Raw(`,"` + d.session + `":`).Str(wire.ShortID(req.Session, 64))
	}
	if d.cacheMark && strings.HasPrefix(info.Model, "anthropic/") {
		e.Raw(`,"cache_control":{"type":"ephemeral"}`)
	}
	e.tools(req.Tools)
	if d.mockTools && len(req.Tools) == 0 {
		e.mock(wire.Called(turns))
	}
	e.Raw(`,"messages":[`)
	e.system(req.System)
	answering := false
	e.thinks = d.emptyThought && len(req.Tools) > 0
	for _, t := range turns {
		if t.Role == llm.Assistant {
			e.assistant(t, answering)
		} else {
			e.user(t)
		}
		answering = len(t.Results) > 0
	}
	e.Raw(`]}`)
	return e.Buf
}

// singly gives each call a message of its own, followed by its result.
func singly(turns []wire.Turn) (out []wire.Turn) {
	for _, t := range turns {
		n := len(out)
		if n == 0 || len(t.Results) < 2 || len(llm.Parts(out[n-1].Parts).Calls()) != len(t.Results) {
			out = append(out, t)
			continue
		}
		asked := out[n-1]
		calls := llm.Parts(asked.Parts).Calls()
		out[n-1].Parts = slices.DeleteFunc(slices.Clone(asked.Parts), func(p llm.Part) bool {
			c, is := p.(llm.Call)
			return is && c.ID != calls[0].ID
		})
		for i, c := range calls {
			if i > 0 {
				out = append(out, wire.Turn{Role: llm.Assistant, Parts: []llm.Part{c}})
			}
			answer := wire.Turn{Role: t.Role, Results: slices.DeleteFunc(slices.Clone(t.Results), func(r llm.Result) bool { return r.CallID != c.ID })}
			if i == len(calls)-1 {
				answer.Parts = t.Parts
			}
			out = append(out, answer)
		}
	}
	return out
}

// encoder writes a body.
type encoder struct {
	wire.Writer
	*aliases
	d      dialect
	thinks bool // each message of the model has a thought, even an empty one
}

// mock writes tools that exist only in the history.
func (e *encoder) mock(tools []llm.ToolSpec) {
	if len(tools) > 0 {
		e.tools(tools)
		e.Raw(`,"tool_choice":"none"`)
	}
}

func (e *encoder) tools(tools []llm.ToolSpec) {
	if len(tools) == 0 {
		return
	}
	e.Raw(`,"tools":[`)
	for _, t := range tools {
		e.Comma()
		e.Raw(`{"type":"function","function":{"name":`).Str(e.name(t.Name))
		if t.Description != "" {
			e.Raw(`,"description":`).Str(t.Description)
		}
		e.Raw(`,"parameters":`)
		e.Schema(t.Schema, `{"type":"object","properties":{}}`).Raw(`}}`)
	}
	e.Raw(`]`)
}

func (e *encoder) system(blocks []string) {
	if s := wire.AllVisible(blocks); len(s) > 0 {
		e.Raw(`{"role":"system","content":`).Str(strings.Join(s, "\n\n")).Raw(`}`)
	}
}

// assistant writes one message of the model. answering says that results of tools come before it.
func (e *encoder) assistant(t wire.Turn, answering bool) {
	var texts []string
	var calls []llm.Call
	var thought json.RawMessage
	for _, p := range t.Parts {
		switch v := p.(type) {
		case llm.Text:
			texts = append(texts, v.Text)
		case llm.Call:
			calls = append(calls, v)
		case llm.Reasoning:
			thought = v.Opaque
		}
	}
	if len(texts)+len(calls) == 0 {
		return
	}
	var fields thoughts
	_ = json.Unmarshal(thought, &fields) // a thought of another wire has none of these fields
	inLoop := len(calls) > 0 || answering
	if e.d.oneChannel && len(calls) > 0 && len(texts) > 0 {
		for _, field := range []**string{&fields.Content, &fields.Reasoning} {
			if thought := *field; thought != nil {
				all := strings.Join(append([]string{*thought}, texts...), "\n\n")
				*field, texts = &all, nil
			}
		}
	}
	e.Comma()
	e.Raw(`{"role":"assistant","content":`)
	text := strings.Join(texts, "\n\n")
	switch {
	case inLoop && fields.Thinking != nil:
		e.thinking(*fields.Thinking, text)
	case len(texts) > 0:
		e.Str(text)
	default:
		e.Raw(`null`)
	}
	e.reasoning(fields, inLoop)
	for i, c := range calls {
		if i == 0 {
			e.Raw(`,"tool_calls":[`)
		}
		e.call(c)
	}
	if len(calls) > 0 {
		e.Raw(`]`)
	}
	e.Raw(`}`)
}

// thinking writes a content whose first part is the thought.
func (e *encoder) thinking(thought, text string) {
	e.Raw(`[{"type":"thinking","thinking":[{"type":"text","text":`).Str(thought).Raw(`}]}`)
	if text != "" {
		e.Raw(`,{"type":"text","text":`).Str(text).Raw(`}`)
	}
	e.Raw(`]`)
}

// reasoning writes a thought into a field of its own.
func (e *encoder) reasoning(fields thoughts, inLoop bool) {
	switch {
	case len(fields.Details) > 0:
		e.Raw(`,"reasoning_details":`)
		e.JSON(fields.Details)
	case inLoop && fields.Content != nil:
		e.Raw(`,"reasoning_content":`).Str(*fields.Content)
	case inLoop && fields.Reasoning != nil:
		e.Raw(`,"reasoning":`).Str(*fields.Reasoning)
	case inLoop && e.d.emptyThought, e.thinks:
		e.Raw(`,"reasoning_content":""`)
	}
}

func (e *encoder) call(c llm.Call) {
	e.Comma()
	e.Raw(`{"id":`).Str(e.aliases.call(c)).Raw(`,"type":"function","function":{"name":`).Str(e.name(c.Name)).Raw(`,"arguments":`)
	e.Quoted(wire.Object(c.Args)).Raw(`}}`)
}

func (e *encoder) user(t wire.Turn) {
	content := make([]llm.Part, 0, len(t.Parts))
	for _, r := range t.Results {
		images := e.result(r)
		if len(images) > 0 {
			content = append(content, llm.Text{Text: "Images of the result of " + r.Name + ":"})
			content = append(content, images...)
		}
	}
	content = append(content, t.Parts...)
	if len(content) == 0 {
		return
	}
	if e.d.bridge && len(t.Results) > 0 {
		e.Raw(`,{"role":"assistant","content":"I have the results."}`)
	}
	e.Comma()
	e.Raw(`{"role":"user","content":`)
	if s, ok := onlyText(content); ok {
		e.Str(s)
	} else {
		e.contents(content)
	}
	e.Raw(`}`)
}

// onlyText joins the parts if all are text.
func onlyText(parts []llm.Part) (string, bool) {
	texts := make([]string, len(parts))
	for i, p := range parts {
		t, ok := p.(llm.Text)
		if !ok {
			return "", false
		}
		texts[i] = t.Text
	}
	return strings.Join(texts, "\n\n"), true
}

func (e *encoder) contents(parts []llm.Part) {
	e.Raw(`[`)
	for _, p := range parts {
		switch v := p.(type) {
		case llm.Text:
			e.Comma()
			e.Raw(`{"type":"text","text":`).Str(v.Text).Raw(`}`)
		case llm.Image:
			e.Comma()
			e.Raw(`{"type":"image_url","image_url":{"url":"data:` + v.MediaType + `;base64,`).Base64(v.Data).Raw(`"}}`)
		}
	}
	e.Raw(`]`)
}

// result writes a tool message and returns the images that it can't hold.
func (e *encoder) result(r llm.Result) []llm.Part {
	text, images := splitResult(r)
	e.Comma()
	e.Raw(`{"role":"tool","tool_call_id":`).Str(e.id(r.CallID))
	if e.d.resultName && r.Name != "" {
		e.Raw(`,"name":`).Str(e.name(r.Name))
	}
	e.Raw(`,"content":`).Str(text).Raw(`}`)
	return images
}

// splitResult returns the text and the images of a result. The wires have no mark for a failed call, so the text
// says it.
func splitResult(r llm.Result) (text string, images []llm.Part) {
	var texts []string
	for _, p := range r.Parts {
		switch v := p.(type) {
		case llm.Text:
			texts = append(texts, v.Text)
		case llm.Image:
			images = append(images, v)
		}
	}
	text = strings.Join(texts, "\n\n")
	if r.Error && !strings.HasPrefix(strings.ToLower(text), "error") {
		text = "Error: " + text
	}
	return text, images
}
