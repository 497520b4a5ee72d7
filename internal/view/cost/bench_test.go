package cost_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/internal/view/cost"
	"github.com/inspan/inspan/llm"
)

// year makes sessions of a few turns whose logs changed a while ago.
func year(tb testing.TB, s *session.Store, n int) {
	tb.Helper()
	tools := []llm.ToolSpec{{Name: "bash", Description: strings.Repeat("runs a command ", 60)}}
	for i := range n {
		bodies := []event.Body{
			event.Opened{Format: event.Format, App: "test", Root: fmt.Sprint("/home/u/project", i%40)},
			event.Switched{Route: "p/m", Tools: tools},
			event.Say(fmt.Sprint("task ", i, ": find the bug and fix it")),
		}
		for turn := range 3 {
			bodies = append(bodies,
				event.Asked{Turn: turn + 1, Route: "p/m"},
				event.Replied{
					Parts: llm.Parts{llm.Call{ID: fmt.Sprint(turn), Name: "bash"}}, Stop: llm.StopCalls, Route: "p/m",
					Usage: llm.Usage{Input: 100, CacheRead: 12000, Output: 300}, Cost: 0.0123,
				},
				event.Ended{Call: fmt.Sprint(turn), Outcome: event.OutcomeOK, Parts: llm.Say(strings.Repeat("\treturn err\n", 40))})
		}
		err := write(tb.Context(), s, append(bodies, event.Titled{Title: fmt.Sprint("Task ", i)}, event.Stopped{Reason: event.ReasonDone}))
		if err != nil {
			tb.Fatal(err)
		}
	}
}

func write(ctx context.Context, s *session.Store, bodies []event.Body) error {
	l, err := s.Create(ctx)
	if err != nil {
		return err
	}
	if err = l.Lease(ctx); err == nil {
		_, err = harnesstest.Write(ctx, l, bodies...)
	}
	at := time.Now().Add(-time.Minute)
	return errors.Join(err, l.Close(), os.Chtimes(filepath.Join(s.Dir, l.ID(), "log.jsonl"), at, at))
}

// BenchmarkYear measures a person's commands over 10,000 sessions: without the indexes, as the first time, and with
// them.
func BenchmarkYear(b *testing.B) {
	s := &session.Store{Dir: b.TempDir(), Sync: session.SyncKill}
	year(b, s, 10_000)
	spending := cost.Spending{Index: filepath.Join(b.TempDir(), "cost.index")}
	for _, c := range []struct {
		name string
		do   func(*session.Store) error
	}{
		{"last", func(s *session.Store) error { _, err := s.Resolve(b.Context(), "last"); return err }},
		{"list", func(s *session.Store) error { _, err := s.List(b.Context()); return err }},
		{"cost", func(s *session.Store) error {
			_, err := cost.Spent(b.Context(), s, spending, func(text string) { b.Error(text) })
			return err
		}},
	} {
		for _, warm := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/indexes=%v", c.name, warm), func(b *testing.B) {
				for b.Loop() {
					if !warm {
						b.StopTimer()
						for _, index := range []string{spending.Index, filepath.Join(s.Dir, "list.index")} {
							if err := os.RemoveAll(index); err != nil {
								b.Fatal(err)
							}
						}
						b.StartTimer()
					}
					if err := c.do(&session.Store{Dir: s.Dir, Sync: session.SyncKill}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// grown are the events of one session that was never compacted.
func grown(n int) []event.Event {
	bodies := opening()
	for i := 0; len(bodies) < n; i++ {
		id := fmt.Sprint(i)
		used := llm.Usage{CacheRead: 100 * i, CacheWrite: 150, Output: 40}
		bodies = append(bodies, event.Asked{Turn: i}, by("anthropic/claude-opus-5-5", used, 0.01, read(id, id)),
			event.Started{Call: id}, ended(id, strings.Repeat("\treturn err\n", 40)))
	}
	var events []event.Event
	for e, err := range log("s", bodies...) {
		if err != nil {
			panic(err)
		}
		events = append(events, e)
	}
	return events
}

// BenchmarkCauses holds that the causes of a session's bills take time in proportion to its length.
func BenchmarkCauses(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 40_000} {
		events := grown(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				r := cost.NewRecorder("s")
				for _, e := range events {
					r.Apply(e)
				}
				r.Tallies()
			}
		})
	}
}
