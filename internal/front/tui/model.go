package tui

import (
	"cmp"
	"context"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/words"
)

// model is the terminal program. It passes keys and messages to its parts, and draws them. Only the event loop
// accesses it and its parts.
type model struct {
	*TUI
	keys       keymap
	screen     *screen     // the terminal and the printed lines
	talk       *talk       // the conversation with the open session
	questions  *questions  // of the session
	composer   *composer   // where the person writes
	commands   *commander  // slash commands
	sessions   *sessions   // switches sessions and models
	back       *rewinder   // rewinds to an earlier message
	ownCommand *ownCommand // a command of the person's own
	loops      *repeater   // a prompt that repeats
	over       *overlay    // what is open above the prompt
	hints      *hints      // the line above the status line
	line       *statusLine
	lacks      *modelCheck
	alert      *alert // for a person who is away

	taps     taps
	quitting bool
	panelled bool // our own text was open, on a screen of its own
	ticking  bool
	fatal    error
}

// Our own messages, in addition to those that the parts declare, such as batch and opened.
type (
	printed struct{}       // lines have reached the terminal
	leave   struct{}       // a signal asks the program to end
	tick    struct{}       // time has passed, while something counts it
	told    string         // something to notice
	later   func() tea.Cmd // the rest of slow work
)

func newModel(ctx context.Context, t *TUI, keys keymap) *model {
	m := &model{TUI: t, keys: keys, screen: newScreen(t), over: &overlay{}, hints: &hints{clock: t.clock}}
	m.talk = &talk{tui: t, ctx: ctx, hints: m.hints, view: newView(), opts: t.Options}
	m.composer = &composer{talk: m.talk, screen: m.screen, over: m.over, hints: m.hints, clock: t.clock}
	h := t.preferences()
	if h.vim {
		m.composer.vim = &vim{}
	}
	m.line = &statusLine{command: h.statusLine, version: cmp.Or(t.Version, inspan.Version), ctx: ctx, clock: t.clock, app: app.StatusLine{App: t.App}}
	m.lacks = newModelCheck(ctx, t)
	m.alert = newAlert(t)
	m.talk.putBack = m.composer.putBack
	m.sessions = &sessions{talk: m.talk, over: m.over, hints: m.hints}
	m.back = &rewinder{talk: m.talk, over: m.over, hints: m.hints, composer: m.composer, screen: m.screen}
	m.ownCommand = &ownCommand{talk: m.talk, hints: m.hints, clock: t.clock}
	m.loops = &repeater{talk: m.talk}
	m.commands = &commander{
		tui: t, keys: keys, talk: m.talk, over: m.over, hints: m.hints, history: &m.composer.history,
		sessions: m.sessions, back: m.back, loops: m.loops, quit: m.quit,
	}
	m.composer.commands = m.commands.offered
	m.questions = &questions{talk: m.talk, composer: m.composer, commands: m.commands, clock: t.clock}
	return m
}

// begun is the time from the start of the front end to the first frame.
const begun = 50 * time.Millisecond

// Init implements tea.Model.
func (m *model) Init() tea.Cmd {
	m.talk.note("inspan " + cmp.Or(m.Version, inspan.Version) + " " + cmp.Or(words.On(m.at()), "in "+m.Root) + " · /help lists commands and keys")
	cmds := []tea.Cmd{tea.RequestBackgroundColor, m.screen.flush(m.talk.view)}
	switch {
	case m.Session == "?":
		cmds = append(cmds, m.sessions.pick())
	case m.Session != "":
		cmds = append(cmds, m.talk.resume(m.talk.opts, m.Session))
	}
	if m.Begun != nil {
		cmds = append(cmds, tea.Tick(begun, func(time.Time) tea.Msg { m.Begun(); return nil }))
	}
	m.composer.prompt.insert(atomsOf(m.Say)...)
	for i, p := range m.Pictures {
		if i == 0 && m.Say != "" {
			m.composer.prompt.insert(atom{shown: " "})
		}
		m.composer.prompt.insert(p.atoms()...)
	}
	if m.Say != "" {
		cmds = append(cmds, m.say())
	}
	return tea.Batch(cmds...)
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := m.update(msg)
	return m, tea.Batch(cmd, m.loops.refresh(), m.flush(), m.count(), m.line.refresh(m.status(), m.talk),
		m.lacks.refresh(m.talk), m.alert.refresh(m.talk))
}

// flush prints what has happened. While our own text is open, nothing is printed below it.
func (m *model) flush() tea.Cmd {
	if m.over.isReading() && m.screen.full == nil {
		m.panelled = true
		return nil
	}
	if m.panelled { // the terminal first has to show the frame again
		m.panelled = false
		m.screen.onFrameLost()
	}
	return m.screen.flush(m.talk.view)
}

func (m *model) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.screen.resize(m.talk.view, msg.Width, msg.Height)
	case tea.BackgroundColorMsg:
		m.screen.onBackground(!msg.IsDark())
	case tea.KeyPressMsg:
		m.alert.key()
		return m.key(msg)
	case tea.FocusMsg:
		m.alert.focus(true)
	case tea.BlurMsg:
		m.alert.focus(false)
	case tea.PasteMsg:
		return m.paste(msg.Content)
	case tea.MouseWheelMsg:
		m.screen.wheel(msg)
	case batch:
		return m.talk.apply(msg)
	case runBegan:
		return m.talk.onRunBegan()
	case runEnded:
		return m.talk.onRunEnded(msg.err)
	case linkState:
		m.talk.onLinkState(msg)
	case inputSent:
		return m.talk.onInputSent(msg)
	case sessionOpened:
		return m.onSessionOpened(msg)
	case markWritten:
		return m.screen.onMarkWritten(msg)
	case tea.SuspendMsg: // the terminal was the shell's
		m.screen.onFrameLost()
	case printed:
		return m.screen.onPrinted()
	case leave:
		return m.quit()
	case tick:
		m.ticking = false
		m.hints.expire()
		return tea.Batch(m.questions.answerHeldKey(), m.questions.denyOverdue(), m.talk.holdQuestion())
	case told:
		m.talk.warn(string(msg))
	case later:
		return msg()
	}
	return nil
}

// onSessionOpened handles a session that was opened. If opening failed, its message goes back into the prompt.
func (m *model) onSessionOpened(msg sessionOpened) tea.Cmd {
	switch {
	case msg.err != nil && slices.ContainsFunc(slices.Concat(msg.inputs, m.talk.held), isSaid):
		m.composer.giveBack()
	case msg.err == nil && msg.past != nil:
		m.composer.history = history{lines: msg.past.said}
	}
	return m.talk.onSessionOpened(msg)
}

func isSaid(b event.Body) bool {
	_, ok := b.(event.Said)
	return ok
}

// count asks for a tick while the screen counts time.
func (m *model) count() tea.Cmd {
	v := m.talk.view
	waits := v.Now.Wait != nil
	if pending, ok := v.nextCallQuestion(nil); ok && !pending.Until.IsZero() {
		waits = true
	}
	waits = waits || m.ownCommand.isRunning() || m.talk.opening && len(m.talk.mine) > 0
	loops := m.loops.isPending()
	soon := m.questions.mustDelay() || m.unseen()
	if m.ticking && !soon || !m.talk.isWorking() && !m.talk.asksUnheld() && !waits && !loops && m.hints.text == "" && !soon {
		return nil
	}
	m.ticking = true
	every := time.Second
	if waits || soon {
		every = 6 * frame
	}
	return tea.Tick(every, func(time.Time) tea.Msg { return tick{} })
}
