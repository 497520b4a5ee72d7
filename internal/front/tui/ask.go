package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
)

// asker asks the person a question and takes the answer.
type asker interface {
	now() time.Time
	// remaining returns how many questions come after this one, as far as known.
	remaining() int
	// sessionScopeAtMost reports whether an approval holds for the session at most.
	sessionScopeAtMost() bool
	// keepAnswerKeys records a key press that was an answer.
	keepAnswerKeys(pressed string, at time.Time)
	// decide sends a decision, with a note about it for the model, which may be empty.
	decide(d event.Decided, note string) tea.Cmd
	// canEditCommand reports whether the person may change a command before it runs.
	canEditCommand() bool
	// dismiss closes the question without an answer.
	dismiss(p inspan.Pending) tea.Cmd
	// raise continues with new limits, and refuse stops at the limit that was reached.
	raise(limits *event.Limits) tea.Cmd
	refuse(limit *event.Stopped) tea.Cmd
	// command runs an answer that is a slash command, or gives the reason why it can't run here. It returns false
	// for other text.
	command(text string) (cmd tea.Cmd, problem string, ok bool)
	interrupt() tea.Cmd
	quit() tea.Cmd
}

// ask is a question to the person: whether a call may be made, what a call asks, or whether a limit may be
// exceeded. Nothing is preselected. The key of a choice counts by itself while nothing else is written; see
// single.
type ask struct {
	of      asker
	what    string // the call or the limit, which identifies the question
	pending inspan.Pending
	limit   *event.Stopped // the limit that was reached; nil if it is about a call
	limits  *event.Limits  // the limits after a yes
	title   string
	body    []string       // the whole subject
	options []words.Option // of a call that needs consent
	choices []choice
	listed  []string // the choices in full, for the body if there is no room for them below it
	at      int      // -1 if nothing is chosen
	top     int      // first shown line of the body
	more    int      // lines of the body below the shown ones
	page    int      // lines of the body that are shown
	lead    bool     // the body must be shown from the listed choices on
	whole   bool     // the end of the body, or the listed choices, were shown
	reply   editor
	noted   bool // the reply is a note to a yes, for the model
	edited  bool // the reply is the command, which the person changes
	problem string
	width   int       // that body was prepared for
	drawn   time.Time // when it was first drawn; zero if not yet
	due     time.Time // when the written key counts by itself; zero if it doesn't
}

// newAsk returns the question of a waiting call.
func newAsk(of asker, p inspan.Pending) *ask {
	return &ask{of: of, what: fmt.Sprint("call ", p.Call.ID, " question ", p.Question, " with ", len(p.Set)), pending: p, at: -1}
}

// prepare lays the question out for a width.
func (a *ask) prepare(l look) {
	a.width = l.width
	w := a.pending
	switch {
	case a.limit != nil:
		a.title = l.paint(yellow, "? "+words.OneLine(a.limit.Detail, l.width-2))
		a.choices = []choice{{"y", "Yes, " + words.GoOn(*a.limit)}, {"n", "No, stop here"}}
	case a.pending.IsQuestion:
		s, options := words.Question(w.Call)
		a.title = l.paint(yellow, "? "+words.OneLine(w.Name(), 60))
		a.body = wrap(text.VisibleLines(cmp.Or(s, w.Preview)), l.width, "  ")
		a.choices = nil
		for i, o := range options {
			a.choices = append(a.choices, choice{fmt.Sprint(i + 1), o})
		}
	default:
		q := words.Consents(w.Root, w.Name(), w.Raised(), w.Calls())
		a.title = l.paint(yellow, "? "+words.OneLine(q.Title, l.width-2))
		a.body = consentLines(l, q)
		a.options = words.Options(w.Rules, w.Offers)
		if a.of.sessionScopeAtMost() {
			a.options = words.Passing(a.options)
		}
		a.choices = nil
		for _, o := range a.options {
			a.choices = append(a.choices, choice{o.Key, o.Name})
		}
		if q.Command != "" && w.Agent == "" && w.Parent == "" && a.of.canEditCommand() {
			a.choices = append(a.choices, choice{words.EditKey, words.EditName})
		}
	}
	a.listed = nil
	for i := range a.choices {
		a.listed = append(a.listed, a.choiceLines(l, i)...)
	}
}

