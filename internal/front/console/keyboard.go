package console

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"github.com/inspan/inspan/internal/view/words"
)

// seeing is how long a question must be shown at a terminal before it takes an answer. Text typed meanwhile was
// meant for something else.
const seeing = 500 * time.Millisecond

// keyboard is the input of a person at a terminal: whole lines and, while a question is open that a key can answer,
// single keys. Then the terminal neither echoes nor edits, so the keyboard does.
//
// A lone y or n answers at once. Other keys, pasted text and the keys of lasting answers form a line that Enter
// sends. The up and down arrows put the words of the choices into the line, and Tab begins a note after such a
// word. Text typed before a question is never its answer.
type keyboard struct {
	tty  *os.File
	echo io.Writer

	mu    sync.Mutex
	open  *prompt       // the open question; nil if none
	next  chan struct{} // closed when a question opens
	key   string        // the last answering key, which may be the beginning of a word
	ended bool
}

// prompt is one open question.
type prompt struct {
	answers <-chan string         // closed at the end of input
	shown   <-chan time.Time      // when it may be shown; nil means now
	close   func() (typed []rune) // restores the terminal, and returns text that was not sent; may be called again

	to      chan string
	gone    chan struct{}
	choices []string // words that the arrow keys choose from
	at      int      // the chosen one; -1 if none
	keys    bool     // single keys are read, otherwise lines
	ready   bool
	line    []rune
	stray   bool // something was dropped, and the person was told
}

// keyboardOf returns the keyboard of a terminal; nil if in is not one.
func keyboardOf(in io.Reader, echo io.Writer) *keyboard {
	f, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return &keyboard{tty: f, echo: echo, next: make(chan struct{})}
}

// read passes on typed text until the end of input.
func (k *keyboard) read(lines chan<- string) {
	defer k.end(lines)
	var rest []byte // of a line, or of a character
	buf := make([]byte, 4096)
	for {
		n, err := k.tty.Read(buf)
		rest = append(rest, buf[:n]...)
		if err != nil || !k.consume(&rest, lines) {
			return
		}
	}
}

// end reports the end of input.
func (k *keyboard) end(lines chan<- string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	if k.open != nil {
		close(k.open.to)
	}
	close(lines)
}

// consume consumes the typed bytes, except for an incomplete rest. It returns false at the end of input.
func (k *keyboard) consume(rest *[]byte, lines chan<- string) bool {
	for len(*rest) > 0 {
		k.mu.Lock()
		q := k.open
		k.mu.Unlock()
		if q != nil && q.keys {
			if !utf8.FullRune(*rest) {
				return true
			}
			text := string(*rest)
			*rest = nil
			if !k.onKeys(q, text) {
				return false
			}
			continue
		}
		line, after, whole := strings.Cut(string(*rest), "\n")
		if !whole {
			return true
		}
		*rest = []byte(after)
		k.onLine(q, line, lines)
	}
	return true
}

// onLine passes a line to the question, or else to the reader of lines until a question opens.
func (k *keyboard) onLine(q *prompt, line string, lines chan<- string) {
	k.mu.Lock()
	key, next := k.key, k.next
	k.key = ""
	k.mu.Unlock()
	if key != "" && (line == "" || words.Choice(key+line) != "") {
		return // the rest of the word that the key began
	}
	if q != nil {
		if k.acceptsNow(q, line) {
			q.deliver(line)
		}
		return
	}
	select {
	case lines <- line:
	case <-next:
	}
}

// onKeys handles keys for a question. It returns false if they end the input.
func (k *keyboard) onKeys(q *prompt, text string) bool {
	if !k.acceptsNow(q, text) {
		return true
	}
	k.mu.Lock()
	line, sent, ended := k.edit(q, text)
	if sent {
		q.ready, q.stray = false, true
	}
	k.mu.Unlock()
	if sent {
		q.deliver(line)
	}
	return !ended
}

// acceptsNow reports whether the typed text can be meant for the question, and says so if not.
func (k *keyboard) acceptsNow(q *prompt, text string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !q.ready && !q.stray && strings.TrimSpace(text) != "" {
		q.stray = true
		fmt.Fprintln(k.echo, "  (dropped what was typed before the question)")
	}
	return q.ready
}

// acceptAnswers makes the question take answers from here on, and returns the text that was typed before.
func (k *keyboard) acceptAnswers(q *prompt) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	q.ready = true
	return string(q.line)
}

