package recall

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// What the labelled set has to reach: the part of the queries for which a session
// that should come up is among the first five hits, and the mean of one through
// its rank.
const (
	leastRecall = 0.94
	leastMRR    = 0.90
)

func lines(t testing.TB, name string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

// archive indexes the labelled sessions, among others that are noise.
func archive(t testing.TB) *Index {
	t.Helper()
	x, err := Open(t.Context(), filepath.Join(t.TempDir(), "recall.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	add := func(id string, docs []Doc) {
		if err := x.Add(t.Context(), id, Mark{Seq: math.MaxInt32}, docs); err != nil {
			t.Fatal(err)
		}
	}
	l := newLanguage(4)
	id, root, at, docs, noise := "", "", time.Time{}, []Doc(nil), 0
	for _, line := range append(lines(t, "sessions.txt"), "== end 2026-01-01 /") {
		if head, ok := strings.CutPrefix(line, "== "); ok {
			if id != "" {
				add(id, docs)
				other, theirs := l.session(noise)
				add(other, theirs[:100])
				noise++
			}
			var day string
			if _, err := fmt.Sscan(head, &id, &day, &root); err != nil {
				t.Fatal(line, err)
			}
			if at, err = time.Parse(time.DateOnly, day); err != nil {
				t.Fatal(line, err)
			}
			docs = nil
			continue
		}
		kind, text, ok := strings.Cut(line, ": ")
		if !ok {
			t.Fatal(line)
		}
		docs = append(docs, Doc{
			Seq: uint64(len(docs) + 1), Kind: kind, Text: text, Root: root,
			Time: at.Add(time.Duration(len(docs)) * time.Minute),
		})
	}
	return x
}

// measure asks all labelled queries.
func measure(t testing.TB, x *Index) (recall, mrr float64, missed []string) {
	t.Helper()
	all := lines(t, "queries.txt")
	for _, line := range all {
		text, labels, ok := strings.Cut(line, " => ")
		if !ok {
			t.Fatal(line)
		}
		wanted := strings.Split(labels, ", ")
		hits, err := x.Search(t.Context(), Query{Text: text, Limit: 5})
		if err != nil {
			t.Fatal(line, err)
		}
		at := slices.IndexFunc(hits, func(h Hit) bool { return slices.Contains(wanted, h.Session) })
		if at != 0 {
			missed = append(missed, fmt.Sprintf("%s: place %d", line, at+1))
		}
		if at >= 0 {
			recall++
			mrr += 1 / float64(at+1)
		}
	}
	n := float64(len(all))
	return recall / n, mrr / n, missed
}

// TestRecall checks how well earlier text is found again.
func TestRecall(t *testing.T) {
	if n := len(lines(t, "queries.txt")); n < 40 {
		t.Fatalf("only %d queries", n)
	}
	recall, mrr, missed := measure(t, archive(t))
	t.Logf("recall@5 %.3f, MRR %.3f", recall, mrr)
	if recall < leastRecall || mrr < leastMRR {
		t.Errorf("recall@5 is %.3f and has to be %.2f, MRR is %.3f and has to be %.2f; not first:\n%s",
			recall, leastRecall, mrr, leastMRR, strings.Join(missed, "\n"))
	}
}

// BenchmarkRecall measures the same, and the time of a person's query.
func BenchmarkRecall(b *testing.B) {
	x := archive(b)
	var recall, mrr float64
	b.ResetTimer()
	for range b.N {
		recall, mrr, _ = measure(b, x)
	}
	b.ReportMetric(recall, "recall@5")
	b.ReportMetric(mrr, "MRR")
	b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N*len(lines(b, "queries.txt"))), "ms/query")
}
