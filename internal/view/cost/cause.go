package cost

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
)

// Cause is the cause of a cost.
type Cause struct {
	Kind Kind `json:"kind"`
	// Name is the tool, file, skill, hook, child or model, or the reason; empty if the kind is enough.
	Name string `json:"name,omitempty"`
	// Of is the subject of the call whose result it is, and Digest identifies the call's arguments.
	Of     string `json:"of,omitempty"`
	Digest string `json:"digest,omitempty"`
}

// Kind is the kind of a cause.
type Kind string

// Kinds of causes. The first ones are parts of prompts.
const (
	System       Kind = "system prompt"
	Instructions Kind = "instructions"    // an instruction file
	Spec         Kind = "tool spec"       // a tool's description for the model
	Skill        Kind = "skill"           // the list of skills, or the text of one
	Memory       Kind = "memory"          // from earlier sessions
	Person       Kind = "your message"    // or one by the agent that the session works for
	Attached     Kind = "image"           // attached to a message
	Result       Kind = "result"          // of a call, when it was first sent
	Again        Kind = "result again"    // each further time
	Earlier      Kind = "earlier replies" // by the model: text, reasoning and calls, sent again
	Harness      Kind = "inspan's notes"  // inspan's messages to the model during a session
	Hook         Kind = "hook"            // messages of hooks and judges to the model
	Summary      Kind = "summary"         // of a part that was compacted
	Child        Kind = "subagent"        // a subagent's words; in a sum over a tree, its whole cost
	Unread       Kind = "not known"       // the log does not tell what the prompt was, or its figures are impossible
	Miss         Kind = "cache miss"      // cached by the previous request, but paid in full
	Output       Kind = "reply"
	Reasoning    Kind = "reasoning"
	Retry        Kind = "failed request" // including replies that were refused or broke off
	Compaction   Kind = "compaction"     // requests for a summary
	Router       Kind = "router's judge"
	Reviewer     Kind = "reviewer"
	Bought       Kind = "spent by tool" // a call's own cost
)

// String describes the cause, without the part that only distinguishes calls.
func (c Cause) String() string {
	switch {
	case c.Name == "":
		return string(c.Kind)
	case c.Kind == Result:
		return "result of " + c.Name
	case c.Kind == Again:
		return "result of " + c.Name + ", sent again"
	}
	return string(c.Kind) + ": " + c.Name
}

// tool returns the tool of the cause; the kind in parentheses if there is none.
func (c Cause) tool() string {
	switch c.Kind {
	case Spec, Result, Again, Bought:
		if c.Name != "" {
			return c.Name
		}
	}
	return "(" + string(c.Kind) + ")"
}

// resultOf returns the cause for the first sending of a call's result.
func resultOf(c llm.Call) Cause {
	sum := sha256.Sum256(c.Args)
	return Cause{Kind: Result, Name: c.Name, Of: words.OneLine(words.Subject(c), 60), Digest: hex.EncodeToString(sum[:4])}
}

// source returns the cause for a text in the prompt, by its source.
func source(from string, tail bool) Cause {
	switch from {
	case "skills":
		return Cause{Kind: Skill, Name: "list"}
	case "memory":
		return Cause{Kind: Memory}
	case "", "inspan", "environment", "--system", "--append-system":
		if tail {
			return Cause{Kind: Harness}
		}
		return Cause{Kind: System, Name: strings.Replace(from, "inspan", "", 1)}
	case "mode":
		return Cause{Kind: Harness}
	}
	return Cause{Kind: Instructions, Name: from}
}
