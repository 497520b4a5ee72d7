//go:build unix

package tui_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/front/tui"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

// sink is a terminal that only looks for bytes.
type sink struct {
	mu   sync.Mutex
	want []byte
	tail []byte
	hit  chan time.Time
	n    int
}

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n += len(p)
	if s.want != nil && bytes.Contains(append(s.tail, p...), s.want) {
		s.want = nil
		s.hit <- time.Now()
	}
	s.tail = append(s.tail[:0], p[max(0, len(p)-16):]...)
	return len(p), nil
}

// expect tells when bytes come; it is to be called before they can.
func (s *sink) expect(what string) <-chan time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.want, s.tail, s.hit = []byte(what), nil, make(chan time.Time, 1)
	return s.hit
}

func benched(b *testing.B, out io.Writer, tools []tool.Tool, steps ...script.Step) (keys io.Writer, run func() error) {
	b.Helper()
	in, typed := io.Pipe()
	b.Cleanup(func() { _ = typed.Close() })
	a := app.New(&config.Installation{StateDir: b.TempDir()})
	t := &tui.TUI{
		App: a, Root: b.TempDir(), In: in, Out: out, Width: 120, Height: 40,
		Host: func(app.Options, func(string)) *inspan.Host {
			return &inspan.Host{Dir: a.Store().Dir, Agent: func(_ context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
				return &inspan.Agent{Model: &script.Model{Steps: steps}, Tools: tools, Env: tool.Env{Root: at.Root}}, nil
			}}
		},
	}
	return typed, func() error { _, err := t.Run(context.Background()); return err }
}

// BenchmarkFirstFrame is the time from Run to the prompt on the terminal.
func BenchmarkFirstFrame(b *testing.B) {
	for b.Loop() {
		out := &sink{}
		seen := out.expect("say what to do")
		keys, run := benched(b, out, nil)
		began := time.Now()
		done := make(chan error)
		go func() { done <- run() }()
		b.ReportMetric(float64((<-seen).Sub(began).Microseconds())/1000, "ms/frame")
		_, _ = io.WriteString(keys, ctrlD)
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReply10k shows a reply of 10,000 lines as it streams in.
func BenchmarkReply10k(b *testing.B) {
	var text strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&text, "Line %d says **something** of `interest` in about as many words as usual.\n", i)
		if i%8 == 7 {
			text.WriteByte('\n')
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		out := &sink{}
		shown := out.expect("Line 9999")
		ended := make(chan error)
		keys, run := benched(b, out, nil, script.Step{Parts: llm.Say(text.String())})
		before, began := cpu(), time.Now()
		go func() { ended <- run() }()
		_, _ = io.WriteString(keys, "go\r")
		<-shown
		b.ReportMetric(cpu()-before, "cpu-s/op")
		b.ReportMetric(time.Since(began).Seconds(), "wall-s")
		_, _ = io.WriteString(keys, ctrlD)
		if err := <-ended; err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(out.n)/(1<<20), "MB-out")
	}
	b.ReportMetric(rss(), "MB-rss")
}

// BenchmarkKeyUnderProgress is how long a key takes to show while a tool reports
// 10 MB of progress a second.
func BenchmarkKeyUnderProgress(b *testing.B) {
	flood := tool.New("flood", "reports", func(ctx context.Context, c *tool.Call, _ struct{}) (tool.Result, error) {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		line := strings.Repeat("#", 100) + "\n"
		for {
			select {
			case <-ctx.Done():
				return tool.Result{}, ctx.Err()
			case <-tick.C:
				for range 3 {
					c.Progress(strings.Repeat(line, 35)) // 10 MB/s: 3 times 3.5 kB a millisecond
				}
			}
		}
	})
	flood.Effects = tool.NoEffects
	out := &sink{}
	keys, run := benched(b, out, []tool.Tool{flood}, call("flood", "{}"))
	running := out.expect("flood")
	done := make(chan error)
	go func() { done <- run() }()
	_, _ = io.WriteString(keys, "go\r")
	<-running
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		key := string(rune(0x4e00 + i%5000))
		seen := out.expect(key)
		began := time.Now()
		_, _ = io.WriteString(keys, key)
		took = append(took, (<-seen).Sub(began))
		if i%40 == 39 {
			_, _ = io.WriteString(keys, "\x15") // the line is emptied
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-p50")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms-p99")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "ms-max")
	_, _ = io.WriteString(keys, ctrlC+ctrlC+ctrlC)
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

// cpu is the processor time of this process, in seconds.
func cpu() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// rss is the memory this process holds, in MB; 0 if that can't be known.
func rss() float64 {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages float64
	_, _ = fmt.Sscan(string(raw), &size, &pages)
	return pages * float64(os.Getpagesize()) / (1 << 20)
}
