package journeys_test

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// TestToolsComeAndGo checks that an agent's dynamic tools are read before each run, and that each name is given once.
func TestToolsComeAndGo(t *testing.T) {
	var l ledger
	extra := []tool.Tool{l.reader()}
	a := inspan.Agent{
		Model: scripted(t, `call: look {"word":"a"}`, "done", `call: look {"word":"b"}`, "done"), Tools: []tool.Tool{l.writer()}, Mode: "yolo",
		Env:     tool.Env{Root: "/w"},
		Dynamic: inspan.Dynamic{Tools: func(context.Context) (shown, hidden []tool.Tool) { return extra, nil }},
	}
	s, err := a.Open(t.Context(), event.NewMemory("s"))
	if err != nil {
		t.Fatal(err)
	}
	first := drivenTo(t, s, said("go"))
	if n := len(bodiesOf[event.Switched](first)); n != 0 || strings.Join(l.runs, ",") != "look a" {
		t.Errorf("%d switches, ran %q", n, l.runs)
	}
	extra = []tool.Tool{l.tool("note", tool.Effect{Kind: tool.Read, Path: "/w"})}
	second := drivenTo(t, s, said("on"))
	switched, notes, ended := bodiesOf[event.Switched](second), bodiesOf[event.Note](second), bodiesOf[event.Ended](second)
	if len(switched) != 1 || len(switched[0].Tools) != 1 || switched[0].Tools[0].Name != "note" {
		t.Errorf("switched %+v", switched)
	}
	if len(notes) != 1 || !strings.Contains(notes[0].Text, `two tools are named "note"`) {
		t.Errorf("notes %+v", notes)
	}
	if len(ended) != 1 || ended[0].Outcome != event.OutcomeInvalid || len(l.runs) != 1 {
		t.Errorf("a tool that is gone: %+v, ran %q", ended, l.runs)
	}
	if third := drivenTo(t, s, said("on")); len(bodiesOf[event.Switched](third))+len(bodiesOf[event.Note](third)) > 0 {
		t.Error("what stays the same is told again")
	}
}

// metered is a model that counts tokens as vendors do, and keeps its requests.
type metered struct {
	llm.Model
	asked []llm.Request
}

func (m *metered) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		if req.Purpose == "" {
			m.asked = append(m.asked, req)
		}
		for chunk, err := range m.Model.Stream(ctx, req) {
			if chunk.Reply != nil {
				chunk.Reply.Usage = llm.Usage{Input: req.Tokens(), Output: llm.Message{Parts: chunk.Reply.Parts}.Tokens()}
			}
			if !yield(chunk, err) {
				return
			}
		}
	}
}

