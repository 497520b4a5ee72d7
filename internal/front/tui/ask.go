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
	// others returns how many questions come after this one, as far as known.
	others() int
	// passing reports whether an approval holds for the session at most.
	passing() bool
	// took records a key press that was an answer.
	took(pressed string, at time.Time)
	decide(d event.Decided) tea.Cmd
	// dismiss closes the question without an answer.
	dismiss(p inspan.Pending) tea.Cmd
	// raise continues with new limits, and refuse stops at the limit that was reached.
	raise(limits *event.Limits) tea.Cmd
	refuse(limit *event.Stopped) tea.Cmd
	// command runs an answer that is a slash command, or says why it can't run here. It returns false for other
	// text.
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
	long    bool // one of them is too long for a line
	at      int  // -1 if nothing is chosen
	top     int  // first shown line of the body
	more    int  // lines of the body that are not shown
	page    int  // lines of the body that are shown
	ruled   int  // first line of the body that says what is allowed for longer
	lead    bool // the body must be shown from that line
	whole   bool // the end of the body, or that line, was shown
	reply   editor
	problem string
	width   int       // that body was prepared for
	drawn   time.Time // when it was first drawn; zero if not yet
	due     time.Time // when the written key counts by itself; zero if it doesn't
}

// newAsk returns the question of a waiting call.
func newAsk(of asker, p inspan.Pending) *ask {
	p.Reason, p.Preview = words.Asking(p.Root, p.Reason, p.Preview, p.Calls())
	return &ask{of: of, what: fmt.Sprint("call ", p.Call.ID, " with ", len(p.Set)), pending: p, at: -1}
}

// prepare lays the question out for a width.
func (a *ask) prepare(l look) {
	a.width = l.width
	if a.limit != nil {
		a.title = l.paint(yellow, "? "+words.OneLine(a.limit.Detail, l.width-2))
		a.choices = []choice{{"y", words.GoOn(*a.limit)}, {"n", "stop here"}}
		return
	}
	w := a.pending
	if a.pending.Asks {
		a.question(l)
		return
	}
	a.title = l.paint(yellow, "? "+words.OneLine(w.Name(), 60)+" asks")
	a.body = paintAll(l, dim, wrap("("+text.Line(w.Reason)+")", l.width, "  "))
	a.body = append(append(a.body, content(l, w)...), effects(l, w)...)
	a.options = words.Options(w.Rules, w.Offers)
	if a.of.passing() {
		a.options = words.Passing(a.options)
	}
	a.ruled = len(a.body)
	for _, line := range words.Ruled(a.options) {
		a.body = append(a.body, wrap(line, l.width, "  ")...)
	}
	a.choices = nil
	for _, o := range a.options {
		a.choices = append(a.choices, choice{o.Key, o.Name})
	}
}

// question prepares a call that asks the person something.
func (a *ask) question(l look) {
	s, options := words.Question(a.pending.Call)
	a.title = l.paint(yellow, "? "+words.OneLine(a.pending.Name(), 60))
	a.body = wrap(text.VisibleLines(cmp.Or(s, a.pending.Preview)), l.width, "  ")
	a.choices, a.long = nil, false
	for i, o := range options {
		a.choices = append(a.choices, choice{fmt.Sprint(i + 1), o})
		a.long = a.long || cells(o) > a.room(l)
	}
	for i, o := range options { // options that would be cut in their line are listed above it in full
		if a.long {
			a.body = append(a.body, hang(l, fmt.Sprintf("  %d ", i+1), text.VisibleLines(o))...)
		}
	}
}

// content returns everything that would happen.
func content(l look, w inspan.Pending) []string {
	if w.Preview != "" {
		return diffLines(l, w.Preview, "    ")
	}
	var lines []string
	command, others := words.Asked(w.Call)
	if command != "" {
		lines = broken(command, l.width, "      ")
		lines[0] = "    $ " + strings.TrimPrefix(lines[0], "      ")
	}
	if others != "" {
		lines = append(lines, broken(others, l.width, "    ")...)
	}
	return lines
}

// effects returns what the call would touch beyond what its text shows.
func effects(l look, w inspan.Pending) []string {
	var out []string
	for _, line := range words.Effects(w.Effects, w.Preview != "") {
		out = append(out, broken(line, l.width, "    ")...)
	}
	return out
}

