package openai

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// Rules of a request to the Responses API:
//
//   - Its bytes are a pure function of the model, the host and the request, as
//     with Chat Completions. The input comes last.
//   - A reasoning item goes back to the route that wrote it, verbatim, in its
//     place, and with the ids of the items that came with it: the vendor
//     refuses one without the other. A reasoning item with nothing after it is
//     left out. Items of another model have no ids.
//   - Models that do not reason refuse the field for reasoning.

// encodeResponses returns the body of the request.
func encodeResponses(info llm.Info, d dialect, a *aliases, req llm.Request) []byte {
	e := responseEncoder{wire.NewWriter(req), a}
	e.Raw(`{"model":`).Str(info.Model).Raw(`,"stream":true,"store":false`)
	if req.MaxOutput > 0 {
		e.Raw(`,"max_output_tokens":`).Int(req.MaxOutput)
	}
	if reasons(info.Model) || !d.own && req.Effort != "" {
		e.reasoning(knownEffort(info.Model, req.Effort))
	}
	if req.Session != "" {
		e.Raw(`,"prompt_cache_key":`).Str(wire.ShortID(req.Session, 64))
	}
	e.tools(req.Tools)
	if system := wire.AllVisible(req.System); len(system) > 0 {
		e.Raw(`,"instructions":`).Str(strings.Join(system, "\n\n"))
	}
	e.Raw(`,"input":[`)
	turns := wire.Turns(req.Messages, info.Route())
	ownImages().Trim(turns)
	for _, t := range turns {
		if t.Role == llm.Assistant {
			e.assistant(t.Parts)
		} else {
			e.user(t)
		}
	}
	return e.Raw(`]}`).Buf
}

type responseEncoder struct {
	wire.Writer
	*aliases
}

func (e *responseEncoder) reasoning(effort string) {
	e.Raw(`,"include":["reasoning.encrypted_content"],"reasoning":{`)
	if effort != "" {
		e.Raw(`"effort":`).Str(effort).Raw(`,`)
	}
	e.Raw(`"summary":"auto"}`)
}

// tools writes the tools. Without strict false the vendor refuses schemas with optional properties.
func (e *responseEncoder) tools(tools []llm.ToolSpec) {
	if len(tools) == 0 {
		return
	}
	e.Raw(`,"parallel_tool_calls":true,"tools":[`)
	for _, t := range tools {
		e.Comma().Raw(`{"type":"function","name":`).Str(e.name(t.Name))
		if t.Description != "" {
			e.Raw(`,"description":`).Str(t.Description)
		}
		e.Raw(`,"parameters":`).Schema(t.Schema, `{"type":"object","properties":{}}`).Raw(`,"strict":false}`)
	}
	e.Raw(`]`)
}

// assistant writes the items of one turn of the model.
func (e *responseEncoder) assistant(parts []llm.Part) {
	var waiting []json.RawMessage // reasoning whose next item has not come yet
	var marks []mark
	for _, p := range parts {
		switch v := p.(type) {
		case llm.Reasoning:
			thought, rest := recall(v.Opaque)
			waiting, marks = append(waiting, thought...), rest
		case llm.Text:
			e.thoughts(waiting)
			waiting = nil
			var m mark
			m, marks = nextMessage(marks)
			e.message(v.Text, m)
		case llm.Call:
			e.thoughts(waiting)
			waiting = nil
			e.call(v, marks)
		}
	}
}

func (e *responseEncoder) thoughts(items []json.RawMessage) {
	for _, item := range items {
		e.Comma().JSON(item)
	}
}

// message writes a text of the model: as the original item if its id is known, else in the short form that needs
// none.
func (e *responseEncoder) message(text string, m mark) {
	e.Comma().Raw(`{"type":"message","role":"assistant"`)
	if m.ID != "" {
		e.Raw(`,"id":`).Str(m.ID).Raw(`,"status":"completed","content":[{"type":"output_text","text":`).Str(text).Raw(`,"annotations":[]}]`)
	} else {
		e.Raw(`,"content":`).Str(text)
	}
	if m.Phase != "" {
		e.Raw(`,"phase":`).Str(m.Phase)
	}
	e.Raw(`}`)
}

func (e *responseEncoder) call(c llm.Call, marks []mark) {
	e.Comma().Raw(`{"type":"function_call"`)
	for _, m := range marks {
		if m.Type == "function_call" && m.CallID == cmp.Or(c.Wire, c.ID) && m.ID != "" {
			e.Raw(`,"id":`).Str(m.ID)
			break
		}
	}
	e.Raw(`,"call_id":`).Str(e.aliases.call(c)).Raw(`,"name":`).Str(e.name(c.Name)).Raw(`,"arguments":`).Quoted(wire.Object(c.Args)).Raw(`}`)
}

func (e *responseEncoder) user(t wire.Turn) {
	for _, r := range t.Results {
		e.result(r)
	}
	if len(t.Parts) == 0 {
		return
	}
	e.Comma().Raw(`{"type":"message","role":"user","content":`)
	e.contents(t.Parts)
	e.Raw(`}`)
}

func (e *responseEncoder) contents(parts []llm.Part) {
	e.Raw(`[`)
	for _, p := range parts {
		switch v := p.(type) {
		case llm.Text:
			e.Comma().Raw(`{"type":"input_text","text":`).Str(v.Text).Raw(`}`)
		case llm.Image:
			e.Comma().Raw(`{"type":"input_image","detail":"auto","image_url":"data:` + v.MediaType + `;base64,`).Base64(v.Data).Raw(`"}`)
		}
	}
	e.Raw(`]`)
}

// result writes the answer to a call: text, or a list if it holds images.
func (e *responseEncoder) result(r llm.Result) {
	text, images := splitResult(r)
	e.Comma().Raw(`{"type":"function_call_output","call_id":`).Str(e.id(r.CallID)).Raw(`,"output":`)
	if len(images) == 0 {
		e.Str(text)
	} else {
		if wire.Visible(text) {
			images = append([]llm.Part{llm.Text{Text: text}}, images...)
		}
		e.contents(images)
	}
	e.Raw(`}`)
}
