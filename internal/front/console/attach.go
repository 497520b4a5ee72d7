package console

import (
	"context"
	"fmt"
	"iter"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/words"
)

// Attachment configures how a person watches a session that another process drives.
type Attachment struct {
	Whole  bool    // show all events from the first one on, not only the current run
	Reads  bool    // the transcript is the product, so all of it goes to standard output
	Person *Person // steers the run and answers its questions; nil if no one does
	Leaves bool    // the end of the person's input means that they leave, as at a terminal

	// Greeting is printed when signals are handled, so that it can mention keys; may be empty.
	Greeting string
	// Left reports whether the person has left before that. It may be nil.
	Left func() bool
	// Stays means that a stopped run is not the end: the person's next input begins another.
	Stays bool
	// Interrupts means that Ctrl-C interrupts the run, and only leaves if no run is in progress or when it is
	// pressed again. Otherwise Ctrl-C leaves.
	Interrupts bool
	// Server is the address of the session's server, for hints; empty means this machine.
	Server string
	// Lost returns the reason why the session can't be reached now; nil if it can. It is called as often as Driven.
	// If Lost is nil, the session can always be reached.
	Lost func() error
	// Close ends a session that stays, after its run has stopped. If nil, it can't be ended from here.
	Close func(ctx context.Context) error
	// Driven reports whether a process drives the session. It is called a few times a second, and two negative
	// answers in a row are believed.
	Driven func(ctx context.Context) (bool, error)
	// Remember stores rules that the person allows for the project in the workspace root, or always. If nil, an
	// approval holds for the session at most.
	Remember func(ctx context.Context, root string, scope event.Scope, rules []string) error
}

// Attach shows a session that another process drives. It returns the exit code of the run when the run stops, or
// ExitDone if the person or a signal leaves. If no process drives the session any more, that is an error, or
// ExitWaiting if a question is open. It also returns ExitWaiting at a question after the end of the person's input.
func (c *Console) Attach(ctx context.Context, s *inspan.Watch, a Attachment) (code int, err error) {
	w := &attached{Attachment: a, console: c, session: s, told: map[string]bool{}}
	w.head = s.Status().Seq
	if a.Person != nil {
		w.lines = a.Person.lines
	}
	shown := c
	if a.Reads {
		shown = c.reading()
	}
	shown.prepareOutput(s.Status)
	v := newView(shown)
	err = v.printPast(w.events(ctx))
	if a.Person != nil && w.lines != nil {
		a.Person.discard() // it was not typed for the shell
	}
	if err == nil {
		code, err = w.end()
	}
	if err != nil {
		return ExitError, err
	}
	if c.Form != "" && c.Form != Text {
		r := v.result(s.Status(), nil)
		if r.ExitCode = code; w.left {
			r.Reason, r.Detail = "detached", "the run continues"
		}
		code = c.Finish(r)
	}
	return code, nil
}

// attached is a session on the screen of a person who watches it.
type attached struct {
	Attachment
	console *Console
	session *inspan.Watch
	lines   <-chan string // what the person types; nil after the end of input
	signals chan os.Signal

	head   uint64          // the last event at the beginning, and again when no process drove it any more
	seq    uint64          // the last event that was shown
	asked  string          // the call that the person is asked about; empty if none
	prompt *prompt         // where the answer comes from; nil if no question is open
	soon   approval        // the question to ask when the prompt has been open long enough
	broken bool            // something was shown below the question
	told   map[string]bool // waiting calls that the person has answered, or was told about
	ready  bool            // everything from the beginning is shown, and open questions were asked
	late   bool            // the person's next input may answer a question that is closed
	held   string          // such late input; Enter sends it to the model
	left   bool            // the person has left
	idle   bool            // the person was told that no run is in progress
	gone   bool            // it seems that no process drives the session any more
	lost   bool            // the person was told that it can't be reached
	cancel bool            // the person has interrupted the run
	waits  bool            // a question is open, and the input that could answer it has ended
}

// lull is how long no event must come before an open question is asked: if it was answered already, the answer
// comes soon.
const lull = 20 * time.Millisecond

// again is the delay before a question is repeated whose answer was not taken, since another answer may be on
// its way.
const again = 300 * time.Millisecond

// lookEvery is how often the driver is checked.
const lookEvery = 250 * time.Millisecond