// lines implements box.
func (a *ask) lines(l look, rows int) (out []string, x, y int) {
	now := a.of.now()
	if a.drawn.IsZero() {
		a.drawn = now
	}
	foot, x, y := a.foot(l, rows, a.unseen(now))
	head := a.title
	if n := a.of.others(); n > 0 {
		head += l.paint(dim, fmt.Sprintf(" (%d more %s)", n, text.Plural(n, "waits", "wait")))
	}
	left, body := rows-len(foot), a.body
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
		a.top, a.lead, a.whole = a.ruled+len(body)-len(a.body), false, true
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

// foot returns the choices and the answer line, in a few rows.
func (a *ask) foot(l look, rows int, unseen bool) (out []string, x, y int) {
	var offers []string
	for i, c := range a.choices {
		word := c.text + " " + words.OneLine(c.doc, a.room(l))
		switch {
		case i == a.at:
			word = l.paint(reverse, "›"+word)
		case unseen:
			word = l.paint(dim, word)
		}
		offers = append(offers, word)
	}
	line := ""
	for _, word := range offers {
		if line != "" && ansi.StringWidth(line)+ansi.StringWidth(word)+5 > l.width {
			out = append(out, line)
			line = ""
		}
		if line == "" {
			line = "  " + word
		} else {
			line += " · " + word
		}
	}
	if line != "" {
		out = append(out, line)
	}
	if room := max(1, rows-leastBody); len(out) > room || a.long {
		out = append(out[:0], a.keyLine(l, unseen))
	}
	if a.problem != "" {
		out = append(out, l.paint(red, words.OneLine("  "+a.problem, l.width)))
	}
	empty := "or say what to do instead"
	switch {
	case unseen:
		empty = "one moment" // key presses don't count as an answer yet
	case a.limit != nil:
		empty = "y or n"
	case a.pending.Asks:
		empty = "your answer"
	}
	prompt, x, y := promptLines(l, &a.reply, min(3, max(1, rows-len(out)-2)), empty)
	return append(out, prompt...), x, y + len(out)
}

// room returns how many cells the words of a choice have in its line.
func (a *ask) room(l look) int { return max(l.width-8, 8) }

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
	if i := a.single(k, action); i >= 0 {
		return a.pressed(i, k)
	}
	switch action {
	case "send":
		return a.answer()
	case "escape":
		if !a.reply.empty() {
			a.reply = editor{}
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
	case "up", "down", "queue":
		a.move(k, action)
	default:
		if a.reply.key(k, action, a.width-2) {
			a.at = -1
		}
	}
	return nil
}

// single returns the choice whose key was pressed while nothing else was written; -1 if none. A question of the
// model has none, since its answer may begin with a number.
func (a *ask) single(k tea.KeyPressMsg, action string) int {
	if a.pending.Asks || action != "" || !a.reply.empty() {
		return -1
	}
	return slices.IndexFunc(a.choices, func(c choice) bool { return c.text == strings.ToLower(k.Text) })
}

// pressed takes the key of a choice. A yes or no for this time counts at once. A choice that holds for longer
// counts a moment later, because many sentences begin with its letter.
func (a *ask) pressed(i int, k tea.KeyPressMsg) tea.Cmd {
	now := a.of.now()
	if c := a.choices[i].text; c == "y" || c == "n" {
		a.at = i
		a.of.took(k.Text, now)
		return a.answer()
	}
	a.reply.insert(atomsOf(k.Text)...)
	a.at, a.due = -1, now.Add(lingering)
	return tea.Tick(lingering, func(time.Time) tea.Msg { return tick{} })
}

// lingers answers with the last key, if it has stood alone long enough.
func (a *ask) lingers(now time.Time) tea.Cmd {
	if a.due.IsZero() || now.Before(a.due) {
		return nil
	}
	a.due = time.Time{}
	a.of.took(a.reply.text(), now)
	return a.answer()
}

// move moves through the choices, or in the written text.
func (a *ask) move(k tea.KeyPressMsg, action string) {
	if !a.reply.empty() || len(a.choices) == 0 {
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

// answer sends the chosen or written answer, or says what is wrong with it.
func (a *ask) answer() tea.Cmd {
	text := strings.TrimSpace(a.reply.parts().Text())
	if cmd, problem, ok := a.of.command(text); ok {
		a.problem, a.reply = problem, editor{}
		return cmd
	}
	if a.at >= 0 && text == "" {
		text = a.choices[a.at].text
	}
	if a.limit != nil {
		return a.raise(text)
	}
	d, problem := words.Decision(a.pending.Call.ID, a.options, text)
	if a.pending.Asks {
		d, problem = words.Answer(a.pending.Call, text)
	}
	if problem != "" {
		a.problem, a.reply = problem, editor{}
		return nil
	}
	if d.Allow && len(a.pending.Set) > 0 && !a.whole {
		a.problem, a.reply, a.at = "This is about several calls: page down to the last one, then answer.", editor{}, -1
		return nil
	}
	if d.Allow && d.Scope != "" && !a.whole { // an approval covers what was shown
		a.problem, a.reply, a.at = "The rules are above; answer again.", editor{}, -1
		a.lead = true
		return nil
	}
	return a.of.decide(a.pending.Answer(d))
}

// raise answers whether a limit may be exceeded.
func (a *ask) raise(text string) tea.Cmd {
	switch words.Choice(text) {
	case "y":
		return a.of.raise(a.limits)
	case "n":
		return a.dismiss()
	}
	a.problem, a.reply = "Please answer y or n; the run waits for it.", editor{}
	return nil
}
