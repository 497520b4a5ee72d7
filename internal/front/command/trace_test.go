package command

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/llm"
)

// TestWaterfall draws a session whose agent still works, and an unfinished wait.
func TestWaterfall(t *testing.T) {
	at := func(ms int) time.Time { return time.Date(2026, 11, 26, 12, 0, 0, ms*1e6, time.Local) }
	trace := transcript.Trace{
		Session: "lead",
		Spans: []transcript.Span{
			{ID: "run-1", Kind: transcript.SpanRun, Start: at(0)},
			{
				ID: "model-2", Parent: "run-1", Kind: transcript.SpanModel, Name: "a/b", Start: at(0), End: at(400),
				First: 200, Outcome: "calls", Cost: 0.5, Usage: &llm.Usage{Input: 1000, CacheRead: 500, Output: 20},
			},
			{ID: "child-3", Parent: "run-1", Kind: transcript.SpanChild, Name: "looker", Start: at(400), Session: "agent"},
		},
		Agents: []transcript.Trace{{Session: "agent", Spans: []transcript.Span{
			{ID: "run-1", Kind: transcript.SpanRun, Start: at(400)},
			{ID: "wait-2", Parent: "run-1", Kind: transcript.SpanWait, Name: "bash\x1b", Start: at(600)},
		}}},
	}
	var out strings.Builder
	if err := printWaterfall(&out, trace, 88, at(1000)); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"2026-11-26 12:00:00  run  1.0 s  running",
		"model a/b                         ▕░░░░████            ▏  400 ms  " +
			"calls · first after 200 ms · 1,500 in, 20 out · $0.5000",
		"child looker                      ▕        ████████████▏  600 ms  running",
		"  wait bash\\x1b                   ▕            ········▏  400 ms  running",
		"",
	}, "\n")
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