// end gives the reason why there is no more to see.
func (w *attached) end() (int, error) {
	id, st := w.session.ID(), w.session.Status()
	hint := func(command string) string { return words.Command(w.Server, command, id) }
	if w.left {
		done := fmt.Sprintf("detached; session %s continues; attach again with: %s", id, hint("attach"))
		if w.Stays && !st.Active {
			done = fmt.Sprintf("left; session %s stays open; come back with: %s", id, hint("attach"))
			if w.Close != nil {
				done += "\nclose it with: " + hint("stop")
			}
		}
		fmt.Fprintln(w.console.Err, "\n"+done)
		return ExitDone, nil
	}
	switch {
	case w.waits:
		return ExitWaiting, nil
	case !st.Active && st.Stopped != nil:
		if w.Stays {
			fmt.Fprintln(w.console.Err, "· the task is over")
		}
		return ExitCode(string(st.Stopped.Reason), st.Stopped.Cause, nil), nil
	case len(questions(st)) > 0 && w.Server == "":
		fmt.Fprintf(w.console.Err, "a question is open, and no process here runs the session; continue with: %s\n", hint("resume"))
		return ExitWaiting, nil
	case w.Server != "":
		return ExitError, fmt.Errorf("the server does not continue session %s; see it with: %s", id, hint("logs"))
	}
	return ExitError, fmt.Errorf("session %s is no longer running; continue it with: %s", id, hint("resume"))
}

// streamed is an event, or the reason why no more will come.
type streamed struct {
	event.Event
	err error
}

// events yields the events to show, and handles input and signals meanwhile.
func (w *attached) events(ctx context.Context) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		w.signals = make(chan os.Signal, 1)
		signal.Notify(w.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		defer signal.Stop(w.signals)
		if w.Greeting != "" {
			fmt.Fprintln(w.console.Err, w.Greeting)
		}
		if w.left = w.Left != nil && w.Left(); w.left {
			return
		}
		coming, stop := w.follow(ctx)
		defer stop()
		look := time.NewTicker(lookEvery)
		defer look.Stop()
		quiet := time.NewTimer(lull)
		defer quiet.Stop()
		defer w.closePrompt()
		for on := true; on; {
			var err error
			select {
			case n := <-coming:
				on, err = w.show(n, yield)
				quiet.Reset(lull)
			case <-quiet.C:
				on = w.askIfOpen()
			case <-w.waitShown():
				w.prompt.shown = nil
				w.Person.printQuestion(w.prompt, w.Person.offer(w.soon))
			case line, ok := <-w.nextInput():
				on = w.onLine(ctx, line, ok)
				w.repeatQuestion(quiet, again)
			case <-look.C:
				w.onLink()
				w.repeatQuestion(quiet, lull)
				on, err = w.watchDriver(ctx)
			case sig := <-w.signals:
				on = w.onSignal(ctx, sig)
				w.repeatQuestion(quiet, lull)
			}
			if err != nil {
				yield(event.Event{}, err)
				return
			}
		}
	}
}

