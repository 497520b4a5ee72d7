package corpus

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"iter"
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

// looking is a model whose first reply in a conversation is a program that looks at the text. That costs nothing, and a
// model would begin with it too. If it has set the answer, the model is not asked at all.
type looking struct {
	llm.Model
	limits   event.Programs
	answered func() bool
}

// LooksFirst returns a model that looks at the text first. Answered reports whether a program has set the answer.
func LooksFirst(m llm.Model, limits event.Programs, answered func() bool) llm.Model {
	return looking{m, limits, answered}
}

// Stream implements [llm.Model].
func (l looking) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	replies, question := 0, ""
	for _, m := range req.Messages {
		if m.Role == llm.Assistant {
			replies++
		} else if replies == 0 {
			question = strings.TrimSpace(question + "\n\n" + m.Parts.Text())
		}
	}
	reply := &llm.Reply{Route: l.Info().Route()}
	switch {
	case req.Purpose != "" || replies > 1 || replies == 1 && !l.answered():
		return l.Model.Stream(ctx, req)
	case replies == 1:
		reply.Parts, reply.Stop = llm.Say("One request has answered it."), llm.StopEnd
	default:
		args, err := json.Marshal(programArgs{Code: l.code(question)})
		if err != nil {
			return l.Model.Stream(ctx, req)
		}
		reply.Parts, reply.Stop = llm.Parts{llm.Call{ID: "look", Name: ProgramTool, Args: args}}, llm.StopCalls
	}
	return func(yield func(llm.Chunk, error) bool) { yield(llm.Chunk{Reply: reply}, nil) }
}

func (l looking) code(question string) string {
	plain := 0
	if l.limits.Depth > 0 {
		plain = l.limits.Plain * charsPerToken
	}
	quoted, _ := json.Marshal(question) // a text always marshals
	return strings.NewReplacer("QUESTION", string(quoted), "PLAIN", fmt.Sprint(plain)).Replace(lookCode)
}
