package corpus_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/delegate/corpus"
)

// plant writes files of so many bytes together, with sentences at random places, and returns these
// with their files and offsets.
func plant(t testing.TB, root string, files int, size int64, sentences int) map[string]string {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, 2))
	places := map[string]string{}
	per := sentences / files
	for f := range files {
		name := fmt.Sprintf("part%02d.txt", f)
		out, err := os.Create(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		w := bufio.NewWriterSize(out, 1<<20)
		var at int64
		say := func(text string) {
			at += int64(len(text))
			_, _ = w.WriteString(text)
		}
		for n := 0; at < size/int64(files); {
			if n < per && at >= size/int64(files)*int64(n)/int64(per) {
				fact := fmt.Sprintf("The code of vault %d-%d is %08d.", f, n, rnd.IntN(1e8))
				say("It was said: ")
				places[fact] = fmt.Sprintf("%s:%d-%d", name, at, at+int64(len(fact)))
				say(fact + "\n")
				n++
			}
			say(fmt.Sprintf("Entry %d of the log of hall %d: nothing of note, the guard went round, the vault is shut.\n", rnd.Int64(), f))
			if rnd.IntN(40) == 0 {
				say("\n")
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return places
}

// TestPlantedFacts has a small model that answers literally read a corpus of 200 MB: it finds all facts, each with the
// position of its bytes, by a number of requests that follows from the bytes, and without the corpus in memory.
func TestPlantedFacts(t *testing.T) {
	size := int64(200 << 20)
	if testing.Short() {
		size = 8 << 20
	}
	var most uint64
	model := &reader{answer: literal}
	model.each = func() {
		var m runtime.MemStats
		if model.asked.Load()%50 == 0 {
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
		}
	}
	w := newWorld(t, model)
	places := plant(t, w.root, 5, size, 50)
	if len(places) != 50 {
		t.Fatalf("%d facts are planted", len(places))
	}
	name := w.open(".")
	var cut struct {
		Set           string
		Pieces, Bytes int64
	}
	w.call("corpus_pieces", object{"corpus": name, "bytes": 200_000}, &cut)
	if cut.Bytes < size || cut.Pieces > 2*size/200_000+5 {
		t.Errorf("%d pieces of %d bytes", cut.Pieces, cut.Bytes)
	}
	question := object{"corpus": name, "set": cut.Set, "question": "What are the codes of vaults?", "schema": facts(), "budget": 200}
	var said asked
	w.call("ask_pieces", question, &said)
	if n := model.asked.Load(); n != cut.Pieces || said.Failed != 0 || said.Next != 0 {
		t.Errorf("%d requests about %d pieces, %d failed", n, cut.Pieces, said.Failed)
	}
	var evidence []object
	for _, a := range said.Answers {
		for _, e := range a.Evidence {
			at := fmt.Sprintf("%s:%.0f-%.0f", a.Source, e["from"], e["to"])
			if places[e["quote"].(string)] != at {
				t.Errorf("%v is at %s, not %s", e["quote"], places[e["quote"].(string)], at)
			}
			evidence = append(evidence, object{"source": a.Source, "from": e["from"], "to": e["to"], "quote": e["quote"]})
		}
	}
	var out corpus.Answer
	w.call("corpus_answer", object{"corpus": name, "answer": "There are 50.", "evidence": evidence}, &out)
	if len(out.Evidence) != 50 || !out.Verified {
		t.Errorf("%d are verified: %+v", len(out.Evidence), out)
	}
	if most > 96<<20 {
		t.Errorf("%d MB of memory", most>>20)
	}
	t.Logf("%d pieces, %d MB of memory, $%.2f", cut.Pieces, most>>20, said.Cost)

	// The same again costs nothing.
	var again asked
	w.call("ask_pieces", question, &again)
	if model.asked.Load() != cut.Pieces || again.Cost != 0 || len(again.Answers) != len(said.Answers) {
		t.Errorf("asked again: %+v", again)
	}

	var grep struct {
		Total int
		Hits  []struct {
			Source, Text   string
			From, To, Line int64
		}
	}
	w.call("corpus_grep", object{"corpus": name, "pattern": `The code of vault \d`, "max": 100}, &grep)
	if grep.Total != 50 || len(grep.Hits) != 50 {
		t.Errorf("grep finds %d, and shows %d", grep.Total, len(grep.Hits))
	}
	for _, h := range grep.Hits {
		if !strings.HasPrefix(h.Text, "It was said: The code") {
			t.Errorf("%+v", h)
		}
	}
}