// follow passes on the events of the session until it is stopped.
func (w *attached) follow(ctx context.Context) (coming <-chan streamed, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	out, done := make(chan streamed), make(chan struct{})
	var after uint64
	if !w.Whole {
		after = w.session.RunStart()
	}
	w.seq = after
	go func() {
		defer close(done)
		for e, err := range w.session.Live(ctx, after) {
			select {
			case out <- streamed{e, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, func() { cancel(); <-done }
}

// caughtUp reports whether everything from the beginning has been shown.
func (w *attached) caughtUp() bool { return w.seq >= w.head }

// show shows an event, below an open question, which it may answer.
func (w *attached) show(n streamed, yield func(event.Event, error) bool) (bool, error) {
	if n.err != nil {
		return false, n.err
	}
	if n.Transient() && (w.asked != "" || !w.caughtUp()) {
		return true, nil // it must not break up a question
	}
	if !n.Transient() {
		w.seq = n.Seq
	}
	w.startLine()
	if d, ok := n.Body.(event.Decided); ok && d.Call == w.asked {
		w.withdrawQuestion(words.AnsweredBy(d))
	}
	return yield(n.Event, nil), nil
}

// startLine begins a line below an open question.
func (w *attached) startLine() {
	if w.asked != "" && !w.broken {
		fmt.Fprintln(w.console.Err)
		w.broken = true
	}
}

// repeatQuestion repeats a question after a time if it is no longer the last thing on the screen, unless something
// happens before.
func (w *attached) repeatQuestion(quiet *time.Timer, after time.Duration) {
	if w.asked != "" && w.broken {
		quiet.Reset(after)
	}
}

// onLink says when the session can't be reached any more, and when it can again.
func (w *attached) onLink() {
	var err error
	if w.Lost != nil {
		err = w.Lost()
	}
	lost := err != nil
	if lost == w.lost {
		return
	}
	w.lost = lost
	w.startLine()
	if v := newView(w.console); lost {
		v.printNote("the connection is lost: "+err.Error()+"; inspan tries again", true)
	} else {
		v.printNote("the connection is back", false)
	}
}

// withdrawQuestion withdraws the open question, and gives the reason why.
func (w *attached) withdrawQuestion(why string) {
	fmt.Fprintln(w.console.Err, "  ("+words.OneLine(why, 80)+")")
	w.asked, w.late = "", true
	w.closePrompt()
}

// watchDriver detects that no process drives the session any more.
func (w *attached) watchDriver(ctx context.Context) (bool, error) {
	if !w.caughtUp() {
		return true, nil
	}
	somebody, err := w.Driven(ctx)
	before := w.gone
	if w.gone = !somebody; w.gone && err == nil { // the last events may not have been read yet
		w.head, err = w.session.LastSeq(ctx)
	}
	return somebody || !before, err
}

// questions returns the open questions, those of children first.
func questions(st inspan.Status) []inspan.Pending { return inspan.Sets(st.Questions()) }

// askIfOpen asks an open question, if there is a person, and reports whether there will be more to see.
func (w *attached) askIfOpen() bool {
	if !w.caughtUp() {
		return true
	}
	st := w.session.Status()
	if !st.Active && st.Stopped != nil && !w.Stays {
		return false
	}
	if idle := !st.Active; idle != w.idle {
		if w.idle, w.cancel = idle, false; idle && w.Person != nil {
			fmt.Fprintln(w.console.Err, "· the agent is idle; type a message, or Ctrl-D to leave")
		}
	}
	if w.asked != "" && w.openIndex(questions(st)) < 0 {
		w.withdrawQuestion("the question is no longer open")
	}
	w.ask(questions(st))
	w.ready = true
	return !w.waits
}

// nextInput returns the next input of the person. It waits until the person can see the prompt for it: a line that
// was there before answers a question, and is not meant for the model.
func (w *attached) nextInput() <-chan string {
	switch {
	case !w.ready:
		return nil
	case w.prompt != nil:
		return w.prompt.shownAnswers()
	}
	return w.lines
}

// waitShown returns when the question may be shown.
func (w *attached) waitShown() <-chan time.Time {
	if w.prompt == nil {
		return nil
	}
	return w.prompt.shown
}

// closePrompt closes an open prompt, and returns the text that was typed and not sent.
func (w *attached) closePrompt() (typed []rune) {
	if w.prompt != nil {
		typed = w.prompt.close()
		w.prompt = nil
	}
	return typed
}

// ask asks the first question that the person has not answered.
func (w *attached) ask(list []inspan.Pending) {
	waits := map[string]bool{}
	for _, p := range list {
		waits[p.Call.ID] = true
	}
	for id := range w.told {
		if !waits[id] {
			delete(w.told, id)
		}
	}
	next := slices.IndexFunc(list, func(p inspan.Pending) bool { return !w.told[p.Call.ID] })
	if next < 0 || list[next].Call.ID == w.asked && !w.broken {
		return
	}
	if w.lines == nil {
		w.explainUnanswerable(list[next])
		w.waits = w.Person != nil
		return
	}
	w.asked, w.broken = list[next].Call.ID, false
	w.showQuestion(list[next])
}

// explainUnanswerable says where to answer a question that can't be answered here.
func (w *attached) explainUnanswerable(p inspan.Pending) {
	w.told[p.Call.ID] = true
	id := w.session.ID()
	why := words.Brief(p.Root, p.Raised(), p.Calls())
	fmt.Fprintf(w.console.Err, "? %s asks (%s); answer it with: %s, or %s\n", words.OneLine(p.Name(), 40), words.OneLine(reasonOf(p, why), 200),
		words.Command(w.Server, "attach", id), words.Command(w.Server, "send", "--allow", words.OneLine(p.ID(), 60), id))
}

// openIndex returns the index of the question that the person was asked; -1 if it no longer waits.
func (w *attached) openIndex(list []inspan.Pending) int {
	return slices.IndexFunc(list, func(p inspan.Pending) bool { return p.Call.ID == w.asked })
}

// showQuestion shows everything that would happen, and the question. Text that the person has typed to it stays.
func (w *attached) showQuestion(p inspan.Pending) {
	var draft []rune
	seen := w.prompt != nil && w.prompt.shown == nil && w.soon.Call.ID == p.Call.ID
	if typed := w.closePrompt(); seen {
		draft = append([]rune{}, typed...)
	}
	w.late, w.held = false, ""
	w.Person.show(p)
	w.soon = approval{Pending: p, lasting: w.Remember != nil}
	w.prompt = w.Person.open(w.soon.choices(), draft)
	if w.prompt.shown == nil {
		w.Person.printQuestion(w.prompt, w.Person.offer(w.soon))
	}
}
