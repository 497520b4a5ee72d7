package console

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
)

// Actions of a person who watches a session. Failures are reported, and end nothing.

// onLine handles a typed line: a command, an answer, or words for the model. It reports whether there will be
// more to see.
func (w *attached) onLine(ctx context.Context, line string, ok bool) bool {
	blank := strings.TrimSpace(line) == ""
	late, held := w.late, w.held
	switch {
	case !ok:
		w.lines = nil
		if w.left = w.Leaves; !w.left && w.asked != "" { // no one is left to answer
			w.startLine()
			w.explainUnanswerable(w.soon.Pending)
			w.waits = true
		}
	case w.command(ctx, line):
	case w.asked != "":
		w.answer(ctx, line)
	case blank && held == "":
	case blank:
		w.held = ""
		w.say(ctx, held)
	case late:
		w.late, w.held = false, line
		fmt.Fprintf(w.console.Err, "  (not sent: %q, as the question is answered already; press Enter to send it to the model)\n", words.OneLine(line, 60))
	default:
		w.held = ""
		w.say(ctx, line)
	}
	return !w.left && !w.waits
}

// say sends the model a message.
func (w *attached) say(ctx context.Context, line string) {
	w.confirmArrival(line, w.send(ctx, event.Steered{Origin: event.OriginPerson, Parts: llm.Say(line), By: "inspan attach"}))
}

// errLeft means that the person has left before something was done.
var errLeft = errors.New("you have left")

// runUnlessSignalled does something that may take a while, unless a signal comes first: then the person has left.
func (w *attached) runUnlessSignalled(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	select {
	case err := <-done:
		return err
	case <-w.signals:
		w.left = true
		stop()
		if err := <-done; err == nil {
			return nil
		}
		return errLeft
	}
}

// send sends an input to the process that drives the session.
func (w *attached) send(ctx context.Context, input event.Body) error {
	return w.runUnlessSignalled(ctx, func(ctx context.Context) error { return w.session.Send(ctx, input) })
}

// confirmArrival reports whether the person's input has arrived, and tells them if not.
func (w *attached) confirmArrival(what string, err error) bool {
	if err != nil {
		w.startLine()
		newView(w.console).printNote(fmt.Sprintf("not confirmed: %q: %v", words.OneLine(what, 60), err), true)
	}
	return err == nil
}

// answer sends the person's answer to the open question.
func (w *attached) answer(ctx context.Context, line string) {
	st := w.session.Status()
	list, p := questions(st), &w.soon // as it was shown: others may have come since
	i := w.openIndex(list)
	if i < 0 {
		return // someone else was faster, and that is about to be shown
	}
	d, note, problem := p.parse(line)
	switch {
	case problem != "":
		fmt.Fprintln(w.Person.out, "  "+problem)
		w.showQuestion(list[i])
		return
	case d.Call == "": // the person wants to edit the command
		w.closePrompt()
		w.prompt = w.Person.open(p.choices(), p.draft())
		w.Person.printQuestion(w.prompt, w.Person.offer(*p))
		return
	}
	err := error(nil)
	if note != "" {
		err = w.send(ctx, event.Steered{Origin: event.OriginPerson, Parts: llm.Say(note), By: "inspan attach"})
	}
	if err == nil && d.Allow && (d.Scope == event.ScopeProject || d.Scope == event.ScopeAlways) { // only offered with Remember
		err = w.Remember(ctx, st.Root, d.Scope, d.Grants(p.Rules, p.Offers))
	}
	if err == nil {
		err = w.send(ctx, p.Answer(d))
	}
	if !w.confirmArrival(line, err) {
		w.broken = true // so that it is asked again
		w.closePrompt()
		return
	}
	w.told[p.Call.ID], w.asked = true, ""
	w.closePrompt()
	w.ask(list)
}

// onSignal handles a signal, and reports whether there will be more to see.
func (w *attached) onSignal(ctx context.Context, sig os.Signal) bool {
	if sig != os.Interrupt || !w.Interrupts || w.cancel || !w.session.Status().Active {
		w.left = true
		return false
	}
	fmt.Fprintln(w.console.Err) // behind ^C
	w.broken = w.asked != ""
	w.interrupt(ctx)
	return !w.left
}

// interrupt stops the run. Its questions are closed with it.
func (w *attached) interrupt(ctx context.Context) {
	w.startLine()
	if !w.session.Status().Active {
		fmt.Fprintln(w.console.Err, "· no run to interrupt")
		return
	}
	w.cancel = true
	if w.confirmArrival("interrupt", w.send(ctx, event.Cancelled{By: "inspan attach", All: true})) {
		fmt.Fprintln(w.console.Err, "· interrupting; Ctrl-C leaves")
	}
}

// slash is a command for a person who watches a session.
type slash struct {
	name, doc string
	run       func(w *attached, ctx context.Context)
}

// slashes lists the commands.
func (w *attached) slashes() []slash {
	list := []slash{{"/interrupt", "interrupt the run", (*attached).interrupt}}
	if w.Close != nil {
		list = append(list, slash{"/close", "end the task; without this it stays open when you leave", (*attached).finish})
	}
	return append(list, slash{"/help", "list these commands", (*attached).help})
}

// command runs a line that begins with a slash, and reports whether it was a command. If a question takes any
// words, such a line may be the answer.
func (w *attached) command(ctx context.Context, line string) bool {
	if !strings.HasPrefix(line, "/") {
		return false
	}
	list := w.slashes()
	at := slices.IndexFunc(list, func(s slash) bool { return s.name == strings.TrimSpace(line) })
	switch {
	case at >= 0:
		list[at].run(w, ctx)
	case w.asked != "" && w.soon.IsQuestion:
		return false
	default:
		w.startLine()
		fmt.Fprintf(w.console.Err, "  unknown command %q; /help lists all. To send it to the model, put a space before it\n", words.OneLine(line, 40))
	}
	return true
}

func (w *attached) help(context.Context) {
	w.startLine()
	for _, s := range w.slashes() {
		fmt.Fprintf(w.console.Err, "  %-12s %s\n", s.name, s.doc)
	}
	fmt.Fprintln(w.console.Err, "  Other lines answer the open question, or else steer the model. Ctrl-D leaves.")
}

// finish closes the session.
func (w *attached) finish(ctx context.Context) {
	w.startLine()
	if w.confirmArrival("/close", w.runUnlessSignalled(ctx, w.Close)) {
		fmt.Fprintln(w.console.Err, "· closing; the task ends when its run has stopped")
	}
}
