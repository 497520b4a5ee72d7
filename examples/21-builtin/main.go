// The built-in workflows, offline: one model plays all of their agents, in real repositories with real commands.
// Its answers depend on the task of the agent.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/coding"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
	"github.com/inspan/inspan/workflow"
)

// part is the script of an agent whose task begins with a text: its calls, and the value that it returns at the
// end.
type part struct {
	begins string
	calls  []llm.Call
}

func bash(command string) llm.Call { return call("bash", map[string]any{"command": command}) }

func call(name string, args map[string]any) llm.Call {
	raw, err := json.Marshal(args)
	if err != nil {
		log.Fatal(err)
	}
	return llm.Call{Name: name, Args: raw}
}

func returns(result map[string]any) llm.Call { return call("return_result", result) }

// player is a model that plays parts. An agent makes one call per turn, and then says that it is done.
type player []part

func (player) Info() llm.Info { return (&script.Model{}).Info() }

func (p player) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	task, turn := "", 0
	for _, m := range req.Messages {
		switch {
		case m.Role == llm.Assistant:
			turn++
		case task == "":
			task = m.Parts.Text()
		}
	}
	reply := llm.Say("Done.")
	for _, one := range p {
		if strings.HasPrefix(task, one.begins) && turn < len(one.calls) {
			reply = llm.Parts{one.calls[turn]}
			break
		}
	}
	first := llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say(task)}}}
	return (&script.Model{Steps: []script.Step{{Parts: reply}}}).Stream(ctx, first)
}

// show is a workflow to run, in a repository with these files.
type show struct {
	name   string
	inputs map[string]any
	files  map[string]string
	cast   player
}

func shows() []show {
	list := func(s string) []string { return []string{s} }
	found := []map[string]any{{"file": "sum.sh", "line": 1, "problem": "it always says 2"}}
	return []show{{
		name:   "piv",
		inputs: map[string]any{"task": "Answer the question.", "check": "grep -q 42 answer.txt"},
		cast: player{
			{"Plan this task", []llm.Call{returns(map[string]any{"title": "Answer", "plan": "# Plan\nWrite 42 to answer.txt."})}},
			{"Implement this plan", []llm.Call{bash("echo 42 > answer.txt")}},
			{"Read what 'git diff'", []llm.Call{returns(map[string]any{"passed": true, "summary": "answer.txt holds 42"})}},
		},
	}, {
		name:   "goal",
		inputs: map[string]any{"goal": "three bricks", "check": "test $(wc -l < wall) -ge 3", "rounds": 5, "patience": 5},
		files:  map[string]string{"wall": ""},
		cast: player{
			{"Work on this goal", []llm.Call{bash("echo brick >> wall"), returns(map[string]any{"approach": "bricks", "summary": "one more"})}},
		},
	}, {
		name:   "clips",
		inputs: map[string]any{"source": "talk.txt"},
		files:  map[string]string{"talk.txt": "We had no clocks.\nSo we asked the sun.\n"},
		cast: player{
			{"Read talk.txt", []llm.Call{returns(map[string]any{"moments": list("line 2: So we asked the sun.")})}},
			{"Choose the", []llm.Call{returns(map[string]any{"chosen": list("So we asked the sun.")})}},
			{"Cut each", []llm.Call{returns(map[string]any{"cuts": list("So we asked the sun.")})}},
			{"Give each", []llm.Call{returns(map[string]any{"titled": list("Asking the sun")})}},
			{"Check each", []llm.Call{returns(map[string]any{"clips": list("Asking the sun"), "markdown": "# Asking the sun"})}},
		},
	}, {
		name: "upgrade-deps",
		inputs: map[string]any{
			"outdated": `echo '[{"name":"sundial","to":"2"}]'`, "get": `sed -i "s/^$NAME .*/$NAME $TO/" deps`, "check": "grep -q mended code",
		},
		files: map[string]string{"deps": "sundial 1\n", "code": "mended for 1\n", "old": "mended\n"},
		cast:  player{},
	}, {
		name:   "fix-issue",
		inputs: map[string]any{"issue": "#12", "check": "sh test.sh"},
		files:  map[string]string{"sum.sh": "echo $(($1 - $2))\n", "test.sh": "sh sum.sh 1 0 | grep -qx 1\n"},
		cast: player{
			{"Write a test", []llm.Call{bash("echo 'sh sum.sh 1 1 | grep -qx 2' > sum_test.sh"), returns(map[string]any{"test": "sh sum_test.sh"})}},
			{"Fix this issue", []llm.Call{bash(`echo 'echo $(($1 + $2))' > sum.sh`)}},
			{"Review what", []llm.Call{returns(map[string]any{"passed": true, "findings": "none"})}},
			{"Describe what", []llm.Call{returns(map[string]any{"text": "Add, don't subtract\n\nFixes #12."})}},
		},
	}, {
		name:   "review-pr",
		inputs: map[string]any{"pull": "#13"},
		cast: player{
			{"Review this request", []llm.Call{returns(map[string]any{"findings": found})}},
			{"Merge these findings", []llm.Call{returns(map[string]any{"findings": found})}},
			{"Somebody claims", []llm.Call{returns(map[string]any{"holds": true, "problem": "always 2", "why": "2 + 2"})}},
			{"Write the comment", []llm.Call{returns(map[string]any{"comment": "sum.sh says 2, whatever the numbers are."})}},
		},
	}}
}

