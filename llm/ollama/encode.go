package ollama

import (
	"encoding/json"
	"strings"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// Rules of the request's bytes: they are a pure function of the model's Info and the request, and messages come
// last, so that a longer conversation only adds bytes at the end and the server finds the part that it has
// computed.

// thought is the Opaque of reasoning.
type thought struct {
	Thinking string `json:"thinking"`
}

type encoder struct{ wire.Writer }

// encode returns the body of the request. It tells the server to refuse a prompt that does not fit, and to stop
// rather than drop the beginning.
func encode(info llm.Info, req llm.Request) []byte {
	e := encoder{wire.NewWriter(req)}
	e.Raw(`{"model":`).Str(info.Model).Raw(`,"stream":true,"truncate":false,"shift":false`)
	// Levels are for gpt-oss; other reasoning models think unasked, and models that don't reason refuse the field.
	if req.Effort != "" && strings.HasPrefix(info.Model, "gpt-oss") {
		e.Raw(`,"think":`).Str(wire.EffortUpTo("high", req.Effort))
	}
	e.options(info, req.MaxOutput)
	e.tools(req.Tools)
	e.Raw(`,"messages":[`)
	e.system(req.System)
	for _, t := range wire.Turns(req.Messages, info.Route()) {
		if t.Role == llm.Assistant {
			e.assistant(t)
			continue
		}
		for _, r := range t.Results {
			e.result(r)
		}
		for _, r := range t.Results {
			if images := imagesOf(r.Parts); len(images) > 0 {
				e.user("Image returned by "+r.Name+":", images)
			}
		}
		if len(t.Parts) > 0 {
			e.user(joined(t.Parts), imagesOf(t.Parts))
		}
	}
	return e.Raw(`]}`).Buf
}

func (e *encoder) options(info llm.Info, maxOutput int) {
	if maxOutput <= 0 {
		maxOutput = info.MaxOutput
	}
	if info.Window <= 0 && maxOutput <= 0 {
		return
	}
	e.Raw(`,"options":{`)
	if info.Window > 0 {
		e.Raw(`"num_ctx":`).Int(info.Window)
	}
	if maxOutput > 0 {
		e.Comma().Raw(`"num_predict":`).Int(maxOutput)
	}
	e.Raw(`}`)
}

func (e *encoder) tools(tools []llm.ToolSpec) {
	if len(tools) == 0 {
		return
	}
	e.Raw(`,"tools":[`)
	for _, t := range tools {
		e.Comma().Raw(`{"type":"function","function":{"name":`).Str(t.Name).Raw(`,"description":`).Str(t.Description)
		e.Raw(`,"parameters":`).Schema(t.Schema, `{"type":"object","properties":{}}`).Raw(`}}`)
	}
	e.Raw(`]`)
}

func (e *encoder) system(blocks []string) {
	if blocks = wire.AllVisible(blocks); len(blocks) > 0 {
		e.Comma().Raw(`{"role":"system","content":`).Str(strings.Join(blocks, "\n\n")).Raw(`}`)
	}
}

func (e *encoder) assistant(t wire.Turn) {
	var thinking, text strings.Builder
	for _, p := range t.Parts {
		switch v := p.(type) {
		case llm.Reasoning:
			var th thought
			_ = json.Unmarshal(v.Opaque, &th) // th stays empty for another wire's Opaque
			thinking.WriteString(th.Thinking)
		case llm.Text:
			text.WriteString(v.Text)
		}
	}
	e.Comma().Raw(`{"role":"assistant","content":`).Str(text.String())
	if thinking.Len() > 0 {
		e.Raw(`,"thinking":`).Str(thinking.String())
	}
	if calls := llm.Parts(t.Parts).Calls(); len(calls) > 0 {
		e.Raw(`,"tool_calls":[`)
		for _, c := range calls {
			e.Comma().Raw(`{"id":`).Str(c.ID).Raw(`,"function":{"name":`).Str(c.Name)
			e.Raw(`,"arguments":`).JSON(wire.Object(c.Args)).Raw(`}}`)
		}
		e.Raw(`]`)
	}
	e.Raw(`}`)
}

// result writes a result without its images, which follow as messages of the user: templates show images of no
// other role.
func (e *encoder) result(r llm.Result) {
	text := joined(r.Parts)
	if r.Error && !strings.HasPrefix(strings.ToLower(text), "error") {
		text = "Error: " + text
	}
	e.Comma().Raw(`{"role":"tool","tool_name":`).Str(r.Name).Raw(`,"tool_call_id":`).Str(r.CallID)
	e.Raw(`,"content":`).Str(text).Raw(`}`)
}

func (e *encoder) user(text string, images []llm.Image) {
	e.Comma().Raw(`{"role":"user","content":`).Str(text)
	if len(images) > 0 {
		e.Raw(`,"images":[`)
		for _, v := range images {
			e.Comma().Raw(`"`).Base64(v.Data).Raw(`"`)
		}
		e.Raw(`]`)
	}
	e.Raw(`}`)
}

func imagesOf(parts llm.Parts) []llm.Image {
	var images []llm.Image
	for _, p := range parts {
		if v, ok := p.(llm.Image); ok {
			images = append(images, v)
		}
	}
	return images
}

func joined(parts llm.Parts) string {
	var texts []string
	for _, p := range parts {
		if v, ok := p.(llm.Text); ok {
			texts = append(texts, v.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}
