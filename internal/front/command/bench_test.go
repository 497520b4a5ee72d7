package command

// Benchmarks of the whole: a person's waiting times and a machine's costs. Every figure that a run reports is the
// median over all rounds.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/llm"
)

const longTurns = 300 // turns of a long run

// callsOf answers with one call a turn and then ends the run. The arguments
// differ each time, since a run that repeats itself is stopped.
func callsOf(name, args string) func(turn int) anthropictest.Answer {
	return func(turn int) anthropictest.Answer {
		usage := llm.Usage{Input: 100, Output: 20}
		if turn > longTurns {
			return anthropictest.Answer{Parts: llm.Say("Done."), Usage: usage}
		}
		call := llm.Call{ID: fmt.Sprintf("call_%d", turn), Name: name, Args: json.RawMessage(fmt.Sprintf(args, turn))}
		return anthropictest.Answer{Parts: llm.Parts{llm.Text{Text: "I look at the next one."}, call}, Usage: usage}
	}
}

// longRuns are the answers of runs with one call a turn, by the called tool.
func longRuns() map[string]func(turn int) anthropictest.Answer {
	return map[string]func(int) anthropictest.Answer{
		"read_file": callsOf("read_file", `{"path":"f%d.txt"}`),
		"bash_true": callsOf("bash", `{"command":"true %d"}`),
	}
}

// turnOf is the turn a request asks for.
func turnOf(body []byte) int { return bytes.Count(body, []byte(`"role":"assistant"`)) + 1 }

// smallFiles fills a workspace with the files that a long run reads.
func smallFiles(b *testing.B, dir string) {
	b.Helper()
	for n := range longTurns + 1 {
		text := strings.Repeat(fmt.Sprintf("line of file %d\n", n), 20)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d.txt", n)), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
}

// hostFor is the host the command works with, on a disk of its own. change
// sees every agent before it is used.
func hostFor(b *testing.B, dir, url string, change func(*inspan.Agent)) *inspan.Host {
	b.Helper()
	a := app.New(&config.Installation{StateDir: dir, Config: config.Config{Providers: map[string]config.Provider{
		"fake": {Kind: "anthropic", BaseURL: url},
	}}})
	o := app.Options{Model: "fake/m", Mode: "auto", Limits: inspan.Limits{Turns: -1}, Unattended: true}
	h := a.Host(o, func(text string) { b.Log(text) })
	make := h.Agent
	h.Agent = func(ctx context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
		agent, err := make(ctx, at)
		if err == nil {
			change(agent)
		}
		return agent, err
	}
	return h
}

// recorder keeps the requests that a model gets.
type recorder struct {
	llm.Model
	requests []llm.Request
}

func (r *recorder) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	r.requests = append(r.requests, req)
	return r.Model.Stream(ctx, req)
}

// BenchmarkTurn measures the harness's share of a turn with one call that reads a file: the time of a whole run, with
// the log on disk and synced, less the time that the bare adapter needs to send the same requests to the same server.
// BenchmarkCall measures commands.
func BenchmarkTurn(b *testing.B) {
	answer := longRuns()["read_file"]
	url := anthropictest.Start(b, &anthropictest.Server{Answer: func(_ *http.Request, body []byte) anthropictest.Answer {
		return answer(turnOf(body))
	}})
	work := b.TempDir()
	smallFiles(b, work)
	var whole, bare, added []float64
	for b.Loop() {
		w, rec := wholeRun(b, url, work)
		n := float64(len(rec.requests))
		alone := bareRun(b, rec)
		whole, bare = append(whole, ms(w)/n), append(bare, ms(alone)/n)
		added = append(added, ms(w-alone)/n)
	}
	b.ReportMetric(median(whole), "ms/turn")
	b.ReportMetric(median(bare), "bare-ms/turn")
	b.ReportMetric(median(added), "added-ms/turn")
	b.ReportMetric(0, "ns/op")
}

