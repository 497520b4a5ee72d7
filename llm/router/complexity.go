package router

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/inspan/inspan/llm"
)

// Complexity estimates how hard it is to go on, from 0 to 1, by what a person
// said last and how the run has gone since. signs names what it saw. The
// weights are a rule of thumb, to be read and argued with:
//
//	always                                          0.15
//	each 150 words, in proportion                   0.25, to 0.25
//	a word of hard work: refactor, race, why ...    0.30, to 0.60
//	one of easy work, and none of hard: list ...    -0.10, to -0.20
//	a file or folder named                          0.06, to 0.24
//	a line of a list                                0.05, to 0.15
//	a block of code                                 0.05, to 0.10
//	a stack trace                                   0.20
//	a failed result among the last eight            0.10, to 0.30
//	a turn of the run beyond the fifth              0.02, to 0.20
//
// Only the first 16 KB of what was said are looked at.
func Complexity(messages []llm.Message) (score float64, signs string) {
	said, run := lastSaid(messages)
	said = said[:min(len(said), 16<<10)]
	words, files, hard, easy := read(said)
	turns, failed := progress(run)
	lines := listed(said)
	blocks := strings.Count(said, "```") / 2
	score = 0.15 +
		0.25*min(float64(words)/150, 1) +
		0.30*float64(min(len(hard), 2)) +
		-0.10*float64(min(len(easy), 2)) +
		0.06*float64(min(files, 4)) +
		0.05*float64(min(lines, 3)) +
		0.05*float64(min(blocks, 2)) +
		0.10*float64(min(failed, 3)) +
		0.02*float64(min(max(turns-5, 0), 10))
	seen := append([]string{plural(words, "word"), plural(files, "file")}, append(hard, easy...)...)
	if traced(said) {
		score += 0.20
		seen = append(seen, "a stack trace")
	}
	for _, sign := range []struct {
		n    int
		what string
	}{{lines, "list line"}, {blocks, "code block"}, {failed, "failed result"}, {turns, "turn"}} {
		if sign.n > 0 {
			seen = append(seen, plural(sign.n, sign.what))
		}
	}
	return min(max(score, 0), 1), strings.Join(seen, ", ")
}

// lastSaid returns the last text in a user message, and the messages since.
func lastSaid(messages []llm.Message) (said string, since []llm.Message) {
	for i, m := range slices.Backward(messages) {
		if m.Role != llm.User {
			continue
		}
		if text := m.Parts.Text(); strings.TrimSpace(text) != "" {
			return text, messages[i+1:]
		}
	}
	return "", messages
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

// hardWords begin the words that speak of hard work, easyWords the phrases that
// ask for little.
func hardWords() []string {
	return []string{
		"algorithm", "architect", "bottleneck", "concurren", "consisten", "corrupt", "deadlock", "debug", "design", "distributed",
		"flak", "intermittent", "invariant", "leak", "migrat", "optimi", "parallel", "performance", "proof", "prove", "race", "racy",
		"redesign", "refactor", "regression", "restructur", "rewrite", "scalab", "scheduler", "secur", "segfault", "trade-off", "tradeoff",
		"vulnerab", "why",
	}
}

func easyWords() []string {
	return []string{
		"bump", "capitali", "count", "delete", "format", "hello", "list", "print", "rename", "show", "sort", "spell", "summar",
		"thanks", "translat", "typo", "what is", "what's", "what does", "where is", "which file",
	}
}

// read counts words and names of files, and finds the words that tell how hard
// the work is, each once: those of hard work, else those of easy work.
func read(text string) (words, files int, hard, easy []string) {
	note := func(found []string, word string, stems []string) []string {
		for _, stem := range stems {
			if strings.HasPrefix(word, stem) && !slices.Contains(found, stem) {
				return append(found, stem)
			}
		}
		return found
	}
	hardStems, easyStems := hardWords(), easyWords()
	before := ""
	for field := range strings.FieldsSeq(text) {
		words++
		word := strings.TrimFunc(field, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/.~_-", r)
		})
		word = strings.TrimRight(word, ".-")
		if isFile(word) {
			files++
			before = ""
			continue
		}
		word = strings.ToLower(word)
		hard = note(hard, word, hardStems)
		easy = note(note(easy, word, easyStems), before+" "+word, easyStems)
		before = word
	}
	if len(hard) > 0 {
		easy = nil
	}
	return words, files, hard, easy
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