// edit handles keys in the line of a question.
func (k *keyboard) edit(q *prompt, text string) (line string, sent, ended bool) {
	if choice := words.Choice(text); len(q.choices) > 0 && len(q.line) == 0 && len(text) == 1 && (choice == "y" || choice == "n") {
		fmt.Fprintln(k.echo, text)
		k.key = choice
		return text, true, false
	}
	for _, r := range ansi.Strip(withArrows(text)) { // without other keys that write nothing
		switch {
		case r == arrowUp:
			k.choose(q, -1)
		case r == arrowDown:
			k.choose(q, 1)
		case r == '\t':
			k.beginNote(q)
		case r == '\r' || r == '\n':
			line, q.line = string(q.line), nil
			fmt.Fprintln(k.echo)
			return line, true, false
		case r == 0x7f || r == '\b':
			k.erase(q, 1)
		case r == 0x15: // Ctrl-U
			k.erase(q, len(q.line))
		case r == 0x04 && len(q.line) == 0: // Ctrl-D
			return "", false, true
		case r >= ' ':
			q.line = append(q.line, r)
			fmt.Fprint(k.echo, string(r))
		}
	}
	return "", false, false
}

// Arrow keys as single characters of a private area, which no one types.
const (
	arrowUp   = '\U000F0000'
	arrowDown = '\U000F0001'
)

// withArrows replaces the sequences that terminals send for the arrow keys by these characters.
func withArrows(text string) string {
	up, down := string(arrowUp), string(arrowDown)
	return strings.NewReplacer("\x1b[A", up, "\x1bOA", up, "\x1b[B", down, "\x1bOB", down).Replace(text)
}

// choose replaces the line by the next choice in a direction, unless the person has written something else.
func (k *keyboard) choose(q *prompt, by int) {
	n := len(q.choices)
	if n == 0 || len(q.line) > 0 && (q.at < 0 || string(q.line) != q.choices[q.at]) {
		return
	}
	if q.at += by; q.at < 0 {
		q.at = n - 1
	}
	q.at %= n
	k.erase(q, len(q.line))
	q.line = []rune(q.choices[q.at])
	fmt.Fprint(k.echo, q.choices[q.at])
}

// beginNote begins a note after the word or key of a choice that allows the call; an empty line becomes the first
// one.
func (k *keyboard) beginNote(q *prompt) {
	if len(q.line) == 0 {
		k.choose(q, 1)
	}
	if key := words.Choice(string(q.line)); key == "" || key == "n" {
		return
	}
	q.line = append(q.line, ':', ' ')
	fmt.Fprint(k.echo, ": ")
}

// erase removes the last characters of the line.
func (k *keyboard) erase(q *prompt, n int) {
	n = min(n, len(q.line))
	gone := q.line[len(q.line)-n:]
	q.line = q.line[:len(q.line)-n]
	cells := ansi.StringWidth(string(gone))
	fmt.Fprint(k.echo, strings.Repeat("\b", cells)+strings.Repeat(" ", cells)+strings.Repeat("\b", cells))
}

// deliver passes a line to the asker, if that still waits.
func (q *prompt) deliver(line string) {
	select {
	case q.to <- line:
	case <-q.gone:
	}
}

// ask opens a question. A single key may choose among the choices; without choices and draft, whole lines answer.
// Draft is the text that the person has already typed for the same question, or nil for a new one.
func (k *keyboard) ask(choices []string, draft []rune) *prompt {
	k.mu.Lock()
	defer k.mu.Unlock()
	q := &prompt{to: make(chan string), gone: make(chan struct{}), choices: choices, at: -1, line: draft}
	restore := func() {}
	if len(choices) > 0 || len(draft) > 0 {
		if back, err := single(k.tty); err == nil {
			restore, q.keys = back, true
		}
	}
	q.answers = q.to
	if draft == nil {
		q.shown = time.After(seeing)
	}
	k.open, k.key = q, ""
	close(k.next)
	k.next = make(chan struct{})
	if k.ended {
		close(q.to)
	}
	q.close = sync.OnceValue(func() []rune {
		k.mu.Lock()
		defer k.mu.Unlock()
		restore()
		close(q.gone)
		if k.open == q {
			k.open = nil
		}
		return q.line
	})
	return q
}
