package snapshot

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// plant writes files of about 2 KiB, 20 in a folder.
func plant(b *testing.B, root string, files int) {
	b.Helper()
	text := make([]byte, 2048)
	for i := range files {
		dir := filepath.Join(root, fmt.Sprintf("area%02d", i/20%50), fmt.Sprintf("part%04d", i/20))
		if i%20 == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				b.Fatal(err)
			}
		}
		copy(text, fmt.Sprintf("file %d\n", i))
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("source_%d.go", i)), text[:1024+i%1024], 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSecondTake(b *testing.B) {
	s := &Store{Dir: filepath.Join(b.TempDir(), "store"), Root: resolved(b, b.TempDir())}
	plant(b, s.Root, 100_000)
	for range 2 { // the second hashes what was too young at the first
		if _, err := s.Take(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	runtime.GC()
	b.ReportAllocs()
	start := cpu()
	for b.Loop() {
		c, err := s.Take(b.Context())
		if err != nil || c.Files != 100_000 || c.New != 0 {
			b.Fatal(c, err)
		}
	}
	b.ReportMetric((cpu()-start)*10/float64(b.N), "cpu-ms/op")
	reportPeak(b)
}

func BenchmarkFirstTake(b *testing.B) {
	root := resolved(b, b.TempDir())
	plant(b, root, 10_000)
	for b.Loop() {
		s := &Store{Dir: filepath.Join(b.TempDir(), "store"), Root: root}
		if _, err := s.Take(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPlan is of a workspace of 10,000 files with nothing to do.
func BenchmarkPlan(b *testing.B) {
	s := &Store{Dir: filepath.Join(b.TempDir(), "store"), Root: resolved(b, b.TempDir())}
	plant(b, s.Root, 10_000)
	c, err := s.Take(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Plan(b.Context(), c.ID, []Span{{c.ID, c.ID}}); err != nil {
			b.Fatal(err)
		}
	}
}
