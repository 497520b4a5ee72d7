package corpus_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/delegate/corpus"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// everyFile writes a text into all files below a folder.
func everyFile(t *testing.T, dir, text string) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			n++
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		return err
	})
	if err != nil || n == 0 {
		t.Fatal(n, err)
	}
}

type listing struct {
	Corpus       string
	Count, Next  int
	Bytes, Lines int64
	Sources      []struct {
		Name         string
		Bytes, Lines int64
	}
	Skipped map[string]int
}

// TestOnlyTextIsOpened checks which files of a folder with much unreadable content are in a corpus.
func TestOnlyTextIsOpened(t *testing.T) {
	w := newWorld(t, nil)
	w.write("a.txt", "one\ntwo")
	w.write("sub/b.txt", "three\n")
	w.write("empty.txt", "")
	w.write(".gitignore", "hidden/\n")
	w.write("hidden/c.txt", "not this\n")
	w.write("program", "\x7fELF\x00\x01")
	outside := filepath.Join(t.TempDir(), "outside.txt")
	if err := os.WriteFile(outside, []byte("far away\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(w.root, "link.txt")); err != nil {
		t.Fatal(err)
	}
	zeros, err := os.Create(filepath.Join(w.root, "zeros"))
	if err == nil {
		err = errors.Join(zeros.Truncate(1<<30), zeros.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var out listing
	w.call("corpus_list", object{"sources": []string{"."}}, &out)
	names := fmt.Sprint(out.Sources)
	if names != "[{.gitignore 8 1} {a.txt 7 2} {empty.txt 0 0} {sub/b.txt 6 1}]" || out.Bytes != 21 || out.Skipped["not text"] != 2 {
		t.Errorf("%+v", out)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	if _, err := w.try("corpus_read", object{"corpus": out.Corpus, "source": "link.txt"}, nil); err == nil {
		t.Error("a link is read")
	}
}

// TestEffectsAreTheReads checks that every call on a corpus names what it reads.
func TestEffectsAreTheReads(t *testing.T) {
	w := newWorld(t, nil)
	w.write("docs/a.txt", "one\n")
	name := w.open("docs")
	for _, one := range w.set.Tools() {
		args, _ := json.Marshal(object{"corpus": name})
		effects, err := one.Effects(t.Context(), &tool.Call{Name: one.Name, Args: args, Env: w.env, Cwd: w.root})
		if err != nil || len(effects) != 1 || effects[0].Kind != tool.Read || effects[0].Path != filepath.Join(w.root, "docs") {
			t.Errorf("%s: %v, %v", one.Name, effects, err)
		}
	}
	args := json.RawMessage(`{"sources": ["https://example.com/a"]}`)
	effects, err := w.set.Tools()[0].Effects(t.Context(), &tool.Call{Args: args, Env: w.env, Cwd: w.root})
	if err != nil || len(effects) == 0 || effects[0].Kind != tool.Network || effects[0].Text != "example.com" {
		t.Errorf("%v, %v", effects, err)
	}
}

// TestForgedCorpus checks that a list of sources that corpus_list has not made is not a corpus: it could name forbidden
// files, or give the text of one source the name of another.
func TestForgedCorpus(t *testing.T) {
	w := newWorld(t, nil)
	w.write("a.txt", "one\n")
	w.write("lie.txt", "two\n")
	name := w.open(".")
	r, err := w.env.Blobs.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	var stored struct{ Manifest json.RawMessage }
	if err := json.Unmarshal(raw, &stored); err != nil {
		t.Fatal(err)
	}
	for _, forged := range []string{
		strings.Replace(strings.Replace(string(raw), `"name":"a.txt"`, `"name":"b.txt"`, 1), `"name":"lie.txt"`, `"name":"a.txt"`, 1),
		string(stored.Manifest), `{"seal":"","manifest":` + string(stored.Manifest) + `}`, "{}", "", "nothing",
	} {
		forgedName, err := w.env.Blobs.Put(t.Context(), strings.NewReader(forged))
		if err != nil {
			t.Fatal(err)
		}
		for tool, args := range map[string]object{
			"corpus_read": {"source": "a.txt"}, "corpus_grep": {"pattern": "."}, "corpus_list": {},
			"corpus_answer": {"answer": "Two.", "evidence": []object{{"source": "a.txt", "from": 0, "to": 3, "quote": "two"}}},
		} {
			args["corpus"] = forgedName
			if res, err := w.try(tool, args, nil); err == nil || !strings.Contains(err.Error(), "not the name of a corpus") {
				t.Errorf("%s takes %.80q: %v, %v", tool, forged, res, err)
			}
		}
	}
}

// TestChangedSources checks that a changed source is named, and that one that has only grown is read as it was.
func TestChangedSources(t *testing.T) {
	const text = "one two three\nfour five six\n"
	read := object{"source": "a.txt", "from": 4, "to": 7}
	evidence := []object{{"source": "a.txt", "from": 4, "to": 7, "quote": "two"}}
	for name, c := range map[string]struct {
		change  func(path string) error
		changed bool
	}{
		"rewritten":       {func(p string) error { return os.WriteFile(p, []byte("six five four\nthree two one\n"), 0o644) }, true},
		"shorter":         {func(p string) error { return os.Truncate(p, 5) }, true},
		"removed":         {os.Remove, true},
		"a folder":        {func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o755)) }, true},
		"a link":          {func(p string) error { return errors.Join(os.Rename(p, p+".old"), os.Symlink(p+".old", p)) }, true},
		"the same again":  {func(p string) error { return errors.Join(os.Remove(p), os.WriteFile(p, []byte(text), 0o644)) }, false},
		"longer":          {func(p string) error { return os.WriteFile(p, []byte(text+"seven\n"), 0o644) }, false},
		"longer, changed": {func(p string) error { return os.WriteFile(p, []byte("One"+text[3:]+"seven\n"), 0o644) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.write("a.txt", text)
			corpusName := w.open(".")
			if err := c.change(filepath.Join(w.root, "a.txt")); err != nil {
				t.Fatal(err)
			}
			read["corpus"] = corpusName
			for tool, args := range map[string]object{
				"corpus_read": read, "corpus_grep": {"corpus": corpusName, "pattern": "two"}, "corpus_pieces": {"corpus": corpusName},
				"corpus_answer": {"corpus": corpusName, "answer": "Two.", "evidence": evidence},
			} {
				_, err := w.try(tool, args, nil)
				if c.changed != errors.Is(err, corpus.ErrChanged) || c.changed && !strings.Contains(err.Error(), "a.txt") {
					t.Errorf("%s: %v", tool, err)
				}
			}
		})
	}
}

// timeless are files without a sign that they have changed.
type timeless struct{ tool.Files }

func (f timeless) Open(ctx context.Context, path string) (fs.File, error) {
	file, err := f.Files.Open(ctx, path)
	if err != nil || filepath.Ext(path) != ".txt" {
		return file, err
	}
	return timelessFile{file}, nil
}

type timelessFile struct{ fs.File }

func (f timelessFile) Stat() (fs.FileInfo, error) {
	info, err := f.File.Stat()
	return timelessInfo{info}, err
}

func (f timelessFile) Seek(offset int64, whence int) (int64, error) {
	return f.File.(io.Seeker).Seek(offset, whence)
}

type timelessInfo struct{ fs.FileInfo }

func (timelessInfo) ModTime() time.Time { return time.Time{} }
func (timelessInfo) Sys() any           { return nil }

// TestAnswersCompareAllOfASource checks that an answer does not rest on times alone: where nothing else tells that a
// file has changed, its digest does.
func TestAnswersCompareAllOfASource(t *testing.T) {
	w := newWorld(t, nil)
	w.env.Files = timeless{w.env.Files}
	w.write("a.txt", "one two three\n")
	args := object{"corpus": w.open("."), "answer": "Two.", "evidence": []object{{"source": "a.txt", "from": 4, "to": 13, "quote": "two three"}}}
	w.call("corpus_answer", args, nil)
	w.write("a.txt", "One two three\n")
	if _, err := w.try("corpus_answer", args, nil); !errors.Is(err, corpus.ErrChanged) {
		t.Errorf("%v", err)
	}
}

// TestAnswersAreSupported checks that an answer is verified only if its quotes have the figures and names in it, as
// whole ones, or if it has neither, a word of it.
func TestAnswersAreSupported(t *testing.T) {
	w := newWorld(t, nil)
	lines := []string{
		"x is a letter.",
		"On 3 May 2026 the board of Heron Ltd approved the merger for $1,250,000 in cash.",
		"Der Vorstand stimmte zu.",
		"set max_size = 64 in core.conf",
		"An upload has at most 5,000 MB.",
		"An upload has at most 5 000 MB, by Heron\u2019s rules.",
		"The limit is 15 MB.",
		"Alice approves the plan.",
		"the annual electronic report",
		"The board has 1\u202f000 members and 12'500 guests.",
		"2026-05-03T12:30:07Z v1.12.3 GET /index 200 512",
		"Der Preis ist 1.250.000,50 Euro, oder 2,5 je Stück.",
		"A vault in the west is open.",
		"A vault in the east is shut.",
		"The wait is 7 days.",
		"The pause is 9 days.",
		"董事会批准了合并。",
		"Revenue fell: -12 % in 2020, 14 -3 in 2021, and 5-7 % later.",
		"The town has 1.25 million people, and three bridges.",
		"The loan is 3,500,000 euros.",
		"in thousands: houses 17",
		"Die Satzung wurde von Herrn Müllers Anwalt geprüft.",
		"Договор подписан Иваном Петровым в Москве.",
	}
	text := strings.Join(lines, "\n") + "\n"
	w.write("report-900.txt", text)
	name := w.open(".")
	evidence := func(numbers []int) (all []object) {
		for _, n := range numbers {
			from := len(strings.Join(append(lines[:n:n], ""), "\n"))
			all = append(all, object{"source": "report-900.txt", "from": from, "to": from + len(lines[n]), "quote": lines[n]})
		}
		return all
	}
	none := []string{}
	for _, c := range []struct {
		claim   string
		lines   []int
		missing []string
	}{
		{"The board approved the merger on 3 May, for 1250000 dollars [1].", []int{1}, none},
		{"The board approved the merger on 4 May and the CEO resigned.", []int{1}, []string{"4", "CEO"}},
		{"Heron's board approved it in 2026.", []int{1}, none},
		{"The merger was approved.", []int{1}, none},
		{"The merger was refused by Stork Ltd.", []int{1}, []string{"Stork"}},
		{"There was no agreement.", []int{0}, []string{"There was no agreement."}},
		{"Yes.", []int{1}, []string{"Yes."}},
		{"Der Vorstand hat zugestimmt.", []int{2}, none},
		{"maxSize is 65.", []int{3}, []string{"65", "maxSize"}},

		// Whole figures.
		{"It has 5 MB.", []int{4}, []string{"5"}},
		{"It has 0 MB.", []int{4}, []string{"0"}},
		{"It has 5 MB.", []int{5}, []string{"5"}},
		{"It has 50 MB.", []int{4}, []string{"50"}},
		{"It has 5000 MB.", []int{4}, none},
		{"It has 5,000 MB, or 5\u00a0000 MB, or 5.000 MB, or 5'000 MB, or 5\u2009000 MB.", []int{5}, none},
		{"The limit is 1.5 MB.", []int{6}, []string{"1.5"}},
		{"The limit is 1,5 MB.", []int{6}, []string{"1,5"}},
		{"The limit is 1-5 MB.", []int{6}, []string{"1-5"}},
		{"The board has 1000 members, 1 000 of them here, and 12500 guests.", []int{9}, none},
		{"The board has 100 members and 500 guests.", []int{9}, []string{"100", "500"}},
		{"It came at 12:30:07 on 3/5/2026.", []int{10}, []string{"3/5/2026"}},
		{"It came at 12:30:07 on 2026/5/3, from version 1.12.3, with status 200 and 512 bytes.", []int{10}, none},
		{"Total: 200. It's from 12:30, on 3-5 days, in 2026-05.", []int{10}, []string{"3-5"}},
		{"Version 12.3 came in 2027.", []int{10}, []string{"12.3", "2027"}},
		{"Er ist 1250000.50 Euro, oder 2.5 je Stück.", []int{11}, none},
		{"Er ist 25 Euro, oder 125000050.", []int{11}, []string{"25", "125000050"}},

		// What an answer says about its evidence.
		{"max_size is 64, see core.conf and report-900.txt, line 4.", []int{3}, none},
		{"max_size is 64 (report-900.txt:4).", []int{3}, none},
		{"max_size is 64, see line 5.", []int{3}, []string{"5"}},
		{"max_size is #4 MB.", []int{3}, []string{"4", "MB"}},
		{"max_size is 4 MB.", []int{3}, []string{"4", "MB"}},
		{"An upload has 900 MB.", []int{4}, []string{"900"}},
		{"An upload, says report-90, has 5000 MB.", []int{4}, []string{"report-90"}},
		{"The upload has 1 MB.", []int{4}, []string{"1"}},
		{"The wait is 2 days.", []int{14, 15}, []string{"2"}},
		{"There are 2 vaults.", []int{12, 13}, none},
		{"There are 2.", []int{12, 13}, none},
		{"There are 3 vaults.", []int{12, 13}, []string{"3"}},
		{"There are 1.2 vaults.", []int{12, 13}, []string{"1.2"}},
		{"It is open [1] or shut [2]; [1, 2].", []int{12, 13}, none},
		{"It is open [3].", []int{12, 13}, []string{"3"}},
		{"Two.", []int{12}, []string{"Two."}},
		{"Two vaults are open [1] and shut [2].", []int{12, 13}, none},
		{"There are 1.", []int{12}, []string{"1"}},
		{"It is open [0].", []int{12, 13}, []string{"0"}},
		{"[900]", []int{1}, []string{"900"}},
		{"[1]", []int{1}, []string{"[1]"}},
		{"Both:\n1. A vault is open.\n2. A vault is shut.", []int{12, 13}, none},
		{"7. A vault is open.", []int{12, 13}, []string{"7"}},

		// Whole names.
		{"Bob approves.", []int{7}, []string{"Bob"}},
		{"Bob approves the plan. [1]", []int{7}, []string{"Bob"}},
		{"It is done: Bob's plan.", []int{7}, []string{"Bob's"}},
		{"James approved the plan.", []int{7}, []string{"James"}},
		{"Alice's plan.", []int{7}, none},
		{"Ali approves.", []int{7}, []string{"Ali"}},
		{"Ann with Ron.", []int{8}, []string{"Ann", "Ron"}},
		{"Anna reports.", []int{8}, []string{"Anna"}},
		{"Reports are electronic.", []int{8}, none},
		{"Uploads can have 5000 MB.", []int{4}, none},
		{"Customers may send 5000 MB.", []int{4}, none},
		{"Usually, sending 5000 MB is possible.", []int{4}, none},
		{"A vault in wing B is open.", []int{13}, []string{"B"}},
		{"批准了合并", []int{16}, none},

		// Signs, powers of ten and number words.
		{"Revenue changed by -12 % in 2020 and by −3 in 2021.", []int{17}, none},
		{"Revenue changed by +12 % in 2020.", []int{17}, []string{"12"}},
		{"Revenue rose by 12 % in 2020.", []int{17}, []string{"12"}},
		{"Revenue fell by 7 to 5 %.", []int{17}, none},
		{"Revenue changed by -7 %.", []int{17}, []string{"-7"}},
		{"The limit is -15 MB.", []int{6}, []string{"-15"}},
		{"The town has 1,250,000 people.", []int{18}, none},
		{"The town has 1,25 Millionen people.", []int{18}, none},
		{"The town has 1.25 people.", []int{18}, []string{"1.25"}},
		{"The town has 1.25 billion people.", []int{18}, []string{"1.25"}},
		{"The loan is 3.5 million euros.", []int{19}, none},
		{"The loan is 3.5 billion euros.", []int{19}, []string{"3.5"}},
		{"There are 17 thousand houses.", []int{20}, none},
		{"There are 17 million houses.", []int{20}, []string{"17"}},
		{"The town has 3 bridges.", []int{18}, none},
		{"The town has four bridges.", []int{18}, []string{"four"}},
		{"The town has two sides and three bridges.", []int{18}, none},

		// Names in other cases.
		{"Herr Müller ließ die Satzung prüfen.", []int{21}, none},
		{"Herr Mülle ließ die Satzung prüfen.", []int{21}, []string{"Mülle"}},
		{"Иван Петров подписал договор, Москва.", []int{22}, none},
		{"Илья Петровский подписал договор.", []int{22}, []string{"Илья", "Петровский"}},
		{"Herons approved the merger for $1,250,000.", []int{1}, []string{"Herons"}},
	} {
		var out corpus.Answer
		w.call("corpus_answer", object{"corpus": name, "answer": c.claim, "evidence": evidence(c.lines)}, &out)
		if !out.QuotesVerified || out.Verified != (len(c.missing) == 0) || out.Supported != out.Verified || !slices.Equal(append(none, out.Unsupported...), c.missing) {
			t.Errorf("%q by %q lacks %q, not %q", c.claim, evidence(c.lines)[0]["quote"], out.Unsupported, c.missing)
		}
	}
}

// TestGrowsWhileRead checks that a file that grows all the time is read as it was when it was opened.
func TestGrowsWhileRead(t *testing.T) {
	w := newWorld(t, nil)
	w.write("a.log", strings.Repeat("a line of the log\n", 20_000))
	stop, gone := make(chan struct{}), make(chan error)
	go func() {
		f, err := os.OpenFile(filepath.Join(w.root, "a.log"), os.O_APPEND|os.O_WRONLY, 0)
		for err == nil {
			select {
			case <-stop:
				gone <- f.Close()
				return
			default:
				_, err = f.WriteString("one more line\n")
			}
		}
		gone <- err
	}()
	name := w.open(".")
	var first, second struct{ Total int }
	w.call("corpus_grep", object{"corpus": name, "pattern": "line"}, &first)
	w.call("corpus_grep", object{"corpus": name, "pattern": "line"}, &second)
	close(stop)
	if err := <-gone; err != nil {
		t.Fatal(err)
	}
	if first.Total < 20_000 || first != second {
		t.Errorf("%d lines, then %d", first.Total, second.Total)
	}
}

// TestStrangeText checks that any bytes can be cut, read and cited: long lines, bytes that are no text, and characters
// of several bytes.
func TestStrangeText(t *testing.T) {
	w := newWorld(t, &reader{answer: literal})
	times := 2_500_000 // 50 MB in one line
	if testing.Short() {
		times /= 20
	}
	long := strings.Repeat("日本語 und mehr, ", times)
	w.write("long.txt", long)
	w.write("bad.txt", "good \xff\xfe bad \xe6\x97 end\nThe code of vault 1 is 7.\n")
	name := w.open(".")
	for at := int64(0); at < 20; at++ {
		var out struct {
			From, To int64
			Text     string
		}
		w.call("corpus_read", object{"corpus": name, "source": "long.txt", "from": at, "to": at + 10}, &out)
		if !utf8.ValidString(out.Text) || strings.Contains(out.Text, "\uFFFD") || out.Text != long[out.From:out.To] {
			t.Errorf("from %d: %+v", at, out)
		}
	}
	var cut struct {
		Set           string
		Pieces, Bytes int
	}
	w.call("corpus_pieces", object{"corpus": name, "bytes": 100_000}, &cut)
	if cut.Bytes != len(long)+len("good \xff\xfe bad \xe6\x97 end\nThe code of vault 1 is 7.\n") {
		t.Errorf("%+v", cut)
	}
	var grep struct {
		Total int
		Hits  []object
	}
	w.call("corpus_grep", object{"corpus": name, "pattern": "(a|aa)+$|bad"}, &grep)
	if grep.Total != 1 {
		t.Fatalf("%+v", grep)
	}
	h := grep.Hits[0]
	w.call("corpus_answer", object{"corpus": name, "answer": "Bad.", "evidence": []object{
		{"source": h["source"], "from": h["from"], "to": h["to"], "quote": h["text"]},
	}}, nil)
	var said asked
	w.call("ask_pieces", object{"corpus": name, "pieces": []string{"0:0-45"}, "question": "Which code?", "schema": facts()}, &said)
	if len(said.Answers) != 1 || said.Answers[0].Evidence[0]["from"] != 19.0 {
		t.Errorf("%+v", said)
	}
}

// TestAnswersAreVerified checks that an answer gets out only with evidence that is in the text.
func TestAnswersAreVerified(t *testing.T) {
	w := newWorld(t, nil)
	w.write("a.txt", "one\ntwo\nthree <b> & \u200b\"four\"\n")
	name := w.open(".")
	good := object{"source": "a.txt", "from": 4, "to": 7, "quote": "two"}
	odd := object{"source": "./a.txt", "from": 8, "to": 29, "quote": "three <b> & \u200b\"four\""}
	for why, c := range map[string]struct {
		args object
		want string
	}{
		"other text":   {object{"source": "a.txt", "from": 4, "to": 7, "quote": "Two"}, `are "two", not "Two"`},
		"other place":  {object{"source": "a.txt", "from": 3, "to": 6, "quote": "two"}, "evidence 2"},
		"no such file": {object{"source": "b.txt", "from": 4, "to": 7, "quote": "two"}, `did you mean "a.txt"`},
		"beyond":       {object{"source": "a.txt", "from": 4, "to": 700, "quote": "two"}, "it has 30 bytes"},
		"backwards":    {object{"source": "a.txt", "from": 7, "to": 4, "quote": ""}, "7-4"},
		"nothing":      {object{"source": "a.txt", "from": 4, "to": 4, "quote": ""}, "evidence 2"},
		"a part":       {object{"source": "a.txt", "from": 8, "to": 13, "quote": "three"}, "too short to show anything"},
	} {
		res, err := w.try("corpus_answer", object{"corpus": name, "answer": "It is two.", "evidence": []object{good, c.args}}, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(res.Parts) > 0 {
			t.Errorf("%s: %v, %v", why, res, err)
		}
	}
	if _, err := w.try("corpus_answer", object{"corpus": name, "answer": "It is two.", "evidence": []object{}}, nil); err == nil {
		t.Error("an answer needs no evidence")
	}
	var out corpus.Answer
	w.call("corpus_answer", object{"corpus": name, "answer": "It is two.", "evidence": []object{good, odd}}, &out)
	if len(out.Evidence) != 2 || out.Evidence[0] != (corpus.Evidence{Source: "a.txt", Line: 2, From: 4, To: 7, Quote: "two"}) ||
		out.Evidence[1].Line != 3 || out.Evidence[1].Quote != "three <b> & \u200b\"four\"" {
		t.Errorf("%+v", out)
	}
	out = corpus.Answer{}
	w.call("corpus_answer", object{"corpus": name, "answer": "It is ten.", "evidence": []object{}, "nothing": true}, &out)
	if out.Verified || !out.Nothing || out.Answer != "Nothing was found in what was read of the corpus." || out.Sources != 1 {
		t.Errorf("%+v", out)
	}
	w.call("corpus_grep", object{"corpus": name, "pattern": "ten"}, nil)
	w.call("corpus_read", object{"corpus": name, "source": "a.txt", "to": 10}, nil)
	w.call("corpus_read", object{"corpus": name, "source": "a.txt", "from": 8, "to": 20}, nil)
	w.call("corpus_answer", object{"corpus": name, "answer": "", "evidence": []object{}, "nothing": true}, &out)
	if c := out.Coverage; c.Read != 20 || c.Bytes != 30 || c.Searches != 1 || len(c.Unread) != 1 || c.Unread[0] != (corpus.Unread{Source: "a.txt", Bytes: 10}) {
		t.Errorf("%+v", c)
	}
	w.call("corpus_read", object{"corpus": name, "source": "a.txt", "from": 18}, nil)
	out = corpus.Answer{}
	w.call("corpus_answer", object{"corpus": name, "answer": "", "evidence": []object{}, "nothing": true}, &out)
	if c := out.Coverage; out.Answer != "The corpus does not say." || c.Read != 30 || len(c.Unread) > 0 {
		t.Errorf("%+v", out)
	}
	if _, err := w.try("corpus_answer", object{"answer": "No.", "evidence": []object{good}, "nothing": true}, nil); err == nil {
		t.Error("nothing has evidence")
	}
}

// TestCorpusOutlivesTheProcess checks that a corpus is found by its name by a process that has not opened it, and that
// it is the same when the same is opened again.
func TestCorpusOutlivesTheProcess(t *testing.T) {
	w := newWorld(t, nil)
	w.write("a.txt", "one\n")
	name := w.open(".")
	w.set = &corpus.Set{Sessions: w.store, Key: w.set.Key}
	w.call("corpus_read", object{"corpus": name, "source": "a.txt"}, nil)
	if again := w.open("."); again != name {
		t.Errorf("%s, then %s", name, again)
	}
}

// TestGrepAgreesWithLines compares the hits in a text of several blocks with a search line by line.
func TestGrepAgreesWithLines(t *testing.T) {
	w := newWorld(t, nil)
	rnd := rand.New(rand.NewPCG(3, 4))
	var b strings.Builder
	for b.Len() < 4<<20 {
		b.WriteString(strings.Repeat("ab é", rnd.IntN(400)))
		if rnd.IntN(20) == 0 {
			fmt.Fprintf(&b, "Q%dx", rnd.IntN(1000))
		}
		b.WriteString([]string{"\n", "\r\n", "\n\n"}[rnd.IntN(3)])
	}
	text := b.String()
	w.write("a.txt", text)
	name := w.open(".")
	for _, expr := range []string{"Q[0-9]+", "[0-9]+x$", "(?i)q1", "^$", `^(ab|$)`, "Q7"} {
		var want []int64
		re, at, lines := regexp.MustCompile(expr), int64(0), int64(0)
		var numbers []int64
		for line := range strings.Lines(text) {
			lines++
			if re.MatchString(strings.TrimRight(line, "\r\n")) {
				want, numbers = append(want, at), append(numbers, lines)
			}
			at += int64(len(line))
		}
		var got struct {
			Total int
			Hits  []struct {
				Line, From, To int64
				Text           string
			}
		}
		w.call("corpus_grep", object{"corpus": name, "pattern": expr, "max": 40}, &got)
		if got.Total != len(want) || len(got.Hits) == 0 {
			t.Errorf("%s: %d lines, not %d", expr, got.Total, len(want))
		}
		for i, h := range got.Hits {
			if h.Line != numbers[i] || h.From < want[i] || text[h.From:h.To] != h.Text {
				t.Errorf("%s: %+v, not at byte %d of line %d", expr, h, want[i], numbers[i])
			}
		}
	}
}

// TestChangedWhileAsked checks that a source which is written to while its pieces are asked about brings no answers.
func TestChangedWhileAsked(t *testing.T) {
	model := &reader{answer: literal}
	w := newWorld(t, model)
	text := strings.Repeat("The code of vault 1 is 7.\n", 400)
	w.write("a.txt", text)
	name, pieces := w.open("."), []string{}
	for at := 0; at < len(text); at += 260 {
		pieces = append(pieces, fmt.Sprintf("0:%d-%d", at, at+260))
	}
	var first sync.Once
	model.each = func() {
		first.Do(func() { w.write("a.txt", strings.ReplaceAll(text, "7", "8")) })
	}
	res, err := w.try("ask_pieces", object{"corpus": name, "pieces": pieces, "question": "Which?", "schema": facts()}, nil)
	if !errors.Is(err, corpus.ErrChanged) || len(res.Parts) > 0 || res.Cost == 0 {
		t.Errorf("%v, %v", res, err)
	}
}

// TestPiecesCover checks that pieces cover a text in order, each within its length, and that overlapping ones share no
// more than allowed.
func TestPiecesCover(t *testing.T) {
	w := newWorld(t, nil)
	w.write("b.txt", strings.Repeat("x", 300+4*250)) // of which 5 pieces that share 50 bytes are all
	w.write("a.txt", strings.Repeat("A line of text, ä.\n\nAnother ünd longer paragraph that goes on.\n", 400)+strings.Repeat("ö", 3000))
	name := w.open(".")
	for _, overlap := range []int{0, 50, 150} {
		var out struct {
			Set    string
			Pieces int
		}
		w.call("corpus_pieces", object{"corpus": name, "bytes": 300, "overlap": overlap}, &out)
		r, err := w.env.Blobs.Get(t.Context(), out.Set)
		if err != nil {
			t.Fatal(err)
		}
		var set struct{ Pieces []string }
		if err := json.NewDecoder(r).Decode(&set); err != nil {
			t.Fatal(err)
		}
		r.Close()
		last, of := 0, 0
		for _, p := range set.Pieces {
			var source, from, to int
			if _, err := fmt.Sscanf(p, "%d:%d-%d", &source, &from, &to); err != nil {
				t.Fatal(err)
			}
			if source > of {
				if info, err := os.Stat(filepath.Join(w.root, "a.txt")); err != nil || int64(last) != info.Size() {
					t.Errorf("the last piece ends at %d: %v", last, err)
				}
				last, of = 0, source
			}
			if from > last || last > 0 && last-from > overlap || to <= last || to-from > 300 {
				t.Errorf("overlap %d: %s behind byte %d", overlap, p, last)
			}
			last = to
		}
		if of != 1 || last != 1300 {
			t.Errorf("the last piece ends at %d", last)
		}
	}
}

// TestOwnLog checks that a session can be asked why it did something: the evidence names the events.
func TestOwnLog(t *testing.T) {
	w := newWorld(t, &reader{answer: literal})
	appended(t, w.log, event.Opened{Root: w.root}, event.Say("Clean up the build.\nKeep the cache."),
		event.Replied{Parts: llm.Parts{
			llm.Text{Text: "I remove obj, as it is\nmade anew by every build."},
			llm.Call{ID: "c1", Name: "bash", Args: json.RawMessage(`{"command":"rm -r obj"}`)},
		}},
		event.Judged{Call: "c1", Action: tool.Allow, By: "rule bash(rm *)"},
		event.Ended{Call: "c1", Outcome: event.OutcomeOK, Parts: llm.Say("done")})
	name := w.open("session")
	if _, err := w.log.Append(t.Context(), event.Say("This comes later: rm -r.")); err != nil {
		t.Fatal(err)
	}
	var grep struct {
		Total int
		Hits  []object
	}
	w.call("corpus_grep", object{"corpus": name, "pattern": "made anew|rule bash|rm -r"}, &grep)
	var evidence []object
	for _, h := range grep.Hits {
		evidence = append(evidence, object{"source": h["source"], "from": h["from"], "to": h["to"], "quote": h["text"]})
	}
	var out corpus.Answer
	w.call("corpus_answer", object{"corpus": name, "answer": "Because obj is made anew, and a rule allows it.", "evidence": evidence}, &out)
	var events []uint64
	for _, e := range out.Evidence {
		events = append(events, e.Event)
		if !strings.HasPrefix(e.Quote, fmt.Sprintf("#%d ", e.Event)) {
			t.Errorf("%+v", e)
		}
	}
	if fmt.Sprint(events) != "[3 3 4]" {
		t.Errorf("%+v", out)
	}
}

// TestPastSessions checks which logs can be read: those of the same workspace.
func TestPastSessions(t *testing.T) {
	w := newWorld(t, nil)
	ids := map[string]string{}
	for name, root := range map[string]string{"here": w.root, "elsewhere": t.TempDir()} {
		log, err := w.store.Create(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = log.ID()
		appended(t, log, event.Opened{Root: root}, event.Say("Work "+name))
		log.Close()
	}
	var out listing
	w.call("corpus_list", object{"sources": []string{"sessions"}}, &out)
	if len(out.Sources) != 1 || out.Sources[0].Name != "session:"+ids["here"] {
		t.Errorf("%+v", out)
	}
	w.call("corpus_list", object{"sources": []string{"session:" + ids["here"]}}, &out)
	if _, err := w.try("corpus_list", object{"sources": []string{"session:" + ids["elsewhere"]}}, nil); err == nil {
		t.Error("a session of another workspace is read")
	}
	w.set.Sessions = nil
	if _, err := w.try("corpus_list", object{"sources": []string{"sessions"}}, nil); err == nil {
		t.Error("sessions are read where there are none")
	}
}

// TestOnlyNamedSources checks that a session opens the named sources, files below them, and nothing else.
func TestOnlyNamedSources(t *testing.T) {
	w := newWorld(t, nil)
	w.write("docs/a.txt", "one\n")
	w.write("docs/in/b.txt", "two\n")
	w.write("other.txt", "three\n")
	if err := os.Symlink("../other.txt", filepath.Join(w.root, "docs", "link")); err != nil {
		t.Fatal(err)
	}
	w.set.Only = []event.Source{{Name: "docs"}, {Name: "session:20261127-100000-aaaa"}}
	for _, name := range []string{"docs", "docs/in/b.txt", filepath.Join(w.root, "docs", "a.txt"), "docs/../docs"} {
		w.open(name)
	}
	for _, name := range []string{
		".", "..", "other.txt", "docs/../other.txt", "docs/link", "/etc/passwd", "session", "sessions", "session:" + w.log.ID(),
		"blob:x", "https://example.com/",
	} {
		if _, err := w.try("corpus_list", object{"sources": []string{"docs", name}}, nil); err == nil ||
			!strings.Contains(err.Error(), "is not one of the sources of the question: docs") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, fine := range map[string]bool{
		"docs": true, "sessions": true, "session:" + w.log.ID(): true, w.root: true,
		"nix": false, "": false, "-x": false, "session:nix": false, "file:///etc/passwd": false, "https://example.com/": true,
		"https://u:p@example.com/": false, "blob:x": false,
	} {
		if err := corpus.Exist(t.Context(), w.store, w.root, []string{name}); (err == nil) != fine {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestDecodings checks that UTF-16 and Latin-1 are read, searched and quoted, that the list says so, and that the
// places of Latin-1 are those of the file.
func TestDecodings(t *testing.T) {
	const text = "Größe: 7\nHerr Müller hat den Schlüssel in São Paulo.\n"
	utf16of := func(order binary.AppendByteOrder, mark bool, text string) string {
		var out []byte
		if mark {
			out = order.AppendUint16(out, 0xfeff)
		}
		for _, u := range utf16.Encode([]rune(text)) {
			out = order.AppendUint16(out, u)
		}
		return string(out)
	}
	var latin []byte
	for _, r := range text {
		latin = append(latin, byte(r))
	}
	w := newWorld(t, &reader{answer: func(string) (string, error) {
		return `{"answer":"Müller","quotes":["Herr Müller hat den Schlüssel"]}`, nil
	}})
	files := map[string]string{
		"marked-le.txt": utf16of(binary.LittleEndian, true, text), "marked-be.txt": utf16of(binary.BigEndian, true, text+"漢字\n"),
		"bare-le.txt": utf16of(binary.LittleEndian, false, text), "bare-be.txt": utf16of(binary.BigEndian, false, text),
		"latin.txt": string(latin), "plain.txt": text, "broken.txt": text + "\xff\n", "binary": "\x00\x01\x02\x03 Müller",
	}
	for name, content := range files {
		w.write(name, content)
	}
	var list struct {
		Corpus  string
		Sources []struct{ Name, Decoding string }
		Skipped map[string]int
	}
	w.call("corpus_list", object{"sources": []string{"."}}, &list)
	got := map[string]string{}
	for _, s := range list.Sources {
		got[s.Name] = s.Decoding
	}
	want := map[string]string{
		"marked-le.txt": "utf-16le", "marked-be.txt": "utf-16be", "bare-le.txt": "utf-16le", "bare-be.txt": "utf-16be",
		"latin.txt": "windows-1252", "plain.txt": "", "broken.txt": "",
	}
	if diff := cmp.Diff(want, got); diff != "" || list.Skipped["not text"] != 1 {
		t.Fatal(diff, list.Skipped)
	}
	var grep struct{ Hits []object }
	w.call("corpus_grep", object{"pattern": "herr mü[l]+er", "ignore_case": true}, &grep)
	if len(grep.Hits) != len(want) {
		t.Errorf("%d hits: %v", len(grep.Hits), grep.Hits)
	}
	for _, h := range grep.Hits {
		var out corpus.Answer
		w.call("corpus_answer", object{"answer": "Müller hat den Schlüssel in São Paulo.", "evidence": []object{
			{"source": h["source"], "from": h["from"], "to": h["to"], "quote": h["text"]},
		}}, &out)
		if name, _ := h["source"].(string); !out.Verified || out.Evidence[0].Decoding != want[name] {
			t.Errorf("%s: %+v", name, out)
		}
		if h["source"] == "latin.txt" {
			from, to := int(h["from"].(float64)), int(h["to"].(float64))
			if string(latin[from:to]) != "Herr M\xfcller hat den Schl\xfcssel in S\xe3o Paulo." {
				t.Errorf("bytes %d to %d are %q", from, to, latin[from:to])
			}
		}
	}
	var read struct{ Text string }
	w.call("corpus_read", object{"source": "latin.txt", "from": 3, "to": 8}, &read)
	if read.Text != "ße: 7" {
		t.Errorf("%q", read.Text)
	}
	var cut struct{ Set string }
	w.call("corpus_pieces", object{"bytes": 1000}, &cut)
	var said asked
	w.call("ask_pieces", object{"set": cut.Set, "question": "Who?", "schema": object{"type": "string"}}, &said)
	if len(said.Answers) != len(want) {
		t.Fatalf("%+v", said)
	}
	for _, a := range said.Answers {
		w.call("corpus_answer", object{"answer": "Müller hat den Schlüssel.", "evidence": []object{
			{"source": a.Source, "from": a.Evidence[0]["from"], "to": a.Evidence[0]["to"], "quote": a.Evidence[0]["quote"]},
		}}, nil)
	}
}
