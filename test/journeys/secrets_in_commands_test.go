package journeys_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// operators is a secret that a shell takes apart.
const operators = "hunter&zq77wkk;31vx|abcdef"

// commands keeps the commands that were to start, and fails as a shell would.
type commands struct {
	mu  sync.Mutex
	got []string
}

func (p *commands) Start(_ context.Context, c tool.Command) (tool.Process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, strings.Join(c.Args, " "))
	return nil, errors.New("line 1: zq77wkk: command not found")
}

// shelled is an agent with the real shell tool over commands.
func shelled(t *testing.T, value string, replies ...string) (*inspan.Agent, *commands) {
	t.Helper()
	procs := &commands{}
	a := redacting(t, replies...)
	a.Secrets.Values = func() map[string]string { return map[string]string{"DEPLOY_TOKEN": value} }
	env, err := sandbox.Local(t.TempDir(), &memoryBlobs{}, sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a.Env = env
	a.Env.Procs, a.Env.Walls = procs, tool.Walls{Read: true, Workspace: true, Hosts: true}
	shell := &tools.Shell{}
	t.Cleanup(shell.Close)
	a.Tools = tools.Core(shell, "")
	return &a, procs
}

// TestPiecesOfSecrets checks a secret with shell operators that a command takes apart: no piece of it is in a question,
// a proposed rule, a denial, the input of a judge or any event, and the command runs with the secret once it is
// approved.
func TestPiecesOfSecrets(t *testing.T) {
	for name, command := range map[string]string{
		"words": "make VALUE", "a file": "make >VALUE", "a folder": "mkdir VALUE && cd VALUE", "quoted": "make 'VALUE'", "in words": `make "x VALUE"`,
		"substituted": "make $(echo VALUE)", "a mistake": "make 'VALUE", "a read": "cat VALUE",
	} {
		t.Run(name, func(t *testing.T) {
			call, err := json.Marshal(map[string]string{"command": strings.ReplaceAll(command, "VALUE", placeholder(t, operators))})
			if err != nil {
				t.Fatal(err)
			}
			a, procs := shelled(t, operators, "call: bash "+string(call), "Done.")
			var shown []any
			a.Judges = []tool.Judge{tool.JudgeFunc(func(_ context.Context, c *tool.Call, effects []tool.Effect) (tool.Verdict, error) {
				shown = append(shown, slices.Clone(c.Args), effects)
				for _, e := range effects {
					shown = append(shown, e.Words)
				}
				return tool.Verdict{}, nil
			})}
			c := &inspan.Conductor{Session: open(t, a, event.NewMemory("s"))}
			asked := 0
			c.Ask = func(ctx context.Context, p inspan.Pending) (event.Body, error) {
				asked++
				shown = append(shown, p)
				return allow(ctx, p)
			}
			c.OnEvent = func(e event.Event) error { shown = append(shown, e); return nil }
			if err := c.Run(t.Context(), said("go")); err != nil {
				t.Fatal(err)
			}
			shown = append(shown, c.Session.Status())
			a.Unattended, a.Model = true, scripted(t, "call: bash "+string(call), "Done.")
			for _, e := range collect(t, a.Run(t.Context(), "go")) {
				shown = append(shown, e)
			}
			raw, err := json.Marshal(shown)
			if err != nil {
				t.Fatal(err)
			}
			for n := range len(operators) - 4 {
				if piece, err := json.Marshal(operators[n : n+5]); err != nil || strings.Contains(string(raw), strings.Trim(string(piece), `"`)) {
					t.Errorf("%s is shown (%v): %s", piece, err, raw)
				}
			}
			want := strings.ReplaceAll(command, "VALUE", operators)
			if asked != 1 || len(procs.got) != 1 || !strings.Contains(procs.got[0], want) {
				t.Errorf("asked %d times, started %q", asked, procs.got)
			}
		})
	}
}

// TestCommandsThatReadSecrets checks that a command that only reads gets the secret of its placeholder, and never the
// placeholder, whose brackets are a pattern for a shell; that a person is asked about it, whatever the rules say; and
// that it does not run without a person.
func TestCommandsThatReadSecrets(t *testing.T) {
	const value = "correct-horse-battery-9174"
	call := `call: bash {"command":"grep -rn ` + placeholder(t, value) + ` ."}`
	for _, mode := range tool.Modes() {
		for _, unattended := range []bool{false, true} {
			a, procs := shelled(t, value, call, "Done.")
			a.Mode, a.Unattended, a.Rules = mode, unattended, []inspan.Rule{{Action: tool.Allow, Text: "bash(grep *)"}}
			c := &inspan.Conductor{Session: open(t, a, event.NewMemory("s"))}
			reason := ""
			c.Ask = func(ctx context.Context, p inspan.Pending) (event.Body, error) {
				reason = p.Reason
				return allow(ctx, p)
			}
			if err := c.Run(t.Context(), said("go")); err != nil {
				t.Fatal(err)
			}
			free := mode == tool.ModeYolo
			if runs := free || !unattended; runs != (len(procs.got) == 1 && strings.Contains(procs.got[0], "grep -rn "+value+" .")) || !runs && len(procs.got) > 0 {
				t.Errorf("%s, unattended %v: started %q", mode, unattended, procs.got)
			}
			if asks := !free && !unattended; asks != strings.Contains(reason, "it would receive a secret") {
				t.Errorf("%s, unattended %v: asked because %q", mode, unattended, reason)
			}
		}
	}
}

// TestPlaceholdersOfNothing checks that the model learns where a command gets a placeholder as it is written.
func TestPlaceholdersOfNothing(t *testing.T) {
	for command, told := range map[string]bool{"grep -rn [secret:aaaaaaaa] .": true, "cat [secret:1]": true, "cat a": false} {
		a, procs := shelled(t, operators, `call: bash {"command":"`+command+`"}`, "Done.")
		model := &watched{Model: a.Model}
		a.Model = model
		collect(t, a.Run(t.Context(), "go"))
		raw, err := json.Marshal(model.asked[1].Messages)
		if err != nil || len(procs.got) != 1 || strings.Contains(string(raw), "a placeholder for a secret that is not known here") != told {
			t.Errorf("%s: started %q, the model reads %s (%v)", command, procs.got, raw, err)
		}
	}
}

// TestApprovedAfterARestart checks that a call that waits for a decision across a restart runs with the secret of its
// placeholder, does not run if the secret is no longer known, and gets no secret that it was not judged with.
func TestApprovedAfterARestart(t *testing.T) {
	for name, tc := range map[string]struct{ before, after, runs string }{
		"known": {operators, operators, operators}, "lost": {operators, "", ""}, "found since": {"", operators, placeholder(t, operators)},
	} {
		call := `call: bash {"command":"make ` + placeholder(t, operators) + `"}`
		a, procs := shelled(t, tc.before, call, "Done.")
		log := event.NewMemory("s")
		drivenTo(t, open(t, a, log), said("go"))
		a.Secrets.Values = func() map[string]string { return map[string]string{"DEPLOY_TOKEN": tc.after} }
		again := open(t, a, log)
		waiting := again.Status().Waiting
		if len(waiting) != 1 {
			t.Fatalf("%s: waiting %+v", name, waiting)
		}
		end := last[event.Ended](t, drivenTo(t, again, event.Decided{Call: waiting[0].Call.ID, Allow: true}))
		if tc.runs != "" && (len(procs.got) != 1 || !strings.Contains(procs.got[0], "make "+tc.runs)) || tc.runs == "" && len(procs.got) > 0 {
			t.Errorf("%s: started %q", name, procs.got)
		}
		if lost := strings.Contains(end.Parts.Text(), "contain a placeholder"); lost != (tc.runs == "") {
			t.Errorf("%s: ended %+v", name, end)
		}
	}
}

// TestFileAfterARestart checks the same of a tool that writes a file with a secret in it.
func TestFileAfterARestart(t *testing.T) {
	call := `call: write_file {"path":"` + placeholder(t, operators) + `","content":"x` + placeholder(t, operators) + `"}`
	a, _ := shelled(t, operators, call, "Done.")
	log := event.NewMemory("s")
	drivenTo(t, open(t, a, log), said("go"))
	again := open(t, a, log)
	end := last[event.Ended](t, drivenTo(t, again, event.Decided{Call: again.Status().Waiting[0].Call.ID, Allow: true}))
	if got, err := os.ReadFile(filepath.Join(a.Env.Root, operators)); err != nil || string(got) != "x"+operators {
		t.Errorf("%q (%v), ended %+v", got, err, end)
	}
}

// TestPiecesInWhatACallSays checks that no word of such a secret is in the progress, questions, results, errors or job
// reports of a call that got it.
func TestPiecesInWhatACallSays(t *testing.T) {
	shellSays := "zq77wkk: command not found"
	talks := tool.New("talks", "", func(ctx context.Context, c *tool.Call, _ wordArgs) (tool.Result, error) {
		c.Progress(shellSays)
		if _, err := c.Ask(ctx, shellSays, nil); err != nil {
			return tool.Result{}, err
		}
		c.Finished(tool.JobEnd{ID: "1", Line: shellSays, Error: shellSays})
		res := tool.Text(shellSays)
		res.Show, res.Job = shellSays, &tool.Job{ID: "1", Command: "sleep"}
		return res, errors.New(shellSays)
	})
	a := redacting(t, `call: talks {"word":"`+placeholder(t, operators)+`"}`, "Done.")
	a.Mode, a.Tools = "yolo", []tool.Tool{talks}
	a.Secrets.Values = func() map[string]string { return map[string]string{"DEPLOY_TOKEN": operators} }
	c := &inspan.Conductor{Session: open(t, &a, event.NewMemory("s")), Ask: allow}
	var events []event.Event
	c.OnEvent = func(e event.Event) error { events = append(events, e); return nil }
	if err := c.Run(t.Context(), said("go")); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(events)
	if n := strings.Count(string(raw), "]: command not found"); err != nil || strings.Contains(string(raw), "zq77wkk") || n < 6 {
		t.Errorf("said %d times (%v): %s", n, err, raw)
	}
}
