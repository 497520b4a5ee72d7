package router

import (
	"path"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/llm"
)

// Complexity estimates how hard it is to go on with the task of a request, from 0 to 1, by
// what was said and how the run has gone since. signs names what it saw. The weights are a
// rule of thumb, to be read and argued with; docs/ROUTING.md tells how often they are right.
// What words say is in words.txt:
//
//	always                                          0.15
//	each 150 words, in proportion                   0.25, to 0.25
//	an act that reaches deep: refactor, port ...    0.55
//	something large: compiler, transaction ...      0.50
//	a fault hard to find: race, leak, sometimes ... 0.55
//	why                                             0.25
//	much at once: whole, everywhere ...             0.25, and 0.15 where something is to be made or done to it
//	a change: replace, remove ...                   0.15
//	something new, or to be found out: write,
//	implement, investigate ...                      0.15; with no file named and nothing small said of it 0.42,
//	                                                and 0.03 for each word beyond the third, to 0.24
//	a further word of these                         0.10, to 0.30
//	work that asks for little: list, typo ...       -0.10, to -0.20
//	a file or folder named                          0.06, to 0.24
//	a line of a list                                0.05, to 0.15
//	a block of code                                 0.05, to 0.10
//	a stack trace                                   0.20
//	a call that failed since a check succeeded      0.11, to 0.77; with five of them all is 0.75 at least
//	a turn of the run beyond the fifth              0.02, to 0.20
//	a file changed beyond the third                 0.01, to 0.10
//
// Where a text begins with work that asks for little, what is large, hard to find or much in
// it counts a quarter: it is only spoken of. A text that goes on with what was said before,
// such as "yes, do it", is as hard as that, and 0.05 harder where a plan lies between.
//
// Only the first 16 KB of each text are looked at.
func Complexity(req llm.Request) (score float64, signs string) {
	t := newLexicon().task(req)
	return t.score, t.signs
}

// task is what is seen of one.
type task struct {
	score   float64
	signs   string
	goesOn  bool // the last text goes on with what was said before
	failing int  // calls that have failed since a check succeeded
}

// stuck is the least complexity of a run in which mostFailing calls have failed.
const stuck = 0.75

// mostBefore is how many texts of a person are looked back at.
const mostBefore = 12

func (l lexicon) task(req llm.Request) task {
	at := spoken(req)
	var t task
	from := 0
	if len(at) > 0 {
		from = at[len(at)-1] + 1
		t = l.said(req, at[max(0, len(at)-mostBefore):])
	} else {
		t.score, t.signs = l.text("").sum()
	}
	turns, failed := progress(req.Messages[from:])
	t.failing = max(failed, req.Work.Failing)
	t.score += 0.11*float64(min(t.failing, 7)) + 0.02*float64(min(max(turns-5, 0), 10)) + 0.01*float64(min(max(req.Work.Files-3, 0), 10))
	if t.failing >= mostFailing {
		t.score = max(t.score, stuck)
	}
	seen := []string{t.signs}
	for _, sign := range []struct {
		n    int
		what string
	}{{t.failing, "failed call"}, {turns, "turn"}, {req.Work.Files, "changed file"}} {
		if sign.n > 0 {
			seen = append(seen, text.Count(sign.n, sign.what))
		}
	}
	t.score, t.signs = min(max(t.score, 0), 1), strings.Join(seen, ", ")
	return t
}

// spoken are the messages in which a person says something.
func spoken(req llm.Request) []int {
	var at []int
	for i, m := range req.Messages {
		known := req.Work.Person == nil || slices.Contains(req.Work.Person, i)
		if m.Role == llm.User && known && strings.TrimSpace(m.Parts.Text()) != "" {
			at = append(at, i)
		}
	}
	return at
}

// said scores the last of these messages, with what it goes on with.
func (l lexicon) said(req llm.Request, at []int) task {
	var chain []reading // from the text that begins a task on
	for _, i := range slices.Backward(at) {
		r := l.text(req.Messages[i].Parts.Text())
		chain = append(chain, r)
		if !r.goesOn() {
			break
		}
	}
	slices.Reverse(chain)
	at = at[len(at)-len(chain):]
	var t task
	t.score, t.signs = chain[0].sum()
	for n, r := range chain[1:] {
		before := t.score
		if planned(req, at[n], at[n+1]) {
			before += 0.05
		}
		t.goesOn = true
		score, signs := r.sum()
		if before > score {
			t.score, t.signs = before, "goes on with "+strings.TrimPrefix(t.signs, "goes on with ")
		} else {
			t.score, t.signs = score, signs
		}
	}
	return t
}

// planned reports whether a plan was made between two messages.
func planned(req llm.Request, from, to int) bool {
	return req.Work.Plan >= 3 || slices.ContainsFunc(req.Messages[from:to], func(m llm.Message) bool {
		return m.Role == llm.Assistant && listed(m.Parts.Text()) >= 3
	})
}

// reading is what is seen of one text.
type reading struct {
	words, files, lines, blocks int
	traced                      bool
	act, thing, flaw, scope     []string
	making, doing, hunt         []string
	cause, light                []string
	follows                     bool
	spokenOf                    bool // it begins with work that asks for little
}

