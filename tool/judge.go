package tool

import (
	"context"
	"encoding/json"

	"github.com/inspan/inspan/llm"
)

// A Judge says whether a call may happen. Modes, rules, hooks and guards are all judges; an embedder can add
// its own. Judges must be safe for concurrent use. Implementations are tested with harnesstest.TestJudge.
//
// A judge whose optional method Grants() bool returns false is skipped if no one is present to approve and the call
// needs approval already: its verdict would change nothing.
type Judge interface {
	// Judge gives a verdict on the call with the effects it would have. It must not change anything. A Go error
	// or a panic counts as Deny: judges fail closed.
	Judge(ctx context.Context, c *Call, effects []Effect) (Verdict, error)
}

// Verdict is the verdict of one judge, or the combined one.
type Verdict struct {
	Action Action
	By     string // which judge or rule, in words a person knows: "mode ask", "rule bash(go test *)"
	Reason string // why, in a short sentence
	// Args, if not nil, replaces the arguments. The call is then judged again from the start, and the change is
	// recorded.
	Args json.RawMessage
	// Grant says that an Allow speaks for the person, like one of their rules: it answers what the mode would
	// ask, and nothing stricter.
	Grant bool
	// Text is shown to the model with the result of the call. Empty means nothing.
	Text string
	// Cost is what the judge spent on this verdict, in US dollars, and Route the model it spent it on, as
	// "provider/model".
	Cost  float64
	Route string
	// Consulted are the requests to models that the verdict took; Cost is their sum.
	Consulted []llm.Consulted
}

// Action is the outcome of a verdict.
type Action string

// Actions. Deny beats Ask beats Allow beats Abstain; if all abstain, Ask.
const (
	Abstain Action = ""
	Allow   Action = "allow"
	Ask     Action = "ask"
	Deny    Action = "deny"
)

// JudgeFunc adapts a function to [Judge].
type JudgeFunc func(ctx context.Context, c *Call, effects []Effect) (Verdict, error)

// Judge implements [Judge].
func (f JudgeFunc) Judge(ctx context.Context, c *Call, effects []Effect) (Verdict, error) {
	return f(ctx, c, effects)
}
