package gemini

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
//   - They are a pure function of the model's Info and the request. Contents
//     come last, so that a longer conversation only adds bytes at the end and
//     the vendor's implicit cache finds the prefix again.
//   - Contents strictly alternate between user and model.
//   - A thought signature goes back on the very part with which it came; see
//     stamp. From generation 3 on the vendor refuses a step whose first call has
//     none, and defines a sentinel for calls that it did not write itself.
//   - Responses come in the order of their calls, before everything else, under
//     the call's name, and from generation 3 on, which numbers its calls, with
//     the call's id.
const (
	sentinel = "skip_thought_signature_validator"
	maxID    = 64
)

// stamp is the Opaque of reasoning. Thoughts, and parts that hold only a signature, are whole parts of the wire and
// have Text. Otherwise it is the signature of the next part, whose kind On names: "text" or "call".
type stamp struct {
	On        string  `json:"on,omitempty"`
	Text      *string `json:"text,omitempty"`
	Thought   bool    `json:"thought,omitempty"`
	Signature string  `json:"thoughtSignature,omitempty"`
}

// opaque returns the JSON of s; for a whole part it is the part's JSON on the wire.
func (s stamp) opaque() json.RawMessage {
	w := wire.Writer{Buf: []byte{'{'}}
	if s.On != "" {
		w.Raw(`"on":`).Str(s.On)
	}
	if s.Text != nil {
		w.Comma().Raw(`"text":`).Str(*s.Text)
	}
	if s.Thought {
		w.Comma().Raw(`"thought":true`)
	}
	if s.Signature != "" {
		w.Comma().Raw(`"thoughtSignature":`).Str(s.Signature)
	}
	return w.Raw(`}`).Buf
}

// imageLimits returns the limits of one request: the vendor accepts 20 MB
// (ai.google.dev/gemini-api/docs/image-understanding), of which the rest is left for text.
func imageLimits() wire.Images { return wire.Images{Bytes: 16 << 20} }

// encode returns the body of the request.
func encode(info llm.Info, names *wire.Aliases, req llm.Request) []byte {
	turns := wire.Turns(req.Messages, info.Route())
	imageLimits().Trim(turns)
	e := encoder{Writer: wire.NewWriter(req), gen: generation(info.Model), names: names}
	e.Raw(`{`)
	e.system(req.System)
	e.tools(req.Tools, turns)
	e.config(req.MaxOutput, req.Effort)
	e.Comma().Raw(`"contents":[`)
	for i, t := range turns {
		e.Comma()
		if t.Role == llm.Assistant {
			e.model(t)
			continue
		}
		var calls []llm.Call
		if i > 0 {
			calls = llm.Parts(turns[i-1].Parts).Calls()
		}
		e.user(t, calls)
	}
	return e.Raw(`]}`).Buf
}

// encoder writes a body for one generation of models.
type encoder struct {
	wire.Writer
	gen   float64
	names *wire.Aliases
}

func (e *encoder) system(blocks []string) {
	if blocks = wire.AllVisible(blocks); len(blocks) == 0 {
		return
	}
	e.Comma().Raw(`"systemInstruction":{"parts":[`)
	for _, s := range blocks {
		e.text(s, "")
	}
	e.Raw(`]}`)
}

// tools writes the tools. If there are none, those called in the history are declared and may not be called again.
func (e *encoder) tools(tools []llm.ToolSpec, turns []wire.Turn) {
	none := len(tools) == 0
	if none {
		tools = wire.Called(turns)
	}
	if len(tools) == 0 {
		return
	}
	e.Comma().Raw(`"tools":[{"functionDeclarations":[`)
	for _, t := range tools {
		e.Comma().Raw(`{"name":`).Str(e.names.Theirs(t.Name))
		if t.Description != "" {
			e.Raw(`,"description":`).Str(t.Description)
		}
		if schema := wire.Object(t.Schema); len(schema) > 2 {
			e.Raw(`,"parametersJsonSchema":`).JSON(schema)
		}
		e.Raw(`}`)
	}
	e.Raw(`]}]`)
	if none {
		e.Raw(`,"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}`)
	}
}

// config asks for reasoning in the form of the generation: a level from 3 on, a budget of tokens in 2.5. Both show
// their thoughts only if asked.
func (e *encoder) config(maxOutput int, effort string) {
	if maxOutput <= 0 && e.gen < 2.5 {
		return
	}
	e.Comma().Raw(`"generationConfig":{`)
	if maxOutput > 0 {
		e.Raw(`"maxOutputTokens":`).Int(maxOutput)
	}
	if e.gen >= 2.5 {
		e.Comma().Raw(`"thinkingConfig":{"includeThoughts":true`)
		switch {
		case effort == "":
		case e.gen >= 3:
			e.Raw(`,"thinkingLevel":`).Str(strings.ToUpper(wire.EffortUpTo("high", effort)))
		default:
			e.Raw(`,"thinkingBudget":`).Int(budget(effort))
		}
		e.Raw(`}`)
	}
	e.Raw(`}`)
}

// budget converts an effort as the vendor's own OpenAI-compatible endpoint does.
func budget(effort string) int {
	switch effort {
	case "low":
		return 1024
	case "medium":
		return 8192
	}
	return 24576
}

