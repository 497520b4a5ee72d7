//go:build unix

package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/kin"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
)

// TestWhoActs holds, for each place that an agent can have in a tree, that its events, the hooks of both
// formats, its prompt, its trace, its questions and the environment of its commands say who it is.
func TestWhoActs(t *testing.T) {
	root, logs := repository(t, map[string]string{"a.txt": "a\n"}), t.TempDir()
	ours, claude := filepath.Join(logs, "ours"), filepath.Join(logs, "claude")
	for _, path := range []string{ours, claude} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	settings := fmt.Sprintf("mode = 'auto'\nask = ['bash(true asks)']\n[[hook]]\non = 'before_call'\nmatch = 'bash'\ncommand = 'cat >> %s'\n"+
		"[[hook]]\non = 'before_call'\nmatch = 'Bash'\nclaude = true\ncommand = 'cat >> %s'\n", ours, claude)
	asks := makes("bash", map[string]any{"command": "true asks"})
	look := makes("bash", map[string]any{"command": `echo "$INSPAN_SESSION/$INSPAN_AGENT/$INSPAN_PARENT/$INSPAN_LEAD"`})
	spawn := func(args ...any) llm.Parts {
		all := map[string]any{}
		for i := 0; i < len(args); i += 2 {
			all[args[i].(string)] = args[i+1]
		}
		return makes("spawn_agent", all)
	}
	model := played(func(task string, turn int) llm.Parts {
		steps := map[string][]llm.Parts{
			"lead": {
				look,
				asks,
				spawn("task", "child"),
				spawn("task", "background", "background", true),
				spawn("task", "best", "count", 2, "reduce", "best", "check", "true"),
			},
			"child": {look, asks, spawn("task", "grandchild")},
		}[strings.Fields(task)[0]]
		if steps == nil {
			steps = []llm.Parts{look, asks}
		}
		if turn < len(steps) {
			return steps[turn]
		}
		return llm.Say("done")
	})
	a := load(t, settings)
	a.Providers.Given, a.Self = model, sandbox.Self()
	host := a.Host(app.Options{}, func(text string) { t.Log(text) })
	asked := map[string]string{} // kinds that asked, by the session that was shown the question
	answer := func(s *inspan.Session) func(context.Context, inspan.Pending) (event.Body, error) {
		return func(_ context.Context, p inspan.Pending) (event.Body, error) {
			asked[s.ID()] += p.Agent + ", "
			return p.Answer(event.Decided{Allow: true, By: "a person"}), nil
		}
	}
	acts := func(s *inspan.Session, err error, inputs ...event.Body) string {
		t.Helper()
		if err == nil {
			err = (&inspan.Conductor{Session: s, Ask: answer(s)}).Run(t.Context(), inputs...)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return s.ID()
	}
	s, err := host.New(t.Context(), root)
	lead := acts(s, err, event.Say("lead"))
	p, err := app.Workflows(a, root, "").Program(file(t, "name: flow\nsteps:\n  - {id: a, kind: agent, prompt: step}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err = a.Host(app.Options{Program: p, Mode: "auto"}, func(text string) { t.Log(text) }).New(t.Context(), root)
	flow := acts(s, err, p.Begin())
	sort := func(list string) []string { return slices.Sorted(slices.Values(strings.Split(list, ", "))) }
	if diff := cmp.Diff(map[string][]string{
		lead: sort(", , worker, worker › worker, worker, worker, worker"), flow: sort(", worker"),
	}, map[string][]string{lead: sort(asked[lead]), flow: sort(asked[flow])}); diff != "" {
		t.Error("questions: " + diff)
	}
	spans := map[string]map[string]string{} // attributes of the span of each session's run
	for _, id := range []string{lead, flow} {
		trace, err := transcript.TraceOf(t.Context(), host.Sessions(), id, false)
		if err != nil {
			t.Fatal(err)
		}
		requests, err := exportedLater(trace)
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range requests {
			runsIn(t, raw, spans)
		}
	}

	told := func(path, key, id string) (lines []map[string]any) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			var one map[string]any
			if err := json.Unmarshal([]byte(line), &one); err != nil {
				t.Fatal(line, err)
			}
			if got, _ := one[key].(string); got == id {
				lines = append(lines, one)
			}
		}
		return lines
	}
	seen := map[string]int{}
	ids, err := host.Sessions().IDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		var opened event.Opened
		task, printed, brief := "", "", ""
		for e, err := range store.Events(t.Context(), host.Sessions(), id) {
			if err != nil {
				t.Fatal(err)
			}
			switch b := e.Body.(type) {
			case event.Opened:
				opened = b
			case event.Said:
				task, _, _ = strings.Cut(b.Parts.Text(), "\n")
			case event.Ended:
				if printed == "" {
					printed = b.Parts.Text()
				}
			case event.Steered:
				brief += b.Parts.Text()
			case event.Note:
				if strings.Contains(b.Text, "two tools") {
					t.Errorf("%s: %s", task, b.Text)
				}
			}
		}
		if id == flow { // no model acts in it
			continue
		}
		seen[task]++
		kind, parent := "worker", kin.Parent(id)
		if parent == "" {
			kind = ""
		}
		if opened.Agent != kind || opened.Parent != parent {
			t.Errorf("%s %s: it was opened as %q of %q", task, id, opened.Agent, opened.Parent)
		}
		if want := strings.Join([]string{id, kind, parent, kin.Lead(id)}, "/") + "\n"; !strings.HasPrefix(printed, want) {
			t.Errorf("%s: its command has %q, not %q", task, printed, want)
		}
		own := told(ours, "session", id)
		theirs := told(claude, "agent_id", id)
		if parent == "" {
			theirs = slices.DeleteFunc(told(claude, "session_id", id), func(m map[string]any) bool { return m["agent_id"] != nil })
		}
		if len(own) < 1 || len(theirs) != len(own) {
			t.Errorf("%s: hooks were told %v and %v", task, own, theirs)
			continue
		}
		if got, want := spans[id], map[string]string{"gen_ai.agent.id": id, "inspan.agent": kind, "inspan.parent": parent, "inspan.lead": kin.Lead(id)}; parent != "" {
			for key, value := range want {
				if got[key] != value {
					t.Errorf("%s: its trace has %s %q, not %q", task, key, got[key], value)
				}
			}
		} else if got["gen_ai.agent.id"] != id || got["inspan.parent"] != "" {
			t.Errorf("%s: its trace has %v", task, got)
		}
		value := func(m map[string]any, key string) string { text, _ := m[key].(string); return text }
		if value(own[0], "agent") != kind || value(own[0], "parent") != parent || parent != "" && value(own[0], "lead") != kin.Lead(id) {
			t.Errorf("%s: our hook was told %v", task, own[0])
		}
		if value(theirs[0], "session_id") != kin.Lead(id) || value(theirs[0], "agent_type") != kind {
			t.Errorf("%s: the hook of Claude Code was told %v", task, theirs[0])
		}
		wants := map[string]string{
			"child": "work for the lead agent", "grandchild": "work for agent worker " + parent[strings.LastIndexByte(parent, '.')+1:],
			"background": "work for the lead agent", "best": "a copy of the workspace " + root, "step": "work for a step of a workflow",
		}
		if parent != "" && (!strings.Contains(brief, "You are agent "+id[strings.LastIndexByte(id, '.')+1:]+", of the kind worker") ||
			!strings.Contains(brief, wants[task])) {
			t.Errorf("%s: it was told %q", task, brief)
		}
	}
	if want := map[string]int{"lead": 1, "child": 1, "grandchild": 1, "background": 1, "best": 2, "step": 1}; fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("agents of %s and %s: %v", lead, flow, seen)
	}
}

// runsIn takes the attributes of the spans of runs out of a request with traces, by session.
func runsIn(t *testing.T, raw []byte, into map[string]map[string]string) {
	t.Helper()
	var request struct {
		ResourceSpans []struct {
			ScopeSpans []struct {
				Spans []struct {
					Attributes []struct {
						Key   string
						Value struct{ StringValue string }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(raw, &request); err != nil {
		t.Fatal(err)
	}
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				of := map[string]string{}
				for _, a := range span.Attributes {
					of[a.Key] = a.Value.StringValue
				}
				if of["inspan.kind"] == "run" {
					into[of["gen_ai.conversation.id"]] = of
				}
			}
		}
	}
}
