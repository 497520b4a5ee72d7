package guard

import (
	"context"
	"iter"
	"slices"

	"github.com/inspan/inspan/llm"
)

// Model applies the checks of inputs and outputs to a model: the person's last message is checked before it is
// sent, and the text of a reply before it counts. A denial ends the request as refused. With output checks,
// nothing of a reply is passed on before all of it has passed. Without such checks it returns m.
func (c Checks) Model(m llm.Model) llm.Model {
	if !c.has(OnInput) && !c.has(OnOutput) {
		return m
	}
	return &checkedModel{m, c}
}

type checkedModel struct {
	llm.Model
	checks Checks
}

// Stream implements [llm.Model].
func (m *checkedModel) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		input := "" // since the model's last reply
		if n := len(req.Messages); n > 0 && req.Messages[n-1].Role == llm.User {
			input = req.Messages[n-1].Parts.Text()
		}
		if k := m.checks.Input(input); k != nil {
			yield(llm.Chunk{}, k.refusal("what was said"))
			return
		}
		if !m.checks.has(OnOutput) {
			m.Model.Stream(ctx, req)(yield)
			return
		}
		var held []llm.Chunk
		info := m.Info()
		for chunk, err := range m.Model.Stream(ctx, req) {
			if err != nil {
				yield(chunk, err)
				return
			}
			if chunk.Routed != nil {
				info = chunk.Routed.Info
			}
			if held = append(held, chunk); chunk.Reply == nil {
				continue
			}
			if k := m.checks.Output(chunk.Reply.Parts.Text()); k != nil {
				e := k.refusal("the answer")
				e.Spent = &llm.Spent{Info: info, Usage: chunk.Reply.Used(req)} // it was charged
				yield(llm.Chunk{}, e)
				return
			}
			for _, c := range held {
				if !yield(c, nil) {
					return
				}
			}
			held = nil
		}
	}
}

// has reports whether a check of that kind exists.
func (c Checks) has(on string) bool {
	return slices.ContainsFunc(c.list, func(k compiled) bool { return k.On == on })
}

func (k *Check) refusal(what string) *llm.Error {
	text := "the check " + k.Name + " refused " + what
	if k.Reason != "" {
		text += ": " + k.Reason
	}
	return &llm.Error{Kind: llm.KindRefused, Message: text}
}
