package command

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/kernel/session"
)

// storedEnv is the kind of store that a process is to write, and its folder.
const storedEnv = "INSPAN_BENCH_STORED"

// BenchmarkStored measures commands that read what is stored: over 10,000 sessions of 26 KB, for the first time and
// again, and over one session of 32 MB and of 1 GB, each compacted at its end. Another process writes them, because
// Linux counts the memory of a parent for its children.
func BenchmarkStored(b *testing.B) {
	if kind, dir, writes := strings.Cut(os.Getenv(storedEnv), ":"); writes {
		writeStored(b, kind, home{dir: dir, work: filepath.Join(dir, "work")})
		return
	}
	for kind, commands := range map[string][][]string{
		"sessions": {{"cost"}, {"cost"}, {"sessions", "search", "wrapped"}, {"sessions", "search", "wrapped"}, {"sessions", "list"}},
		"32 MB":    {{"context", "last"}, {"cost", "--session", "last"}, {"sessions", "fsck"}, {"resume", "last", "--model", "script", "say: done"}},
		"1 GB":     {{"context", "last"}, {"cost", "--session", "last"}, {"sessions", "fsck"}, {"resume", "last", "--model", "script", "say: done"}},
	} {
		b.Run(kind, func(b *testing.B) {
			h := newHome(b, "http://unused.invalid")
			self, err := os.Executable()
			if err != nil {
				b.Fatal(err)
			}
			writer := exec.CommandContext(b.Context(), self, "-test.run=^$", "-test.bench=^BenchmarkStored$", "-test.benchtime=1x")
			writer.Env = append(os.Environ(), storedEnv+"="+kind+":"+h.dir)
			if out, err := writer.CombinedOutput(); err != nil {
				b.Fatalf("%v\n%s", err, out)
			}
			b.ResetTimer()
			for b.Loop() {
				for _, args := range commands {
					cmd := h.command(b.Context(), args...)
					began := time.Now()
					if out, err := cmd.CombinedOutput(); err != nil {
						b.Fatalf("%v: %v\n%s", args, err, out)
					}
					state := cmd.ProcessState
					b.Logf("%-26s %6.2f s, %6.2f s of processor time, %4d MB", strings.Join(args, " "), time.Since(began).Seconds(),
						(state.UserTime() + state.SystemTime()).Seconds(), state.SysUsage().(*syscall.Rusage).Maxrss/1000)
				}
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// writeStored writes the sessions of a benchmark.
func writeStored(b *testing.B, kind string, h home) {
	s := h.store()
	s.Sync = session.SyncKill
	if events := map[string]int{"32 MB": 62_000, "1 GB": hugeLog}[kind]; events > 0 {
		writeLong(b, s.Dir, h.work, events, true)
		return
	}
	old := time.Now().Add(-time.Hour)
	for i := range 10_000 {
		l, err := s.Create(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Lease(b.Context()); err != nil {
			b.Fatal(err)
		}
		_, err = harnesstest.Write(b.Context(), l, longTalk(fmt.Sprint("/home/u/project", i%40), 50, 14)...)
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
		if path := filepath.Join(s.Dir, l.ID(), "log.jsonl"); err != nil || os.Chtimes(path, old, old) != nil {
			b.Fatal(path, err)
		}
	}
}
