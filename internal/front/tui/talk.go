package tui

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// talk is the conversation with the open session: its view, its runs, and the inputs that it does not have yet.
type talk struct {
	outbox
	tui     *TUI
	ctx     context.Context
	hints   *hints
	runner  *runner
	backend backend
	view    *view

	opts     app.Options       // for sessions that are opened from now on
	coming   string            // the model that answers from the next request on; empty if it is unchanged
	opening  bool              // a session is being opened or closed
	closing  bool              // the previous session is being closed, and the person's next request waits for that
	running  bool              // a run is in progress here
	wanted   tool.Mode         // mode that was switched to in this run, until the log says so; empty if none
	putBack  func(said string) // puts queued words back into the prompt
	driver   string            // the process that continues its run elsewhere, in words; empty if none, as far as known
	trouble  string            // why the session's server can't be reached, in a word; empty if it can
	deferred []later           // what waits for the run to end, or for the session to close
}

// note prints a line of the front end, warn a line that stands out, and printText plain text. They may contain what
// was typed, or the text of an error.
func (t *talk) note(text string)      { t.view.note(words.Hidden(text)) }
func (t *talk) warn(text string)      { t.view.warn(words.Hidden(text)) }
func (t *talk) printText(text string) { t.view.add(&block{kind: plainBlock, text: words.Hidden(text)}) }

// noteResult is note as the rest of work.
func (t *talk) noteResult(text string) tea.Cmd {
	t.note(text)
	return nil
}

// unchanged tells the person that a refused change was not made.
func (t *talk) unchanged() { t.note("nothing was changed") }

// fail prints an error, unless it is nil.
func (t *talk) fail(err error) {
	if err != nil {
		t.warn(err.Error())
	}
}

// warner returns a function that warns the person from any goroutine.
func (t *talk) warner() func(string) {
	send := t.runner.send
	return func(text string) { send(told(text)) }
}

// work runs do in a goroutine, and then calls then with its result in the event loop.
func (t *talk) work(do func(context.Context) (string, error), then func(string) tea.Cmd) tea.Cmd {
	ctx := t.ctx
	return func() tea.Msg {
		text, err := do(ctx)
		return later(func() tea.Cmd {
			if err != nil {
				t.fail(err)
				return nil
			}
			return then(text)
		})
	}
}

// apply folds the events of a frame. A run that begins here without being asked for belongs to another process.
func (t *talk) apply(events batch) tea.Cmd {
	before := t.cutOff()
	for _, e := range events {
		if !e.Transient() && e.Seq <= t.view.Seq {
			continue
		}
		if d, ok := e.Body.(event.Decided); ok {
			t.noteAnswer(d)
		}
		if w, ok := e.Body.(event.Withdrawn); ok {
			t.onWithdrawn(w)
		}
		t.view.Apply(e)
		switch b := e.Body.(type) {
		case event.Asked:
			t.coming = ""
		case event.Switched:
			if b.Mode == t.wanted {
				t.wanted = ""
			}
		case event.Stopped:
			t.interrupted()
			t.measure()
		case event.Replied, event.Compacted, event.Pruned:
			t.measure()
		case event.Said:
			t.onSeen(b, b.By, e.Seq)
		case event.Steered:
			t.onSeen(b, b.By, e.Seq)
		}
	}
	if before || !t.cutOff() {
		return nil
	}
	return t.findDriver(func() tea.Cmd { return nil })
}

// measure updates how full the window is, so that the status line and /context agree.
func (t *talk) measure() {
	if s := t.runner.session(); s != nil {
		t.view.filled = s.Context().Tokens
	}
}

// noteAnswer prints who answered an open question, unless the person here did.
func (t *talk) noteAnswer(d event.Decided) {
	here := t.undecide(d.Call)
	i := slices.IndexFunc(t.view.Now.Questions, func(q *transcript.Question) bool { return d.On(q.ID, q.Seq) })
	if i >= 0 && !here && t.runner.session() != nil {
		t.note(answeredElsewhere(t.view.Now.Questions[i], d))
	}
}

