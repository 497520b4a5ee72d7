package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/llm"
)

// Turns of a day-long run, and those after which its memory is measured.
const (
	longRun  = 10_000
	warmedUp = 1_000
)

// BenchmarkLongRun drives the command for 10,000 turns in a window that is compacted again and again, and compares the
// memory at the end with the memory after the first thousand.
func BenchmarkLongRun(b *testing.B) {
	for b.Loop() {
		var turn, compactions atomic.Int32
		var pid atomic.Int64
		sizes := map[int32]float64{}
		h := newHome(b, anthropictest.Start(b, &anthropictest.Server{Answer: func(_ *http.Request, body []byte) anthropictest.Answer {
			usage := llm.Usage{Input: len(body) * 2 / 7, Output: 10}
			if bytes.Contains(body, []byte("Stop the work here.")) {
				compactions.Add(1)
				return anthropictest.Answer{
					Usage: usage,
					Parts: llm.Say("## Goal\nRead on.\n## Constraints\nnone\n## Decisions\nnone\n## Files\nbook\n## State of work\nReading.\n" +
						"## Open questions\nnone\n## Next\nThe next page.\n"),
				}
			}
			n := turn.Add(1)
			if n == warmedUp || n == longRun {
				sizes[n] = resident(b, int(pid.Load()), "VmRSS")
			}
			if n == longRun {
				return anthropictest.Answer{Parts: llm.Say("That is the end."), Usage: usage}
			}
			args, _ := json.Marshal(map[string]int{"offset": int(n)%5000 + 1, "limit": 20})
			args = append([]byte(`{"path":"book",`), args[1:]...)
			return anthropictest.Answer{Usage: usage, Parts: llm.Parts{
				llm.Text{Text: "On. "},
				llm.Call{ID: fmt.Sprint("call_", n), Name: "read_file", Args: args},
			}}
		}}))
		settings := filepath.Join(h.dir, "config", "config.toml")
		raw, err := os.ReadFile(settings)
		if err == nil {
			err = os.WriteFile(settings, append(raw, "window = 60000\n"...), 0o600)
		}
		if err == nil {
			var book strings.Builder
			for i := range 6000 {
				fmt.Fprintf(&book, "line %d of a book that is read for a day\n", i)
			}
			err = os.WriteFile(filepath.Join(h.work, "book"), []byte(book.String()), 0o600)
		}
		if err != nil {
			b.Fatal(err)
		}
		cmd := h.command(b.Context(), "run", "--max-turns", "0", "--output", "json", "read the book")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		pid.Store(int64(cmd.Process.Pid))
		if err := cmd.Wait(); err != nil || compactions.Load() == 0 {
			b.Fatalf("%v, %d compactions\n%s", err, compactions.Load(), out.Bytes())
		}
		b.ReportMetric(sizes[warmedUp], "MB-at-1000")
		b.ReportMetric(sizes[longRun], "MB-at-10000")
		b.ReportMetric(float64(compactions.Load()), "compactions")
		b.ReportMetric(0, "ns/op")
	}
}
