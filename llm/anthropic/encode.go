package anthropic

import (
	"strings"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// Rules of the request's bytes:
//
//   - They are a pure function of the model's Info and the request: fields in
//     a fixed order, no maps, no clock. Messages come last, so that a longer
//     conversation only adds bytes at the end.
//   - A cache_control marker tells the vendor to keep a cache entry up to there.
//     It is not part of the cached prefix: moving it does not change the prefix,
//     nor the entry. Four are allowed: on the first block of the system prompt,
//     which is the same in every session and covers the tools before it; on its
//     last block; at the end of the conversation; and at the end of the previous
//     request, if so many blocks have come since that the vendor, which looks
//     back twenty, would miss the entry there, or else on the last tool. A system
//     prompt of one block leaves one unused.
//   - Thinking can't carry a marker; the block before it does.
const (
	marker = `,"cache_control":{"type":"ephemeral"}`

	// defaultMaxTokens is used if neither the request nor the catalog names a limit. Every model since Claude 3.5
	// can write that much.
	defaultMaxTokens = 8192

	maxID = 64

	maxMarkers = 4
	lookback   = 18 // blocks; below the vendor's 20, because it may count some that we don't
)

// encode returns the body of the request.
func encode(info llm.Info, at platform, names *wire.Aliases, req llm.Request) []byte {
	turns := wire.Turns(req.Messages, info.Route())
	imageLimits().Trim(turns)
	e := encoder{Writer: wire.NewWriter(req), names: names}
	system := wire.AllVisible(req.System)
	before, markTools := markers(len(system), turns)
	e.head(at, info, req)
	limit := maxTokens(info, req)
	e.Raw(`,"max_tokens":`).Int(limit)
	e.thinking(info.Model, req.Effort, limit, turns)
	e.system(system)
	e.tools(req.Tools, turns, markTools)
	e.messages(turns, before)
	return e.Raw(`}`).Buf
}

// markers places the optional markers: before is the turn at which the previous request ended, -1 if it needs none,
// and tools says whether the last tool gets one.
func markers(system int, turns []wire.Turn) (before int, tools bool) {
	left := maxMarkers - 1 - min(system, 2)
	before, since := len(turns)-2, 0
	for before >= 0 && turns[before].Role != llm.User {
		before--
	}
	for _, t := range turns[before+1:] {
		since += len(t.Results) + len(t.Parts)
	}
	if before < 0 || since <= lookback {
		return -1, true
	}
	return before, left > 1
}

func maxTokens(info llm.Info, req llm.Request) int {
	switch {
	case req.MaxOutput > 0:
		return req.MaxOutput
	case info.MaxOutput > 0:
		return info.MaxOutput
	}
	return defaultMaxTokens
}

// encoder writes a body.
type encoder struct {
	wire.Writer
	names *wire.Aliases
	tail  int // offset for a marker on the last block; 0 if no block can carry one
}

// mark puts a marker on the last block that can carry one.
func (e *encoder) mark() {
	if e.tail > 0 {
		e.Insert(e.tail, marker)
		e.tail = 0
	}
}

// close ends a block that can carry a marker.
func (e *encoder) close() {
	e.tail = len(e.Buf)
	e.Raw(`}`)
}

// thinking asks for reasoning in the form of the model's generation: from 4.6 on a model decides itself how long to
// think, guided by an effort; before, and with models of other vendors, it gets a budget of tokens. From 5 on it
// thinks by default, and shows it only if asked.
func (e *encoder) thinking(id, effort string, limit int, turns []wire.Turn) {
	switch {
	case atLeast(id, 4, 6):
		if effort == "" && !atLeast(id, 5, 0) {
			return
		}
		e.Raw(`,"thinking":{"type":"adaptive","display":"summarized"`)
		if bindsThinking(id) {
			e.Raw(`,"block_binding":{"prefix_mismatch_behavior":"drop_block"}`)
		}
		e.Raw(`}`)
		if effort != "" {
			e.Raw(`,"output_config":{"effort":`).Str(most(id, effort)).Raw(`}`)
		}
	case budget(id, effort, limit) > 0 && mayThink(turns):
		e.Raw(`,"thinking":{"type":"enabled","budget_tokens":`).Int(budget(id, effort, limit)).Raw(`}`)
	}
}

// most limits the effort to a model's maximum: all but the oldest models that decide themselves know xhigh, and all
// of them max.
func most(id, effort string) string {
	if effort == "xhigh" && !atLeast(id, 4, 7) {
		return "high"
	}
	return effort
}

// budget returns the number of tokens for thinking, which must be at least 1024 and below the limit of the reply; 0
// for none.
func budget(id, effort string, limit int) int {
	if strings.Contains(id, "claude-") && !atLeast(id, 3, 7) {
		return 0
	}
	n := 0
	switch effort {
	case "":
		return 0
	case "low":
		n = 4096
	case "medium":
		n = 12288
	default:
		n = 32768
	}
	if n = min(n, limit/2); n < 1024 {
		return 0
	}
	return n
}

// mayThink reports whether a budget may be given: while tools run, the vendor refuses one if the message with the
// calls does not begin with thinking, for example if another model wrote it.
func mayThink(turns []wire.Turn) bool {
	n := len(turns)
	if n < 2 || len(turns[n-1].Results) == 0 || len(turns[n-2].Parts) == 0 {
		return true
	}
	_, ok := turns[n-2].Parts[0].(llm.Reasoning)
	return ok
}

func (e *encoder) system(blocks []string) {
	if len(blocks) == 0 {
		return
	}
	e.Raw(`,"system":[`)
	for i, s := range blocks {
		e.text(s)
		if i == 0 || i == len(blocks)-1 {
			e.mark()
		}
	}
	e.Raw(`]`)
}

// tools writes the tools. The vendor refuses calls in the history of a request without tools, so those that were
// called are declared, and may not be called again.
func (e *encoder) tools(tools []llm.ToolSpec, turns []wire.Turn, mark bool) {
	none := len(tools) == 0
	if none {
		tools = wire.Called(turns)
	}
	if len(tools) == 0 {
		return
	}
	if none {
		e.Raw(`,"tool_choice":{"type":"none"}`)
	}
	e.Raw(`,"tools":[`)
	for _, t := range tools {
		e.Comma()
		if strings.HasPrefix(t.Vendor, "text_editor_") {
			e.Raw(`{"type":`).Str(t.Vendor).Raw(`,"name":`).Str(t.Name)
			e.close()
			continue
		}
		e.Raw(`{"name":`).Str(e.names.Theirs(t.Name))
		if t.Description != "" {
			e.Raw(`,"description":`).Str(t.Description)
		}
		e.Raw(`,"input_schema":`)
		e.Schema(t.Schema, `{"type":"object"}`)
		e.close()
	}
	if mark {
		e.mark()
	}
	e.Raw(`]`)
}

func (e *encoder) messages(turns []wire.Turn, before int) {
	e.Raw(`,"messages":[`)
	for i, t := range turns {
		last := i == len(turns)-1
		e.Comma()
		e.Raw(`{"role":`).Str(string(t.Role)).Raw(`,"content":[`)
		e.tail = 0
		for _, r := range t.Results {
			e.result(r)
		}
		for j, p := range t.Parts {
			if text, ok := p.(llm.Text); ok && last && j == len(t.Parts)-1 && t.Role == llm.Assistant {
				// The vendor refuses to continue a reply that ends in white space.
				p = llm.Text{Text: strings.TrimRight(text.Text, " \t\r\n")}
			}
			e.part(p)
		}
		if last || i == before {
			e.mark()
		}
		e.Raw(`]}`)
	}
	e.Raw(`]`)
}

func (e *encoder) part(p llm.Part) {
	switch v := p.(type) {
	case llm.Text:
		e.text(v.Text)
	case llm.Image:
		e.image(v)
	case llm.Reasoning:
		e.Comma()
		e.JSON(v.Opaque)
	case llm.Call:
		e.Comma()
		e.Raw(`{"type":"tool_use","id":`).Str(wire.ShortID(v.ID, maxID)).Raw(`,"name":`).Str(e.names.Theirs(v.Name)).Raw(`,"input":`)
		e.JSON(wire.Object(v.Args))
		e.close()
	}
}

func (e *encoder) text(s string) {
	e.Comma()
	e.Raw(`{"type":"text","text":`).Str(s)
	e.close()
}

func (e *encoder) image(v llm.Image) {
	e.Comma()
	e.Raw(`{"type":"image","source":{"type":"base64","media_type":`).Str(v.MediaType).Raw(`,"data":"`)
	e.Base64(v.Data)
	e.Raw(`"}`)
	e.close()
}

func (e *encoder) result(r llm.Result) {
	e.Comma()
	e.Raw(`{"type":"tool_result","tool_use_id":`).Str(wire.ShortID(r.CallID, maxID))
	open := false
	for _, p := range r.Parts {
		t, isText := p.(llm.Text)
		if _, isImage := p.(llm.Image); !isImage && (!isText || !wire.Visible(t.Text)) {
			continue
		}
		if !open {
			e.Raw(`,"content":[`)
			open = true
		}
		e.part(p)
	}
	if open {
		e.Raw(`]`)
	}
	if r.Error {
		e.Raw(`,"is_error":true`)
	}
	e.close()
}
