package cost

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
)

// Cause is why something was paid for.
type Cause struct {
	Kind Kind `json:"kind"`
	// Name is that of the tool, file, skill, hook, child or model that it is about, or the reason;
	// empty: the kind says it all.
	Name string `json:"name,omitempty"`
	// Of is what the call is about whose result it is, and Digest tells its arguments from others.
	Of     string `json:"of,omitempty"`
	Digest string `json:"digest,omitempty"`
}

// Kind is what a cause is.
type Kind string

// Kinds of causes. The first ones are parts of prompts.
const (
	System       Kind = "system prompt"
	Instructions Kind = "instructions"    // a file of them
	Spec         Kind = "tool spec"       // how a tool is described to the model
	Skill        Kind = "skill"           // the list of skills, or the text of one
	Memory       Kind = "memory"          // of earlier sessions
	Person       Kind = "your message"    // or that of the agent that the session works for
	Attached     Kind = "image"           // that came with a message
	Result       Kind = "result"          // of a call, when it was sent first
	Again        Kind = "result again"    // and each further time
	Earlier      Kind = "earlier replies" // of the model: text, reasoning and calls, sent again
	Harness      Kind = "inspan's notes"  // what inspan tells the model during a session
	Hook         Kind = "hook"            // what hooks and judges tell it
	Summary      Kind = "summary"         // what stands for a part that was compacted
	Child        Kind = "subagent"        // what one says; in a sum over a tree all that it has cost
	Unread       Kind = "not known"       // the log does not say what the prompt was, or its figures can't be
	Miss         Kind = "cache miss"      // what the request before had in the cache, paid in full
	Output       Kind = "reply"
	Reasoning    Kind = "reasoning"
	Retry        Kind = "failed request" // also one whose reply was refused or broke off
	Compaction   Kind = "compaction"     // the requests for a summary
	Router       Kind = "router's judge"
	Reviewer     Kind = "reviewer"
	Bought       Kind = "spent by tool" // what a call has spent itself
)

// String is the cause in words, without what only tells one call from another.
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

// tool is the tool that the cause is about; the kind in parentheses if there is none.
func (c Cause) tool() string {
	switch c.Kind {
	case Spec, Result, Again, Bought:
		if c.Name != "" {
			return c.Name
		}
	}
	return "(" + string(c.Kind) + ")"
}

// resultOf is the cause of the result of a call, when it is sent first.
func resultOf(c llm.Call) Cause {
	sum := sha256.Sum256(c.Args)
	return Cause{Kind: Result, Name: c.Name, Of: words.OneLine(words.Subject(c), 60), Digest: hex.EncodeToString(sum[:4])}
}

// source is the cause of text that stands before the model by what it is from.
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
