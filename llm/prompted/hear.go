package prompted

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// A model with native tool calls may still write a call into its text, because the server has no parser for its
// template or the parser has failed. Such calls are treated as follows:
//
//   - A call between marks, or one that is the whole reply, is made, if nothing but calls follows it.
//   - Anything else that looks like a call is not made, and the reply says so ([llm.StopSpoken]): a call
//     that is explained or quoted can't be told from an intended one. The same holds for arguments alone
//     in a code block after the name of their tool.
//   - If the reply also has native calls, none is made: the same call would be made twice.
//   - A call in the thoughts is made only if the reply has nothing else.

// hearing is one reply as it arrives.
type hearing struct {
	*scanner
	req   llm.Request
	keeps bool
	begun string // text received while nothing was shown
	shown int    // bytes of text forwarded
	holds bool   // a possible call has begun: nothing more is shown before the reply is complete
}

func newHearing(req llm.Request, keeps bool) *hearing {
	return &hearing{scanner: newScanner(req.Tools), req: req, keeps: keeps}
}

// hear returns the chunks to forward for a chunk.
func (h *hearing) hear(c llm.Chunk) []llm.Chunk {
	switch {
	case c.Text != "":
		if h.shown == 0 && !h.holds {
			h.begun += c.Text
			h.holds = strings.HasPrefix(strings.TrimSpace(h.begun), "{{") // it may be a call, see undoubled
		}
		return h.show(h.write(c.Text))
	case c.Reply != nil:
		out := h.show(h.end(cut(c.Reply.Stop)))
		reply := heard(c.Reply, h.req, h.keeps)
		if text := reply.Parts.Text(); len(text) > h.shown {
			out = append(out, llm.Chunk{Text: text[h.shown:]})
		}
		if len(c.Reply.Calls()) == 0 {
			for _, call := range reply.Calls() {
				out = append(out, llm.Chunk{Call: &llm.CallDelta{Name: call.Name, Args: string(call.Args)}})
			}
		}
		return append(out, llm.Chunk{Reply: reply})
	case c.Call != nil:
		if name, ok := h.tool(c.Call.Name); ok {
			c.Call = &llm.CallDelta{Name: name, Args: c.Call.Args}
		}
	}
	return []llm.Chunk{c}
}

// show returns the chunks for events up to a possible call.
func (h *hearing) show(events []event) []llm.Chunk {
	var out []llm.Chunk
	for _, e := range events {
		if h.holds = h.holds || e.call != nil || e.delta != nil; h.holds {
			break
		}
		if h.shown += len(e.text); e.ended {
			h.shown = 0 // the shown text was a thought
		}
		out = append(out, display([]event{e})...)
	}
	return out
}

// heard returns a reply without the parts of its text that are calls, thoughts or marks.
func heard(in *llm.Reply, req llm.Request, keeps bool) *llm.Reply {
	out := *in
	native := in.Calls()
	read := func(in *llm.Reply, tools []llm.ToolSpec) reader {
		r := reader{scanner: newScanner(tools), last: lastID(req.Messages), route: in.Route, keeps: keeps}
		r.read(in)
		return r
	}
	with, plain := read(in, req.Tools), read(in, nil)
	if one, doubled := single(in); doubled {
		if inner := read(one, req.Tools); len(inner.calls) > 0 {
			with = inner
		}
	}
	switch {
	case len(native) > 0:
		out.Parts = with.once(native)
	case bare(plain.parts.Text()):
		out.Parts = slices.DeleteFunc(plain.parts, func(p llm.Part) bool { _, is := p.(llm.Text); return is })
	case len(with.calls) > 0 && !cut(in.Stop) && with.sure():
		out.Parts, out.Stop = with.parts, llm.StopCalls
	case cut(in.Stop):
		out.Parts = plain.parts
	case len(with.calls) > 0 || with.doubt || argued(in.Parts.Text(), req.Tools):
		out.Parts, out.Stop = plain.parts, llm.StopSpoken
	default:
		out.Parts = with.parts
		if !wire.Visible(out.Parts.Text()) {
			out.Parts, out.Stop = with.thoughtOf(out.Parts, in.Stop)
		}
	}
	for i, p := range out.Parts {
		if c, ok := p.(llm.Call); ok {
			if name, offered := with.tool(c.Name); offered {
				c.Name = name
			} else {
				c.Name = cmp.Or(unmarked(c.Name), c.Name)
			}
			out.Parts[i] = c
		}
	}
	return &out
}

