package router

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/inspan/inspan/llm"
)

// Limits after which the task of a run counts as hard, whatever it looked like.
const (
	mostFailing = 3  // calls and checks that fail, and no check succeeds between them
	mostAgain   = 3  // times that the same call brings the same result
	mostUseless = 2  // replies in a row of which nothing can be made
	mostTurns   = 40 //
	mostFiles   = 12 // files that it has changed
)

// stuck says which event of a run makes its task hard; empty means none.
func stuck(w llm.Work) string {
	switch {
	case w.Failing >= mostFailing:
		return fmt.Sprintf("%d calls or checks failed since a check succeeded", w.Failing)
	case w.Again >= mostAgain:
		return fmt.Sprintf("the same call returned the same result %d times", w.Again)
	case w.Useless >= mostUseless:
		return fmt.Sprintf("%d replies in a row were of no use", w.Useless)
	case w.Turns >= mostTurns:
		return fmt.Sprintf("it has taken %d turns", w.Turns)
	case w.Files >= mostFiles:
		return fmt.Sprintf("it has changed %d files", w.Files)
	}
	return ""
}

// task returns the person's request: their last words, with earlier ones that these continue.
func task(req llm.Request) (said []string) {
	for i, m := range slices.Backward(req.Messages) {
		known := req.Work.Person == nil || slices.Contains(req.Work.Person, i)
		words := strings.TrimSpace(m.Parts.Text())
		if m.Role != llm.User || !known || words == "" {
			continue
		}
		said = append(said, words)
		if _, why := begins(words); why != short || columns(words) > mostFollowUp {
			break // it stands by itself
		}
	}
	slices.Reverse(said)
	return said
}

// Limits for a task that a small model can begin.
const (
	fewColumns = 32  // of the whole text
	mostRunes  = 600 //
	mostLines  = 4   //
	mostNamed  = 3   // files
)

// mostFollowUp is the maximum width, in columns, of a text that makes sense only with the one before it, such
// as "go on".
const mostFollowUp = 20

const short = "the task is short"

// begins says whether a task looks hard before anything was done, and why. It does not depend on any language:
// a task is small if it asks a question, or names what it is about, such as a file or something in quotes. A
// task that only describes a problem leaves the search for its place to the model.
func begins(said string) (hard bool, why string) {
	lines := 0
	for line := range strings.Lines(said) {
		lines += min(len(strings.TrimSpace(line)), 1)
	}
	files := 0
	for field := range strings.FieldsSeq(said) {
		if isFile(strings.TrimRight(strings.TrimFunc(field, notOfName), ".-")) {
			files++
		}
	}
	switch {
	case len([]rune(said)) > mostRunes:
		return true, "the task is a long text"
	case lines > mostLines:
		return true, fmt.Sprintf("the task has %d lines", lines)
	case files > mostNamed:
		return true, fmt.Sprintf("the task names %d files", files)
	case strings.HasSuffix(said, "?"), strings.HasSuffix(said, "？"), strings.HasSuffix(said, "؟"):
		return false, "the task is a question"
	case files > 0:
		return false, "the task names a file"
	case strings.ContainsFunc(said, quotes), slices.ContainsFunc(strings.Fields(said), isCode):
		return false, "the task quotes what it is about"
	case columns(said) <= fewColumns:
		return false, short
	}
	return true, "the task does not name where its work is"
}

// columns estimates the width of a text: letters of scripts without spaces count twice.
func columns(said string) int {
	n := 0
	for _, r := range said {
		n++
		if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai) {
			n++
		}
	}
	return n
}

func quotes(r rune) bool { return strings.ContainsRune("`\"“”„«»「」『』", r) }

// isCode reports whether a word is written like a name in a program: snake_case, call(), --flag, #hex.
func isCode(word string) bool {
	word = strings.Trim(word, ".,;:!")
	return strings.Contains(strings.Trim(word, "_"), "_") || strings.Contains(word, "()") ||
		len(word) > 2 && (strings.HasPrefix(word, "--") || strings.HasPrefix(word, "#"))
}

func notOfName(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/.~_-", r)
}

// isFile reports whether a word looks like the name of a file or folder, maybe with a line number: it has an
// extension in small letters, begins like a path, or has two slashes.
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
	named := len(ext) >= 2 && !strings.ContainsFunc(ext[1:], func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}) && (ext[1] < '0' || ext[1] > '9') && (len(ext) <= 6 || ext == word)
	return named || strings.Count(word, "/") >= 2 || len(word) > 1 && strings.HasSuffix(word, "/")
}
