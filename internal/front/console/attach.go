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

// Attachment is how somebody looks at a session that another process drives.
type Attachment struct {
	Whole  bool    // from the first event on; else the current run
	Reads  bool    // the transcript is what was asked for, so that all of it goes to standard output
	Person *Person // steers the run and answers what it asks; nil: nobody does
	Leaves bool    // the end of what the person types means that they leave, as at a terminal

	// Greeting is said when signals are heard, so that it can tell of keys; empty: nothing is.
	Greeting string
	// Left reports whether the person has left before that. Nil: nobody has.
	Left func() bool
	// Stays says that a run which stops is not the end: what the person types then begins another.
	Stays bool
	// Interrupts says that Ctrl-C interrupts the run, and only leaves where none goes on or when it is
	// pressed again. Else it leaves.
	Interrupts bool
	// Server is the address of the server that has the session, for hints; empty: this machine.
	Server string
	// Lost says why the session can't be reached now; nil: it can. It is asked as often as Driven. A
	// nil function means that it always can.
	Lost func() error
	// Close ends a session that stays, when its run has stopped. Nil: nobody can from here.
	Close func(ctx context.Context) error
	// Driven reports whether somebody drives the session. It is asked a few times a
	// second, and believed to be a no when it says so twice.
	Driven func(ctx context.Context) (bool, error)
	// Remember keeps the rules that the person allows for the project in the workspace
	// root, or always. Nil: an approval holds for the session at most.
	Remember func(ctx context.Context, root string, scope event.Scope, rules []string) error
}

// Attach shows a session that another process drives until its run stops, which gives
// the exit code; until the person or a signal leaves it to itself (ExitDone), or nobody
// drives it any more, which is an error unless it asks (ExitWaiting).
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
	shown.shape(s.Status)
	v := newView(shown)
	err = v.all(w.events(ctx))
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
		c.Finish(r)
	}
	return code, nil
}

// attached is a session on the screen of somebody who looks at it.
type attached struct {
	Attachment
	console *Console
	session *inspan.Watch
	lines   <-chan string // what the person types; nil: nothing comes any more
	signals chan os.Signal

	head   uint64          // event that was the last one at the beginning, and when nobody drove it any more
	seq    uint64          // event that was shown last
	asked  string          // the call that the person is asked about; empty: none
	prompt *prompt         // where the answer to that comes from; nil: none is open
	soon   inspan.Pending  // what is asked once the prompt has stood long enough
	broken bool            // something was shown below the question
	told   map[string]bool // calls that the person has answered, or was told of, and that still wait
	ready  bool            // all that was there at the beginning is shown, and what waited is asked
	late   bool            // what the person types next may be an answer to a question that is closed
	held   string          // what was typed so late; Enter tells it the model
	left   bool            // the person has left
	idle   bool            // the person was told that no run goes on
	gone   bool            // nobody drives it any more, as it seems
	lost   bool            // the person was told that it can't be reached
	cancel bool            // the person has interrupted the run
}

// lull is how long no event must come before what waits is asked: of what has been
// answered already the answer is near.
const lull = 20 * time.Millisecond

// again is how long it takes until a question is put again whose answer was not taken: there may be
// an answer that is on its way here.
const again = 300 * time.Millisecond

// lookEvery is how often it is asked whether somebody drives the session.
const lookEvery = 250 * time.Millisecond

// end says why there is no more to see.
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
	case !st.Active && st.Stopped != nil:
		if w.Stays {
			fmt.Fprintln(w.console.Err, "· the task is over")
		}
		return ExitCode(string(st.Stopped.Reason), st.Stopped.Cause, nil), nil
	case len(questions(st)) > 0 && w.Server == "":
		fmt.Fprintf(w.console.Err, "a question is open, and no process here runs the session; continue with: %s\n", hint("resume"))
		return ExitWaiting, nil
	case w.Server != "":
		return ExitError, fmt.Errorf("the server does not go on with session %s; see it with: %s", id, hint("logs"))
	}
	return ExitError, fmt.Errorf("session %s is no longer running; continue it with: %s", id, hint("resume"))
}

// news is an event that came, or why there are no more.
type news struct {
	event.Event
	err error
}

// events yields what is to be shown, and does what is to be done meanwhile.
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
		defer w.shut()
		for on := true; on; {
			var err error
			select {
			case n := <-coming:
				on, err = w.show(n, yield)
				quiet.Reset(lull)
			case <-quiet.C:
				on = w.settle()
			case <-w.shown():
				w.prompt.shown = nil
				w.Person.put(w.prompt, question(w.soon, w.Remember != nil))
			case line, ok := <-w.input():
				on = w.typed(ctx, line, ok)
				w.repeat(quiet, again)
			case <-look.C:
				w.reach()
				w.repeat(quiet, lull)
				on, err = w.driven(ctx)
			case sig := <-w.signals:
				on = w.signalled(ctx, sig)
				w.repeat(quiet, lull)
			}
			if err != nil {
				yield(event.Event{}, err)
				return
			}
		}
	}
}

