package tui

import (
	"cmp"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/words"
)

// boardKeys lists the keys of the board, for people.
func boardKeys() [][2]string {
	return [][2]string{
		{"up, down, j, k", "choose a session; PgUp, PgDn, Home and End too"},
		{"enter", "open the session; leaving it comes back here"},
		{"y, n", "show the question of the session, and then answer it"},
		{"1 to 5", "show only waiting, running, idle, failed or done; 0 shows all"},
		{"tab", "show the next of these"},
		{"/", "show only what matches the text; Enter searches all that was said"},
		{"esc", "show all sessions again"},
		{"q", "leave; the sessions go on"},
	}
}

func (m *boardModel) key(k tea.KeyPressMsg) tea.Cmd {
	action := m.keys[k.Keystroke()]
	m.hints.reset()
	switch {
	case action == "suspend":
		return tea.Suspend
	case action == "redraw":
		return tea.ClearScreen
	case m.ask != nil:
		// Before the question can have been seen, only keys that answer nothing count.
		if m.ask.unseen(m.clock()) && !slices.Contains([]string{"escape", "interrupt", "quit", "page-up", "page-down"}, action) {
			return nil
		}
		return m.ask.key(k, action)
	case m.help:
		m.help = false
		return nil
	case m.typing:
		return m.typeKey(k, action)
	case action != "":
		return m.listKey(action)
	}
	return m.letter(k.Text)
}

// listKey handles a key with an action while no text is being written.
func (m *boardModel) listKey(action string) tea.Cmd {
	switch action {
	case "up":
		m.move(-1)
	case "down":
		m.move(1)
	case "page-up":
		m.move(-m.room)
	case "page-down":
		m.move(m.room)
	case "home":
		m.move(-len(m.shown))
	case "end":
		m.move(len(m.shown))
	case "send":
		return m.enter()
	case "queue":
		m.showOnly((m.state + 1) % (len(m.board.Standings()) + 1))
	case "mode":
		m.showOnly((m.state + len(m.board.Standings())) % (len(m.board.Standings()) + 1))
	case "escape":
		m.showAll()
	case "interrupt", "quit":
		return m.quit()
	}
	return nil
}

// letter handles a key without an action.
func (m *boardModel) letter(text string) tea.Cmd {
	switch text {
	case "j":
		m.move(1)
	case "k":
		m.move(-1)
	case "g":
		m.move(-len(m.shown))
	case "G":
		m.move(len(m.shown))
	case "q":
		return m.quit()
	case "?":
		m.help = true
	case "/":
		m.typing = true
	case "y", "n":
		m.question()
	case "0", "1", "2", "3", "4", "5":
		m.showOnly(int(text[0] - '0'))
	}
	return nil
}

// showOnly shows the rows of one state.
func (m *boardModel) showOnly(state int) {
	m.state = state
	m.filter()
}

// showAll shows all rows, and ends the search.
func (m *boardModel) showAll() {
	m.stopSearch()
	m.state, m.said, m.typing, m.find = 0, nil, false, editor{}
	m.filter()
}

// typeKey handles a key while the filter is being written.
func (m *boardModel) typeKey(k tea.KeyPressMsg, action string) tea.Cmd {
	switch action {
	case "send":
		m.typing = false
		return m.searchMessages()
	case "escape", "interrupt":
		m.showAll()
	case "quit":
		return m.quit()
	case "up", "down", "page-up", "page-down":
		return m.listKey(action)
	default:
		if m.find.key(k, action, m.screen.look.width) {
			m.typed()
		}
	}
	return nil
}

// typed applies a change of the filter.
func (m *boardModel) typed() {
	m.stopSearch()
	m.said, m.at, m.chosen = nil, 0, ""
	m.filter()
}

func (m *boardModel) paste(text string) {
	switch text = strings.ReplaceAll(text, "\n", " "); {
	case m.ask != nil:
		m.ask.paste(text)
	case m.typing:
		m.find.insert(atomsOf(text)...)
		m.typed()
	}
}