func wholeRun(b *testing.B, url, work string) (time.Duration, *recorder) {
	b.Helper()
	rec := &recorder{}
	h := hostFor(b, b.TempDir(), url, func(a *inspan.Agent) {
		rec.Model = a.Model
		a.Model = rec
	})
	s, err := h.New(b.Context(), work)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	began := time.Now()
	finish(b, s, event.Say("go"))
	took := time.Since(began)
	if st := s.Status(); st.Turns != longTurns+1 || st.Calls != longTurns {
		b.Fatalf("%d turns and %d calls", st.Turns, st.Calls)
	}
	return took, rec
}

// finish runs a session to its end, which must be a good one. No call may
// have failed.
func finish(b *testing.B, s *inspan.Session, input event.Body) {
	b.Helper()
	for e, err := range s.Run(b.Context(), input) {
		if err != nil {
			b.Fatal(err)
		}
		if end, ok := e.Body.(event.Ended); ok && end.Outcome != event.OutcomeOK {
			b.Fatalf("call ended as %s: %s", end.Outcome, end.Parts.Text())
		}
	}
	if stopped := s.Status().Stopped; stopped == nil || stopped.Reason != event.ReasonDone {
		b.Fatalf("stopped: %+v", stopped)
	}
}

func bareRun(b *testing.B, rec *recorder) time.Duration {
	b.Helper()
	began := time.Now()
	for _, req := range rec.requests {
		var reply *llm.Reply
		for chunk, err := range rec.Model.Stream(b.Context(), req) {
			if err != nil {
				b.Fatal(err)
			}
			reply = chunk.Reply
		}
		if reply == nil {
			b.Fatal("no reply")
		}
	}
	return time.Since(began)
}

// BenchmarkStart measures from the start of the process to its first request
// at the server, twenty starts a round.
func BenchmarkStart(b *testing.B) {
	var first atomic.Int64 // when the first request came
	h := newHome(b, anthropictest.Start(b, &anthropictest.Server{Answer: func(*http.Request, []byte) anthropictest.Answer {
		first.CompareAndSwap(0, time.Now().UnixNano())
		return anthropictest.Answer{Parts: llm.Say("Done.")}
	}}))
	var took []float64
	for b.Loop() {
		for range 20 {
			first.Store(0)
			cmd := h.command(b.Context(), "run", "go")
			began := time.Now()
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%v\n%s", err, out)
			}
			took = append(took, ms(time.Unix(0, first.Load()).Sub(began)))
		}
	}
	b.ReportMetric(median(took), "ms/start")
	b.ReportMetric(slices.Max(took), "worst-ms/start")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkMemory reads how much memory the process holds in the course of a
// long run.
func BenchmarkMemory(b *testing.B) {
	for name, answer := range longRuns() {
		b.Run(name, func(b *testing.B) {
			at := map[int][]float64{50: nil, 150: nil, 300: nil}
			var pid atomic.Int64
			h := newHome(b, anthropictest.Start(b, &anthropictest.Server{Answer: func(_ *http.Request, body []byte) anthropictest.Answer {
				turn := turnOf(body)
				if list, ok := at[turn]; ok {
					at[turn] = append(list, resident(b, int(pid.Load()), "VmRSS"))
				}
				return answer(turn)
			}}))
			smallFiles(b, h.work)
			for b.Loop() {
				runLong(b, h, &pid)
			}
			for turn, list := range at {
				b.ReportMetric(median(list), fmt.Sprintf("MB-at-turn-%03d", turn))
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func runLong(b *testing.B, h home, pid *atomic.Int64) {
	b.Helper()
	cmd := h.command(b.Context(), "run", "--mode", "auto", "--max-turns", "0", "--output", "stream-json", "go")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	pid.Store(int64(cmd.Process.Pid))
	if err := cmd.Wait(); err != nil {
		b.Fatalf("%v\n%.2000s", err, out.Bytes())
	}
}

// resident returns a line of /proc/PID/status, in MB.
func resident(b *testing.B, pid int, name string) float64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Skipf("memory can't be measured here: %v", err)
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				b.Error(err)
			}
			return kb / 1024
		}
	}
	b.Errorf("no %s", name)
	return 0
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func median(list []float64) float64 {
	slices.Sort(list)
	if len(list) == 0 {
		return 0
	}
	return list[len(list)/2]
}