// follow hands on the events of the session, and those that come, until it is stopped.
func (w *attached) follow(ctx context.Context) (coming <-chan news, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	out, done := make(chan news), make(chan struct{})
	var after uint64
	if !w.Whole {
		after = w.session.Began()
	}
	w.seq = after
	go func() {
		defer close(done)
		for e, err := range w.session.Live(ctx, after) {
			select {
			case out <- news{e, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, func() { cancel(); <-done }
}

// caughtUp reports whether all that was there at the beginning has been shown.
func (w *attached) caughtUp() bool { return w.seq >= w.head }

// show shows an event, below the question if one stands there. Somebody else may have
// answered it.
func (w *attached) show(n news, yield func(event.Event, error) bool) (bool, error) {
	if n.err != nil {
		return false, n.err
	}
	if n.Transient() && (w.asked != "" || !w.caughtUp()) {
		return true, nil // it must not break up a question
	}
	if !n.Transient() {
		w.seq = n.Seq
	}
	w.below()
	if d, ok := n.Body.(event.Decided); ok && d.Call == w.asked {
		w.close(words.AnsweredBy(d))
	}
	return yield(n.Event, nil), nil
}

// below begins a line below the question, if one stands there.
func (w *attached) below() {
	if w.asked != "" && !w.broken {
		fmt.Fprintln(w.console.Err)
		w.broken = true
	}
}

// repeat has a question that is no longer the last thing on the screen put again after a time, unless
// something happens before.
func (w *attached) repeat(quiet *time.Timer, after time.Duration) {
	if w.asked != "" && w.broken {
		quiet.Reset(after)
	}
}

// reach tells when the session can't be reached any more, and when it can again.
func (w *attached) reach() {
	var err error
	if w.Lost != nil {
		err = w.Lost()
	}
	lost := err != nil
	if lost == w.lost {
		return
	}
	w.lost = lost
	w.below()
	if v := newView(w.console); lost {
		v.tell("the connection is lost: "+err.Error()+"; inspan tries again", true)
	} else {
		v.tell("the connection is back", false)
	}
}

// close takes back the question that the person is asked, and says why.
func (w *attached) close(why string) {
	fmt.Fprintln(w.console.Err, "  ("+words.OneLine(why, 80)+")")
	w.asked, w.late = "", true
	w.shut()
}

// driven notices when nobody drives the session any more.
func (w *attached) driven(ctx context.Context) (bool, error) {
	if !w.caughtUp() {
		return true, nil
	}
	somebody, err := w.Driven(ctx)
	before := w.gone
	if w.gone = !somebody; w.gone && err == nil { // what was written last may not have been read yet
		w.head, err = w.session.End(ctx)
	}
	return somebody || !before, err
}

// questions are those that wait, those of children first.
func questions(st inspan.Status) []inspan.Pending { return inspan.Sets(st.Questions()) }

// settle asks what waits, if there is somebody to ask, and reports whether there will
// be more to see.
func (w *attached) settle() bool {
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
	if w.asked != "" && w.standing(questions(st)) < 0 {
		w.close("the question is no longer open")
	}
	w.ask(questions(st))
	w.ready = true
	return true
}

// input is what the person types. It waits until they could see what they type it for: a line
// that is there before is an answer to what waits, and not words for the model.
func (w *attached) input() <-chan string {
	switch {
	case !w.ready:
		return nil
	case w.prompt != nil:
		return w.prompt.heard()
	}
	return w.lines
}

// shown is when the question that was put may be shown.
func (w *attached) shown() <-chan time.Time {
	if w.prompt == nil {
		return nil
	}
	return w.prompt.shown
}

// shut closes the prompt, if one is open, and returns what was typed to it and not sent.
func (w *attached) shut() (typed []rune) {
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
		w.tell(list[next])
		return
	}
	w.asked, w.broken = list[next].Call.ID, false
	w.put(list[next])
}

// tell says where a question can be answered that nobody can answer here.
func (w *attached) tell(p inspan.Pending) {
	w.told[p.Call.ID] = true
	id := w.session.ID()
	p.Reason, p.Preview = words.Asking(p.Root, p.Reason, p.Preview, p.Calls())
	fmt.Fprintf(w.console.Err, "? %s asks (%s); answer it with: %s, or %s\n", words.OneLine(p.Name(), 40), words.OneLine(asksWhy(p), 200),
		words.Command(w.Server, "attach", id), words.Command(w.Server, "send", "--allow", words.OneLine(p.ID(), 60), id))
}

// standing is where in the list the question is that the person was asked; -1: it no
// longer waits.
func (w *attached) standing(list []inspan.Pending) int {
	return slices.IndexFunc(list, func(p inspan.Pending) bool { return p.Call.ID == w.asked })
}

// put shows all that would happen, and the question. What the person has typed to it stays.
func (w *attached) put(p inspan.Pending) {
	var draft []rune
	seen := w.prompt != nil && w.prompt.shown == nil && w.soon.Call.ID == p.Call.ID
	if typed := w.shut(); seen {
		draft = append([]rune{}, typed...)
	}
	w.late, w.held = false, ""
	w.Person.show(p)
	w.prompt, w.soon = w.Person.open(!p.Asks, draft), p
	if w.prompt.shown == nil {
		w.Person.put(w.prompt, question(p, w.Remember != nil))
	}
}
