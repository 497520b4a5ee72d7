// Package prompted extracts from a model's text the parts that are not text: tool calls, thoughts, and marks of
// templates. It also gives tools to models without native ones: the system prompt describes the tools, calls are
// read from the text, and results go back as text.
//
//	m = &prompted.Model{Model: m}
//
// Requests use the form that most open models were trained on, that of Hermes and Qwen
// (https://qwen.readthedocs.io/en/latest/framework/function_call.html). Replies are also read in the other forms
// that models fall back to; forms.go lists them.
//
// Models with native tools need it only if calls sometimes appear in their text. Its request form may improve from
// version to version.
package prompted

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/family"
)

// Model is a model whose tools may live in the prompt. Safe for concurrent use if the wrapped model is; do not
// copy.
//
// A request is first sent unchanged. If it fails because the model takes no tools, it is resent in the prompted
// form at once, and so is every later one. For a model that is known to take no tools, the first attempt is
// skipped.
type Model struct {
	llm.Model
	// Always puts tools into the prompt without trying native ones.
	Always bool

	noTools atomic.Bool // the model has refused them
}

var _ llm.Model = (*Model)(nil)

// Info implements [llm.Model]. It always reports support for tools.
func (m *Model) Info() llm.Info {
	info := m.Model.Info()
	info.NoTools = false
	return info
}

// Stream implements [llm.Model]. In the prompted form, calls have the ids
// "call_1", "call_2" and so on, unique in the request's history.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		if !m.Always && !m.noTools.Load() && !m.Model.Info().NoTools {
			if !m.refused(ctx, req, yield) {
				return
			}
			m.noTools.Store(true)
		}
		m.prompt(ctx, req, yield)
	}
}

// refused sends the request unchanged. It reports whether the model takes no tools; in that case no content has
// been yielded.
func (m *Model) refused(ctx context.Context, req llm.Request, yield func(llm.Chunk, error) bool) bool {
	streamed := false
	keeps := family.Of(m.Info().Model).KeepsThoughts
	h := newHearing(req, keeps)
	for c, err := range m.Model.Stream(ctx, spokenAgain(req, keeps, m.Info().Route())) {
		if err != nil && !streamed && llm.AsError(err).Kind == llm.KindNoTools {
			return true
		}
		streamed = c.Retry == nil && c.Routed == nil
		if err != nil {
			yield(c, err)
			return false
		}
		if !streamed {
			h = newHearing(req, keeps)
		}
		for _, c := range h.hear(c) {
			if !yield(c, nil) {
				return false
			}
		}
	}
	return false
}

// prompt sends the request in the prompted form.
func (m *Model) prompt(ctx context.Context, req llm.Request, yield func(llm.Chunk, error) bool) {
	s := newScanner(req.Tools)
	for c, err := range m.Model.Stream(ctx, rewrite(req)) {
		chunks := []llm.Chunk{c}
		switch {
		case err != nil:
			yield(c, err)
			return
		case c.Text != "":
			chunks = display(s.write(c.Text))
		case c.Retry != nil, c.Routed != nil:
			s = newScanner(req.Tools)
		case c.Reply != nil:
			chunks = display(s.end(cut(c.Reply.Stop)))
			chunks = append(chunks, llm.Chunk{Reply: read(c.Reply, req)})
		}
		for _, c := range chunks {
			if !yield(c, nil) {
				return
			}
		}
	}
}

// cut reports whether a reply that stopped this way may be incomplete.
func cut(stop llm.Stop) bool { return stop != llm.StopEnd && stop != llm.StopCalls }

// display returns the chunks for events.
func display(events []event) []llm.Chunk {
	var out []llm.Chunk
	for _, e := range events {
		switch {
		case e.text != "":
			out = append(out, llm.Chunk{Text: e.text})
		case e.thought != "":
			out = append(out, llm.Chunk{Reasoning: e.thought})
		case e.delta != nil:
			out = append(out, llm.Chunk{Call: e.delta})
		}
	}
	return out
}

// read returns the reply with the calls in its text.
func read(in *llm.Reply, req llm.Request) *llm.Reply {
	r := reader{scanner: newScanner(req.Tools), last: lastID(req.Messages), route: in.Route}
	r.read(in)
	out := *in
	out.Parts = r.parts
	if in.Stop == llm.StopEnd && len(out.Calls()) > 0 {
		out.Stop = llm.StopCalls
	}
	return &out
}

// reader makes parts from events.
type reader struct {
	*scanner
	parts llm.Parts
	last  int        // number of the last id
	route string     // of the model that had the thoughts
	keeps bool       // thoughts go back in the text
	calls []llm.Call // calls found in the text
	loose bool       // one of them was in a code block
}

// read processes a reply.
func (r *reader) read(in *llm.Reply) {
	for _, p := range in.Parts {
		if t, ok := p.(llm.Text); ok {
			r.add(r.write(t.Text))
		} else {
			r.parts = append(r.parts, p)
		}
	}
	r.add(r.end(cut(in.Stop)))
}

func (r *reader) add(events []event) {
	for _, e := range events {
		switch {
		case e.call != nil:
			r.last++
			e.call.ID = fmt.Sprintf("call_%d", r.last)
			r.calls = append(r.calls, *e.call)
			r.parts = append(r.parts, *e.call)
			r.loose = r.loose || e.fenced
		case e.text != "":
			r.say(e.text)
		case e.thought != "":
			r.think(e.thought)
		case e.ended:
			for i, p := range r.parts {
				if t, ok := p.(llm.Text); ok {
					r.parts[i] = r.thought(t.Text)
				}
			}
		}
	}
}

// think adds to the thought at the end.
func (r *reader) think(text string) {
	if n := len(r.parts); n > 0 {
		if t, ok := r.parts[n-1].(llm.Reasoning); ok && (t.Opaque == nil || r.keeps && t.Opaque[0] == '"') {
			r.parts[n-1] = r.thought(t.Text + text)
			return
		}
	}
	r.parts = append(r.parts, r.thought(text))
}

// thought returns a thought that was found in the text. Only models that require it get it back.
func (r *reader) thought(text string) llm.Reasoning {
	t := llm.Reasoning{Text: text, Route: r.route}
	if r.keeps {
		t.Opaque = json.RawMessage(compact("<think>" + text + "</think>"))
	}
	return t
}

// say adds to the text at the end.
func (r *reader) say(text string) {
	if n := len(r.parts); n > 0 {
		if t, ok := r.parts[n-1].(llm.Text); ok {
			r.parts[n-1] = llm.Text{Text: t.Text + text}
			return
		}
	}
	r.parts = append(r.parts, llm.Text{Text: text})
}

// lastID returns the highest number of an id of our form in the history, 0 if there is none.
func lastID(history []llm.Message) int {
	last := 0
	for _, m := range history {
		for _, c := range m.Parts.Calls() {
			var n int
			if _, err := fmt.Sscanf(c.ID, "call_%d", &n); err == nil {
				last = max(last, n)
			}
		}
	}
	return last
}
