package tui

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/transcript"
	"github.com/inspan/inspan/internal/words"
	"github.com/inspan/inspan/llm"
)

// model is what is on the screen: the view of the session and what the person is
// about to do. Only the event loop of the program touches it.
type model struct {
	*TUI
	screen
	outbox
	ctx  context.Context
	keys keymap
	seat *seat

	view *view

	composer
	over box  // what is open above the prompt; nil: nothing
	ask  *ask // the question of the session that is being answered
	// Decisions on calls that wait, until all that wait are decided on; and the
	// limit that was reached and is to stay.
	decided []event.Body
	refused *event.Stopped
	hint    string
	hinted  time.Time            // when the hint came
	typed   time.Time            // when the person wrote last
	early   time.Time            // until then enter sends nothing, see stepBack
	pressed map[string]time.Time // when a key that counts twice was pressed last

	opts     app.Options // for the sessions that are opened from here on
	opening  bool        // a session is
	driver   string      // who goes on with its run elsewhere, in words; empty: nobody, as far as was asked
	running  bool        // a run goes on here
	quitting bool
	then     []later // what waits for the run to end
	ticking  bool
	fatal    error
}

// Messages of our own, beside batch, ranOut and sent.
type (
	opened struct { // a session is open, or could not be
		s      *inspan.Session
		past   *view       // what has happened in it; nil: it is new
		opts   app.Options // it was opened with, unless it is new
		driver string      // who goes on with its run elsewhere; empty: nobody
		err    error
		inputs []event.Body
	}
	printed struct{} // lines have reached the terminal
	leave   struct{} // a signal wants the program to end
	tick    struct{} // a second is over, while something counts
	told    struct {
		text string
		bad  bool
	}
	later func(*model) tea.Cmd // the rest of something that took time
)

func newModel(ctx context.Context, t *TUI, keys keymap) *model {
	m := &model{
		TUI: t, ctx: ctx, keys: keys, view: newView(), opts: t.Options, pressed: map[string]time.Time{},
		screen: newScreen(t),
	}
	return m
}

// begun is when the first frame is on the screen, after the front end begins.
const begun = 50 * time.Millisecond

// Init implements tea.Model.
func (m *model) Init() tea.Cmd {
	cmds := []tea.Cmd{tea.RequestBackgroundColor, m.greet()}
	switch {
	case m.Session == "?":
		cmds = append(cmds, m.pickSession())
	case m.Session != "":
		cmds = append(cmds, m.resume(m.opts, m.Session))
	}
	if m.Begun != nil {
		cmds = append(cmds, tea.Tick(begun, func(time.Time) tea.Msg { m.Begun(); return nil }))
	}
	if m.Say != "" {
		cmds = append(cmds, m.say(llm.Say(m.Say)))
	}
	return tea.Batch(cmds...)
}

func (m *model) greet() tea.Cmd {
	m.tell("inspan " + cmp.Or(m.Version, inspan.Version) + " in " + m.Root + " · /help shows what there is")
	return m.flush(m.view)
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	before := m.hint
	cmd := m.update(msg)
	if m.hint != before {
		m.hinted = m.clock()
	}
	return m, tea.Batch(cmd, m.flush(m.view), m.count())
}

func (m *model) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.resize(m.view, msg.Width, msg.Height)
	case tea.BackgroundColorMsg:
		m.look.light = !msg.IsDark()
		m.print.look = m.look
	case tea.KeyPressMsg:
		return m.key(msg)
	case tea.PasteMsg:
		return m.paste(msg.Content)
	case tea.MouseWheelMsg:
		m.wheel(msg)
	case batch:
		return m.apply(msg)
	case ranOut:
		return m.ranOut(msg.err)
	case sent:
		return m.sent(msg)
	case opened:
		return m.opened(msg)
	case printed:
		m.printing = false
	case leave:
		return m.quit()
	case tick:
		m.ticking = false
		return m.overdue()
	case told:
		m.say1(msg)
	case later:
		return msg(m)
	}
	return nil
}

// tell prints a line of ours; warn one to notice.
func (m *model) tell(text string) { m.view.note(text) }
func (m *model) warn(text string) { m.view.warn(text) }

func (m *model) say1(t told) {
	if t.bad {
		m.warn(t.text)
		return
	}
	m.view.add(&block{kind: plainBlock, text: t.text})
}

// fail tells of an error, if it is one.
func (m *model) fail(err error) {
	if err != nil {
		m.warn(err.Error())
	}
}

// apply folds what happened in a frame. A run that begins without us is somebody else's.
func (m *model) apply(events batch) tea.Cmd {
	before := m.cutOff()
	for _, e := range events {
		if !e.Transient() && e.Seq <= m.view.Seq {
			continue
		}
		if d, ok := e.Body.(event.Decided); ok {
			m.heardAnswer(d)
		}
		m.view.Apply(e)
		switch b := e.Body.(type) {
		case event.Said:
			m.seen(false, b.By)
		case event.Steered:
			m.seen(true, b.By)
		}
	}
	if before || !m.cutOff() {
		return nil
	}
	return m.findDriver(func(*model) tea.Cmd { return nil })
}

