package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/words"
)

// questions shows what the session asks, one question at a time.
//
// Whoever is typing when a question comes up has not seen it yet. So what is
// pressed before the question has been on the screen for a while is no answer:
// text goes on into the prompt, for which the question steps back until there is
// a pause, and keys that choose or send do nothing. Keys that leave and interrupt
// always work: they allow nothing.
//
// The key of a choice may be the first letter of its word, or of a sentence. So it is
// held for a moment where it is not written anywhere: the rest of the word is dropped
// with the Enter behind it. Before other text what has not counted is written after all.
type questions struct {
	talk     *talk
	composer *composer
	commands *commander
	clock    func() time.Time

	ask     *ask           // the one that is open; nil: none is
	refused *event.Stopped // the limit that was reached and is to stay
	held    string         // what was pressed last, as an answer or for one
	heldAt  time.Time      // when
	counted bool           // it was an answer
}

const (
	seeing  = 500 * time.Millisecond // until a question that is shown counts as seen
	pausing = time.Second            // without a key, until a question comes up
	// lingering is how long the key of a choice that holds for longer stands alone before it
	// counts: whoever writes a word has typed the next letter by then.
	lingering = 200 * time.Millisecond
)

// open is the question that takes the keys, prepared for a width; nil: there is none.
func (q *questions) open(l look) *ask {
	if q.talk.opening || q.hesitates() {
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

// next is what the session wants to know; nil: nothing.
func (q *questions) next() *ask {
	v := q.talk.view
	if pending, waits := v.asking(q.talk.decided); waits {
		return newAsk(q, pending)
	}
	stopped := v.Run.Stopped
	if q.talk.running || stopped == nil || stopped == q.refused || q.talk.runner.session() == nil {
		return nil
	}
	limits := words.Raised(v.Session.Limits, *stopped)
	if limits == nil || q.talk.house.fixed() != "" {
		return nil
	}
	return &ask{of: q, what: "limit " + stopped.Detail, limit: stopped, limits: limits, at: -1}
}

// hesitates reports whether a question has to wait a moment: whoever is in the
// middle of a word must not answer it with the rest.
func (q *questions) hesitates() bool {
	return q.ask == nil && q.composer.busy(q.clock()) && q.next() != nil
}

// stepBack lets the person go on with what is being written. An enter that follows
// at once is for neither: it may have been meant for the question.
func (q *questions) stepBack() {
	q.composer.interrupted(q.clock())
	q.ask = nil
}

// ahead takes a key that was pressed before the question was seen, and reports
// false if it is one that always works.
func (q *questions) ahead(k tea.KeyPressMsg, action string, width int) bool {
	switch action {
	case "escape", "interrupt", "quit", "page-up", "page-down":
		return false
	case "send", "up", "down", "queue":
		return true
	}
	if q.composer.prompt.empty() && words.Choice(k.Text) != "" {
		q.counted = false
		q.hold(k.Text, q.clock())
		return true
	}
	if q.composer.prompt.key(k, action, width) {
		q.stepBack()
	}
	return true
}

// took keeps what was pressed as an answer.
func (q *questions) took(text string, now time.Time) {
	q.counted = true
	q.hold(text, now)
}

// hold keeps what was pressed, in case there is more of it.
func (q *questions) hold(text string, now time.Time) { q.held, q.heldAt = text, now }

// strays takes a key that goes on with what is held, and reports false for any other. b is
// what takes the keys; nil: the prompt does.
func (q *questions) strays(k tea.KeyPressMsg, action string, b box) bool {
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
		q.hold(more, now)
		return true
	case q.counted && len(held) == 1: // and what follows is something else
	case seen == nil:
		q.composer.prompt.insert(atomsOf(held)...)
		q.composer.touched()
	case seen.single(k, action) < 0 && seen.reply.empty():
		seen.reply.insert(atomsOf(held)...)
	}
	return false
}

// lingers answers the question that is open with a key that was pressed a moment ago.
func (q *questions) lingers() tea.Cmd {
	if q.ask == nil {
		return nil
	}
	return q.ask.lingers(q.clock())
}

// overdue denies a call that nobody has decided on in time. A run does that by itself.
func (q *questions) overdue() tea.Cmd {
	pending, ok := q.talk.view.calling(nil)
	if q.talk.running || q.talk.opening || !ok || pending.Until.IsZero() || q.clock().Before(pending.Until) {
		return nil
	}
	q.talk.warn(words.TooLate("").Reason)
	return q.talk.start(pending.Answer(words.TooLate(pending.Call.ID)))
}

// others counts the questions that come after the open one, as far as is known.
func (q *questions) others() int { return q.talk.view.undecided(q.talk.decided) - 1 }

func (q *questions) now() time.Time { return q.clock() }

func (q *questions) passing() bool { return q.talk.house.fixed() != "" }

func (q *questions) decide(d event.Decided) tea.Cmd { return q.talk.decide(d) }

func (q *questions) interrupt() tea.Cmd { return q.talk.interrupt() }

func (q *questions) quit() tea.Cmd { return q.commands.quit() }

func (q *questions) refuse(limit *event.Stopped) tea.Cmd {
	q.refused = limit
	return nil
}

// raise answers whether a limit may be passed.
func (q *questions) raise(limits *event.Limits) tea.Cmd {
	return q.talk.start(event.Switched{Limits: limits}, event.Said{})
}

// dismiss closes a question without an answer. If the call needs approval, the run is
// interrupted.
func (q *questions) dismiss(p inspan.Pending, asks bool) tea.Cmd {
	if asks {
		return q.talk.decide(words.Dismissed(p.Call.ID))
	}
	return q.talk.interrupt()
}

// command runs a slash command that was typed at a question, if the command leaves the session
// as it is. A command is never an answer, and the question stays. ok is false for other text.
func (q *questions) command(text string) (cmd tea.Cmd, problem string, ok bool) {
	name, args, ok := words.Slash(text)
	if !ok {
		return nil, "", false
	}
	c, known := q.commands.all().named(name)
	switch {
	case !known:
		return nil, "", false
	case c.calm || c.Print != nil || c.Begin != nil:
		return q.commands.do(c, args), "", true
	}
	return nil, "Please answer first; /" + words.OneLine(strings.TrimSpace(c.Name), 30) + " does not work during a question.", true
}