// question shows the first question of the marked session, without answering it.
func (m *boardModel) question() {
	r, ok := m.marked()
	if !ok {
		return
	}
	if r.ID != m.asked.ID {
		m.sent = map[uint64]bool{}
	}
	m.asked, m.chosen = r, r.ID
	if m.next(); m.ask != nil {
		return
	}
	switch {
	case len(r.Questions) > 0:
		m.hints.say("your answer was sent; the session has not gone on yet")
	case r.Open && !r.Known:
		m.hints.say("the session is still being read; press again")
	default:
		m.hints.say("nothing waits for you here; Enter opens the session")
	}
}

// next asks the next question of the session, if there is one.
func (m *boardModel) next() {
	m.ask = nil
	for _, p := range m.asked.Questions {
		if !m.sent[p.Question] {
			m.ask = newAsk(boardAsker{m}, p)
			return
		}
	}
}

// answered closes the question if someone else has answered it.
func (m *boardModel) answered() {
	if m.asked.ID == "" {
		return
	}
	for _, r := range m.rows {
		if r.ID == m.asked.ID {
			m.asked = r
		}
	}
	if m.ask == nil {
		return
	}
	for _, p := range m.asked.Questions {
		if p.Question == m.ask.pending.Question {
			return
		}
	}
	m.ask = nil
	m.hints.say("the question is no longer open")
}

// onDecided handles the outcome of sending a decision.
func (m *boardModel) onDecided(msg boardDecided) {
	m.due = m.clock()
	switch {
	case msg.err != nil:
		delete(m.sent, msg.question)
		m.hints.say("not sent: " + msg.err.Error())
	case !msg.of.Driven:
		m.hints.say("sent; nobody runs the session now: Enter opens and continues it")
	}
}

// boardAsker asks the questions of the board.
type boardAsker struct{ *boardModel }

func (b boardAsker) now() time.Time { return b.clock() }

func (b boardAsker) remaining() int {
	n := -1
	for _, p := range b.asked.Questions {
		if !b.sent[p.Question] {
			n++
		}
	}
	return n
}

func (b boardAsker) sessionScopeAtMost() bool { return b.server() != "" }

func (boardAsker) canEditCommand() bool { return false } // App.Send sends no commands

func (boardAsker) keepAnswerKeys(string, time.Time) {}

// decide sends a decision on the shown question and then the note, and shows the next question.
func (b boardAsker) decide(d event.Decided, note string) tea.Cmd {
	m := b.boardModel
	of, p := m.asked, m.ask.pending
	message := app.Message{By: d.By, Deny: d.Call, Text: d.Reason, For: "once", Question: d.Question, Also: d.Also}
	if d.Allow {
		message.Allow, message.Deny, message.Text = d.Call, "", d.Answer
		message.For = cmp.Or(string(d.Reach), string(d.Scope), message.For)
	}
	m.sent[p.Question] = true
	if m.next(); m.ask == nil && m.at+1 < len(m.shown) && len(m.rows[m.shown[m.at+1]].Questions) > 0 {
		m.move(1) // the answered row moves elsewhere
	}
	return func() tea.Msg {
		_, err := m.App.Send(m.ctx, of.ID, message)
		if err == nil && note != "" {
			_, err = m.App.Send(m.ctx, of.ID, app.Message{By: d.By, Text: note, Steer: true})
		}
		return boardDecided{of, p.Question, err}
	}
}

func (b boardAsker) dismiss(inspan.Pending) tea.Cmd { return b.interrupt() }

// interrupt closes the question but leaves it open for others. The board interrupts no runs.
func (b boardAsker) interrupt() tea.Cmd {
	b.ask = nil
	return nil
}

// raise and refuse implement asker. The board asks about no limits.
func (boardAsker) raise(*event.Limits) tea.Cmd   { return nil }
func (boardAsker) refuse(*event.Stopped) tea.Cmd { return nil }

func (boardAsker) command(text string) (tea.Cmd, string, bool) {
	_, _, ok := words.Slash(text)
	return nil, "Slash commands work in the session; Esc closes the question, and Enter opens the session.", ok
}
