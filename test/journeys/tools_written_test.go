package journeys_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/tool"
)

// writing is an agent whose model writes tools by "write": the word is the name and, after a colon, the blob. Coming
// returns the other tools that come and go.
func writing(l *ledger, model []string, t *testing.T) *inspan.Agent {
	write := tool.New("write", "writes a tool", func(_ context.Context, _ *tool.Call, in wordArgs) (tool.Result, error) {
		name, blob, _ := strings.Cut(in.Word, ":")
		res := tool.Text("written")
		res.Proposal = &tool.Proposal{Name: name, Blob: blob}
		if blob == "fails" {
			return res, errors.New("its tests do not pass")
		}
		return res, nil
	})
	write.Effects = tool.NoEffects
	return &inspan.Agent{
		Model: scripted(t, model...), Tools: []tool.Tool{write, l.writer()}, Mode: "yolo", Env: tool.Env{Root: "/w"},
		Dynamic: inspan.Dynamic{Proposed: func(_ context.Context, p tool.Proposal) (tool.Tool, error) {
			if p.Blob == "gone" {
				return tool.Tool{}, errors.New("its blob is gone")
			}
			own := l.tool(p.Name, tool.Effect{Kind: tool.Read, Path: "/w"})
			own.Doc = p.Blob
			return own, nil
		}},
	}
}

func toolsOf(s *inspan.Session) string { return strings.Join(s.Status().Tools, " ") }

// TestModelWritesTools checks that a tool which the model has written is there from its next request on, after all
// others, and in a later process; that one which can't be made, or has the name of another, is left out with a
// note; and that a new one takes the place of the old one.
func TestModelWritesTools(t *testing.T) {
	var l ledger
	log := event.NewMemory("s")
	a := writing(&l, []string{
		`call: write {"word":"a:1"}`, `call: a {"word":"x"}`, `call: write {"word":"b:1"}`, `call: write {"word":"a:2"}`,
		`call: write {"word":"bad:fails"}`, `call: write {"word":"note:1"}`, `call: write {"word":"c:gone"}`, "done",
	}, t)
	s := open(t, a, log)
	events := drivenTo(t, s, said("go"))
	if toolsOf(s) != "write note a b" || strings.Join(l.runs, ",") != "a x" {
		t.Errorf("tools %q, ran %q", toolsOf(s), l.runs)
	}
	var grown []string
	for _, sw := range bodiesOf[event.Switched](events) {
		var names []string
		for _, spec := range sw.Tools {
			names = append(names, spec.Name+" "+spec.Description)
		}
		grown = append(grown, strings.Join(names[2:], ","))
	}
	if want := []string{"a 1", "a 1,b 1", "a 2,b 1"}; !slices.Equal(grown, want) {
		t.Errorf("the list of tools was %q, want %q", grown, want)
	}
	var notes []string
	for _, n := range bodiesOf[event.Note](events) {
		notes = append(notes, n.Text)
	}
	if told := strings.Join(notes, "\n"); !strings.Contains(told, `"note"`) || !strings.Contains(told, "its blob is gone") ||
		strings.Contains(told, "bad") {
		t.Errorf("notes %q", told)
	}

	var later ledger
	again := open(t, writing(&later, append(make([]string, 8), `call: b {"word":"y"}`, "done"), t), log)
	if events := drivenTo(t, again, said("on")); len(bodiesOf[event.Switched](events)) != 0 || strings.Join(later.runs, ",") != "b y" {
		t.Errorf("in a later process: ran %q, %s", later.runs, kinds(events))
	}
}

// TestWrittenToolKeepsTheList checks that a tool which the model writes changes a message and not the list of tools,
// where a vendor has cached that, and that call_tool reaches it.
func TestWrittenToolKeepsTheList(t *testing.T) {
	var l ledger
	a := writing(&l, []string{"done"}, t)
	m := &metered{Model: scripted(t, "done", `call: write {"word":"a:1"}`, `call: call_tool {"name":"a","arguments":{"word":"x"}}`, "done")}
	a.Model = m
	a.Dynamic.Tools = func(context.Context) (shown, hidden []tool.Tool) { return tools.Deferred(nil, nil, nil), nil }
	s := open(t, a, event.NewMemory("s"))
	drivenTo(t, s, said("go"))
	drivenTo(t, s, said("on"))
	if strings.Join(l.runs, ",") != "a x" {
		t.Errorf("ran %q", l.runs)
	}
	for i, req := range m.asked {
		if !reflect.DeepEqual(req.Tools, m.asked[0].Tools) {
			t.Errorf("request %d has another list of tools", i)
		}
	}
	if told := fmt.Sprint(m.asked[2].Messages); strings.Count(told, "New tool, to be called with call_tool: a\n1\nArguments: {") != 1 {
		t.Errorf("the model is told:\n%s", told)
	}
}

// TestWithdrawnTool checks that a person can take a tool away, even after a compaction.
func TestWithdrawnTool(t *testing.T) {
	var l ledger
	a := writing(&l, []string{`call: write {"word":"a:1"}`, `call: write {"word":"b:1"}`, "done", "done", "done"}, t)
	s := open(t, a, event.NewMemory("s"))
	var made uint64
	for _, e := range drivenTo(t, s, said("go")) {
		if b, ok := e.Body.(event.Ended); ok && b.Proposal != nil && b.Proposal.Name == "a" {
			made = e.Seq
		}
	}
	drivenTo(t, s, event.Compact{})
	if toolsOf(s) != "write note a b" {
		t.Errorf("after a compaction: %q", toolsOf(s))
	}
	drivenTo(t, s, event.Withdrawn{Of: made}, said("on"))
	if toolsOf(s) != "write note b" {
		t.Errorf("after it was withdrawn: %q", toolsOf(s))
	}
}