// say is what the person wants done.
func (m *model) say(parts llm.Parts) tea.Cmd {
	m.history.add(transcript.Spoken(parts))
	return m.start(event.Said{Parts: parts})
}

// start runs the session with inputs, as soon as that is possible.
func (m *model) start(inputs ...event.Body) tea.Cmd {
	switch {
	case m.opening || m.running:
		m.held = append(m.held, inputs...)
		return nil
	case m.seat.session() == nil:
		return m.open(inputs...)
	}
	m.running, m.driver = true, ""
	m.ask = nil
	m.seat.drive(inputs...)
	return nil
}

// sent notes what became of an input. One that came too late for its run begins another.
func (m *model) sent(msg sent) tea.Cmd {
	if errors.Is(msg.err, inspan.ErrOver) {
		return m.start(msg.body)
	}
	if msg.err == nil {
		return nil
	}
	lost, ok := m.lost(msg.n)
	if d, answer := msg.body.(event.Decided); answer {
		m.undecide(d)
	}
	if !ok {
		m.fail(msg.err)
		return nil
	}
	m.warn("not sent: " + msg.err.Error() + ": " + lost.text)
	return nil
}

// ranOut goes on behind a run: with what was held back, or with a question.
func (m *model) ranOut(err error) tea.Cmd {
	m.running = false
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	m.fail(err)
	if driven, ok := errors.AsType[*inspan.DrivenError](err); ok {
		m.driver, m.decided = driven.Error(), nil
	} else if err != nil {
		m.view.Run.Busy = false
		m.view.Now.Rest()
		m.decided = nil
	}
	var cmds []tea.Cmd
	for _, f := range m.then {
		cmds = append(cmds, f(m))
	}
	m.then = nil
	if held := m.release(); len(held) > 0 {
		return tea.Batch(append(cmds, m.start(held...))...)
	}
	m.follow()
	return tea.Batch(cmds...)
}

// follow shows what others do with the session while no run goes on here.
func (m *model) follow() {
	if !m.running && !m.opening && m.seat.session() != nil {
		m.seat.watch(m.view.Seq)
	}
}

// interrupt stops the run, or the calls that wait.
func (m *model) interrupt() tea.Cmd {
	if m.running {
		m.hint = "interrupting"
		m.seat.post(m.next(event.Cancelled{By: "the user"}, false, ""))
		return nil
	}
	return m.start(event.Cancelled{By: "the user"})
}

// switchTo changes the mode, now or when the run is over.
func (m *model) switchTo(mode string) tea.Cmd {
	m.opts.Mode = mode
	switch {
	case m.seat.session() == nil && !m.opening:
		m.hint = "mode " + mode
		return nil
	case m.running:
		m.hint = "mode " + mode + " from the end of this run on"
		m.held = slices.DeleteFunc(m.held, func(b event.Body) bool { s, ok := b.(event.Switched); return ok && s.Mode != "" })
	}
	return m.start(event.Switched{Mode: mode})
}

// mode is the one that holds, or will.
func (m *model) mode() string {
	if mode := m.outbox.mode(); mode != "" {
		return mode
	}
	if m.seat != nil && m.seat.session() != nil {
		return m.view.Session.Mode
	}
	if m.opts.Mode != "" {
		return m.opts.Mode
	}
	if m.App != nil && m.App.Config.Mode != "" {
		return m.App.Config.Mode
	}
	return "ask"
}

// count asks for a tick while something on the screen counts time.
func (m *model) count() tea.Cmd {
	waits := m.view.Now.Wait != nil
	if pending, ok := m.view.asking(nil); ok && !pending.Until.IsZero() {
		waits = true
	}
	soon := m.hesitates() || m.unseen() || !m.settled() && len(m.print.lines) > 0
	if m.ticking && !soon || !m.works() && !waits && m.hint == "" && !soon {
		return nil
	}
	m.ticking = true
	every := time.Second
	if waits || soon {
		every = 6 * frame
	}
	return tea.Tick(every, func(time.Time) tea.Msg { return tick{} })
}

// works reports whether a run goes on here that does more than to wait for an answer.
func (m *model) works() bool { return m.running && !m.view.asks() }

// overdue lets a call go that nobody has decided on in time.
func (m *model) overdue() tea.Cmd {
	m.expire()
	if m.running {
		return nil
	}
	pending, ok := m.view.asking(nil)
	if !ok || pending.Until.IsZero() || m.clock().Before(pending.Until) || m.opening {
		return nil
	}
	m.warn("nobody answered in time")
	return m.start(words.TooLate(pending.Call.ID))
}

// twice reports whether an action was done a moment ago too.
func (m *model) twice(action string) bool {
	now := m.clock()
	last := m.pressed[action]
	m.pressed = map[string]time.Time{action: now}
	return !last.IsZero() && now.Sub(last) < 1500*time.Millisecond
}

// hintTime is how long a hint stays.
const hintTime = 4 * time.Second

// expire takes a hint away that was read by now.
func (m *model) expire() {
	if m.clock().Sub(m.hinted) >= hintTime {
		m.hint = ""
	}
}
