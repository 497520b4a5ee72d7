package command

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/creack/pty"

	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/llm"
)

// TestDraftSkill has a model draft a skill from a session of the command.
func TestDraftSkill(t *testing.T) {
	t.Parallel()
	var work atomic.Value // the folder of the command, once there is one
	h := newHome(t, anthropictest.Start(t, &anthropictest.Server{Answer: func(_ *http.Request, body []byte) anthropictest.Answer {
		if !strings.Contains(string(body), "You write a skill") {
			return anthropictest.Answer{Parts: llm.Say("The release is out.")}
		}
		if strings.Contains(string(body), work.Load().(string)) || !strings.Contains(string(body), "The release is out.") {
			return anthropictest.Answer{Parts: llm.Say("I was shown the wrong thing.")}
		}
		return anthropictest.Answer{Parts: llm.Say("---\nname: cut-release\ndescription: Cuts a release.\n---\n1. make release\n")}
	}}))
	work.Store(h.work)
	for _, args := range [][]string{{"run", "cut a release"}, {"skills", "draft", "last"}, {"skills", "drafts"}} {
		cmd := h.command(t.Context(), args...)
		cmd.Env = append(cmd.Env, "FAKE_API_KEY=k")
		out, err := cmd.CombinedOutput()
		if want := map[string]string{"draft": "inspan skills promote cut-release", "drafts": "Cuts a release."}[args[1]]; err != nil ||
			!strings.Contains(string(out), want) {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}

	// Who approves it must have seen it: the output is to be a terminal, too.
	for _, seen := range []bool{false, true} {
		person, terminal, err := pty.Open()
		if err != nil {
			t.Skip(err)
		}
		if _, err := person.WriteString("y\n"); err != nil {
			t.Fatal(err)
		}
		cmd := h.command(t.Context(), "skills", "promote", "cut-release")
		var out strings.Builder
		if cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, &out, &out; seen {
			cmd.Stdout = terminal
		}
		if err := cmd.Run(); (err == nil) != seen || !seen && !strings.Contains(out.String(), "must be a terminal") {
			t.Errorf("seen %v: %v\n%s", seen, err, out.String())
		}
		person.Close()
		terminal.Close()
	}
}