func (l lexicon) text(said string) reading {
	said = said[:min(len(said), 16<<10)]
	r := reading{lines: listed(said), blocks: strings.Count(said, "```") / 2, traced: traced(said)}
	var text string
	text, r.words, r.files = plain(said)
	first := make([]int, 7)
	r.act, first[0] = l.found(deep, text)
	if start := opening(text); len(r.act) == 0 {
		r.act, first[0] = l.found(lead, start)
	}
	r.thing, first[1] = l.found(large, text)
	r.flaw, first[2] = l.found(flaw, text)
	r.scope, first[3] = l.found(scope, text)
	r.making, first[4] = l.found(making, text)
	r.cause, first[5] = l.found(cause, text)
	r.doing, first[6] = l.found(doing, text)
	r.hunt, _ = l.found(hunt, text)
	var easy int
	r.light, easy = l.found(light, text)
	r.spokenOf = easy >= 0 && (first[0] < 0 || easy < first[0]) && (first[4] < 0 || easy < first[4]) && (len(r.scope) == 0 || first[6] < 0 || easy < first[6])
	r.follows = l.begins(follow, text)
	return r
}

// opening are the first two words of a text.
func opening(text string) string {
	words := strings.Fields(text)
	return " " + strings.Join(words[:min(2, len(words))], " ") + " "
}

// goesOn reports whether a text makes sense only with what was said before.
func (r reading) goesOn() bool {
	short := r.words <= 12 && r.files <= 1
	return short && (len(r.light) == 0 || r.follows)
}

// sum weighs what was seen.
func (r reading) sum() (score float64, signs string) {
	hard := 0.0
	for _, w := range []struct {
		words  []string
		weight float64
	}{{r.thing, 0.50}, {r.flaw, 0.55}, {r.scope, 0.25}, {r.cause, 0.25}} {
		if len(w.words) > 0 {
			hard += w.weight + 0.10*float64(min(len(w.words)-1, 3))
		}
	}
	if len(r.scope) > 0 && len(r.making)+len(r.doing)+len(r.act) > 0 {
		hard += 0.15
	}
	if r.spokenOf {
		hard /= 4
	}
	if len(r.act) > 0 {
		hard += 0.55
	}
	switch {
	case len(r.making)+len(r.hunt) > 0 && len(r.light) == 0 && r.files == 0:
		hard += 0.42 + 0.03*float64(min(max(r.words-3, 0), 8))
	case len(r.making)+len(r.doing)+len(r.hunt) > 0:
		hard += 0.15
	}
	score = 0.15 + hard +
		0.25*min(float64(r.words)/150, 1) +
		-0.10*float64(min(len(r.light), 2)) +
		0.06*float64(min(r.files, 4)) +
		0.05*float64(min(r.lines, 3)) +
		0.05*float64(min(r.blocks, 2))
	seen := slices.Concat([]string{text.Count(r.words, "word"), text.Count(r.files, "file")}, r.act, r.thing, r.flaw, r.scope, r.making, r.doing, r.hunt, r.cause, r.light)
	if r.traced {
		score += 0.20
		seen = append(seen, "a stack trace")
	}
	if r.lines > 0 {
		seen = append(seen, text.Count(r.lines, "list line"))
	}
	if r.blocks > 0 {
		seen = append(seen, text.Count(r.blocks, "code block"))
	}
	return min(max(score, 0), 1), strings.Join(seen, ", ")
}

// progress counts the turns of a run, and the failures among its last eight
// results.
func progress(run []llm.Message) (turns, failed int) {
	results := 0
	for _, m := range slices.Backward(run) {
		if m.Role == llm.Assistant {
			turns++
		}
		for _, part := range m.Parts {
			if r, ok := part.(llm.Result); ok && results < 8 {
				results++
				if r.Error {
					failed++
				}
			}
		}
	}
	return turns, failed
}

// isFile reports whether a word looks like the name of a file or folder, maybe
// with a line in it: it has an extension in small letters, or begins like a
// path, or has two slashes.
func isFile(word string) bool {
	word = strings.TrimRight(word, ":0123456789")
	if strings.Contains(word, "://") || word == "e.g" || word == "i.e" {
		return false
	}
	for _, start := range []string{"/", "./", "../", "~/"} {
		if strings.HasPrefix(word, start) && len(word) > len(start) {
			return true
		}
	}
	ext := path.Ext(word)
	named := len(ext) >= 2 && len(ext) <= 6 && len(word) > len(ext) && !strings.ContainsFunc(ext[1:], func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}) && (ext[1] < '0' || ext[1] > '9')
	return named || strings.Count(word, "/") >= 2 || len(word) > 1 && strings.HasSuffix(word, "/")
}

// listed counts the lines of lists.
func listed(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		digits := strings.TrimLeft(line, "0123456789")
		numbered := len(digits) < len(line) && (strings.HasPrefix(digits, ". ") || strings.HasPrefix(digits, ") "))
		if numbered || strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "* ") {
			n++
		}
	}
	return n
}

// traced reports whether the text holds a stack trace.
func traced(text string) bool {
	return slices.ContainsFunc([]string{
		"\ngoroutine ", "panic: ", "Traceback (most recent call last)", "\n\tat ", "\n    at ", "stack backtrace:", "SIGSEGV",
	}, func(mark string) bool { return strings.Contains("\n"+text, mark) })
}