// model writes a turn of the model. No signature is lost: if its part is gone, it is written on an empty part, a
// form that the vendor uses itself.
func (e *encoder) model(t wire.Turn) {
	e.Raw(`{"role":"model","parts":[`)
	called := false
	for i := 0; i < len(t.Parts); i++ {
		signature := ""
		if r, ok := t.Parts[i].(llm.Reasoning); ok {
			var next llm.Part
			if i+1 < len(t.Parts) {
				next = t.Parts[i+1]
			}
			if signature, ok = e.reasoning(r, next); !ok {
				continue
			}
			i++
		}
		switch v := t.Parts[i].(type) {
		case llm.Text:
			e.text(v.Text, signature)
		case llm.Image:
			e.image(v)
		case llm.Call:
			if signature == "" && !called && e.gen >= 3 {
				signature = sentinel
			}
			called = true
			e.call(v, signature)
		}
	}
	e.Raw(`]}`)
}

// reasoning returns the signature in r for the next part, or writes r as a part of its own.
func (e *encoder) reasoning(r llm.Reasoning, next llm.Part) (signature string, ok bool) {
	var s stamp
	_ = json.Unmarshal(r.Opaque, &s) // s stays empty for another wire's Opaque
	switch next.(type) {
	case llm.Text:
		ok = s.On == "text"
	case llm.Call:
		ok = s.On == "call"
	}
	if ok {
		return s.Signature, true
	}
	s.On = ""
	if s.Text == nil {
		s.Text = new(string)
	}
	e.Comma().JSON(s.opaque())
	return "", false
}

func (e *encoder) call(c llm.Call, signature string) {
	e.Comma().Raw(`{"functionCall":{`)
	e.id(c.ID)
	e.Comma().Raw(`"name":`).Str(e.names.Theirs(c.Name)).Raw(`,"args":`).JSON(wire.Object(c.Args)).Raw(`}`)
	e.sign(signature)
	e.Raw(`}`)
}

// id writes the id of a call or a response, unless the generation is before 3, which has none.
func (e *encoder) id(id string) {
	if e.gen >= 3 {
		e.Raw(`"id":`).Str(wire.ShortID(id, maxID))
	}
}

func (e *encoder) sign(signature string) {
	if signature != "" {
		e.Raw(`,"thoughtSignature":`).Str(signature)
	}
}

func (e *encoder) text(s, signature string) {
	e.Comma().Raw(`{"text":`).Str(s)
	e.sign(signature)
	e.Raw(`}`)
}

// image writes an image. One of a type that the vendor refuses would make every further request fail, so a note
// takes its place.
func (e *encoder) image(v llm.Image) {
	if v.MediaType == "image/gif" {
		e.text("[A GIF image stood here, which this model can't read.]", "")
		return
	}
	e.Comma().Raw(`{"inlineData":{"mimeType":`).Str(v.MediaType).Raw(`,"data":"`).Base64(v.Data).Raw(`"}}`)
}

// user writes a turn of the user: responses in the order of their calls, then the images that a response can't
// hold, then everything else.
func (e *encoder) user(t wire.Turn, calls []llm.Call) {
	place := make(map[string]int, len(calls))
	for i, c := range calls {
		place[c.ID] = i - len(calls)
	}
	results := slices.Clone(t.Results)
	slices.SortStableFunc(results, func(a, b llm.Result) int { return cmp.Compare(place[a.CallID], place[b.CallID]) })
	e.Raw(`{"role":"user","parts":[`)
	for i, r := range results {
		if at, ok := place[r.CallID]; ok {
			results[i].Name = calls[at+len(calls)].Name
		}
		e.response(results[i])
	}
	for _, r := range results {
		if e.gen < 3 {
			e.imagesBeside(r)
		}
	}
	for _, p := range t.Parts {
		switch v := p.(type) {
		case llm.Text:
			e.text(v.Text, "")
		case llm.Image:
			e.image(v)
		}
	}
	e.Raw(`]}`)
}

func (e *encoder) response(r llm.Result) {
	e.Comma().Raw(`{"functionResponse":{`)
	e.id(r.CallID)
	e.Comma().Raw(`"name":`).Str(e.names.Theirs(r.Name)).Raw(`,"response":{`)
	if r.Error {
		e.Raw(`"error":`)
	} else {
		e.Raw(`"output":`)
	}
	e.Str(joined(r.Parts)).Raw(`}`)
	if images := images(r); len(images) > 0 && e.gen >= 3 {
		e.Raw(`,"parts":[`)
		for _, v := range images {
			e.image(v)
		}
		e.Raw(`]`)
	}
	e.Raw(`}}`)
}

// joined returns the texts of a result as one, with a note for each image that can't be sent.
func joined(parts llm.Parts) string {
	var texts []string
	for _, p := range parts {
		switch v := p.(type) {
		case llm.Text:
			texts = append(texts, v.Text)
		case llm.Image:
			if v.MediaType == "image/gif" {
				texts = append(texts, "[A GIF image, which this model can't read.]")
			}
		}
	}
	return strings.Join(texts, "\n")
}

// images returns the images of a result that can be sent.
func images(r llm.Result) []llm.Image {
	var list []llm.Image
	for _, p := range r.Parts {
		if v, ok := p.(llm.Image); ok && v.MediaType != "image/gif" {
			list = append(list, v)
		}
	}
	return list
}

func (e *encoder) imagesBeside(r llm.Result) {
	list := images(r)
	if len(list) > 0 {
		e.text("Image returned by "+r.Name+":", "")
	}
	for _, v := range list {
		e.image(v)
	}
}