// consentLines returns everything that would happen.
func consentLines(l look, q words.Consent) []string {
	var lines []string
	if q.Why != "" {
		lines = paintAll(l, dim, wrap("("+q.Why+")", l.width, "  "))
	}
	if q.Preview != "" {
		lines = append(lines, diffLines(l, q.Preview, "    ")...)
	}
	if q.Command != "" {
		command := wrapAnywhere(q.Command, l.width, "      ")
		command[0] = "    $ " + strings.TrimPrefix(command[0], "      ")
		lines = append(lines, command...)
	}
	if q.Others != "" {
		lines = append(lines, wrapAnywhere(q.Others, l.width, "    ")...)
	}
	for _, line := range q.Effects {
		lines = append(lines, wrapAnywhere(line, l.width, "    ")...)
	}
	return lines
}

// choiceLines shows a choice in full: its number, what it says, and its letter.
func (a *ask) choiceLines(l look, i int) []string {
	c := a.choices[i]
	mark, said := fmt.Sprintf("  %d ", i+1), text.VisibleLines(c.doc)
	if i == a.at {
		mark = fmt.Sprintf("› %d ", i+1)
	}
	if !a.pending.IsQuestion {
		said += " (" + c.text + ")"
	}
	lines := wrapHanging(l, mark, said)
	if i == a.at {
		return paintAll(l, reverse, lines)
	}
	return lines
}

// lines implements box.
func (a *ask) lines(l look, rows int) (out []string, x, y int) {
	now := a.of.now()
	if a.drawn.IsZero() {
		a.drawn = now
	}
	foot, listed, x, y := a.footer(l, rows, a.unseen(now))
	head := a.title
	if n := a.of.remaining(); n > 0 {
		head += l.paint(dim, fmt.Sprintf(" (%d more %s)", n, text.Plural(n, "waits", "wait")))
	}
	left, body := rows-len(foot), a.body
	subject := len(body)
	if !listed {
		body = slices.Concat(body, a.listed)
	}
	if left < leastBody { // the title becomes a line like the others
		body = append([]string{head}, body...)
	} else {
		out = append(out, head)
		left--
	}
	a.page = max(0, left)
	if len(body) > a.page && a.page > 1 {
		a.page-- // for the line that says so
	}
	if a.lead {
		a.top, a.lead, a.whole = subject, false, true
	}
	a.top = max(0, min(a.top, len(body)-a.page))
	end := min(a.top+a.page, len(body))
	out = append(out, body[a.top:end]...)
	a.more = len(body) - end
	a.whole = a.whole || a.more == 0
	switch some := a.more > 0 || a.top > 0; {
	case some && len(out) < rows-len(foot):
		out = append(out, l.paint(yellow, words.OneLine(fmt.Sprintf("  lines %d-%d of %d; %s for more",
			a.top+1, end, len(body), "pgup, pgdown"), l.width)))
	case some: // there is only room for the position
		at := fmt.Sprintf(" %d/%d", end, len(body))
		foot[0] = ansi.Truncate(foot[0], l.width-len(at), "") + l.paint(yellow, at)
	}
	y += len(out)
	return append(out, foot...), x, y
}

// leastBody is how many rows a question needs above its choices for a fixed title.
const leastBody = 3

// unseen reports whether the person can't have seen the question yet.
func (a *ask) unseen(now time.Time) bool { return a.drawn.IsZero() || now.Sub(a.drawn) < seeing }

