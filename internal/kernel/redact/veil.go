package redact

import (
	"bytes"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/safety/secret"
	"github.com/inspan/inspan/llm"
)

// Veil removes secrets from a reply while it streams. It holds back a possible beginning of a secret until more has
// arrived, so a secret that arrives in pieces is not shown.
type Veil struct{ text, reasoning, args stream }

// stream is one of the texts of a reply.
type stream struct {
	w   *secret.Writer // into out
	out *bytes.Buffer
}

// NewVeil returns a veil for one reply.
func (s *Secrets) NewVeil() *Veil {
	open := func() stream {
		out := &bytes.Buffer{}
		return stream{s.Vault.Writer(out), out}
	}
	return &Veil{open(), open(), open()}
}

// Pass adds a delta and returns the deltas that can be shown now.
func (v *Veil) Pass(d event.Delta) []event.Delta {
	if d.Call == nil {
		return textDelta(v.text.write(d.Text), v.reasoning.write(d.Reasoning))
	}
	var out []event.Delta
	if d.Call.Name != "" { // another call begins
		out = callDelta(out, "", v.args.end())
	}
	return callDelta(out, d.Call.Name, v.args.write(d.Call.Args))
}

// End returns the text that was held back, at the end of the reply.
func (v *Veil) End() []event.Delta {
	return callDelta(textDelta(v.text.end(), v.reasoning.end()), "", v.args.end())
}

func textDelta(text, reasoning string) []event.Delta {
	if text+reasoning == "" {
		return nil
	}
	return []event.Delta{{Text: text, Reasoning: reasoning}}
}

func callDelta(list []event.Delta, name, args string) []event.Delta {
	if name+args == "" {
		return list
	}
	return append(list, event.Delta{Call: &llm.CallDelta{Name: name, Args: args}})
}

func (s stream) write(text string) string {
	_, _ = s.w.Write([]byte(text)) // a buffer accepts every write
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
