package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/words"
)

// questions shows the questions of the session, one at a time.
//
// A person who is typing when a question appears has not seen it yet, so keys pressed before the question was on
// the screen for a while are not an answer: text goes into the prompt, and the question steps back until there is a
// pause, and keys that choose or send do nothing. Keys that leave and interrupt always work, since they allow
// nothing.
//
// The key of a choice may be the first letter of its word, or of a sentence, so it is held back for a moment: the
// rest of the word is dropped, with the Enter after it. If other text follows, the held key is written after all.
type questions struct {
	talk     *talk
	composer *composer
	commands *commander
	clock    func() time.Time

	ask     *ask           // the open one; nil if none
	refused *event.Stopped // the limit that was reached and will not be raised
	held    string         // the last keys, which were an answer or belong to one
	heldAt  time.Time      // when they were pressed
	counted bool           // they were an answer
}

const (
	seeing  = 500 * time.Millisecond // until a shown question counts as seen
	pausing = time.Second            // without a key press, until a question appears
	// lingering is how long the key of a lasting choice must stand alone before it counts: a person who writes
	// a word has typed the next letter by then.
	lingering = 200 * time.Millisecond
)

// open returns the question that takes the keys, prepared for a width; nil if there is none.
func (q *questions) open(l look) *ask {
	if q.talk.opening || q.mustDelay() {
		return nil
	}
	a := q.next()
	if a == nil {
		q.ask = nil
		return nil
	}
	if q.ask == nil || q.ask.what != a.what {
		q.ask = a
	}
	if q.ask.width != l.width {
		q.ask.prepare(l)
	}
	return q.ask
}

// next returns the next question of the session; nil if there is none.
func (q *questions) next() *ask {
	v := q.talk.view
	if pending, waits := v.nextQuestion(q.talk.decided); waits {
		return newAsk(q, pending)
	}
	stopped := v.Run.Stopped
	if q.talk.running || stopped == nil || stopped == q.refused || q.talk.runner.session() == nil {
		return nil
	}
	limits := words.Raised(v.Session.Limits, *stopped)
	if limits == nil || q.talk.backend.fixed() != "" {
		return nil
	}
	return &ask{of: q, what: "limit " + stopped.Detail, limit: stopped, limits: limits, at: -1}
}

// mustDelay reports whether a question has to wait a moment, so that a person in the middle of a word doesn't
// answer it.
func (q *questions) mustDelay() bool {
	return q.ask == nil && q.composer.busy(q.clock()) && q.next() != nil
}

// stepBack lets the person continue writing. An Enter that follows at once counts for neither, since it may
// have been meant for the question.
func (q *questions) stepBack() {
	q.composer.interrupted(q.clock())
	q.ask = nil
}

// keyBeforeSeen handles a key that was pressed before the question was seen. It returns false for keys that always
// work.
func (q *questions) keyBeforeSeen(k tea.KeyPressMsg, action string, width int) bool {
	switch action {
	case "escape", "interrupt", "quit", "page-up", "page-down":
		return false
	case "send", "up", "down", "queue":
		return true
	}
	if q.composer.prompt.empty() && words.Choice(k.Text) != "" {
		q.counted = false
		q.holdKeys(k.Text, q.clock())
		return true
	}
	if q.composer.prompt.key(k, action, width) {
		q.stepBack()
	}
	return true
}

// keepAnswerKeys keeps the keys of an answer.
func (q *questions) keepAnswerKeys(text string, now time.Time) {
	q.counted = true
	q.holdKeys(text, now)
}

// holdKeys keeps keys in case more follow.
func (q *questions) holdKeys(text string, now time.Time) { q.held, q.heldAt = text, now }

// continuesHeldKeys handles a key that continues the held ones, and returns false for any other. b receives the
// keys; nil means the prompt.
func (q *questions) continuesHeldKeys(k tea.KeyPressMsg, action string, b box) bool {
	held, now := q.held, q.clock()
	q.held = ""
	more := held + k.Text
	seen, asked := b.(*ask)
	if asked && seen.unseen(now) {
		seen = nil
	}
	switch {
	case held == "" || now.Sub(q.heldAt) >= seeing || b != nil && !asked:
		return false
	case action == "send":
		return true
	case k.Text == "":
		return false
	case words.Begins(more) && (seen == nil || words.Choice(k.Text) != words.Choice(held)):
		q.holdKeys(more, now)
		return true
	case q.counted && len(held) == 1: // something else follows
	case seen == nil:
		q.composer.prompt.insert(atomsOf(held)...)
		q.composer.touched()
	case seen.choiceOfKey(k, action) < 0 && seen.reply.empty():
		seen.reply.insert(atomsOf(held)...)
	}
	return false
}

// answerHeldKey answers the open question with a key that was pressed a moment ago.
func (q *questions) answerHeldKey() tea.Cmd {
	if q.ask == nil {
		return nil
	}
	return q.ask.answerHeldKey(q.clock())
}

// denyOverdue denies a call that no one has decided on in time. In a run, that happens by itself.
func (q *questions) denyOverdue() tea.Cmd {
	pending, ok := q.talk.view.nextCallQuestion(nil)
	if q.talk.running || q.talk.opening || !ok || pending.Until.IsZero() || q.clock().Before(pending.Until) {
		return nil
	}
	q.talk.warn(words.TooLate("").Reason)
	return q.talk.start(pending.Answer(words.TooLate(pending.Call.ID)))
}

// remaining returns how many questions come after the open one, as far as known.
func (q *questions) remaining() int { return q.talk.view.countUndecided(q.talk.decided) - 1 }

func (q *questions) now() time.Time { return q.clock() }

func (q *questions) sessionScopeAtMost() bool { return q.talk.backend.fixed() != "" }

func (q *questions) decide(d event.Decided, note string) tea.Cmd { return q.talk.decide(d, note) }

func (q *questions) canEditCommand() bool { return q.talk.backend.fixed() == "" }

func (q *questions) interrupt() tea.Cmd { return q.talk.interrupt() }

func (q *questions) quit() tea.Cmd { return q.commands.quit() }

func (q *questions) refuse(limit *event.Stopped) tea.Cmd {
	q.refused = limit
	return nil
}

// raise continues the run with new limits.
func (q *questions) raise(limits *event.Limits) tea.Cmd {
	return q.talk.start(event.Switched{Limits: limits}, event.Said{})
}

// dismiss closes a question without an answer. If the call needs approval, the run is interrupted.
func (q *questions) dismiss(p inspan.Pending) tea.Cmd {
	if p.IsQuestion {
		return q.talk.decide(words.Dismissed(p.Call.ID), "")
	}
	return q.talk.interrupt()
}

// command runs a slash command typed at a question, if it leaves the session as it is. A command is never an
// answer, and the question stays. It returns false for other text.
func (q *questions) command(text string) (cmd tea.Cmd, problem string, ok bool) {
	name, args, ok := words.Slash(text)
	if !ok {
		return nil, "", false
	}
	c, known := q.commands.all().find(name)
	switch {
	case !known:
		return nil, "", false
	case c.calm || c.Print != nil || c.Begin != nil:
		return q.commands.do(c, args), "", true
	}
	return nil, "Please answer first; /" + words.OneLine(strings.TrimSpace(c.Name), 30) + " does not work during a question.", true
}
