package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

const (
	crowd    = 1000                // sessions at once
	crowdEnv = "INSPAN_CROWD"      // where the sessions of a crowd halt: "call" or "stream"
	crowdOut = "memory of a crowd" // what the process of a crowd prints before its figures
)

// BenchmarkCrowd measures the memory of one process with a thousand sessions
// on disk, all halted at once in their tool call or in the midst of a reply.
// A process of its own holds them, so that nothing else is counted.
func BenchmarkCrowd(b *testing.B) {
	if where := os.Getenv(crowdEnv); where != "" {
		runCrowd(b, where)
		return
	}
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for _, where := range []string{"call", "stream"} {
		b.Run(where, func(b *testing.B) {
			var now, peak []float64
			for b.Loop() {
				cmd := exec.CommandContext(b.Context(), self, "-test.run=^$", "-test.bench=^BenchmarkCrowd$", "-test.benchtime=1x")
				cmd.Env = append(os.Environ(), crowdEnv+"="+where)
				out, err := cmd.CombinedOutput()
				_, figures, found := strings.Cut(string(out), crowdOut)
				var n, p float64
				if _, scanned := fmt.Sscan(figures, &n, &p); err != nil || !found || scanned != nil {
					b.Fatalf("%v\n%s", err, out)
				}
				now, peak = append(now, n), append(peak, p)
			}
			b.ReportMetric(median(now), "MB")
			b.ReportMetric(median(peak), "peak-MB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// halt holds everybody who comes until it is opened.
type halt struct {
	here sync.WaitGroup
	open chan struct{}
}

func (h *halt) wait(ctx context.Context) {
	h.here.Done()
	select {
	case <-h.open:
	case <-ctx.Done():
	}
}

// runCrowd runs the sessions, prints the figures while all are halted, and
// lets them end.
func runCrowd(b *testing.B, where string) {
	gate := &halt{open: make(chan struct{})}
	gate.here.Add(crowd)
	wait := tool.New("wait", "waits", func(ctx context.Context, _ *tool.Call, _ struct{}) (tool.Result, error) {
		if where == "call" {
			gate.wait(ctx)
		}
		return tool.Text("waited"), nil
	})
	h := hostFor(b, b.TempDir(), "http://unused.invalid", func(a *inspan.Agent) {
		a.Model = &talker{gate: gate, halts: where == "stream"}
		a.Tools = append(a.Tools, wait)
	})
	work := b.TempDir()
	var sessions sync.WaitGroup
	for range crowd {
		sessions.Go(func() {
			if err := oneOfCrowd(b.Context(), h, work); err != nil {
				b.Error(err)
				gate.here.Done() // so that no one waits for it
			}
		})
	}
	gate.here.Wait()
	fmt.Println(crowdOut, resident(b, os.Getpid(), "VmRSS"), resident(b, os.Getpid(), "VmHWM"))
	close(gate.open)
	sessions.Wait()
}

func oneOfCrowd(ctx context.Context, h *inspan.Host, work string) error {
	s, err := h.New(ctx, work)
	if err != nil {
		return err
	}
	defer s.Close()
	for _, err := range s.Run(ctx, event.Say("go")) {
		if err != nil {
			return err
		}
	}
	if st := s.Status(); st.Calls != 1 || st.Stopped == nil || st.Stopped.Reason != event.ReasonDone {
		return errors.New("a session did not end well")
	}
	return nil
}

// talker is a model that calls wait once and then talks, 4 KB in small pieces.
type talker struct {
	gate  *halt
	halts bool
}

func (*talker) Info() llm.Info {
	return llm.Info{Provider: "fake", Model: "talker", Prices: llm.Prices{{}}}
}

func (m *talker) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		reply := &llm.Reply{
			Stop: llm.StopCalls, Route: m.Info().Route(),
			Parts: llm.Parts{llm.Call{ID: "call_1", Name: "wait", Args: json.RawMessage(`{}`)}},
		}
		if len(req.Messages) > 1 {
			const word = "a word "
			text := strings.Repeat(word, 600)
			for n := range 600 {
				if n == 300 && m.halts {
					m.gate.wait(ctx)
				}
				if !yield(llm.Chunk{Text: word}, nil) {
					return
				}
			}
			reply.Stop, reply.Parts = llm.StopEnd, llm.Say(text)
		}
		yield(llm.Chunk{Reply: reply}, nil)
	}
}
