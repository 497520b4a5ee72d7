package journeys_test

// The corpus protects old sessions: logs of small runs (log_corpus_runs_test.go) in testdata/logs, one folder for each
// version that wrote some. Every version must read all of them. With -update the folder of this version is written
// again; those of other versions never change.

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/tool"
)

const corpusDir = "testdata/logs"

var update = flag.Bool("update", false, "write the logs of this version anew")

// TestCorpusIsMade runs the agent as in the corpus and compares the events with the stored ones.
func TestCorpusIsMade(t *testing.T) {
	dir := filepath.Join(corpusDir, inspan.Version)
	if *update {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, run := range corpus() {
		t.Run(name, func(t *testing.T) {
			var lines bytes.Buffer
			synctest.Test(t, func(t *testing.T) {
				for e, err := range run(t).Read(t.Context(), 0) {
					if err != nil {
						t.Fatal(err)
					}
					line, err := event.Encode(e)
					if err != nil {
						t.Fatal(err)
					}
					lines.Write(append(line, '\n'))
				}
			})
			kept(t, filepath.Join(dir, name+".jsonl"), lines.String())
		})
	}
}

// TestCorpusFolds folds every log of every version: the state must have the recorded digests, and the next request must
// be exactly the recorded one.
func TestCorpusFolds(t *testing.T) {
	logs, err := filepath.Glob(filepath.Join(corpusDir, "*", "*.jsonl"))
	if err != nil || len(logs) < len(corpus()) {
		t.Fatalf("%d logs, %v", len(logs), err)
	}
	checked := 0
	for _, path := range logs {
		t.Run(path, func(t *testing.T) {
			events := readLog(t, path)
			state, n := foldChecked(t, events)
			checked += n
			kept(t, strings.TrimSuffix(path, ".jsonl")+".next.json", nextOf(t, state))
			if from := lastCompaction(events); from > 0 {
				short, _ := foldChecked(t, events[from:])
				if diff := cmp.Diff(nextOf(t, state), nextOf(t, short)); diff != "" {
					t.Errorf("folded from the compaction on it is another state:\n%s", diff)
				}
			}
		})
	}
	if checked < len(corpus())/2 {
		t.Errorf("only %d digests could be compared", checked)
	}
}

// kept compares a file with its expected content. With -update it is written, unless it exists and belongs to another
// version: delete a file first to change an old log.
func kept(t *testing.T, path, want string) {
	t.Helper()
	old, err := os.ReadFile(path)
	ours := filepath.Base(filepath.Dir(path)) == inspan.Version
	if *update && (ours || err != nil) {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(old), want); diff != "" {
		t.Errorf("%s: what a log means has changed:\n%s", path, diff)
	}
}

func readLog(t *testing.T, path string) []event.Event {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var events []event.Event
	for line := range bytes.Lines(raw) {
		e, err := event.Decode(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			t.Fatalf("event %d: %v", len(events)+1, err)
		}
		events = append(events, e)
	}
	return events
}

// foldChecked folds events and compares the digests that can be compared.
func foldChecked(t *testing.T, events []event.Event) (state *loop.State, checked int) {
	t.Helper()
	state = &loop.State{}
	for _, e := range events {
		if b, ok := e.Body.(event.Stopped); ok {
			now := state.Digest()
			version, _, _ := strings.Cut(now, ":")
			if strings.HasPrefix(b.Digest, version+":") {
				checked++
				if now != b.Digest {
					t.Errorf("event %d: digest %s, recorded %s", e.Seq, now, b.Digest)
				}
			}
		}
		if err := state.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	return state, checked
}

func lastCompaction(events []event.Event) int {
	at := 0
	for i, e := range events {
		if _, ok := e.Body.(event.Compacted); ok {
			at = i
		}
	}
	return at
}

// nextOf spells out the next action, and the request that would be sent.
func nextOf(t *testing.T, s *loop.State) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(map[string]any{"next": fmt.Sprintf("%T", s.Next()), "mode": s.Mode, "total": s.Total, "request": s.Request()})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// steady is a log in which nothing depends on the clock, the machine or luck.
// What was copied from another session, as in a fork, is read first.
type steady struct {
	*event.Memory
	copied  []event.Event
	claimed bool
}

func newSteady(id string) *steady { return &steady{Memory: event.NewMemory(id)} }

// Append implements event.Log.
func (s *steady) Append(ctx context.Context, bodies ...event.Body) ([]event.Event, error) {
	return s.stamped(s.Memory.Append(ctx, steadied(bodies)...))
}

// AppendAs implements event.Log.
func (s *steady) AppendAs(ctx context.Context, as event.Driver, bodies ...event.Body) ([]event.Event, error) {
	as.After -= uint64(len(s.copied))
	_, claims := bodies[0].(event.Claimed)
	if s.claimed = s.claimed || claims; !s.claimed {
		as.Epoch = 0 // that of the copied events, which the memory does not hold
	}
	return s.stamped(s.Memory.AppendAs(ctx, as, steadied(bodies)...))
}

// steadied returns bodies without the parts that differ from run to run.
func steadied(bodies []event.Body) []event.Body {
	still := make([]event.Body, len(bodies))
	for i, body := range bodies {
		switch b := body.(type) {
		case event.Claimed:
			b.By, b.Writer = "process 7 on host", "writer"
			body = b
		case event.Replied:
			b.Millis = 1200
			body = b
		case event.Ended:
			b.Millis = 34
			body = b
		case event.Failed:
			if b.Retry > 0 {
				b.Retry = 1.5
			}
			body = b
		}
		still[i] = body
	}
	return still
}

func (s *steady) stamped(events []event.Event, err error) ([]event.Event, error) {
	for i := range events {
		events[i] = s.stamp(events[i])
	}
	return events, err
}

func (s *steady) stamp(e event.Event) event.Event {
	e.Seq += uint64(len(s.copied))
	e.Time = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(time.Duration(e.Seq) * time.Second)
	return e
}

// Read implements event.Log.
func (s *steady) Read(ctx context.Context, after uint64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, e := range s.copied[min(after, uint64(len(s.copied))):] {
			if !yield(e, nil) {
				return
			}
		}
		for e, err := range s.Memory.Read(ctx, s.own(after)) {
			if !yield(s.stamp(e), err) {
				return
			}
		}
	}
}

// Wait implements event.Waiter.
func (s *steady) Wait(ctx context.Context, after uint64) error {
	return s.Memory.Wait(ctx, s.own(after))
}

func (s *steady) own(seq uint64) uint64 { return seq - min(seq, uint64(len(s.copied))) }

// corpusAgent is an agent with tools that need no machine.
func corpusAgent(t *testing.T, mode tool.Mode, replies ...string) *inspan.Agent {
	t.Helper()
	return &inspan.Agent{
		Model: scripted(t, replies...), Mode: mode,
		Tools: []tool.Tool{lookTool(), noteTool(), pictureTool()},
		System: []event.Added{
			{Source: "built-in", Text: "You are careful."},
			{Source: "/w/AGENTS.md", Text: "Answer in <b>plain</b> words & few."},
		},
		Env: tool.Env{Root: "/w", Blobs: &memoryBlobs{}},
	}
}

func lookTool() tool.Tool {
	t := tool.New("look", "Reads a word.", func(_ context.Context, _ *tool.Call, in wordArgs) (tool.Result, error) {
		res := tool.Text("the word is " + in.Word + "\n```go\nfenced\n```\n")
		res.Files = []tool.File{{Path: "/w/" + in.Word, Digest: tool.Digest([]byte(in.Word))}}
		return res, nil
	})
	t.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.Read, Path: "/w/a"}}, nil
	}
	return t
}

func noteTool() tool.Tool {
	t := tool.New("note", "Writes a word.", func(_ context.Context, _ *tool.Call, in wordArgs) (tool.Result, error) {
		res := tool.Text("noted " + in.Word)
		res.Cwd = "/w/sub"
		res.Files = []tool.File{{
			Path: "/w/a", Digest: tool.Digest([]byte(in.Word)),
			Written: true, Diff: "--- a\n+++ a\n@@ -1 +1 @@\n-old\n+" + in.Word + "\n",
		}}
		return res, nil
	})
	t.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.Write, Path: "/w/a"}}, nil
	}
	t.Preview = func(context.Context, *tool.Call) (string, error) { return "-old\n+new\n", nil }
	return t
}
