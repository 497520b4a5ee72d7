//go:build unix

package tui_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/session"
	"github.com/inspan/inspan/internal/tui"
)

// mostBoard is how long the board of 50,000 sessions may take to the first screen that is full of
// them.
const mostBoard = 200 * time.Millisecond

// BenchmarkBoard is the time from Run to a screen full of sessions, of 50,000. Of 10,000 one waits.
func BenchmarkBoard(b *testing.B) {
	a := newApp(b)
	old := time.Now().Add(-time.Hour)
	s := &session.Store{Dir: a.Store().Dir, Sync: session.SyncKill}
	for i := range 50_000 {
		if err := archived(b.Context(), s, i, old); err != nil {
			b.Fatal(err)
		}
	}
	if list, err := s.List(b.Context()); err != nil || len(list) != 50_000 { // writes the index, as every list does
		b.Fatal(len(list), err)
	}
	b.ResetTimer()
	var took []time.Duration
	for b.Loop() {
		took = append(took, opensBoard(b, a))
	}
	slices.Sort(took)
	median := took[len(took)/2]
	b.ReportMetric(float64(median.Microseconds())/1000, "ms/screen")
	if median > mostBoard {
		b.Errorf("the board is there after %v", median)
	}
}

// archived makes a session that is over, or waits for an answer.
func archived(ctx context.Context, s *session.Store, i int, at time.Time) error {
	l, err := s.Create(ctx)
	if err == nil {
		err = l.Lease(ctx)
	}
	if err != nil {
		return err
	}
	bodies := []event.Body{
		event.Opened{Format: event.Format, Root: "/w/shop"}, event.Say(fmt.Sprint("task ", i)), event.Asked{Turn: 1, Route: "p/m"},
	}
	if i%10_000 != 0 {
		bodies = append(bodies, event.Stopped{Reason: event.ReasonDone})
	}
	if _, err := harnesstest.Write(ctx, l, bodies...); err != nil {
		return err
	}
	if err := l.Close(); err != nil {
		return err
	}
	return os.Chtimes(filepath.Join(s.Dir, l.ID(), "log.jsonl"), at, at)
}

// opensBoard opens the board until it has shown the row above the last line, and returns how long
// that took.
func opensBoard(b *testing.B, a *app.App) time.Duration {
	b.Helper()
	in, keys := io.Pipe()
	defer keys.Close()
	out := &sink{}
	full := out.expect("task 49970") // far down on the screen
	board := &tui.Board{TUI: &tui.TUI{App: a, In: in, Out: out, Width: 120, Height: 40}}
	began, done := time.Now(), make(chan error, 1)
	go func() { _, _, err := board.Run(b.Context()); done <- err }()
	took := (<-full).Sub(began)
	_, _ = io.WriteString(keys, "q")
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	return took
}
