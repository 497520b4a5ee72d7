package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkCall measures the cost of a turn with one shell call, without the model: a run of the command with 51 such
// turns that the offline model reads from a script, less one with a single turn. Beside measures eight calls of half a
// second in one reply, from the start of the first to the end of the last.
func BenchmarkCall(b *testing.B) {
	h := newHome(b, "http://127.0.0.1:1")
	for name, command := range map[string]string{"yolo": "true", "auto": "true", "auto/write": "echo x >f"} {
		mode, _, _ := strings.Cut(name, "/")
		b.Run(name, func(b *testing.B) {
			var wall, cpu []float64
			for b.Loop() {
				one, many := h.asked(b, mode, inARow(b, command, 1), "go"), h.asked(b, mode, inARow(b, command, 51), "go")
				wall = append(wall, ms(many.wall-one.wall)/50)
				cpu = append(cpu, ms(many.cpu-one.cpu)/50)
			}
			b.ReportMetric(median(wall), "ms/turn")
			b.ReportMetric(median(cpu), "cpu-ms/turn")
			b.ReportMetric(0, "ns/op")
		})
	}
	for _, mode := range []string{"yolo", "auto"} {
		b.Run("beside/"+mode, func(b *testing.B) {
			var took []float64
			for b.Loop() {
				took = append(took, ms(callTime(b, h.calls(b, mode, "bash: sleep 0.5\n"+strings.Repeat("+ bash: sleep 0.5\n", 7)).out, 8)))
			}
			b.ReportMetric(median(took), "ms/eight")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkFirstCall measures the first call of a session whose model thinks for 200 ms, from
// its start to its end.
func BenchmarkFirstCall(b *testing.B) {
	h := newHome(b, "http://127.0.0.1:1")
	for _, mode := range []string{"yolo", "auto"} {
		b.Run(mode, func(b *testing.B) {
			timed(b, func() float64 { return ms(callTime(b, h.calls(b, mode, "delay: 200ms\nbash: echo x >f\n").out, 1)) })
		})
	}
}

// BenchmarkPrint measures a whole run whose command prints 200 MB.
func BenchmarkPrint(b *testing.B) {
	h := newHome(b, "http://127.0.0.1:1")
	var wall, cpu []float64
	for b.Loop() {
		s := h.calls(b, "yolo", "bash: yes 0123456789abcdef | head -c 200000000\n")
		wall, cpu = append(wall, ms(s.wall)), append(cpu, ms(s.cpu))
	}
	b.ReportMetric(median(wall), "ms")
	b.ReportMetric(median(cpu), "cpu-ms")
	b.ReportMetric(0, "ns/op")
}

// inARow is a model that makes calls which the guard against repetition takes for different ones.
// What it says of tokens is not estimated, which would take longer with each turn.
func inARow(b *testing.B, command string, n int) string {
	b.Helper()
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "-- reply --\nbash: %s # %d\nusage: 1000 20\n", command, i)
	}
	out.WriteString("-- reply --\nDone.\nusage: 1000 20\n")
	file := filepath.Join(b.TempDir(), "script")
	if err := os.WriteFile(file, []byte(out.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	return "script/" + file
}

// spent is the time and the output of a run. Its processor time includes all processes that ended with it.
type spent struct {
	wall, cpu time.Duration
	out       []byte
}

// calls is a run whose calls are in its prompt.
func (h home) calls(b *testing.B, mode, prompt string) spent {
	b.Helper()
	return h.asked(b, mode, "script", prompt)
}

// asked is a run with a model.
func (h home) asked(b *testing.B, mode, model, prompt string) spent {
	b.Helper()
	cmd := h.command(b.Context(), "run", "--model", model, "--mode", mode, "--max-turns", "0", "--output", "stream-json", prompt)
	var errs strings.Builder
	cmd.Stderr = &errs
	began := time.Now()
	out, err := cmd.Output()
	took := time.Since(began)
	if err != nil {
		b.Fatalf("%v\n%s", err, errs.String())
	}
	return spent{took, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), out}
}

// callTime is the time from the start of the first of so many calls to the end of the last.
func callTime(b *testing.B, out []byte, calls int) time.Duration {
	b.Helper()
	var started, ended []time.Time
	for line := range strings.Lines(string(out)) {
		var e struct {
			Time time.Time
			Kind string
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			b.Fatal(err)
		}
		switch e.Kind {
		case "call_started", "started":
			started = append(started, e.Time)
		case "call_ended", "ended":
			ended = append(ended, e.Time)
		}
	}
	if len(started) != calls || len(ended) != calls {
		b.Fatalf("%d calls started and %d ended", len(started), len(ended))
	}
	return slices.MaxFunc(ended, time.Time.Compare).Sub(slices.MinFunc(started, time.Time.Compare))
}