func main() {
	sandbox := coding.Init()
	for _, s := range shows() {
		if err := play(sandbox, s); err != nil {
			log.Fatal(s.name, ": ", err)
		}
	}
}

func play(sandbox coding.Sandbox, s show) error {
	dir, err := os.MkdirTemp("", "inspan-builtin-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	root := filepath.Join(dir, "work")
	ctx := context.Background()
	if err := repository(ctx, sandbox, root, s.files); err != nil {
		return err
	}
	h, end, err := hosted(ctx, sandbox, root)
	if err != nil {
		return err
	}
	defer func() {
		end()
		for _, made := range h.made {
			fmt.Println("  " + made)
		}
	}()
	for name, data := range workflow.BuiltIn() {
		if name != s.name {
			continue
		}
		flow, err := workflow.Parse(name+".yaml", data, nil)
		if err != nil {
			return err
		}
		host, err := coding.Workflow(coding.Options{
			Sandbox: sandbox, Root: root, State: filepath.Join(dir, "state"), Model: s.cast, Mode: tool.ModeAuto,
		}, flow, s.inputs)
		if err != nil {
			return err
		}
		return run(host, root, s.name)
	}
	return fmt.Errorf("there is no such workflow")
}

// run runs a session of the host to its end, and approves its questions.
func run(host *inspan.Host, root, name string) error {
	ctx := context.Background()
	session, err := host.New(ctx, root)
	if err != nil {
		return err
	}
	defer session.Close()
	steps := 0
	c := inspan.Conductor{
		Session: session,
		OnEvent: func(e event.Event) error {
			end, ok := e.Body.(event.StepEnded)
			if ok && end.Step == event.Workflow {
				fmt.Printf("%s: %s after %d steps, %s\n", name, end.Outcome, steps, end.Result)
			} else if ok {
				steps++
			}
			return nil
		},
		Ask: func(_ context.Context, p inspan.Pending) (event.Body, error) {
			return event.Decided{Call: p.Call.ID, Question: p.Question, Allow: true, Answer: "1", By: "the example"}, nil
		},
	}
	return c.Run(ctx, event.Say("run "+name))
}

func repository(ctx context.Context, sandbox coding.Sandbox, root string, files map[string]string) error {
	if err := os.Mkdir(root, 0o700); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return command(ctx, sandbox, root, "git init -q && git config user.name example && git config user.email e@example.com && "+
		"git add -A && git commit -qm begin --allow-empty")
}

// command runs a command line in a folder, without a sandbox.
func command(ctx context.Context, sandbox coding.Sandbox, dir, line string) error {
	env, err := coding.Env(coding.Options{Sandbox: sandbox, Root: dir, State: dir + "-state"})
	if err != nil {
		return err
	}
	defer func() { _ = env.Close() }()
	p, err := env.Procs.Start(ctx, tool.Command{Args: []string{"sh", "-c", line}, Dir: dir, Box: tool.Box{Level: tool.BoxNone}})
	if err != nil {
		return err
	}
	if code, err := p.Wait(); err != nil || code != 0 {
		return fmt.Errorf("%s ended with %d: %w", line, code, err)
	}
	return nil
}
