package mcpserver

import (
	"context"
	"iter"
	"sync"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// caller is the model of a session in which a client makes its calls. It replies with the given call and, when
// that has ended, with nothing more.
type caller struct {
	mu   sync.Mutex
	next *llm.Call
}

// Info implements [llm.Model]. The window exists so that the conversation, which no one needs, does not grow
// forever.
func (m *caller) Info() llm.Info {
	return llm.Info{Provider: "mcp", Model: "client", Window: 32_000, Prices: llm.Prices{{}}, Images: true}
}

// setCall makes the next reply the call.
func (m *caller) setCall(c *llm.Call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next = c
}

// Stream implements [llm.Model].
func (m *caller) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		if ctx.Err() != nil {
			yield(llm.Chunk{}, llm.AsError(ctx.Err()))
			return
		}
		reply := &llm.Reply{Parts: llm.Say("Done."), Stop: llm.StopEnd, Route: m.Info().Route()}
		if req.Purpose == "" {
			m.mu.Lock()
			if m.next != nil {
				reply.Parts, reply.Stop = llm.Parts{*m.next}, llm.StopCalls
				m.next = nil
			}
			m.mu.Unlock()
		}
		yield(llm.Chunk{Reply: reply}, nil)
	}
}

// replaceModel makes the client the model of an agent. It removes what only serves models, and limits, which are for
// costs.
func (m *caller) replaceModel(a *inspan.Agent, tools []tool.Tool) *inspan.Agent {
	a.Model, a.Tools, a.Dynamic.Tools = m, tools, nil
	a.System, a.Dynamic.Instructions = nil, nil
	a.Limits.Turns, a.Limits.Cost, a.Limits.Tokens, a.Limits.Time = -1, 0, 0, 0
	a.Unattended, a.Limits.RetryLong = false, false
	return a
}
