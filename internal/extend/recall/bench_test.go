package recall

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The benchmarks build an index of 50 sessions with 1,000 events each. To
// measure the size that the goal is about:
//
//	RECALL_SESSIONS=1000 RECALL_KEEP=/var/tmp/recall go test -run '^$' -bench . -benchtime 2000x ./internal/extend/recall
//
// RECALL_KEEP names a folder in which what was built stays for the next time.
const eventsPerSession = 1000

func sessions() int {
	n, err := strconv.Atoi(os.Getenv("RECALL_SESSIONS"))
	if err != nil {
		return 50
	}
	return n
}

// language makes text that is distributed as that of sessions is: few words are
// very common, most are rare, and there are paths, names in code and numbers.
type language struct {
	*rand.Rand
	words []string
	sums  []float64
}

const everyday = `the to a of and in is it that for on this with be as not have are test file error from if but we can function code should
 return run build fix change use add line now new when all failed type call value there which was will need one name set string list config
 path command result output package module user data index server client request response check make first still only branch commit merge
 version update remove write read open close start stop token session cache database query table column key message event log state
 handler timeout retry lock thread process memory parse format encode decode render template style button page form field validate schema
 migration deploy container image registry secret permission policy limit budget cost price payment order invoice customer account email`

func newLanguage(seed uint64) *language {
	l := &language{Rand: rand.New(rand.NewPCG(seed, 7)), words: strings.Fields(everyday)}
	parts := strings.Fields("ba be bi co cu da de di fo fu ga ge ha he in ka ke li lo ma me mi na no or pa pe ra re ri sa se si ta te to " +
		"tra u ul un va ve vi wa wo ya zo ex con pro sub ter")
	for len(l.words) < 60_000 {
		w := ""
		for len(w) < 4 || l.IntN(3) > 0 {
			w += parts[l.IntN(len(parts))]
		}
		l.words = append(l.words, w)
	}
	sum := 0.0
	for i := range l.words {
		sum += 1 / math.Pow(float64(i)+2.7, 1.05)
		l.sums = append(l.sums, sum)
	}
	return l
}

func (l *language) word() string {
	at, _ := slices.BinarySearch(l.sums, l.Float64()*l.sums[len(l.sums)-1])
	return l.words[min(at, len(l.words)-1)]
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func (l *language) thing() string {
	switch l.IntN(24) {
	case 0:
		return fmt.Sprintf("internal/%s/%s_%s.go:%d", l.word(), l.word(), l.word(), l.IntN(600))
	case 1:
		return l.word() + title(l.word()) + title(l.word()) + "()"
	case 2:
		return l.word() + "_" + l.word()
	case 3:
		return strconv.Itoa(l.IntN(10_000))
	case 4:
		if l.IntN(4) == 0 {
			return fmt.Sprintf("%07x", l.Uint32()>>4)
		}
	}
	return l.word()
}

func (l *language) text(words int) string {
	var b strings.Builder
	for range words {
		b.WriteString(l.thing())
		b.WriteByte(" \n,.    "[l.IntN(8)])
		b.WriteByte(' ')
	}
	return b.String()
}

// long is a number of words: mostly about the median, at times far more.
func (l *language) long(median float64) int {
	return min(400, max(2, int(median*math.Exp(l.NormFloat64()*0.9))))
}

func (l *language) session(n int) (string, []Doc) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n) * 8 * time.Hour)
	id, root := at.Format("20060102-150405")+fmt.Sprintf("-s%03d", n), fmt.Sprint("/home/ann/project", l.IntN(20))
	var docs []Doc
	for i := range eventsPerSession {
		d := Doc{Seq: uint64(i + 1), Time: at.Add(time.Duration(i) * 10 * time.Second), Root: root}
		switch r := l.IntN(100); {
		case i == 0:
			d.Kind, d.Text = Title, l.text(6)
		case r < 4:
			d.Kind, d.Text = Said, l.text(l.long(14))
		case r < 26:
			d.Kind, d.Text = Replied, l.text(l.long(18))
		case r < 60:
			d.Kind, d.Text = Call, l.text(l.long(7))
		case r < 98:
			d.Kind, d.Text = Result, l.text(l.long(22))
		default:
			d.Kind, d.Text = Note, l.text(8)
		}
		docs = append(docs, d)
	}
	return id, docs
}

// built returns an index of the size that is asked for.
func built(b *testing.B) *Index {
	b.Helper()
	dir := os.Getenv("RECALL_KEEP")
	if dir == "" {
		dir = b.TempDir()
	}
	x, err := Open(context.Background(), filepath.Join(dir, fmt.Sprintf("%d.db", sessions())))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = x.Close() })
	marks, err := x.Marks(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if len(marks) == sessions() {
		return x
	}
	start := time.Now()
	l, bytes := newLanguage(1), 0
	for n := range sessions() {
		id, docs := l.session(n)
		for _, d := range docs {
			bytes += len(d.Text)
		}
		if err := x.Add(b.Context(), id, Mark{Seq: eventsPerSession}, docs); err != nil {
			b.Fatal(err)
		}
	}
	took := time.Since(start)
	b.Logf("indexed %d documents, %d MB of text, in %.1f s: %.0f a second", sessions()*eventsPerSession, bytes>>20, took.Seconds(),
		float64(sessions()*eventsPerSession)/took.Seconds())
	return x
}

