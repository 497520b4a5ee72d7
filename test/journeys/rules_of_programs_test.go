package journeys_test

import (
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// TestRulesOfPrograms checks that rules that a program gives an agent are read as all others are: one that can match
// nothing is refused with the nearest that can, and one in the form of another agent holds.
func TestRulesOfPrograms(t *testing.T) {
	for text, want := range map[string]string{
		"noet": `did you mean "note"?; the agent has no such tool, so the rule would match nothing`, "Nonsense(x)": "no tool or kind of effect",
		"bash(touch:*)": "did you mean bash(touch *)?", "bash(touch *)": `no tool or kind of effect is called "bash"`, "write(~ann/x)": "write the home folder in full",
		"note": "", "note(x)": "", "write(x)": "", "Read(./x)": "", "mcp__birds__*": "", "external": "",
	} {
		var l ledger
		a := inspan.Agent{
			Model: scripted(t, "done"), Env: tool.Env{Root: "/w"}, Tools: []tool.Tool{l.writer()}, Rules: []inspan.Rule{{Action: tool.Deny, Text: text}},
		}
		_, err := a.Open(t.Context(), event.NewMemory("s"))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