// start runs the session with inputs, as soon as possible.
func (t *talk) start(inputs ...event.Body) tea.Cmd {
	switch {
	case t.opening || t.running:
		t.held = append(t.held, inputs...)
		return nil
	case t.runner.session() == nil:
		t.recordBegin(inputs, t.tui.clock())
		return t.open(inputs...)
	}
	t.recordBegin(inputs, t.tui.clock())
	t.running, t.driver, t.wanted = true, "", switchedTo(inputs)
	t.runner.drive(inputs...)
	return nil
}

// send sends an input into the current run. Text is shown until the session has it.
func (t *talk) send(body event.Body, text string) { t.runner.post(t.next(body, text)) }

// queues reports whether the person's words wait for the run to end, and can be taken back.
func (t *talk) queues() bool {
	if !t.running && !t.drivenElsewhere() {
		return false
	}
	return slices.ContainsFunc(t.view.Queued(), t.isTakeable) || slices.ContainsFunc(t.held, isSaid) || t.hasUnderway()
}

// isTakeable reports whether a message is the person's own, and not being taken back already.
func (t *talk) isTakeable(s *transcript.Said) bool {
	return s.By == "" && !slices.Contains(t.asked, s.Seq)
}

// takeBack takes back the messages that wait for the run to end, including those on their way. The person has
// them at once, and the log learns of it before any later input. The run continues.
func (t *talk) takeBack() {
	var back []string
	for _, s := range t.view.Queued() {
		if !t.isTakeable(s) {
			continue
		}
		back, t.asked = append(back, s.Text), append(t.asked, s.Seq)
		if t.running {
			t.send(event.Withdrawn{Of: s.Seq}, "")
		} else {
			t.sendToDriver(event.Withdrawn{Of: s.Seq}, "")
		}
	}
	for i, p := range t.mine {
		if isUnderway(p) {
			back, t.mine[i].back = append(back, p.text), true
			t.runner.post(input{back: p.n})
		}
	}
	for _, said := range slices.Backward(append(back, t.takeBackHeld()...)) {
		t.putBack(said)
	}
	t.hints.say("the queued text is back in the prompt; press again to interrupt")
}

// onWithdrawn handles the log's word that a message was taken back. If its run had begun already, the message is
// in both places.
func (t *talk) onWithdrawn(w event.Withdrawn) {
	waits := slices.ContainsFunc(t.view.Queued(), func(s *transcript.Said) bool { return s.Seq == w.Of })
	if slices.Contains(t.asked, w.Of) && !waits {
		t.warn("it was too late to take a message back: its run has started; Esc interrupts it")
	}
	t.asked = slices.DeleteFunc(t.asked, func(seq uint64) bool { return seq == w.Of })
}

// withFiles sends a message together with the content of files that it names, which is not taken for the
// person's wish.
func (t *talk) withFiles(text string, say func(files []event.Body) tea.Cmd) tea.Cmd {
	a, root, ctx := t.tui.here(), t.root(), t.ctx
	if a == nil || !strings.Contains(text, "@") {
		return say(nil)
	}
	return func() tea.Msg {
		told, err := a.Permission.Named(ctx, root, text)
		return later(func() tea.Cmd {
			if t.fail(err); len(told.Parts) == 0 {
				return say(nil)
			}
			return say([]event.Body{told})
		})
	}
}

// tellSession tells the session something that is not a wish of the person's.
func (t *talk) tellSession(said event.Said) tea.Cmd {
	switch {
	case t.running:
		t.send(said, "")
		return nil
	case t.drivenElsewhere():
		t.sendToDriver(said, "")
		return nil
	}
	return t.start(said)
}

