package subagent

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/tool"
)

// checkTool is the tool that runs a child's check: so it is judged like any command of the child, and runs in the
// same sandbox.
const checkTool = "bash"

// check is a command that a child must run as its last step, at the top of its workspace. It is a hook that
// makes the child continue until it has.
type check struct {
	command string

	mu   sync.Mutex
	root string
	cwd  string
	now  verdict
}

// verdict is the state of a check.
type verdict struct {
	ran    bool
	stale  bool     // something may have changed since
	passed bool     // its last run ended with 0
	exit   string   // exit code; empty if unknown
	score  *float64 // the number in the last line of its output; nil means there is none
}

// instruction returns the child's instruction about the check.
func (k *check) instruction() string {
	return fmt.Sprintf("When your work is done, run this command with %s as your last step, at the top of the workspace, alone and exactly "+
		"as it stands; you are judged by how it ends:\n%s", checkTool, k.command)
}

// matches reports whether the arguments of a call are those of the check.
func (k *check) matches(args json.RawMessage) bool {
	var in struct {
		Command    string `json:"command"`
		Background bool   `json:"background"`
	}
	return json.Unmarshal(args, &in) == nil && strings.TrimSpace(in.Command) == k.command && !in.Background
}

// observe reads the outcome of the check from the child's items.
func (k *check) observe(items []transcript.Item) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, item := range items {
		switch i := item.(type) {
		case *transcript.Note:
			if b, ok := i.Of.(event.Opened); ok {
				k.root, k.cwd = b.Root, b.Root
			}
		case *transcript.Call:
			if i.State == transcript.Over {
				k.onEnd(i)
			}
		}
	}
}

func (k *check) onEnd(c *transcript.Call) {
	b := c.Ended
	ran := b.Outcome == event.OutcomeOK || b.Outcome == event.OutcomeFailed
	switch {
	case ran && c.Call.Name == checkTool && k.matches(c.Call.Args) && k.cwd == k.root:
		k.now = verdict{ran: true, score: score(b.Parts.Text())}
		if b.Exit != nil {
			k.now.exit, k.now.passed = strconv.Itoa(*b.Exit), *b.Exit == 0
		}
	case !tool.ReadOnly(c.Effects()):
		k.now.stale, k.now.passed = true, false
	}
	if b.Cwd != "" {
		k.cwd = b.Cwd
	}
}

// score returns the number that is the whole last line of an output; lines in brackets are the tool's own.
func score(output string) *float64 {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimSpace(lines[i])
		if line == "" || strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") {
			continue
		}
		n, err := strconv.ParseFloat(line, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return nil
		}
		return &n
	}
	return nil
}

func (k *check) verdict() verdict {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now
}

// describe describes the state of a check.
func (s verdict) describe() string {
	switch {
	case !s.ran:
		return "did not run it"
	case s.stale:
		return "went on after it had run it"
	case s.exit == "":
		return "ran it, and how it ended is not known"
	case !s.passed:
		return "failed, with exit code " + s.exit
	case s.score != nil:
		return "passed, with " + strconv.FormatFloat(*s.score, 'g', -1, 64)
	}
	return "passed"
}

// isBetterThan reports whether one passed check is better than another: by the larger number, and any number is better
// than none.
func (s verdict) isBetterThan(other verdict) bool {
	return s.score != nil && (other.score == nil || *s.score > *other.score)
}

// At implements [tool.Hook].
func (k *check) At(_ context.Context, p tool.Point) (tool.Outcome, error) {
	if s := k.verdict(); p.Moment != tool.RunStop || s.ran && !s.stale || p.Rounds > 1 {
		return tool.Outcome{}, nil
	}
	return tool.Outcome{By: "the agent you work for", Text: k.instruction()}, nil
}
