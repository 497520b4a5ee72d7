package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/markdown"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

// Person asks someone at a terminal. Use NewPerson.
type Person struct {
	out         io.Writer
	console     *Console
	keyboard    *keyboard   // nil if the input is not a terminal
	lines       chan string // what the person types while no question is open at the terminal; closed at the end of input
	interrupted chan struct{}
}

// NewPerson reads answers from in and prints questions to out. If in is a terminal, a single key can answer.
// The goroutine that reads lives as long as the process, because a read from a terminal can't be cancelled.
func NewPerson(c *Console, in io.Reader, out io.Writer) *Person {
	p := &Person{out: out, console: c, keyboard: keyboardOf(in, out), lines: make(chan string), interrupted: make(chan struct{}, 1)}
	if p.keyboard != nil {
		go p.keyboard.read(p.lines)
		return p
	}
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(in); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	return p
}

// open opens a question. A single key may choose among the choices, if there are any, and draft is the text that
// the person has already typed. The caller must close it.
func (p *Person) open(choices []string, draft []rune) *prompt {
	if p.keyboard != nil {
		return p.keyboard.ask(choices, draft)
	}
	return &prompt{answers: p.lines, close: func() []rune { return nil }}
}

// printQuestion prints a question that has been open long enough, and makes it take answers.
func (p *Person) printQuestion(q *prompt, question string) {
	rules := strings.LastIndexByte(question, '\n') + 1 // rules are shown as they are
	question = question[:rules] + words.Wrap(question[rules:], p.console.width(p.out))
	if p.keyboard != nil {
		question += p.keyboard.acceptAnswers(q)
	}
	fmt.Fprint(p.out, question)
}

// shownAnswers returns the channel of answers; nil until the question is shown.
func (q *prompt) shownAnswers() <-chan string {
	if q.shown != nil {
		return nil
	}
	return q.answers
}

// answer asks and waits for a line. It fails if ctx ends or the question is withdrawn.
func (p *Person) answer(ctx context.Context, q *prompt, words string, off <-chan struct{}) (line string, more bool, err error) {
	if q.shown == nil {
		p.printQuestion(q, words)
	}
	for {
		select {
		case <-q.shown:
			q.shown = nil
			p.printQuestion(q, words)
		case line, more = <-q.shownAnswers():
			if !more {
				fmt.Fprintln(p.out)
			}
			return line, more, nil
		case <-off:
			fmt.Fprintln(p.out)
			return "", false, nil
		case <-ctx.Done():
			fmt.Fprintln(p.out)
			return "", false, ctx.Err()
		}
	}
}

// decide shows the effects of a call and waits for an answer: an event.Decided, or an event.Cancelled if the person
// leaves. It passes a note for the model to tell before that. It fails if the question is withdrawn.
func (p *Person) decide(ctx context.Context, w inspan.Pending, tell func(note string) error) (event.Body, error) {
	p.show(w)
	a := approval{Pending: w, lasting: true}
	q := p.open(a.choices(), nil)
	defer func() { q.close() }()
	for {
		line, more, err := p.answer(ctx, q, p.offer(a), nil)
		switch {
		case err != nil:
			switch cause := context.Cause(ctx); {
			case errors.Is(cause, inspan.ErrAnswered):
				fmt.Fprintln(p.out, "  (answered elsewhere)")
			case errors.Is(cause, context.DeadlineExceeded):
				fmt.Fprintln(p.out, "  (nobody answered in time)")
			}
			return nil, err
		case !more:
			return event.Cancelled{By: "the end of input"}, nil
		}
		d, note, problem := a.parse(line)
		if problem == "" && d.Call != "" {
			if note != "" {
				err = tell(note)
			}
			return d, err
		}
		if problem != "" {
			fmt.Fprintln(p.out, "  "+problem)
		}
		q.close()
		q = p.open(a.choices(), a.draft())
	}
}

// raise asks whether a run that has reached a limit may use as much again, and returns the inputs to continue
// it.
func (p *Person) raise(ctx context.Context, st inspan.Status) ([]event.Body, error) {
	if st.Stopped == nil {
		return nil, nil
	}
	more := words.Raised(st.Limits, *st.Stopped)
	if more == nil {
		return nil, nil
	}
	yes, err := p.Agrees(ctx, p.console.paint(yellow, "? "+text.Visible(st.Stopped.Detail)+":")+" "+words.GoOn(*st.Stopped)+"?")
	if !yes {
		return nil, err
	}
	return []event.Body{event.Switched{Limits: more}, event.Said{}}, nil
}

// Agrees asks a yes-no question; anything but yes is no.
func (p *Person) Agrees(ctx context.Context, question string) (bool, error) {
	select {
	case <-p.interrupted: // earlier input is not for this question
	default:
	}
	q := p.open([]string{"yes", "no"}, nil)
	defer q.close()
	line, more, err := p.answer(ctx, q, question+" [y]es [n]o ", p.interrupted)
	return more && words.Choice(line) == "y", err
}

// interrupt withdraws the command's own open question, if there is one.
func (p *Person) interrupt() {
	select {
	case p.interrupted <- struct{}{}:
	default:
	}
}

// show prints the question, and everything that would happen.
func (p *Person) show(w inspan.Pending) {
	if w.IsQuestion && w.Preview != "" {
		fmt.Fprintln(p.out, p.console.paint(yellow, "? "+strings.ReplaceAll(text.VisibleLines(w.Preview), "\n", "\n    ")))
		return
	}
	q := words.Consents(w.Root, w.Name(), w.Raised(), w.Calls())
	title := p.console.paint(yellow, "? "+q.Title)
	if why := text.Line(reasonOf(w, q.Why)); why != "" {
		title += " " + p.console.paint(dim, "("+why+")")
	}
	fmt.Fprintln(p.out, title)
	if q.Preview != "" {
		p.preview(q.Preview)
	}
	if q.Command != "" {
		p.indented("$ " + strings.ReplaceAll(q.Command, "\n", "\n  "))
	}
	if q.Others != "" {
		p.indented(q.Others)
	}
	for _, line := range q.Effects {
		p.indented(line)
	}
}

// reasonOf returns the reason why something is asked, which is otherwise why. A tool that a client runs asks for
// its result.
func reasonOf(w inspan.Pending, why string) string {
	for _, e := range w.Effects {
		if w.IsQuestion && w.Preview == "" && e.Kind == tool.Question && e.Text != "" {
			return e.Text
		}
	}
	return why
}

// preview prints the preview of a call: a diff with line numbers and marked words, or other text as it is.
func (p *Person) preview(shown string) {
	if !strings.HasPrefix(shown, "--- ") {
		for line := range strings.Lines(shown) {
			p.indented(p.console.paintDiff(text.Visible(strings.TrimRight(line, "\n"))))
		}
		return
	}
	width := p.console.width(p.out)
	if width > 0 {
		width = max(width-4, 1)
	}
	p.indented(markdown.Diff(shown, width, markdown.Style{NoColor: !p.console.Color}))
}

// indented prints lines behind a margin.
func (p *Person) indented(lines string) {
	fmt.Fprintln(p.out, "    "+strings.ReplaceAll(lines, "\n", "\n    "))
}

// discard drops what was typed at the terminal and not read.
func (p *Person) discard() {
	if p.keyboard != nil {
		discard(p.keyboard.tty)
	}
}