// queries are of the kinds that there are.
func queries(l *language) []struct {
	name string
	next func() Query
} {
	rare := func() string { return l.words[3000+l.IntN(50_000)] }
	common := func() string { return strings.Fields(everyday)[20+l.IntN(60)] }
	said := func(f func() string) func() Query { return func() Query { return Query{Text: f()} } }
	return []struct {
		name string
		next func() Query
	}{
		{"rare word", said(rare)},
		{"common word", said(common)},
		{"rare and common", said(func() string { return rare() + " " + common() })},
		{"two common", said(func() string { return common() + " " + common() })},
		{"five common", said(func() string { return strings.Join([]string{common(), common(), common(), common(), common()}, " ") })},
		{"two rare, so loosened", said(func() string { return rare() + " " + rare() })},
		{"question", said(func() string {
			return "why did we " + common() + " the " + rare() + " in " + common() + " and " + l.word() + "?"
		})},
		{"none", said(func() string { return "zzyzx" + strconv.Itoa(l.IntN(1000)) + " qqfrob" })},
		{"in a row", said(func() string { return `"` + common() + " " + common() + `"` })},
		{"snake case", said(func() string { return common() + "_" + common() })},
		{"beginning", said(func() string { return (rare() + "e")[:4] + "*" })},
		{"of a root", func() Query {
			return Query{Text: common() + " " + common(), Root: fmt.Sprint("/home/ann/project", l.IntN(20))}
		}},
		{"of a kind", func() Query { return Query{Text: common() + " " + common(), Kinds: []string{Said, Title}} }},
		{"of a week", func() Query {
			since := time.Date(2026, 1, 1+l.IntN(sessions()/3), 0, 0, 0, 0, time.UTC)
			return Query{Text: common() + " " + l.word(), Since: since, Until: since.AddDate(0, 0, 7)}
		}},
		{"elsewhere", func() Query { return Query{Text: common(), Not: "20260101-000000-s000"} }},
	}
}

// BenchmarkSearch measures searches of every kind, and all of them mixed.
func BenchmarkSearch(b *testing.B) {
	x := built(b)
	if info, err := os.Stat(x.Path); err == nil {
		b.Logf("%s: %d MB", filepath.Base(x.Path), info.Size()>>20)
	}
	l := newLanguage(2)
	all := queries(l)
	mixed := func() Query { return all[l.IntN(len(all))].next() }
	for _, kind := range append(all, struct {
		name string
		next func() Query
	}{"mixed", mixed}) {
		b.Run(strings.ReplaceAll(kind.name, " ", "_"), func(b *testing.B) {
			var took []time.Duration
			found := 0
			for range b.N {
				q := kind.next()
				start := time.Now()
				hits, err := x.Search(b.Context(), q)
				took = append(took, time.Since(start))
				if err != nil {
					b.Fatal(q, err)
				}
				found += len(hits)
			}
			slices.Sort(took)
			at := func(p int) float64 { return took[min(len(took)-1, len(took)*p/100)].Seconds() * 1000 }
			b.ReportMetric(at(50), "p50-ms")
			b.ReportMetric(at(95), "p95-ms")
			b.ReportMetric(at(100), "max-ms")
			b.ReportMetric(float64(found)/float64(b.N), "hits")
		})
	}
}

// BenchmarkFirstSearch measures the search of a process that has just opened the
// index.
func BenchmarkFirstSearch(b *testing.B) {
	path := built(b).Path
	l := newLanguage(5)
	all := queries(l)
	var took []time.Duration
	for range b.N {
		q := all[l.IntN(len(all))].next()
		start := time.Now()
		x, err := Open(b.Context(), path)
		if err == nil {
			_, err = x.Search(b.Context(), q)
		}
		took = append(took, time.Since(start))
		if err := errors.Join(err, x.Close()); err != nil {
			b.Fatal(q, err)
		}
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds()*1000, "p50-ms")
	b.ReportMetric(took[len(took)*95/100].Seconds()*1000, "p95-ms")
}

// BenchmarkAdd measures how fast sessions are indexed.
func BenchmarkAdd(b *testing.B) {
	l := newLanguage(3)
	x, err := Open(b.Context(), filepath.Join(b.TempDir(), "recall.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = x.Close() })
	var ids []string
	var all [][]Doc
	for n := range 20 {
		id, docs := l.session(n)
		ids, all = append(ids, id), append(all, docs)
	}
	b.ResetTimer()
	for i := range b.N {
		n := i % len(ids)
		if err := x.Add(b.Context(), fmt.Sprint(ids[n], i), Mark{Seq: eventsPerSession}, all[n]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*eventsPerSession)/b.Elapsed().Seconds(), "docs/s")
}

// BenchmarkForget measures how long it takes to forget a session, which rewrites all others.
func BenchmarkForget(b *testing.B) {
	x := built(b)
	l := newLanguage(6)
	_, docs := l.session(0)
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		if err := x.Add(b.Context(), "brief", Mark{Seq: 1}, docs[:1]); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if err := x.Forget(b.Context(), "brief"); err != nil {
			b.Fatal(err)
		}
	}
}
