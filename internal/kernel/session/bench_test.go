package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// talk returns n bodies as sessions have them: turns of one call each, about
// 500 bytes an event.
func talk(n int) []event.Body {
	bodies := []event.Body{
		event.Opened{Format: 1, App: "test", Root: "/w"},
		event.Say("please find the bug and fix it"),
	}
	for i := 0; len(bodies) < n; i++ {
		id := fmt.Sprintf("call_%08d", i)
		bodies = append(bodies,
			event.Asked{Turn: i + 1, Route: "p/m"},
			event.Replied{
				Parts: llm.Parts{
					llm.Reasoning{
						Text:   strings.Repeat("thinking about it ", 20),
						Opaque: json.RawMessage(`{"type":"thinking","signature":"` + strings.Repeat("QUJD", 60) + `"}`), Route: "p/m",
					},
					llm.Text{Text: "I will look at the file next."},
					llm.Call{ID: id, Name: "read", Args: json.RawMessage(`{"path":"internal/kernel/session/log.go","offset":120,"limit":80}`)},
				},
				Stop: llm.StopCalls, Usage: llm.Usage{Input: 100, CacheRead: 12000, Output: 300}, Route: "p/m", Cost: 0.0123, Millis: 2100,
			},
			event.Judged{
				Call: id, Action: tool.Allow, By: "mode auto",
				Effects: []tool.Effect{{Kind: tool.Read, Path: "/w/internal/kernel/session/log.go"}},
			},
			event.Started{Call: id},
			event.Ended{
				Call: id, Outcome: event.OutcomeOK, Millis: 3,
				Parts: llm.Say(strings.Repeat("\tif err != nil {\n\t\treturn fmt.Errorf(\"read: %w\", err)\n\t}\n", 14)),
				Files: []tool.File{{Path: "/w/internal/kernel/session/log.go", Digest: "0123456789abcdef0123456789abcdef"}},
			},
		)
	}
	return bodies[:n]
}

// written makes a session whose log holds the bodies, without the cost of
// appending them.
func written(tb testing.TB, s *Store, bodies []event.Body) (id string) {
	tb.Helper()
	l, err := s.create(tb.Context(), empty)
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	var c cursor
	var buf []byte
	for i, b := range bodies {
		e := event.Event{Seq: uint64(i) + 1, Time: time.Unix(1.8e9, 0).Add(time.Duration(i) * time.Second), Session: l.id, Body: b}
		enc, err := s.encode(e)
		if err == nil {
			buf, err = c.add(buf, e, enc)
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(l.dir, logName), buf, 0o600); err != nil {
		tb.Fatal(err)
	}
	return l.id
}

func BenchmarkAppend(b *testing.B) {
	for name, policy := range map[string]Policy{"power": SyncPower, "kill": SyncKill} {
		b.Run(name, func(b *testing.B) {
			l := benchLog(b, policy)
			body := event.Say(strings.Repeat("x", 900))
			for b.Loop() {
				if _, err := l.Append(b.Context(), body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkAppendGroup appends from 16 goroutines, whose syncs are shared.
func BenchmarkAppendGroup(b *testing.B) {
	l := benchLog(b, SyncPower)
	body := event.Say(strings.Repeat("x", 900))
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := l.Append(b.Context(), body); err != nil {
				b.Error(err)
			}
		}
	})
}

func benchLog(b *testing.B, policy Policy) *Log {
	l, err := (&Store{Dir: b.TempDir(), Sync: policy}).create(b.Context(), empty)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	return l
}

func BenchmarkRead100k(b *testing.B) {
	s := &Store{Dir: b.TempDir()}
	l, err := s.opened(b.Context(), written(b, s, talk(100_000)))
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	b.SetBytes(l.tail.Off)
	for b.Loop() {
		n := 0
		for _, err := range l.Read(b.Context(), 0) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 100_000 {
			b.Fatalf("read %d events", n)
		}
	}
}

// BenchmarkOpen100k opens a log with a compaction near its end and reads the part that a driver needs.
func BenchmarkOpen100k(b *testing.B) {
	bodies := talk(100_000)
	bodies[99_900] = event.Compacted{Before: 9, After: 1, Snapshot: json.RawMessage(`{"x":"` + strings.Repeat("y", 50_000) + `"}`)}
	for _, indexed := range []bool{true, false} {
		b.Run(fmt.Sprintf("index=%v", indexed), func(b *testing.B) {
			s := &Store{Dir: b.TempDir()}
			id := written(b, s, bodies)
			for b.Loop() {
				openAndFold(b, s, id, 100)
				if !indexed {
					b.StopTimer()
					if err := os.RemoveAll(filepath.Join(s.Dir, id, indexName)); err != nil { // there may be none
						b.Fatal(err)
					}
					b.StartTimer()
				}
			}
		})
	}
}

func openAndFold(tb testing.TB, s *Store, id string, want int) {
	tb.Helper()
	l, err := s.opened(tb.Context(), id)
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	start, err := l.Start(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	n := 0
	for _, err := range l.Read(tb.Context(), start) {
		if err != nil {
			tb.Fatal(err)
		}
		n++
	}
	if n != want {
		tb.Fatalf("read %d events from %d on, want %d", n, start, want)
	}
}

func BenchmarkList(b *testing.B) {
	s := &Store{Dir: b.TempDir(), Sync: SyncKill}
	for range 100 {
		written(b, s, talk(100))
	}
	for b.Loop() {
		infos, err := s.List(b.Context())
		if err != nil || len(infos) != 100 {
			b.Fatal(len(infos), err)
		}
	}
}

func BenchmarkBlobPut(b *testing.B) {
	l := benchLog(b, SyncPower)
	data := bytes.Repeat([]byte("x"), 100_000)
	for b.Loop() {
		if _, err := l.Blobs().Put(b.Context(), io.LimitReader(bytes.NewReader(data), 1<<20)); err != nil {
			b.Fatal(err)
		}
	}
}
