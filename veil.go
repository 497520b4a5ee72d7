package inspan

import (
	"bytes"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/secret"
	"github.com/inspan/inspan/llm"
)

// veil takes secrets out of a reply while it comes: one that comes in pieces is in none of
// them. What may be the beginning of a secret waits for what follows.
type veil struct{ text, reasoning, args stream }

// stream is one of the texts of a reply.
type stream struct {
	w   *secret.Writer // into out
	out *bytes.Buffer
}

func newVeil(vault *secret.Vault) *veil {
	open := func() stream {
		out := &bytes.Buffer{}
		return stream{vault.Writer(out), out}
	}
	return &veil{open(), open(), open()}
}

// pass returns what can be shown once the delta has come.
func (v *veil) pass(d event.Delta) []event.Delta {
	if d.Call == nil {
		return shown(event.Delta{Text: v.text.write(d.Text), Reasoning: v.reasoning.write(d.Reasoning)})
	}
	var out []event.Delta
	if d.Call.Name != "" { // another call begins
		out = calling(out, "", v.args.end())
	}
	return calling(out, d.Call.Name, v.args.write(d.Call.Args))
}

// rest returns what has waited, as nothing follows.
func (v *veil) rest() []event.Delta {
	return calling(shown(event.Delta{Text: v.text.end(), Reasoning: v.reasoning.end()}), "", v.args.end())
}

func shown(d event.Delta) []event.Delta {
	if d == (event.Delta{}) {
		return nil
	}
	return []event.Delta{d}
}

func calling(list []event.Delta, name, args string) []event.Delta {
	if name+args == "" {
		return list
	}
	return append(list, event.Delta{Call: &llm.CallDelta{Name: name, Args: args}})
}

// write returns what can be shown once the text has come.
func (s stream) write(text string) string {
	_, _ = s.w.Write([]byte(text)) // a buffer takes everything
	return s.take()
}

func (s stream) end() string {
	_ = s.w.Flush()
	return s.take()
}

func (s stream) take() string {
	defer s.out.Reset()
	return s.out.String()
}
