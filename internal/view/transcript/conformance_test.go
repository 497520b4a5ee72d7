package transcript_test

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/llm"
)

// corpus is every log that a version of inspan has left, and those of the front ends.
func corpus(t *testing.T) map[string][]event.Event {
	t.Helper()
	out := map[string][]event.Event{}
	for _, pattern := range []string{"../../../test/journeys/testdata/logs/*/*.jsonl", "../../front/tui/testdata/logs/*.jsonl"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d logs, %v", pattern, len(paths), err)
		}
		for _, path := range paths {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for line := range bytes.Lines(raw) {
				e, err := event.Decode(bytes.TrimSpace(line))
				if err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				out[path] = append(out[path], e)
			}
		}
	}
	return out
}

// live is a log as its driver saw it: with the model's text word by word, progress of calls, an interrupted reply and a
// wait.
func live(events []event.Event) (out []event.Event) {
	for _, e := range events {
		at := func(b event.Body) { out = append(out, event.Event{Time: e.Time, Session: e.Session, Body: b}) }
		switch b := e.Body.(type) {
		case event.Replied:
			at(event.Delta{Text: "no, "})
			at(event.Delta{Void: true})
			at(event.Delta{Reasoning: "hm"})
			for word := range strings.SplitAfterSeq(b.Parts.Text(), " ") {
				at(event.Delta{Text: word})
			}
			at(event.Delta{Call: &llm.CallDelta{Name: "bash", Args: "{"}})
		case event.Ended:
			at(event.Progress{Call: b.Call, Text: "half\n"})
			at(event.Progress{Call: b.Call, Text: "whole\n"})
		case event.Failed:
			at(event.Delta{Text: "I will"})
		case event.Compacted:
			at(event.Progress{Text: loop.Compacting})
			at(event.Progress{Text: "busy", Wait: 2})
		}
		out = append(out, e)
	}
	return out
}

// lasting are the items that remain of those given to a reader, each once and in the order of the log.
func lasting(items []transcript.Item) (out []transcript.Item) {
	seen := map[transcript.Item]bool{}
	for _, item := range items {
		if !seen[item] && number(item) != 0 {
			seen[item] = true
			out = append(out, item)
		}
	}
	slices.SortStableFunc(out, func(a, b transcript.Item) int { return cmp.Compare(number(a), number(b)) })
	return out
}

func number(item transcript.Item) uint64 {
	switch i := item.(type) {
	case *transcript.Said:
		return i.Seq
	case *transcript.Reply:
		return i.Seq
	case *transcript.Call:
		return i.Seq
	case *transcript.Note:
		return i.Seq
	case *transcript.Question:
		return i.Seq
	case *transcript.Wait:
		return i.Seq
	case *transcript.Child:
		return i.Seq
	case *transcript.Stop:
		return i.Seq
	}
	return 0
}

func folded(events []event.Event) (*transcript.Fold, []transcript.Item) {
	f := &transcript.Fold{}
	var items []transcript.Item
	for _, e := range events {
		items = append(items, f.Apply(e)...)
	}
	return f, lasting(items)
}

// public compares the exported data of items.
func public() gocmp.Option {
	return cmpopts.IgnoreUnexported(transcript.Fold{}, transcript.Run{}, transcript.Reply{}, transcript.Call{})
}

func TestTransientsChangeNothing(t *testing.T) {
	for path, events := range corpus(t) {
		f, items := folded(events)
		g, again := folded(live(events))
		if len(items) == 0 {
			t.Errorf("%s: nobody sees anything", path)
		}
		if diff := gocmp.Diff(items, again, public()); diff != "" {
			t.Errorf("%s: items: %s", path, diff)
		}
		if diff := gocmp.Diff(f, g, public()); diff != "" {
			t.Errorf("%s: fold: %s", path, diff)
		}
	}
}

// TestBatches checks that who looks at the items only now and then sees the same.
func TestBatches(t *testing.T) {
	for path, events := range corpus(t) {
		_, want := folded(live(events))
		for _, size := range []int{2, 7, 1000} {
			f := &transcript.Fold{}
			var got []transcript.Item
			for batch := range slices.Chunk(live(events), size) {
				changed := map[transcript.Item]bool{}
				for _, e := range batch {
					for _, item := range f.Apply(e) {
						if !changed[item] {
							changed[item] = true
							got = append(got, item)
						}
					}
				}
			}
			if diff := gocmp.Diff(want, lasting(got), public()); diff != "" {
				t.Errorf("%s, in batches of %d: %s", path, size, diff)
			}
		}
	}
}

// TestTwice checks that an event that comes again, as after a reconnect, changes nothing.
func TestTwice(t *testing.T) {
	for path, events := range corpus(t) {
		f, want := folded(events)
		for _, e := range events {
			if items := f.Apply(e); items != nil {
				t.Errorf("%s: event %d is told again: %v", path, e.Seq, items)
			}
		}
		if _, got := folded(slices.Concat(events, events)); len(got) != len(want) {
			t.Errorf("%s: %d items, then %d", path, len(want), len(got))
		}
	}
}

// TestSpentAsTheLoopCounts checks the costs against the state that limits are checked with.
func TestSpentAsTheLoopCounts(t *testing.T) {
	for path, events := range corpus(t) {
		f, state := &transcript.Fold{}, &loop.State{}
		for _, e := range events {
			f.Apply(e)
			if err := state.Apply(e); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		}
		got := loop.Total{Turns: f.Spent.Turns, Calls: f.Spent.Calls, Usage: f.Spent.Usage, Cost: f.Spent.Cost, Unpriced: f.Spent.Unpriced}
		if diff := gocmp.Diff(state.Total, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

// TestEveryKindIsDecidedOn finds the kinds in the source of package event: one that is new
// is shown, or named as silent.
func TestEveryKindIsDecidedOn(t *testing.T) {
	for _, kind := range kinds(t) {
		e, err := event.Decode([]byte(`{"seq":1,"time":"2026-01-01T00:00:00.000Z","session":"s","kind":"` + kind + `","body":{}}`))
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if _, unknown := e.Body.(event.Unknown); unknown {
			t.Errorf("%s is a kind that package event does not decode", kind)
		}
		if !new(transcript.Fold).Knows(e.Body) {
			t.Errorf("the fold does not say what becomes of %s", kind)
		}
	}
	if !new(transcript.Fold).Knows(event.Unknown{Name: "later"}) || new(transcript.Fold).Knows(nil) {
		t.Error("kinds of later versions are known, and nothing is not")
	}
}

// kinds are the names that methods Kind return.
func kinds(t *testing.T) (out []string) {
	t.Helper()
	paths, err := filepath.Glob("../../../event/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "Kind" {
				continue
			}
			if name, ok := f.Body.List[0].(*ast.ReturnStmt).Results[0].(*ast.BasicLit); ok {
				out = append(out, strings.Trim(name.Value, `"`))
			}
		}
	}
	if len(out) < 35 {
		t.Fatalf("only %d kinds: %v", len(out), out)
	}
	return out
}
