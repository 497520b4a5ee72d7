package corpus

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// lookCode is the first program of a session: it answers from a short text by one request, and describes a long one.
//
//go:embed program_look.js
var lookCode string

const charsPerToken = 4

// Sets reports whether a program has set an answer.
func Sets(r tool.Result) bool { return r.Store[answerStore] != nil }

// looking is a model whose first reply in a session is a program that looks at the text. That costs nothing, and a model
// would begin with it too. If it has set the answer, the model is not asked at all. Otherwise the model gets the result
// as part of the question.
type looking struct {
	llm.Model
	limits event.Programs
	state  func() (ran, answered bool)
}

// LooksFirst returns a model that looks at the text first. State reports whether a program of the session has run in
// this process, and whether one has set the answer to the last question.
func LooksFirst(m llm.Model, limits event.Programs, state func() (ran, answered bool)) llm.Model {
	return looking{m, limits, state}
}

// Stream implements [llm.Model].
func (l looking) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	first := slices.IndexFunc(req.Messages, func(m llm.Message) bool { return m.Role == llm.Assistant })
	ran, answered := l.state()
	reply := &llm.Reply{Route: l.Info().Route()}
	switch looked := first > 0 && l.looks(req.Messages, first); {
	case req.Purpose != "" || first < 0 && ran:
		return l.Model.Stream(ctx, req)
	case first < 0:
		args, _ := json.Marshal(programArgs{Code: l.code(req.Messages)}) // texts always marshal
		reply.Parts, reply.Stop = llm.Parts{llm.Call{ID: "look", Name: ProgramTool, Args: args}}, llm.StopCalls
	case looked && answered && first == len(req.Messages)-2:
		reply.Parts, reply.Stop = llm.Say("One request has answered it."), llm.StopEnd
	case looked:
		req.Messages = withResult(req.Messages, first)
		fallthrough
	default:
		return l.Model.Stream(ctx, req)
	}
	return func(yield func(llm.Chunk, error) bool) { yield(llm.Chunk{Reply: reply}, nil) }
}

// looks reports whether a message is the call that looks, and has its result after it.
func (l looking) looks(messages []llm.Message, at int) bool {
	calls := messages[at].Parts.Calls()
	var in programArgs
	return len(calls) == 1 && at+1 < len(messages) && json.Unmarshal(calls[0].Args, &in) == nil && in.Code == l.code(messages[:at])
}

// withResult returns messages in which the result of looking is part of the question.
func withResult(messages []llm.Message, at int) []llm.Message {
	asked := llm.Message{Role: llm.User, Parts: slices.Clone(messages[at-1].Parts)}
	for _, part := range messages[at+1].Parts {
		if r, is := part.(llm.Result); is {
			part = llm.Text{Text: "\n\nA program has looked at the text for you:\n" + r.Parts.Text()}
		}
		asked.Parts = append(asked.Parts, part)
	}
	return slices.Concat(messages[:at-1], []llm.Message{asked}, messages[at+2:])
}

// code returns the program that looks, for the question in messages.
func (l looking) code(messages []llm.Message) string {
	var asked []string
	for _, m := range messages {
		asked = append(asked, m.Parts.Text())
	}
	plain := 0
	if l.limits.Depth > 0 {
		plain = l.limits.Plain * charsPerToken
	}
	quoted, _ := json.Marshal(strings.Join(asked, "\n\n")) // a text always marshals
	return strings.NewReplacer("QUESTION", string(quoted), "PLAIN", fmt.Sprint(plain)).Replace(lookCode)
}
