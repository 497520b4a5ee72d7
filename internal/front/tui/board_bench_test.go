//go:build unix

package tui_test

import (
	"io"
	"slices"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/front/tui"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/testkit"
)

// mostBoard is how long the board of 50,000 sessions may take to the first screen that is full of
// them.
const mostBoard = 200 * time.Millisecond

// BenchmarkBoard is the time from Run to a screen full of sessions, of 50,000. Of 10,000 one waits.
func BenchmarkBoard(b *testing.B) {
	a := newApp(b)
	testkit.Archive(b, a.Store().Dir, 50_000)
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

// opensBoard opens the board until it has shown the row above the last line, and returns how long
// that took.
func opensBoard(b *testing.B, a *app.App) time.Duration {
	b.Helper()
	in, keys := io.Pipe()
	defer func() { _ = keys.Close() }()
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