// TestToolsThatChangeLate checks that the list of tools, with which every prompt begins, stays the same once a vendor
// may have cached it: a message names added, removed and changed tools, and added ones can be called. After a
// compaction the list is the new one.
func TestToolsThatChangeLate(t *testing.T) {
	var l ledger
	note, look := l.tool("note", tool.Effect{Kind: tool.Read, Path: "/w"}), l.reader()
	look.Doc = "Looks.\nIn a sandbox."
	come := []tool.Tool{look}
	long := strings.Repeat("a long answer ", 5000)
	m := &metered{Model: scripted(
		t, "done", `call: call_tool {"name":"note","arguments":{"word":"a"}}`, "done", "done", long, long, long, "no record", "no record", "done",
	)}
	a := inspan.Agent{
		Model: m, Mode: "yolo", Env: tool.Env{Root: "/w"},
		Dynamic: inspan.Dynamic{Tools: func(context.Context) (shown, hidden []tool.Tool) {
			return slices.Concat(tools.Deferred(nil, nil, come), come), nil
		}},
	}
	log := event.NewMemory("s")
	s, err := a.Open(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	drivenTo(t, s, said("go"))
	first := m.asked[0].Tools
	look.Doc = "Looks.\nAnywhere."
	come = []tool.Tool{look, note}
	drivenTo(t, s, said("on"))
	told := fmt.Sprint(m.asked[1].Messages)
	for _, want := range []string{
		"New tool, to be called with call_tool: note\nwrites a word down\nArguments: {", "look: No longer true of it:\nIn a sandbox.",
		"look: Now true of it:\nAnywhere.",
	} {
		if strings.Count(told, want) != 1 {
			t.Errorf("%q is told %d times:\n%s", want, strings.Count(told, want), told)
		}
	}
	if strings.Join(l.runs, ",") != "note a" {
		t.Errorf("ran %q", l.runs)
	}
	come = nil
	drivenTo(t, s, said("on"))
	again := fmt.Sprint(m.asked[3].Messages)
	if !strings.Contains(again, "Removed, do not call: look]") || strings.Count(again, "Your tools have changed") != 2 {
		t.Errorf("what went is not told once: %s", again)
	}
	for range 3 {
		drivenTo(t, s, said("on"))
	}
	for i, req := range m.asked {
		if !reflect.DeepEqual(req.Tools, first) {
			t.Errorf("request %d has another list: %v", i, req.Tools)
		}
	}
	if n := strings.Count(fmt.Sprint(m.asked[4].Messages), "Your tools have changed"); n != 2 {
		t.Errorf("told %d times", n)
	}
	if n := len(bodiesOf[event.Compacted](drivenTo(t, s, event.Compact{}))); n != 1 {
		t.Fatalf("%d compactions", n)
	}
	drivenTo(t, s, said("on"))
	if last := m.asked[len(m.asked)-1]; len(last.Tools) != len(first)-1 || strings.Contains(fmt.Sprint(last.Messages), "Your tools have changed") {
		t.Errorf("after a compaction the list is %v", last.Tools)
	}
}

// TestServerThatJustConnected checks that the tools of a server are there from the first request on if it connected
// after the run began, without anybody having waited for it.
func TestServerThatJustConnected(t *testing.T) {
	var l ledger
	var extra []tool.Tool
	a := inspan.Agent{
		Model: scripted(t, `call: look {"word":"a"}`, "done"), Mode: "yolo", Env: tool.Env{Root: "/w"},
		Dynamic: inspan.Dynamic{Tools: func(context.Context) (shown, hidden []tool.Tool) { return extra, nil }, Servers: func(context.Context, func(string)) []event.Server {
			extra = []tool.Tool{l.reader()}
			return []event.Server{{Name: "s", State: "ready", Tools: 1}}
		}},
	}
	s, err := a.Open(t.Context(), event.NewMemory("s"))
	if err != nil {
		t.Fatal(err)
	}
	if events := drivenTo(t, s, said("go")); strings.Join(l.runs, ",") != "look a" {
		t.Errorf("ran %q in %d events", l.runs, len(events))
	}
}

// TestOneToolStandsForMany checks that a call through another tool is judged, run and recorded as the call that it
// stands for.
func TestOneToolStandsForMany(t *testing.T) {
	for _, tc := range []struct {
		name    string
		mode    tool.Mode
		rules   []inspan.Rule
		call    string
		ran     string
		outcome event.Outcome
	}{
		{"runs", "yolo", nil, `call: call_tool {"name":"note","arguments":{"word":"a"}}`, "note a", event.OutcomeOK},
		{
			"is ruled by its own name", "yolo",
			[]inspan.Rule{{Action: tool.Deny, Text: "note"}},
			`call: call_tool {"name":"note","arguments":{"word":"a"}}`, "", event.OutcomeDenied,
		},
		{
			"is allowed by its own name", "ask",
			[]inspan.Rule{{Action: tool.Allow, Text: "note"}},
			`call: call_tool {"name":"note","arguments":{"word":"a"}}`, "note a", event.OutcomeOK,
		},
		{
			"is not allowed by the other's", "ask",
			[]inspan.Rule{{Action: tool.Allow, Text: "call_tool"}},
			`call: call_tool {"name":"note","arguments":{"word":"a"}}`, "", event.OutcomeDenied,
		},
		{"arguments are checked", "yolo", nil, `call: call_tool {"name":"note","arguments":{"wrod":"a"}}`, "", event.OutcomeInvalid},
		{"none of that name", "yolo", nil, `call: call_tool {"name":"look"}`, "", event.OutcomeInvalid},
		{"by its own name", "yolo", nil, `call: note {"word":"b"}`, "note b", event.OutcomeOK},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var l ledger
			hidden := []tool.Tool{l.writer()}
			a := inspan.Agent{
				Model: scripted(t, tc.call, "done"), Mode: tc.mode, Rules: tc.rules, Unattended: true, Env: tool.Env{Root: "/w"},
				Dynamic: inspan.Dynamic{Tools: func(context.Context) ([]tool.Tool, []tool.Tool) { return tools.Deferred(hidden, nil, nil), hidden }},
			}
			log := event.NewMemory("s")
			s, err := a.Open(t.Context(), log)
			if err != nil {
				t.Fatal(err)
			}
			events := drivenTo(t, s, said("go"))
			ended := bodiesOf[event.Ended](events)
			if len(ended) != 1 || ended[0].Outcome != tc.outcome || strings.Join(l.runs, ",") != tc.ran {
				t.Errorf("ended %+v, ran %q", ended, l.runs)
			}
			for e, err := range log.Read(t.Context(), 0) {
				if err != nil {
					t.Fatal(err)
				}
				if sw, ok := e.Body.(event.Switched); ok && slices.ContainsFunc(sw.Tools, func(s llm.ToolSpec) bool { return s.Name == "note" }) {
					t.Error("the model is told of a tool that is hidden")
				}
			}
		})
	}
}
