package recall_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/extend/recall"
	"github.com/inspan/inspan/internal/testkit"
)

const childEnv = "RECALL_TEST_CHILD"

func open(t testing.TB, path string) *recall.Index {
	t.Helper()
	x, err := recall.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

func fresh(t testing.TB) *recall.Index {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "sub", "recall ?#%41.db"))
}

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// talk adds a session in which each text was said, an hour after the one before.
func talk(t testing.TB, x *recall.Index, session string, texts ...string) {
	t.Helper()
	var docs []recall.Doc
	for i, text := range texts {
		docs = append(docs, recall.Doc{
			Seq: uint64(i + 1), Time: noon.Add(time.Duration(i) * time.Hour),
			Root: "/w/" + session, Kind: recall.Said, Text: text,
		})
	}
	if err := x.Add(t.Context(), session, recall.Mark{Seq: uint64(len(texts)), Size: 1}, docs); err != nil {
		t.Fatal(err)
	}
}

func search(t testing.TB, x *recall.Index, q recall.Query) []recall.Hit {
	t.Helper()
	hits, err := x.Search(t.Context(), q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	return hits
}

// found lists the texts of hits.
func found(hits []recall.Hit) []string {
	out := []string{}
	for _, h := range hits {
		out = append(out, h.Text)
	}
	return out
}

func TestWords(t *testing.T) {
	x := fresh(t)
	texts := []string{
		"The ErrBusy sentinel of internal/kernel/session/lease.go:42", "snake_case names and snake case prose", "parseHTTPError wraps",
		"Café Größe naïve Łódź", "日本語のテスト",
		"the tests were failing", "run go build ./... first", "commit fb7b6cc9 of main", "a b c", "index.go is indexed", "don't panic",
		"decomposed cafe\u0301s, 中文 text",
	}
	talk(t, x, "s", texts...)
	for query, want := range map[string][]int{
		"errbusy":                          {0},
		"busy":                             {0},
		"lease.go":                         {0},
		"internal/kernel/session":          {0},
		"internal/kernel/session/lease.go": {0},
		"session internal":                 {0},
		`"session internal"`:               {0}, // no document has them in this order, so that one has them in any
		"snake_case":                       {1},
		"snake":                            {1},
		`"snake case prose"`:               {1},
		"httperror":                        {2},
		"parsHTTPErorr":                    {2},
		"pannic":                           {10},
		"sentinal value":                   {0},
		"decomposition":                    {11},
		"testsuite":                        {5},
		"parsehttperror":                   {2},
		"HTTP":                             {2},
		"cafe":                             {3, 11},
		"CAFÉ":                             {3, 11},
		"文":                                {11},
		"中文":                               {11},
		"grosse":                           {},
		"große":                            {3},
		"lodz":                             {3},
		"日本":                               {4},
		"本語":                               {4},
		"日本語":                              {4},
		"本":                                {4},
		"ト":                                {4},
		"日語":                               {},
		"test":                             {5},
		"failed":                           {5},
		"fails tested":                     {5},
		"what is failing with the tests":   {5},
		"fb7b*":                            {7},
		"fb7b6":                            {7},
		"fb7*":                             {},
		"indexing":                         {9},
		"don't":                            {10},
		"a":                                {8},
		"":                                 {},
		" \t\"\" * ^":                      {},
		"the":                              {0, 5},
	} {
		var names []string
		for _, i := range want {
			names = append(names, texts[i])
		}
		got := found(search(t, x, recall.Query{Text: query}))
		slices.Sort(got)
		slices.Sort(names)
		if !slices.Equal(got, names) {
			t.Errorf("%q finds %q, want %q", query, got, names)
		}
	}
}

// TestAllBeforeSome checks that documents with all words are all there is if there are any, and that else those with
// more words come first.
func TestAllBeforeSome(t *testing.T) {
	x := fresh(t)
	talk(t, x, "s", "alpha beta gamma", "alpha beta delta", "alpha", "beta epsilon zeta", "other words")
	for query, want := range map[string][]string{
		"alpha beta":         {"alpha beta delta", "alpha beta gamma"},
		"gamma alpha":        {"alpha beta gamma"},
		"alpha beta missing": {"alpha beta delta", "alpha beta gamma", "alpha", "beta epsilon zeta"},
		`"beta alpha" gamma`: {"alpha beta gamma", "alpha", "alpha beta delta", "beta epsilon zeta"}, // not in a row
		`"alpha beta"`:       {"alpha beta delta", "alpha beta gamma"},
		`"alpha gamma"`:      {"alpha beta gamma", "alpha", "alpha beta delta"},
		"alpha zeta":         {"beta epsilon zeta", "alpha", "alpha beta delta", "alpha beta gamma"},
		"missing absent":     {},
	} {
		got := found(search(t, x, recall.Query{Text: query}))
		if len(want) > 2 && len(got) == len(want) { // after the first ones the order says little
			slices.Sort(got[1:])
			slices.Sort(want[1:])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
}

// TestLoosenedToTheEnd checks that documents found by most words do not crowd out those found by one, as long as there
// is room.
func TestLoosenedToTheEnd(t *testing.T) {
	x := fresh(t)
	talk(t, x, "s", "aa bb cc", "dd", "aa", "bb cc")
	if got := found(search(t, x, recall.Query{Text: "aa bb cc dd", Limit: 3})); !slices.Contains(got, "dd") || got[0] != "aa bb cc" {
		t.Errorf("%q", got)
	}
}

func TestFilters(t *testing.T) {
	x := fresh(t)
	talk(t, x, "one", "word 0", "word 1", "word 2")
	talk(t, x, "two", "word 3")
	docs := []recall.Doc{
		{Seq: 2, Time: noon, Root: "/w/two", Kind: recall.Result, Text: "word 4", Untrusted: true},
		{Seq: 2, Time: noon, Root: "/w/two", Kind: recall.Title, Text: "word 5"},
	}
	if err := x.Add(t.Context(), "two", recall.Mark{Seq: 2}, docs); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		q    recall.Query
		want string
	}{
		{recall.Query{}, "012345"},
		{recall.Query{Root: "/w/one"}, "012"},
		{recall.Query{Root: "/w"}, ""},
		{recall.Query{Session: "two"}, "345"},
		{recall.Query{Session: "three"}, ""},
		{recall.Query{Session: "two", Kinds: []string{recall.Said, recall.Result}}, "34"},
		{recall.Query{Session: "two", Not: "two"}, ""},
		{recall.Query{Not: "two"}, "012"},
		{recall.Query{Not: "three"}, "012345"},
		{recall.Query{Kinds: []string{recall.Result, recall.Title}}, "45"},
		{recall.Query{Kinds: []string{recall.Title}}, "5"},
		{recall.Query{Kinds: []string{"rumour"}}, ""},
		{recall.Query{Kinds: []string{"rumour", recall.Title}}, "5"},
		{recall.Query{Since: noon.Add(time.Hour)}, "12"},
		{recall.Query{Until: noon.Add(time.Hour)}, "0345"},
		{recall.Query{Since: noon.Add(time.Hour), Until: noon.Add(2 * time.Hour)}, "1"},
		{recall.Query{Root: "/w/two", Until: noon.Add(time.Minute)}, "345"},
		{recall.Query{Since: noon.AddDate(1, 0, 0)}, ""},
	} {
		row.q.Text = "word"
		got := []byte{}
		for _, text := range found(search(t, x, row.q)) {
			got = append(got, strings.TrimPrefix(text, "word ")...)
		}
		slices.Sort(got)
		if string(got) != row.want {
			t.Errorf("%+v finds %s, want %s", row.q, got, row.want)
		}
	}
	hits := search(t, x, recall.Query{Text: "word", Kinds: []string{recall.Result}})
	want := docs[0]
	want.Session = "two"
	if diff := cmp.Diff(want, hits[0].Doc); diff != "" || hits[0].Snippet != "word 4" || hits[0].Score <= 0 {
		t.Error(diff, hits)
	}
	if n := len(search(t, x, recall.Query{Text: "word", Limit: 2})); n != 2 {
		t.Error(n)
	}
}

// TestTimeOfMany checks that a search within some time finds all that is there, however the documents lie.
func TestTimeOfMany(t *testing.T) {
	x := fresh(t)
	const each = 3000
	for _, month := range []int{2, 0, 1} { // indexed in another order than they came about
		var docs []recall.Doc
		for i := range each {
			text := fmt.Sprint("filler ", i)
			if i == 0 || i == each-1 {
				text = fmt.Sprintf("needle %d of month %d", i, month)
			}
			docs = append(docs, recall.Doc{
				Seq: uint64(i + 1), Time: noon.AddDate(0, month, 0).Add(time.Duration(i) * time.Minute),
				Kind: recall.Said, Text: text,
			})
		}
		if err := x.Add(t.Context(), fmt.Sprint(month), recall.Mark{Seq: each}, docs); err != nil {
			t.Fatal(err)
		}
	}
	for month := range 3 {
		since := noon.AddDate(0, month, 0)
		got := found(search(t, x, recall.Query{Text: "needle", Since: since, Until: since.Add(each * time.Minute)}))
		slices.Sort(got)
		if diff := cmp.Diff([]string{fmt.Sprintf("needle 0 of month %d", month), fmt.Sprintf("needle %d of month %d", each-1, month)},
			got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestRank(t *testing.T) {
	x := fresh(t)
	talk(t, x, "a", "rare one and common", "common and common and common")
	for i := range 30 {
		talk(t, x, fmt.Sprint("c", i), fmt.Sprint("common filler ", i))
	}
	talk(t, x, "long", "needle "+strings.Repeat("hay ", 200), "needle")
	if got := found(search(t, x, recall.Query{Text: "rare absent common"})); got[0] != "rare one and common" {
		t.Errorf("a rare word counts no more than a common one: %q", got)
	}
	if got := found(search(t, x, recall.Query{Text: "needle"})); got[0] != "needle" {
		t.Errorf("a long text comes first: %q", got)
	}
	if got := found(search(t, x, recall.Query{Text: "common", Session: "a"})); got[0] != "common and common and common" {
		t.Errorf("%q", got)
	}
	old := []recall.Doc{
		{Seq: 1, Time: noon.AddDate(0, -6, 0), Kind: recall.Replied, Text: "same thing x"},
		{Seq: 2, Time: noon, Kind: recall.Replied, Text: "same thing y"},
		{Seq: 3, Time: noon, Kind: recall.Result, Text: "same thing z"},
	}
	slices.Reverse(old[:2])
	if err := x.Add(t.Context(), "age", recall.Mark{Seq: 3}, old); err != nil {
		t.Fatal(err)
	}
	if got := found(search(t, x, recall.Query{Text: "same thing"})); !slices.Equal(got,
		[]string{"same thing y", "same thing x", "same thing z"}) {
		t.Errorf("%q", got)
	}
}

// TestManySessionsAreHeard checks that one session can't fill the list, and that equal texts come once.
func TestManySessionsAreHeard(t *testing.T) {
	x := fresh(t)
	talk(t, x, "first", "quux said once here")
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprint("quux ", i))
	}
	talk(t, x, "second", append(many, "quux 0", "quux 0")...)
	hits := search(t, x, recall.Query{Text: "quux", Limit: 5})
	if len(hits) != 5 || hits[3].Session != "first" || hits[4].Session != "second" {
		t.Errorf("%q", found(hits))
	}
	if got := found(search(t, x, recall.Query{Text: "quux", Limit: 100, Session: "second"})); len(got) != 20 {
		t.Errorf("%q", got)
	}
}

func TestReplays(t *testing.T) {
	x := fresh(t)
	ctx := t.Context()
	docs := []recall.Doc{{Seq: 1, Kind: recall.Said, Text: "one"}, {Seq: 2, Kind: recall.Said, Text: "two"}}
	for range 3 {
		if err := x.Add(ctx, "s", recall.Mark{Seq: 2, Size: 20}, docs); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Add(ctx, "s", recall.Mark{Seq: 1, Size: 10}, docs[:1]); err != nil {
		t.Fatal(err)
	}
	if marks, err := x.Marks(ctx); err != nil || marks["s"] != (recall.Mark{Seq: 2, Size: 20}) {
		t.Error("the mark went back:", marks, err)
	}
	if err := x.Add(ctx, "s", recall.Mark{Seq: 3, Size: 30}, append(docs, recall.Doc{Seq: 3, Kind: recall.Note, Text: "three"},
		recall.Doc{Seq: 3, Kind: recall.Note, Text: " \u200b "})); err != nil {
		t.Fatal(err)
	}
	if got := found(search(t, x, recall.Query{Text: "one two three absent"})); len(got) != 3 {
		t.Errorf("%q", got)
	}
	if n, _ := inside(t, x); n != 3 {
		t.Errorf("%d documents are stored", n)
	}
	marks, err := x.Marks(ctx)
	if diff := cmp.Diff(map[string]recall.Mark{"s": {Seq: 3, Size: 30}}, marks); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for what, err := range map[string]error{
		"no session": x.Add(ctx, "", recall.Mark{}, nil),
		"a kind":     x.Add(ctx, "t", recall.Mark{Seq: 1}, []recall.Doc{{Seq: 1, Kind: "rumour", Text: "x"}}),
		"the mark":   x.Add(ctx, "t", recall.Mark{Seq: 1}, []recall.Doc{{Seq: 2, Kind: recall.Said, Text: "x"}}),
	} {
		if err == nil {
			t.Error(what, "is taken")
		}
	}
	if marks, _ := x.Marks(ctx); len(marks) != 1 {
		t.Error(marks)
	}
}

// impatient is a context that ends after it was asked for so many times.
type impatient struct {
	context.Context
	left atomic.Int64
}

func (c *impatient) Err() error {
	if c.left.Add(-1) < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// TestHalfAnAdd checks that an Add that is cut off, wherever, leaves nothing.
func TestHalfAnAdd(t *testing.T) {
	x := fresh(t)
	var docs []recall.Doc
	for i := range 50 {
		docs = append(docs, recall.Doc{Seq: uint64(i + 1), Kind: recall.Said, Text: fmt.Sprint("word number ", i)})
	}
	cut := 0
	for ; ; cut++ {
		ctx := &impatient{Context: t.Context()}
		ctx.left.Store(int64(cut))
		err := x.Add(ctx, "s", recall.Mark{Seq: 50}, docs)
		if err == nil {
			break
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if marks, err := x.Marks(t.Context()); err != nil || len(marks) > 0 {
			t.Fatal(cut, marks, err)
		}
		if got := search(t, x, recall.Query{Text: "word"}); len(got) > 0 {
			t.Fatal(cut, len(got))
		}
	}
	if cut < 50 {
		t.Errorf("an Add of 50 documents was cut off at %d places only", cut)
	}
	if _, err := x.Search(&impatient{Context: t.Context()}, recall.Query{Text: "word"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if docs, _ := inside(t, x); docs != 50 {
		t.Error(docs)
	}
}

// inside looks into the file itself: how many documents there are, and how many of them hold
// each word.
func inside(t testing.TB, x *recall.Index) (docs int, words map[string]int) {
	t.Helper()
	docs, words, err := recall.Inside(x)
	if err != nil {
		t.Fatal(err)
	}
	return docs, words
}

// size is that of the file and of its log.
func size(x *recall.Index) (n int64) {
	for _, end := range []string{"", "-wal"} {
		if info, err := os.Stat(x.Path + end); err == nil {
			n += info.Size()
		}
	}
	return n
}

func TestForget(t *testing.T) {
	x := fresh(t)
	var many []string
	for i := range 2100 {
		many = append(many, fmt.Sprintf("word_%d in parseThing%d", i%7, i))
	}
	talk(t, x, "gone", many...)
	talk(t, x, "kept", "word_1 stays")
	before := size(x)
	for range 2 {
		if err := x.Forget(t.Context(), "gone"); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Forget(t.Context(), "never there"); err != nil {
		t.Error(err)
	}
	if got := found(search(t, x, recall.Query{Text: "word thing"})); !slices.Equal(got, []string{"word_1 stays"}) {
		t.Errorf("%q", got)
	}
	if marks, err := x.Marks(t.Context()); err != nil || len(marks) != 1 {
		t.Error(marks, err)
	}
	// Nothing is left in the index of words either, nor in the file.
	if docs, words := inside(t, x); docs != 1 || len(words) != 6 || words["stay"] != 1 {
		t.Error(docs, words)
	}
	data, err := os.ReadFile(x.Path)
	if err != nil || bytes.Contains(data, []byte("parseThing")) || bytes.Contains(data, []byte("gone")) {
		t.Error("what was forgotten is still in the file", err)
	}
	if after := size(x); after > before/4 {
		t.Errorf("the file had %d bytes, and has %d", before, after)
	}
	talk(t, x, "gone", "word_1 again")
	if got := found(search(t, x, recall.Query{Text: "again"})); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

// TestForgetLittle checks that forgotten text is overwritten in place, if the file stays.
func TestForgetLittle(t *testing.T) {
	x := fresh(t)
	long := strings.Repeat(" -", 1500)
	talk(t, x, "kept", "one"+long, "two"+long, "three"+long)
	talk(t, x, "little", "xylophone")
	if err := x.Forget(t.Context(), "little"); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(x.Path); err != nil || bytes.Contains(data, []byte("xylophone")) || !bytes.Contains(data, []byte("three")) {
		t.Error("what was forgotten is still in the file", err)
	}
}

// TestManyWords checks that a query of many unrelated words is accepted, and that excess words are not read.
func TestManyWords(t *testing.T) {
	x := fresh(t)
	var texts []string
	for i := range 40 {
		texts = append(texts, fmt.Sprintf("term%d", i))
	}
	talk(t, x, "s", texts...)
	for _, q := range []string{strings.Join(texts, " "), strings.Join(texts, "/"), `"` + strings.Join(texts[:8], " ") + `" "` +
		strings.Join(texts[8:16], " ") + `" ` + strings.Join(texts[16:], "_"), strings.Join(texts, "* "), strings.Join(texts[:11], " ") +
		" term11/term39"} {
		got := found(search(t, x, recall.Query{Text: q, Limit: 100}))
		if !slices.Contains(got, "term0") || slices.Contains(got, "term39") {
			t.Errorf("%q finds %q", q, got)
		}
	}
}

// TestTooManyWords checks that words after the first twelve are not looked for.
func TestTooManyWords(t *testing.T) {
	x := fresh(t)
	talk(t, x, "s", "needle")
	absent := strings.Fields("one two three four five six seven eight nine ten eleven twelve")
	eleven := strings.Join(absent[:11], " ")
	for q, want := range map[string]int{eleven + " needle": 1, eleven +
		" twelve needle": 0, eleven + " needle/twelve": 1, eleven + " twelve/needle": 0} {
		if got := search(t, x, recall.Query{Text: q}); len(got) != want {
			t.Errorf("%s: %q", q, found(got))
		}
	}
}

func TestClosed(t *testing.T) {
	x, err := recall.Open(t.Context(), filepath.Join(t.TempDir(), "recall.db"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := x.Search(t.Context(), recall.Query{Text: "a"}); err == nil {
		t.Error("a closed index was searched")
	}
}

func TestLongTexts(t *testing.T) {
	x := fresh(t)
	body := strings.Repeat("filler ", 2000)
	talk(t, x, "s", "alpha "+body+" omega \x1b[31mred\u202e "+strings.Repeat("é", 4000)+" zulu")
	got := search(t, x, recall.Query{Text: "alpha zulu"})
	if len(got) != 1 || len(got[0].Text) > 5<<10 || strings.ContainsAny(got[0].Text, "\x1b\u202e") ||
		!strings.HasPrefix(got[0].Text, "alpha") || !strings.HasSuffix(got[0].Text, "zulu") {
		t.Fatalf("%q", found(got))
	}
	if s := got[0].Snippet; len(s) > 310 || strings.Contains(s, "\n") {
		t.Errorf("%d %q", len(s), s)
	}
	talk(t, x, "t", body[:3000]+"the needle in\nthe   haystack "+body[:3000])
	if s := search(t, x, recall.Query{Text: "needle haystack"})[0].Snippet; !strings.Contains(s, "the needle in the haystack") ||
		!strings.HasPrefix(s, "… ") || !strings.HasSuffix(s, " …") || len(s) > 310 {
		t.Errorf("%d %q", len(s), s)
	}
	if got := search(t, x, recall.Query{Text: strings.Repeat("é", 4000) + strings.Repeat(" needle", 4000)}); len(got) > 1 {
		t.Error(len(got))
	}
}

// TestDamage checks that a file that is not an index is moved aside, whatever it is.
func TestDamage(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "recall.db")
	x := open(t, whole)
	for i := range 50 {
		talk(t, x, fmt.Sprint("s", i), strings.Repeat(fmt.Sprint("word", i, " and more text "), 50))
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(whole)
	if err != nil || len(good) < 40<<10 {
		t.Fatal(len(good), err)
	}
	other := append([]byte("SQLite format 3\x00\x10\x00"), make([]byte, 8000)...)
	later := slices.Clone(good)
	later[63]++ // its version
	for what, data := range map[string][]byte{
		"text": []byte(strings.Repeat("no database\n", 500)), "zeros of SQLite": other, "of another version": later,
		"half a header": good[:50],
	} {
		path := filepath.Join(t.TempDir(), "recall.db")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		x := open(t, path)
		if moved, err := os.ReadFile(x.Aside); err != nil || !slices.Equal(moved, data) {
			t.Error(what, "is not kept aside", err)
		}
		talk(t, x, "s", "hello")
		if got := search(t, x, recall.Query{Text: "hello"}); len(got) != 1 {
			t.Error(what, got)
		}
	}
	// Damage further in is met by a search or an Add, and gone after the next Open.
	path := filepath.Join(t.TempDir(), "recall.db")
	spoil := func(from, to int) {
		t.Helper()
		bad := slices.Clone(good)
		for i := from; i < to; i++ {
			bad[i] ^= 0x5a
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	spoil(4096, len(good)/2)
	x, err = recall.Open(t.Context(), path)
	if err != nil || x.Aside != "" {
		t.Fatal(err)
	}
	if _, err := x.Search(t.Context(), recall.Query{Text: "word1"}); !errors.Is(err, recall.ErrDamaged) {
		t.Error(err)
	}
	if err := errors.Join(x.Close(), os.Remove(path+".damaged")); err != nil {
		t.Fatal(err)
	}
	spoil(0, 0)
	x, err = recall.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	second, err := recall.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	spoil(4096, len(good))
	if err := second.Add(t.Context(), "new", recall.Mark{Seq: 1}, nil); !errors.Is(err, recall.ErrDamaged) {
		t.Error(err)
	}
	_, err1 := x.Search(t.Context(), recall.Query{Text: "word1"})
	_, err2 := x.Marks(t.Context())
	if !errors.Is(err1, recall.ErrDamaged) || !errors.Is(err2, recall.ErrDamaged) {
		t.Errorf("%v, %v", err1, err2)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	if _, err := recall.Open(t.Context(), path); !errors.Is(err, recall.ErrInUse) {
		t.Errorf("a file that another has open was moved: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	x = open(t, path)
	if marks, err := x.Marks(t.Context()); err != nil || len(marks) > 0 || x.Aside == "" {
		t.Error(marks, err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if x = open(t, path); x.Aside != "" {
		t.Error("a sound file was moved aside")
	}
}

// TestDeletedAtAnyTime checks that a deleted file is simply created again, even while others have it open.
func TestDeletedAtAnyTime(t *testing.T) {
	x := fresh(t)
	talk(t, x, "s", "hello")
	if err := os.Remove(x.Path); err != nil {
		t.Fatal(err)
	}
	if got := search(t, x, recall.Query{Text: "hello"}); len(got) > 0 {
		t.Error(got)
	}
	talk(t, x, "t", "hello there")
	y := open(t, x.Path)
	if marks, err := y.Marks(t.Context()); err != nil || len(marks) != 1 || marks["t"].Seq != 1 {
		t.Error(marks, err)
	}
	talk(t, y, "s", "hello")
	for _, of := range []*recall.Index{x, y} {
		if got := search(t, of, recall.Query{Text: "hello"}); len(got) != 2 || of.Aside != "" {
			t.Error(got)
		}
	}
}

func TestPathsThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "recall.db"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := recall.Open(t.Context(), filepath.Join(dir, "recall.db")); err == nil {
		t.Error("a folder is opened")
	}
	if info, err := os.Stat(filepath.Join(dir, "recall.db")); err != nil || !info.IsDir() {
		t.Error(info, err)
	}
	x := fresh(t)
	if info, err := os.Stat(x.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error("others can read the index", info, err)
	}
}

// child indexes sessions in a process of its own; some of them others do too.
func child(path, name string) error {
	ctx := context.Background()
	x, err := recall.Open(ctx, path)
	if err != nil {
		return err
	}
	for i := range 20 {
		for _, session := range []string{fmt.Sprint(name, i), fmt.Sprint("all", i)} {
			docs := []recall.Doc{
				{Seq: 1, Kind: recall.Said, Text: "shared words of " + session},
				{Seq: 2, Kind: recall.Said, Text: "more of " + session},
			}
			if err := testkit.Patiently(func() error { return x.Add(ctx, session, recall.Mark{Seq: 2}, docs) }); err != nil {
				return err
			}
			fmt.Println("added", session)
		}
		if hits, err := x.Search(ctx, recall.Query{Text: fmt.Sprintf("%s%d", name, i)}); err != nil || len(hits) != 2 {
			return fmt.Errorf("%d hits, %w", len(hits), err)
		}
	}
	return x.Close()
}

func TestManyProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recall.db")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var running []*exec.Cmd
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), childEnv+"="+path+"|"+name)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, cmd)
	}
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	x := open(t, path)
	marks, err := x.Marks(t.Context())
	if err != nil || len(marks) != 7*20 || x.Aside != "" {
		t.Error(len(marks), err)
	}
	for session := range marks {
		if got := search(t, x, recall.Query{Text: "shared words", Session: session}); len(got) != 1 {
			t.Errorf("%s: %q", session, found(got))
		}
	}
}

// FuzzSearch checks that no query is an error, and that each hit contains at least one of its words.
func FuzzSearch(f *testing.F) {
	for _, q := range []string{
		`a"b`, `"`, `""""`, "a AND", "NOT", "NEAR(a b)", "a*b*", "*", "col:word", "word:a", "-a", "^a", "(", "a OR b)", "_s1", "{x y}:z", "\x00",
		"\xff", "é*", "日本*", "日", "ﬁ", "𝐀", "١٢", "a_b-c/d", `"a_b" c`,
		"İ", "ß", "words: hello", "\u0301", "a\u0301*", `'; DROP TABLE docs; --`, "ꙮ𞤀x", "aaa*", `"日本語 hello`,
	} {
		f.Add(q, "hello world of words")
	}
	x := fresh(f)
	n := uint64(0)
	f.Fuzz(func(t *testing.T, query, text string) {
		n++
		if err := x.Add(t.Context(), "s", recall.Mark{Seq: n}, []recall.Doc{{Seq: n, Kind: recall.Said, Text: text}}); err != nil {
			t.Fatal(err)
		}
		for _, q := range []string{query, text, `"` + text + `"`} {
			if _, err := x.Search(t.Context(), recall.Query{Text: q, Session: "s", Not: query}); err != nil {
				t.Fatalf("%q: %v", q, err)
			}
		}
		if err := x.Forget(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		n = 0
	})
}
