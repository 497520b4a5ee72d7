package command

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/llm"
)

// BenchmarkGrown measures the start of an installation that has been used for long: from the start of the process to
// its first request, with 500 skills, 20 MCP servers and 10,000 sessions on disk, ten starts a round. A resumed session
// has a single turn.
func BenchmarkGrown(b *testing.B) {
	var first atomic.Int64 // when the first request came
	h := newHome(b, anthropictest.Start(b, &anthropictest.Server{Answer: func(*http.Request, []byte) anthropictest.Answer {
		first.CompareAndSwap(0, time.Now().UnixNano())
		return anthropictest.Answer{Parts: llm.Say("Done.")}
	}}))
	request := func(b *testing.B, args ...string) float64 {
		first.Store(0)
		cmd := h.command(b.Context(), args...)
		began := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		return ms(time.Unix(0, first.Load()).Sub(began))
	}
	for _, mode := range []string{"yolo", "auto"} {
		request(b, "run", "--mode", mode, "go")
		b.Run("resume/"+mode, func(b *testing.B) {
			timed(b, func() float64 { return request(b, "resume", "last", "go on") })
		})
	}
	b.Run("help", func(b *testing.B) {
		timed(b, func() float64 {
			began := time.Now()
			if out, err := h.command(b.Context(), "--help").CombinedOutput(); err != nil {
				b.Fatalf("%v\n%s", err, out)
			}
			return ms(time.Since(began))
		})
	})
	b.Run("start", func(b *testing.B) {
		h.grow(b)
		request(b, "run", "go") // the servers are met, and indexes are made
		b.ResetTimer()
		timed(b, func() float64 { return request(b, "run", "go") })
	})
}

// timed reports the median of ten measurements a round.
func timed(b *testing.B, measure func() float64) {
	b.Helper()
	var took []float64
	for b.Loop() {
		for range 10 {
			took = append(took, measure())
		}
	}
	b.ReportMetric(median(took), "ms")
	b.ReportMetric(0, "ns/op")
}

// grow adds skills, servers and sessions.
func (h home) grow(b *testing.B) {
	b.Helper()
	h.withServers(b, 20)
	old := time.Now().Add(-time.Hour)
	for i := range 500 {
		path := filepath.Join(h.dir, "config", "skills", fmt.Sprintf("skill-%03d", i), "SKILL.md")
		text := fmt.Sprintf("---\nname: skill-%03d\ndescription: Does this and that with files of kind %d. Use when asked for it.\n---\n", i, i) +
			strings.Repeat("Read the file, then change it.\n", 100)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, old, old)); err != nil {
			b.Fatal(err)
		}
	}
	store := h.store()
	for i := range 10_000 {
		l, err := store.Create(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if err = l.Lease(b.Context()); err == nil {
			_, err = harnesstest.Write(b.Context(), l,
				event.Opened{Format: event.Format, App: "bench", Root: fmt.Sprint("/home/u/project", i%40)}, event.Switched{Route: "p/m"},
				event.Say("find the bug"), event.Asked{Turn: 1, Route: "p/m"},
				event.Replied{Parts: llm.Say("It is fixed."), Stop: llm.StopEnd, Route: "p/m"}, event.Stopped{Reason: event.ReasonDone})
		}
		path := filepath.Join(store.Dir, l.ID(), "log.jsonl")
		if err := errors.Join(err, l.Close(), os.Chtimes(path, old, old)); err != nil {
			b.Fatal(err)
		}
	}
}
