package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// BenchmarkEach measures the cost of an item of a workflow, 16 at once, and the memory of the whole run, for few and
// for many items.
func BenchmarkEach(b *testing.B) {
	for _, items := range []int{250, 1000} {
		b.Run(fmt.Sprint(items), func(b *testing.B) {
			list, err := json.Marshal(make([]int, items))
			if err != nil {
				b.Fatal(err)
			}
			var took, peak []float64
			for b.Loop() {
				h := newHome(b, "http://127.0.0.1:1") // no one is asked
				const flow = "name: each\nlimits: {concurrency: 16}\nsteps:\n  - id: all\n    kind: each\n    over: %s\n" +
					"    steps:\n      - {id: one, kind: run, run: 'true'}\n"
				if err := os.WriteFile(filepath.Join(h.work, "each.yaml"), fmt.Appendf(nil, flow, list), 0o600); err != nil {
					b.Fatal(err)
				}
				cmd := h.command(b.Context(), "workflow", "run", "--mode", "auto", "each.yaml")
				began := time.Now()
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
				took = append(took, ms(time.Since(began))/float64(items))
				peak = append(peak, float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)/1000)
			}
			b.ReportMetric(median(took), "ms/item")
			b.ReportMetric(median(peak), "MB-peak")
			b.ReportMetric(0, "ns/op")
		})
	}
}