// onInputSent handles the outcome of send. An input that came too late for its run begins another.
func (t *talk) onInputSent(msg inputSent) tea.Cmd {
	if msg.err == nil {
		return nil
	}
	if i := slices.IndexFunc(t.mine, func(p posted) bool { return p.n == msg.n && p.back }); i >= 0 {
		t.mine = slices.Delete(t.mine, i, i+1) // it never arrived, and the person has it
		return nil
	}
	if errors.Is(msg.err, inspan.ErrRunEnded) {
		return t.start(msg.body)
	}
	if d, ok := msg.body.(event.Decided); ok {
		t.undecide(d.Call) // the question is asked again
	}
	lost, ok := t.takeLost(msg.n)
	if !ok {
		t.fail(msg.err)
		return nil
	}
	t.warn("not sent: " + msg.err.Error() + ": " + lost.text)
	return nil
}

// decide sends a decision into the current run, after the person's note about it, if there is one. Without a run,
// it collects the decisions on all waiting calls and begins a run with them.
func (t *talk) decide(d event.Decided, note string) tea.Cmd {
	told := event.Steered{Origin: event.OriginPerson, Parts: llm.Say(note)}
	switch {
	case note == "":
	case t.running:
		t.send(told, note)
	default:
		t.decided = append(t.decided, told)
	}
	t.decided = append(t.decided, d)
	if t.running {
		t.send(d, "")
		return nil
	}
	if _, more := t.view.nextCallQuestion(t.decided); more {
		return nil
	}
	return t.start(t.decided...)
}

// onRunBegan handles a run that others have begun in a session that is open here.
func (t *talk) onRunBegan() tea.Cmd {
	if t.running || t.opening || t.runner.session() == nil {
		return nil
	}
	return t.start()
}

// onLinkState says how well the session's server can be reached.
func (t *talk) onLinkState(msg linkState) {
	switch {
	case msg.text != "":
		t.warn(msg.text)
	case t.trouble != "":
		t.note("the connection is back")
	}
	t.trouble = msg.trouble
}

// onRunEnded handles the end of a run. Inputs that should have begun it and did not arrive are given back to the
// person.
func (t *talk) onRunEnded(err error) tea.Cmd {
	t.running, t.wanted = false, ""
	if mode, waited := strings.CutSuffix(t.hints.text, afterRun); waited {
		t.hints.say(mode)
	}
	for _, text := range t.takeUnsent() {
		if err != nil && !errors.Is(err, context.Canceled) {
			t.putBack(text)
		}
	}
	t.interrupted()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	t.fail(err)
	if driven, ok := errors.AsType[*inspan.DrivenError](err); ok {
		t.driver, t.decided = driven.Error(), nil
	} else if err != nil {
		t.view.Run.Busy = false
		t.view.Now.Rest()
		t.decided = nil
	}
	return tea.Batch(t.runDeferred(), t.continueWithHeld())
}

// runDeferred runs the actions that waited for the run to end or the session to close.
func (t *talk) runDeferred() tea.Cmd {
	var cmds []tea.Cmd
	for _, f := range t.deferred {
		cmds = append(cmds, f())
	}
	t.deferred = nil
	return tea.Batch(cmds...)
}

// continueWithHeld begins a run with the inputs that were held back, or else follows other processes.
func (t *talk) continueWithHeld(first ...event.Body) tea.Cmd {
	if held := slices.Concat(first, t.runner.switched(), t.release()); len(held) > 0 {
		return t.start(held...)
	}
	t.follow()
	return nil
}

// follow shows events of other processes while no run is in progress here.
func (t *talk) follow() {
	if !t.running && !t.opening && t.runner.session() != nil {
		t.runner.watch(t.view.Seq)
	}
}

const (
	interrupting = "interrupting"
	quittable    = interrupting + "; press again to quit"
)

// interrupted removes the hint about the interrupt. Queued inputs may continue.
func (t *talk) interrupted() {
	if t.hints.text == interrupting || t.hints.text == quittable {
		t.hints.reset()
	}
}

