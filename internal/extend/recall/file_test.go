package recall_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/extend/recall"
)

// TestKilled checks that a process killed at any point while it adds loses nothing that was added and leaves no half
// document, and that the next process continues from there.
func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recall.db")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var added []string
	for i := range 8 {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), childEnv+"="+path+"|"+fmt.Sprintf("killed%d-", i))
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		told, before := bufio.NewScanner(out), len(added)
		for told.Scan() {
			added = append(added, strings.TrimPrefix(told.Text(), "added "))
			if len(added) == before+1+i*2 {
				_ = cmd.Process.Kill()
			}
		}
		_ = cmd.Wait() // killed
		x := open(t, path)
		marks, err := x.Marks(t.Context())
		if err != nil || x.Aside != "" {
			t.Fatal(x.Aside, err)
		}
		for _, session := range added {
			if marks[session].Seq != 2 {
				t.Errorf("%s is lost", session)
			}
		}
		if docs, _ := inside(t, x); docs != 2*len(marks) {
			t.Errorf("%d documents of %d sessions", docs, len(marks))
		}
	}
}

// TestManyAdds checks that an index of many small Adds is whole and finds all that it should, even after sessions
// were forgotten.
func TestManyAdds(t *testing.T) {
	x := fresh(t)
	r := rand.New(rand.NewPCG(1, 2))
	type said struct {
		session string
		words   []string
		doc     recall.Doc
	}
	var all []said
	seqs := map[string]uint64{}
	at := noon
	add := func() {
		session := fmt.Sprint("s", r.IntN(40))
		var docs []recall.Doc
		for range 1 + r.IntN(12) {
			var words []string
			for i := range 8 {
				if r.IntN(1+i*i) == 0 {
					words = append(words, fmt.Sprint("word", i))
				}
			}
			at = at.Add(time.Minute)
			seqs[session]++
			text := fmt.Sprintf("%s number%d %s", strings.Join(words, " "), len(all), strings.Repeat("and more ", r.IntN(400)))
			d := recall.Doc{
				Session: session, Seq: seqs[session], Time: at, Root: fmt.Sprint("/w/", r.IntN(3)),
				Kind: []string{recall.Said, recall.Call}[r.IntN(2)], Text: strings.TrimSpace(text),
			}
			docs, all = append(docs, d), append(all, said{session, words, d})
		}
		if err := x.Add(t.Context(), session, recall.Mark{Seq: seqs[session]}, docs); err != nil {
			t.Fatal(err)
		}
	}
	check := func() {
		t.Helper()
		if docs, _ := inside(t, x); docs != len(all) {
			t.Fatalf("%d documents are stored, want %d", docs, len(all))
		}
		for range 60 {
			q := recall.Query{Since: noon.Add(time.Duration(r.IntN(len(all))) * time.Minute), Limit: 100}
			q.Until = q.Since.Add(90 * time.Minute)
			words := []string{"word0", fmt.Sprint("word", 1+r.IntN(4))}
			q.Text = strings.Join(words, " ")
			switch r.IntN(5) {
			case 0:
				q.Root = "/w/1"
			case 1:
				q.Not = "s1"
			case 2:
				q.Kinds = []string{recall.Call}
			case 3:
				q.Kinds, q.Root = []string{recall.Said}, "/w/2"
			}
			var want []string
			for _, s := range all {
				has := !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(s.words, w) })
				if has && !s.doc.Time.Before(q.Since) && s.doc.Time.Before(q.Until) && (q.Root == "" || q.Root == s.doc.Root) &&
					q.Not != s.session && (q.Kinds == nil || s.doc.Kind == q.Kinds[0]) {
					want = append(want, s.doc.Text)
				}
			}
			got := found(search(t, x, q))
			slices.Sort(got)
			slices.Sort(want)
			if len(want) > 0 && !slices.Equal(got, want) {
				t.Fatalf("%+v finds %d, want %d", q, len(got), len(want))
			}
		}
	}
	for range 200 {
		add()
	}
	check()
	for _, gone := range [][]string{{"s3"}, {"s1", "s5", "s7", "never there"}} {
		if err := x.Forget(t.Context(), gone...); err != nil {
			t.Fatal(err)
		}
		all = slices.DeleteFunc(all, func(s said) bool { return slices.Contains(gone, s.session) })
		for _, s := range gone {
			delete(seqs, s)
		}
		check()
	}
	for range 40 {
		add()
	}
	check()
}

// TestSearchWaitsForNobody checks that an index can be opened and searched while another process writes.
func TestSearchWaitsForNobody(t *testing.T) {
	x := fresh(t)
	talk(t, x, "s", "hello")
	writes, err := keep.LockFile(t.Context(), x.Path+".write", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = writes.Close() }()
	y := open(t, x.Path)
	if got := search(t, y, recall.Query{Text: "hello"}); len(got) != 1 {
		t.Error(got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := y.Add(ctx, "t", recall.Mark{Seq: 1}, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error("two write at once:", err)
	}
}

// TestWaste checks that the file does not grow forever by unused data.
func TestWaste(t *testing.T) {
	x := fresh(t)
	for i := range 300 { // each writes the names of all sessions
		talk(t, x, fmt.Sprint(strings.Repeat("long name ", 40), i), "hello")
	}
	if info, err := os.Stat(x.Path); err != nil || info.Size() > 6<<20 {
		t.Errorf("the file has %d KB, %v", info.Size()>>10, err)
	}
	if docs, _ := inside(t, x); docs != 300 {
		t.Error(docs)
	}
	if got := search(t, x, recall.Query{Text: "hello", Root: "/w/" + strings.Repeat("long name ", 40) + "7"}); len(got) != 1 {
		t.Error(got)
	}
}

// TestAtOnce checks that one index can be added to, searched and rewritten at the same time.
func TestAtOnce(t *testing.T) {
	x := fresh(t)
	var wait sync.WaitGroup
	for i := range 3 {
		wait.Go(func() {
			name := fmt.Sprint("mine", i)
			for range 10 {
				docs := []recall.Doc{{Seq: 1, Kind: recall.Said, Text: "hello of " + name}}
				if err := x.Add(t.Context(), name, recall.Mark{Seq: 1}, docs); err != nil {
					t.Error(err)
				}
				hits, err := x.Search(t.Context(), recall.Query{Text: "hello", Session: name})
				if err != nil || len(hits) != 1 {
					t.Error(hits, err)
				}
				if err := x.Forget(t.Context(), name); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	if marks, err := x.Marks(t.Context()); err != nil || len(marks) > 0 {
		t.Error(marks, err)
	}
}