// footer returns the choices and the answer line. Listed reports whether the choices are shown in full, one below
// the other; without room for that, only their keys are.
func (a *ask) footer(l look, rows int, unseen bool) (out []string, listed bool, x, y int) {
	for i := range a.choices {
		out = append(out, a.choiceLines(l, i)...)
	}
	if unseen {
		out = paintAll(l, dim, out)
	}
	if listed = len(out)+1 <= rows-leastBody; !listed && len(a.choices) > 0 {
		out = []string{a.keyLine(l, unseen)}
	}
	if a.problem != "" {
		out = append(out, l.paint(red, words.OneLine("  "+a.problem, l.width)))
	}
	empty := "or say what to do instead; Tab adds a note to a yes"
	switch {
	case unseen:
		empty = "one moment" // key presses don't count as an answer yet
	case a.limit != nil:
		empty = "y or n"
	case a.pending.IsQuestion:
		empty = "your answer"
	case a.edited:
		empty = "the command (Esc leaves it as it was)"
	case a.noted:
		empty = "yes, and tell it: (Esc takes the yes back)"
	}
	prompt, x, y := promptLines(l, &a.reply, min(3, max(1, rows-len(out)-2)), empty)
	return append(out, prompt...), listed, x, y + len(out)
}

// keyLine returns the choices without room for their words: the keys, and the words of the chosen one.
func (a *ask) keyLine(l look, unseen bool) string {
	line := ""
	for i, c := range a.choices {
		word := c.text
		if i == a.at {
			word = "›" + word + " " + c.doc
		}
		line = strings.TrimSpace(line + " " + word)
	}
	if a.at < 0 && len(a.choices) > 0 {
		line += " · ↓ explains"
	}
	return l.paint(map[bool]string{true: dim, false: bold}[unseen], "  "+words.OneLine(line, l.width-2))
}

// key implements box.
func (a *ask) key(k tea.KeyPressMsg, action string) tea.Cmd {
	a.problem, a.due = "", time.Time{}
	if i := a.choiceOfKey(k, action); i >= 0 {
		return a.pressKey(i, k)
	}
	switch action {
	case "send":
		return a.answer()
	case "escape":
		if !a.reply.empty() || a.noted || a.edited {
			a.reply, a.noted, a.edited = editor{}, false, false
			return nil
		}
		return a.dismiss()
	case "interrupt":
		if a.limit != nil {
			return a.dismiss()
		}
		return a.of.interrupt()
	case "quit":
		if a.reply.empty() {
			return a.of.quit()
		}
	case "page-up":
		a.top = max(0, a.top-a.page)
	case "page-down":
		a.top += a.page
	case "queue":
		a.note()
	case "up", "down":
		a.move(k, action)
	default:
		if a.reply.key(k, action, a.width-2) && !a.noted {
			a.at = -1
		}
	}
	return nil
}

// note begins a note to a yes: to the chosen one, or else to the one that counts once.
func (a *ask) note() {
	if a.pending.IsQuestion || a.limit != nil || a.edited || !a.reply.empty() {
		return
	}
	a.noted = true
	if a.at < 0 || a.choices[a.at].text == "n" || a.choices[a.at].text == words.EditKey {
		a.at = 0
	}
}

// offers reports whether a choice has this key.
func (a *ask) offers(key string) bool {
	return slices.ContainsFunc(a.choices, func(c choice) bool { return c.text == key })
}

// edit lets the person change the command.
func (a *ask) edit() {
	command, _ := words.Asked(a.pending.Call)
	a.edited, a.at = true, -1
	a.reply = editor{}
	a.reply.set(command)
}

// choiceOfKey returns the choice whose letter or number was pressed while nothing else was written; -1 if none. A capital
// letter begins a sentence. A question of the model has none, since its answer may begin with a number, and neither has a
// note.
func (a *ask) choiceOfKey(k tea.KeyPressMsg, action string) int {
	if a.pending.IsQuestion || a.noted || a.edited || action != "" || !a.reply.empty() {
		return -1
	}
	for i, c := range a.choices {
		if c.text == k.Text || fmt.Sprint(i+1) == k.Text {
			return i
		}
	}
	return -1
}