// interrupt stops the run, or the waiting calls.
func (t *talk) interrupt() tea.Cmd {
	if t.running {
		t.hints.say(interrupting)
		t.send(event.Cancelled{By: "the user"}, "")
		return nil
	}
	stop := event.Cancelled{By: "the user"}
	if !t.drivenElsewhere() {
		return t.start(stop)
	}
	return t.findDriver(func() tea.Cmd { // it may have ended meanwhile
		if !t.drivenElsewhere() {
			return t.start(stop)
		}
		t.hints.say(interrupting)
		t.sendToDriver(stop, "")
		return nil
	})
}

const afterRun = " after this run"

// switchTo changes the mode, now or after the run.
func (t *talk) switchTo(mode tool.Mode) tea.Cmd {
	if why := t.backend.fixed(); why != "" {
		t.hints.say(why)
		return nil
	}
	t.opts.Mode = mode
	switch {
	case t.runner.session() == nil && !t.opening:
		t.hints.say("mode " + string(mode))
		return nil
	case t.running:
		when := ""
		if t.isWorking() {
			when = afterRun
		}
		t.hints.say("mode " + string(mode) + when)
		t.wanted = mode
		t.runner.switchTo(mode)
		return nil
	}
	return t.start(append(slices.Clone(t.decided), event.Switched{Mode: mode})...)
}

// isWorking reports whether a run here does more than wait for an answer.
func (t *talk) isWorking() bool { return t.running && !t.view.onlyAsks() }

// folders returns the additional folders of the session, or of the next one.
func (t *talk) folders() []string {
	list := slices.Clone(t.opts.Folders)
	if s := t.runner.session(); s != nil {
		list = append(s.Status().Folders, list...) // its log has a new one once a run begins
	}
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// mode returns the present or coming mode.
func (t *talk) mode() tool.Mode {
	if mode := t.outbox.mode(); mode != "" {
		return mode
	}
	if t.runner != nil && t.runner.session() != nil {
		return cmp.Or(t.wanted, t.view.Session.Mode)
	}
	if t.opts.Mode != "" {
		return t.opts.Mode
	}
	switch a := t.tui.here(); {
	case t.tui.at() != "":
		return ""
	case a != nil && a.Config.Mode != "":
		return a.Config.Mode
	}
	return "ask"
}

// effort returns the present or coming effort; empty means the vendor's default.
func (t *talk) effort() string {
	switch next := t.outbox.effort(); {
	case next != "":
		return next
	case t.view.Session.Effort != "" || t.tui.here() == nil:
		return t.view.Session.Effort
	}
	return t.tui.App.Config.Effort
}

// route returns the present or coming model.
func (t *talk) route() string {
	switch {
	case t.coming != "":
		return t.coming
	case t.view.Session.Route != "":
		return t.view.Session.Route
	case t.opts.Model != "":
		return t.opts.Model
	case t.tui.here() != nil:
		return t.tui.App.Config.Model
	}
	return ""
}

// root returns the workspace of the session, or of the next one.
func (t *talk) root() string {
	if t.view.Session.Root != "" {
		return t.view.Session.Root
	}
	return t.tui.Root
}

// localFolder returns the folder of this machine that the session works in, or else that of the front end.
func (t *talk) localFolder() string {
	if t.tui.at() != "" {
		return t.tui.Root
	}
	return t.root()
}

// placeholder returns the text in an empty prompt.
func (t *talk) placeholder() string {
	switch {
	case t.running:
		return "Enter steers the run, Tab queues for the next"
	case t.drivenElsewhere():
		return "another process runs this session; Enter steers it, Esc interrupts it"
	case t.view.Run.Busy && t.view.Run.Turns == 0:
		return "a message waits; Enter begins the run"
	case t.view.Run.Busy:
		return "the run was cut off; Enter continues it"
	}
	return "say what to do"
}
