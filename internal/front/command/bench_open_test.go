package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Events of a long session, and of one that has gone on for weeks.
const (
	longLog = 100_000
	hugeLog = 1_000_000
)

// BenchmarkOpen opens a long session from disk until it can be run: with a
// compaction near its end through the index, and without both. What it
// allocates bounds the memory that it takes.
func BenchmarkOpen(b *testing.B) {
	for _, bench := range []struct {
		events    int
		compacted bool
	}{{longLog, true}, {longLog, false}, {hugeLog, true}} {
		b.Run(fmt.Sprintf("events=%d,compacted=%v", bench.events, bench.compacted), func(b *testing.B) {
			h := hostFor(b, b.TempDir(), "http://unused.invalid", func(*inspan.Agent) {})
			id := writeLong(b, h.Dir, b.TempDir(), bench.events, bench.compacted)
			info, err := os.Stat(filepath.Join(h.Dir, id, "log.jsonl"))
			if err != nil {
				b.Fatal(err)
			}
			var took, used []float64
			for b.Loop() {
				if !bench.compacted {
					b.StopTimer()
					if err := os.RemoveAll(filepath.Join(h.Dir, id, "index.json")); err != nil { // there may be none
						b.Fatal(err)
					}
					b.StartTimer()
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				began := time.Now()
				s, err := h.Open(b.Context(), id)
				if err != nil {
					b.Fatal(err)
				}
				took = append(took, ms(time.Since(began)))
				runtime.ReadMemStats(&after)
				used = append(used, float64(after.TotalAlloc-before.TotalAlloc)/1e6)
				if st := s.Status(); st.Turns < bench.events/6 {
					b.Fatalf("only %d turns", st.Turns)
				}
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(median(took), "ms/open")
			b.ReportMetric(median(used), "MB/open")
			b.ReportMetric(float64(info.Size())/1e6, "MB-log")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// writeLong writes a long session: runs of fifty turns, each with one call.
// If it is to be compacted, that happens every hundred thousand events, and a
// hundred before the end.
func writeLong(b *testing.B, dir, root string, events int, compacted bool) (id string) {
	b.Helper()
	log, err := (&session.Store{Dir: dir, Sync: session.SyncKill}).Create(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if err := log.Lease(b.Context()); err != nil {
		b.Fatal(err)
	}
	var state loop.State
	epoch := uint64(0)
	put := func(bodies ...event.Body) {
		for len(bodies) > 0 {
			if c, claims := bodies[0].(event.Claimed); claims {
				epoch = c.Epoch
			}
			n := 1
			for n < len(bodies) && bodies[n].Kind() != (event.Claimed{}).Kind() { // a claim comes first
				n++
			}
			events, err := log.AppendAs(b.Context(), event.Driver{Epoch: epoch, After: state.Seq}, bodies[:n]...)
			if err != nil {
				b.Fatal(err)
			}
			for _, e := range events {
				if err := state.Apply(e); err != nil {
					b.Fatal(err)
				}
			}
			bodies = bodies[n:]
		}
	}
	lines := 14 // of code that each call reads
	if events == hugeLog {
		lines = 50 // so that it comes to a gigabyte
	}
	bodies := longTalk(root, events, lines)
	tail := len(bodies) - 100
	n := 0
	for chunk := range slices.Chunk(bodies[:tail], 1000) {
		put(chunk...)
		if n += len(chunk); compacted && n%longLog == 0 {
			put(compact(b, state))
		}
	}
	if compacted {
		put(compact(b, state))
	}
	put(bodies[tail:]...)
	if err := log.Close(); err != nil {
		b.Fatal(err)
	}
	return log.ID()
}

// compact keeps the last twenty messages of a conversation.
func compact(b *testing.B, s loop.State) event.Body {
	b.Helper()
	s.Messages = s.Messages[len(s.Messages)-20:]
	snapshot, err := s.Snapshot()
	if err != nil {
		b.Fatal(err)
	}
	return event.Compacted{Before: 150_000, After: 10_000, Snapshot: snapshot}
}

// longTalk returns n events as sessions have them, about 500 bytes each if calls
// read 14 lines.
func longTalk(root string, n, lines int) []event.Body {
	bodies := []event.Body{
		event.Opened{Format: 1, App: "bench", Root: root},
		event.Switched{Route: "fake/m", Mode: "auto", Limits: &event.Limits{}},
	}
	for run := 1; len(bodies) < n; run++ {
		bodies = append(bodies, event.Claimed{Epoch: uint64(run), By: "bench"}, event.Say("find the next one and fix it"))
		for turn := 1; turn <= 50; turn++ {
			bodies = append(bodies, longTurn(run, turn, lines)...)
		}
		bodies = append(bodies,
			event.Asked{Turn: 51, Route: "fake/m"},
			event.Replied{Parts: llm.Say("It is fixed."), Stop: llm.StopEnd, Route: "fake/m"},
			event.Stopped{Reason: event.ReasonDone})
	}
	return bodies[:n]
}

func longTurn(run, turn, lines int) []event.Body {
	id, path := fmt.Sprintf("call_%d_%d", run, turn), fmt.Sprintf("/w/internal/part%d/file%d.go", run%20, turn)
	return []event.Body{
		event.Asked{Turn: turn, Route: "fake/m"},
		event.Replied{
			Parts: llm.Parts{
				llm.Reasoning{
					Text:   strings.Repeat("thinking about it ", 20),
					Opaque: json.RawMessage(`{"type":"thinking","signature":"` + strings.Repeat("QUJD", 60) + `"}`), Route: "fake/m",
				},
				llm.Text{Text: "I look at the file next."},
				llm.Call{ID: id, Name: "read_file", Args: json.RawMessage(`{"path":"` + path + `","offset":120,"limit":80}`)},
			},
			Stop: llm.StopCalls, Usage: llm.Usage{Input: 100, CacheRead: 12000, Output: 300}, Route: "fake/m", Cost: 0.0123, Millis: 2100,
		},
		event.Judged{Call: id, Action: tool.Allow, By: "mode auto", Effects: []tool.Effect{{Kind: tool.Read, Path: path}}},
		event.Started{Call: id},
		event.Ended{
			Call: id, Outcome: event.OutcomeOK, Millis: 3,
			Parts: llm.Say(strings.Repeat("\tif err != nil {\n\t\treturn fmt.Errorf(\"read: %w\", err)\n\t}\n", lines)),
			Files: []tool.File{{Path: path, Digest: "0123456789abcdef0123456789abcdef"}},
		},
	}
}
