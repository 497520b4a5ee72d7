// Package script has models that need no network, so that every feature of the harness is reproducible and free to
// try.
//
// [Model] replays a written script, or without one follows small commands in the prompt. Its answer depends only on
// the request, so a session can be killed and resumed at any point and the script continues there.
//
// [Recorder] records the requests and answers of another model, and [Player] plays them back, chunk for chunk:
//
//	m := &script.Recorder{Model: real, To: file}   // once, with a key
//	m, err := script.Play(file)                    // ever after, without
//
// Use them for tests, examples and demonstrations. They say nothing about how well a real model works with your tools.
package script

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm"
)

// Provider is the displayed name of the provider of the model: "script/ID".
const Provider = "script"

// Model is the scripted model. The zero value has no script and follows
// commands in the prompt. Safe for concurrent use; do not copy.
type Model struct {
	// ID is the model's name; empty means "commands".
	ID string
	// Steps are the replies, in order: the reply to a request is the one whose
	// index is the number of assistant messages in it.
	Steps []Step
	// Free turns estimates off: a step without a Usage has used nothing.
	Free bool

	mu    sync.Mutex
	fails map[string]int // failures already played, by step
}

// Step is one reply, or a failure and then the reply.
type Step struct {
	Parts llm.Parts // Text, Reasoning and Call; empty ids are filled in
	Stop  llm.Stop  // empty means calls if there are any, else end
	Usage llm.Usage // zero means estimated from the request
	Delay time.Duration
	Fail  int // HTTP status to fail with before the reply; 0 means none
	Times int // how often to fail; 0 means once
}

// Info implements [llm.Model].
func (m *Model) Info() llm.Info {
	id := m.ID
	if id == "" {
		id = "commands"
	}
	return llm.Info{Provider: Provider, Model: id, Window: 200_000, MaxOutput: 32_000, Prices: llm.Prices{{}}, Images: true}
}

// Stream implements [llm.Model].
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		step, place := m.step(req)
		if err := keep.Sleep(ctx, step.Delay); err != nil {
			yield(llm.Chunk{}, llm.AsError(err))
			return
		}
		if step.Fail != 0 && m.failNow(req.Session+place, step) {
			yield(llm.Chunk{}, failure(step.Fail))
			return
		}
		reply := m.reply(req, step, place)
		for _, chunk := range deltas(reply.Parts) {
			if ctx.Err() != nil {
				yield(llm.Chunk{}, llm.AsError(ctx.Err()))
				return
			}
			if !yield(chunk, nil) {
				return
			}
		}
		yield(llm.Chunk{Reply: reply}, nil)
	}
}

// step returns the step to answer with, and a name for the position in the conversation.
func (m *Model) step(req llm.Request) (Step, string) {
	said := 0
	for _, msg := range req.Messages {
		if msg.Role == llm.Assistant {
			said++
		}
	}
	place := fmt.Sprintf("s%d", said)
	if said < len(m.Steps) {
		return m.Steps[said], place
	}
	prompt, since := lastPrompt(req.Messages)
	steps, err := ParseCommands(prompt)
	switch {
	case err != nil:
		return Step{Parts: llm.Say(err.Error())}, place
	case len(steps) == 0:
		return Step{Parts: llm.Say(help)}, place
	case since < len(steps):
		return steps[since], place
	}
	return Step{Parts: llm.Say("Done: " + text.Count(len(steps), "step") + ".")}, place
}

// lastPrompt returns the last text of a person that holds a command, and the number of assistant messages since.
// Without any, it returns the last text.
func lastPrompt(messages []llm.Message) (text string, since int) {
	lastSince := 0
	for _, msg := range slices.Backward(messages) {
		said := msg.Parts.Text()
		switch {
		case msg.Role == llm.Assistant:
			since++
		case said == "":
		case text == "":
			text, lastSince = said, since
			fallthrough
		default:
			if steps, err := ParseCommands(said); err != nil || len(steps) > 0 {
				return said, since
			}
		}
	}
	return text, lastSince
}

// failNow reports whether the step has a failure left to play.
func (m *Model) failNow(key string, step Step) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails == nil {
		m.fails = map[string]int{}
	}
	if m.fails[key] >= max(step.Times, 1) {
		return false
	}
	m.fails[key]++
	return true
}

func (m *Model) reply(req llm.Request, step Step, place string) *llm.Reply {
	route := m.Info().Route()
	parts := slices.Clone(step.Parts)
	calls := 0
	for i, part := range parts {
		switch p := part.(type) {
		case llm.Call:
			if p.ID == "" {
				p.ID = fmt.Sprintf("call_%s_%d", place, calls)
			}
			if len(p.Args) == 0 {
				p.Args = json.RawMessage("{}")
			}
			parts[i] = p
			calls++
		case llm.Reasoning:
			p.Route = route
			parts[i] = p
		}
	}
	stop := step.Stop
	if stop == "" {
		stop = llm.StopEnd
		if calls > 0 {
			stop = llm.StopCalls
		}
	}
	usage := step.Usage
	if usage == (llm.Usage{}) && !m.Free {
		usage = llm.Usage{Input: size(req.System) + size(req.Tools) + size(req.Messages), Output: size(parts), Estimated: true}
	}
	return &llm.Reply{Parts: parts, Stop: stop, Usage: usage, Route: route}
}

// size estimates the tokens of v.
func size(v any) int {
	raw, err := json.Marshal(v)
	if err != nil {
		return 0
	}
	return len(raw) / 4
}

// deltas cuts the parts into chunks the way a model would stream them.
func deltas(parts llm.Parts) []llm.Chunk {
	var out []llm.Chunk
	for _, part := range parts {
		switch p := part.(type) {
		case llm.Text:
			for word := range strings.SplitAfterSeq(p.Text, " ") {
				if word != "" {
					out = append(out, llm.Chunk{Text: word})
				}
			}
		case llm.Reasoning:
			if p.Text != "" {
				out = append(out, llm.Chunk{Reasoning: p.Text})
			}
		case llm.Call:
			out = append(out, llm.Chunk{Call: &llm.CallDelta{Name: p.Name, Args: string(p.Args)}})
		}
	}
	return out
}

// failure returns the error that a vendor would send with the HTTP status.
func failure(status int) *llm.Error {
	e := &llm.Error{Provider: Provider, Status: status, Kind: llm.KindTransient, Message: "scripted failure"}
	switch status {
	case 400:
		e.Kind = llm.KindInvalid
	case 401, 403:
		e.Kind = llm.KindAuth
	case 402:
		e.Kind = llm.KindBilling
	case 404:
		e.Kind = llm.KindNoModel
	case 413:
		e.Kind = llm.KindTooLarge
	case 429:
		e.Kind = llm.KindRateLimited
	case 529:
		e.Kind = llm.KindOverloaded
	}
	return e
}