// pressKey takes the key of a choice. A yes or no for this time counts at once. A choice that holds for longer
// counts a moment later, because many sentences begin with its letter.
func (a *ask) pressKey(i int, k tea.KeyPressMsg) tea.Cmd {
	now := a.of.now()
	if c := a.choices[i].text; (c == "y" || c == "n") && c == k.Text {
		a.at = i
		a.of.keepAnswerKeys(k.Text, now)
		return a.answer()
	}
	a.reply.insert(atomsOf(k.Text)...)
	a.at, a.due = -1, now.Add(lingering)
	return tea.Tick(lingering, func(time.Time) tea.Msg { return tick{} })
}

// answerHeldKey answers with the last key, if it has stood alone long enough.
func (a *ask) answerHeldKey(now time.Time) tea.Cmd {
	if a.due.IsZero() || now.Before(a.due) {
		return nil
	}
	a.due = time.Time{}
	a.of.keepAnswerKeys(a.reply.text(), now)
	return a.answer()
}

// move moves through the choices, or in the written text.
func (a *ask) move(k tea.KeyPressMsg, action string) {
	if !a.reply.empty() || a.noted || a.edited || len(a.choices) == 0 {
		a.reply.key(k, action, a.width-2)
		return
	}
	by := 1
	if action == "up" {
		by = len(a.choices) - 1
		a.at = max(a.at, 0)
	}
	a.at = (a.at + by) % len(a.choices)
}

// paste implements box.
func (a *ask) paste(text string) { a.reply.insert(atomsOf(text)...) }

// dismiss closes the question without an answer.
func (a *ask) dismiss() tea.Cmd {
	if a.limit != nil {
		return a.of.refuse(a.limit)
	}
	return a.of.dismiss(a.pending)
}

// answer sends the chosen or written answer, or describes its fault.
func (a *ask) answer() tea.Cmd {
	written := strings.TrimSpace(a.reply.parts().Text())
	if a.edited {
		d, problem := words.Edited(a.pending.Call, written)
		if problem != "" {
			a.problem = problem
			return nil
		}
		return a.of.decide(a.pending.Answer(d), "")
	}
	if cmd, problem, ok := a.of.command(written); ok && !a.noted {
		a.problem, a.reply = problem, editor{}
		return cmd
	}
	text := written
	if a.at >= 0 && (text == "" || a.noted) {
		text = a.choices[a.at].text
	}
	if command, edits := words.Edits(a.options, text); edits && !a.noted && a.offers(words.EditKey) {
		a.edit()
		if command != "" {
			a.reply.set(command)
			return a.answer()
		}
		return nil
	}
	if a.limit != nil {
		return a.raise(text)
	}
	var d event.Decided
	var note, problem string
	switch {
	case a.pending.IsQuestion:
		d, problem = words.Answer(a.pending.Call, text)
	case a.noted:
		note = written
		d, problem = words.Decision(a.pending.Call.ID, a.options, text)
	default:
		text, note = words.Noted(a.options, text)
		d, problem = words.Decision(a.pending.Call.ID, a.options, text)
	}
	if problem != "" {
		a.problem, a.reply = problem, editor{}
		return nil
	}
	if d.Allow && len(a.pending.Set) > 0 && !a.whole {
		a.reopen("This is about several calls: page down to the last one, then answer.")
		return nil
	}
	if d.Allow && d.Scope != "" && !a.whole { // an approval covers what was shown
		a.reopen("The choices are above in full; answer again.")
		a.lead = true
		return nil
	}
	return a.of.decide(a.pending.Answer(d), note)
}

// reopen lets the person answer once more.
func (a *ask) reopen(problem string) {
	a.problem, a.reply, a.noted, a.at = problem, editor{}, false, -1
}

// raise answers whether a limit may be exceeded.
func (a *ask) raise(text string) tea.Cmd {
	switch n := slices.Index([]string{"1", "2"}, text); {
	case n == 0, words.Choice(text) == "y":
		return a.of.raise(a.limits)
	case n == 1, words.Choice(text) == "n":
		return a.dismiss()
	}
	a.problem, a.reply = "Please answer y or n; the run waits for it.", editor{}
	return nil
}