// single returns a reply whose call has doubled braces with single ones, and whether there is such a call.
func single(in *llm.Reply) (out *llm.Reply, doubled bool) {
	for i, p := range in.Parts {
		t, ok := p.(llm.Text)
		if one := undoubled(t.Text); ok && one != t.Text {
			reply := *in
			reply.Parts = slices.Clone(in.Parts)
			reply.Parts[i] = llm.Text{Text: one}
			return &reply, true
		}
	}
	return nil, false
}

// sure reports whether the calls in the text are intended: only calls follow the first of them, and nothing comes
// before one in a code block.
func (r *reader) sure() bool {
	called := false
	for _, p := range r.parts {
		switch v := p.(type) {
		case llm.Call:
			called = true
		case llm.Text:
			if (called || r.loose) && wire.Visible(v.Text) {
				return false
			}
		}
	}
	return true
}

// once returns the parts with the native calls. A call in the text that is among them is dropped, and any other
// stays text.
func (r *reader) once(native []llm.Call) llm.Parts {
	var out llm.Parts
	for _, p := range r.parts {
		c, ok := p.(llm.Call)
		switch {
		case !ok || !slices.ContainsFunc(r.calls, func(s llm.Call) bool { return s.ID == c.ID }) ||
			slices.ContainsFunc(native, func(n llm.Call) bool { return n.ID == c.ID }):
			out = append(out, p)
		case !slices.ContainsFunc(native, func(n llm.Call) bool {
			name, _ := r.tool(n.Name)
			return name == c.Name && (c.Invalid != "" || bytes.Equal(wire.AppendJSON(nil, n.Args), wire.AppendJSON(nil, c.Args)))
		}):
			out = append(out, llm.Text{Text: compactCall(c)})
		}
	}
	return out
}

// thoughtOf looks for calls in the thoughts of a reply that has nothing else.
func (r *reader) thoughtOf(parts llm.Parts, stop llm.Stop) (llm.Parts, llm.Stop) {
	inner := reader{scanner: newScanner(nil), last: r.last}
	inner.tools, inner.forms = r.tools, r.forms
	for _, p := range parts {
		if t, ok := p.(llm.Reasoning); ok {
			inner.add(inner.write(t.Text))
		}
	}
	inner.add(inner.end(false))
	if len(inner.calls) == 0 || inner.loose || !inner.sure() {
		return parts, stop
	}
	out := slices.Clone(parts)
	for _, c := range inner.calls {
		out = append(out, c)
	}
	return out, llm.StopCalls
}

// spokenAgain returns the request with thoughts put back into the text, for models that require it.
func spokenAgain(req llm.Request, keeps bool, route string) llm.Request {
	if !keeps {
		return req
	}
	messages := slices.Clone(req.Messages)
	for i, m := range messages {
		for j, p := range m.Parts {
			t, ok := p.(llm.Reasoning)
			var text string
			if !ok || t.Route != route || json.Unmarshal(t.Opaque, &text) != nil || !strings.HasPrefix(text, "<think>") {
				continue
			}
			if &messages[i].Parts[0] == &req.Messages[i].Parts[0] {
				messages[i].Parts = slices.Clone(m.Parts)
			}
			messages[i].Parts[j] = llm.Text{Text: text}
		}
	}
	req.Messages = messages
	return req
}
