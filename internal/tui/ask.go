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
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/internal/transcript"
	"github.com/inspan/inspan/internal/words"
	"github.com/inspan/inspan/tool"
)

// ask is a question of the session to the person: whether a call may be made,
// what a call asks, or whether a limit may be passed. Nothing is chosen before
// the person chooses, and letters count only with enter, so that whoever is
// typing allows nothing by accident.
type ask struct {
	what    string // the call, or the limit; another one is another question
	pending inspan.Pending
	limits  *event.Limits // that would hold; nil: it is about a call
	asks    bool          // the call wants an answer, not consent
	title   string
	body    []string // what it is about, whole
	choices []choice
	at      int // -1: nothing is chosen
	top     int // first line of the body that is shown
	more    int // lines of it that are not
	page    int // lines of it that are
	reply   editor
	problem string
	width   int       // body was made for
	drawn   time.Time // first; zero: not yet
}

// asks reports whether there is a question now, and prepares it.
func (m *model) asks() bool {
	if m.opening || m.quitting || m.hesitates() {
		return false
	}
	what, pending, limits := m.question()
	if what == "" {
		return false
	}
	if m.ask == nil || m.ask.what != what {
		m.ask = &ask{what: what, pending: pending, limits: limits, at: -1}
	}
	if m.ask.width != m.look.width {
		m.ask.prepare(m)
	}
	return true
}

// question is what the session wants to know, in a word; empty: nothing.
func (m *model) question() (what string, pending inspan.Pending, limits *event.Limits) {
	pending, waits := m.view.raising(m.decided)
	if !waits {
		pending, waits = m.view.asking(m.decided)
	}
	if waits {
		return "call " + pending.Call.ID, pending, nil
	}
	if m.running {
		return "", pending, nil
	}
	if m.view.Run.Stopped == nil || m.view.Run.Stopped == m.refused || m.seat.session() == nil {
		return "", pending, nil
	}
	if limits = words.Raised(m.view.Session.Limits, *m.view.Run.Stopped); limits == nil {
		return "", pending, nil
	}
	return "limit " + m.view.Run.Stopped.Detail, pending, limits
}

func (a *ask) prepare(m *model) {
	l := m.look
	a.width = l.width
	if a.limits != nil {
		a.title = l.paint(yellow, "? "+words.OneLine(m.view.Run.Stopped.Detail, l.width-2))
		a.choices = []choice{{"y", "go on with twice the limit"}, {"n", "leave it at that"}}
		return
	}
	w := a.pending
	if a.asks = slices.ContainsFunc(w.Effects, func(e tool.Effect) bool { return e.Kind == tool.Question }); a.asks {
		a.question(l)
		return
	}
	a.title = l.paint(yellow, "? "+words.OneLine(strings.TrimPrefix(w.Agent+" › ", " › ")+w.Call.Name, 60)+" asks")
	a.body = paintAll(l, dim, wrap("("+text.Line(w.Reason)+")", l.width, "  "))
	a.body = append(append(a.body, content(l, w)...), effects(l, w)...)
	a.choices = []choice{{"y", "yes, once"}}
	if len(w.Rules) > 0 {
		rules := text.Visible(strings.Join(w.Rules, ", "))
		a.body = append(a.body, wrap("what is allowed for longer: "+rules, l.width, "  ")...)
		a.choices = append(a.choices, choice{"s", "for this session"}, choice{"p", "for this project"}, choice{"a", "always"})
	}
	a.choices = append(a.choices, choice{"n", "no"})
}

// question prepares a call that asks the person something.
func (a *ask) question(l look) {
	s, options := words.Question(a.pending.Call)
	a.title = l.paint(yellow, "? "+words.OneLine(strings.TrimPrefix(a.pending.Agent+" › ", " › ")+a.pending.Call.Name, 60))
	a.body = wrap(text.VisibleLines(cmp.Or(s, a.pending.Preview)), l.width, "  ")
	a.choices = nil
	for i, o := range options {
		a.choices = append(a.choices, choice{fmt.Sprint(i + 1), o})
	}
}

// content is all that would happen.
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

// effects is what the call would touch beyond what its text shows.
func effects(l look, w inspan.Pending) []string {
	var out []string
	for _, line := range words.Effects(w.Effects, w.Preview != "") {
		out = append(out, broken(line, l.width, "    ")...)
	}
	return out
}

// lines implements box.
func (a *ask) lines(m *model, rows int) (out []string, x, y int) {
	l := m.look
	if a.drawn.IsZero() {
		a.drawn = m.clock()
	}
	foot, x, y := a.foot(l, rows, a.unseen(m.clock()))
	head := a.title
	if n := len(m.view.Waiting()); n > 1 {
		head += l.paint(dim, fmt.Sprintf(" (%d of %d)", n-m.view.undecided(m.decided)+1, n))
	}
	out = append(out, head)
	a.page = max(1, rows-len(foot)-1)
	if len(a.body) > a.page && rows-len(foot) > 2 {
		a.page-- // for the line that says so
	}
	a.top = max(0, min(a.top, len(a.body)-a.page))
	end := min(a.top+a.page, len(a.body))
	out = append(out, a.body[a.top:end]...)
	if a.more = len(a.body) - end; a.more > 0 || a.top > 0 {
		out = append(out, l.paint(yellow, words.OneLine(fmt.Sprintf("  lines %d-%d of %d; %s for more", a.top+1, end, len(a.body), "pgup, pgdown"), l.width)))
	}
	y += len(out)
	return append(out, foot...), x, y
}

// foot is the choices and the line for an answer, in a few rows.
func (a *ask) foot(l look, rows int, unseen bool) (out []string, x, y int) {
	var offers []string
	for i, c := range a.choices {
		word := c.text + " " + words.OneLine(c.doc, max(l.width-8, 8))
		if i == a.at {
			word = l.paint(reverse, "›"+word)
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
	out = out[:min(len(out), max(1, rows-3))]
	if a.problem != "" {
		out = append(out, l.paint(red, words.OneLine("  "+a.problem, l.width)))
	}
	empty := "or say what to do instead"
	switch {
	case unseen:
		empty = "one moment" // what is pressed now is no answer
	case a.limits != nil:
		empty = "y or n"
	case a.asks:
		empty = "your answer"
	}
	prompt, x, y := promptLines(l, &a.reply, min(3, max(1, rows-len(out)-2)), empty)
	return append(out, prompt...), x, y + len(out)
}

// key implements box.
func (a *ask) key(m *model, k tea.KeyPressMsg, action string) tea.Cmd {
	a.problem = ""
	switch action {
	case "send":
		return a.answer(m)
	case "escape":
		if !a.reply.empty() {
			a.reply = editor{}
			return nil
		}
		return a.dismiss(m)
	case "interrupt":
		if a.limits != nil {
			return a.dismiss(m)
		}
		return m.interrupt()
	case "quit":
		if a.reply.empty() {
			return m.quit()
		}
	case "page-up":
		a.top = max(0, a.top-a.page)
	case "page-down":
		a.top += a.page
	case "up", "down", "queue":
		if a.reply.empty() && len(a.choices) > 0 {
			by := 1
			if action == "up" {
				by = len(a.choices) - 1
				a.at = max(a.at, 0)
			}
			a.at = (a.at + by) % len(a.choices)
			return nil
		}
		a.reply.key(k, action, a.width-2)
	default:
		if a.reply.key(k, action, a.width-2) {
			a.at = -1
		}
	}
	return nil
}

// paste implements box.
func (a *ask) paste(_ *model, text string) { a.reply.insert(atomsOf(text)...) }

// dismiss is no answer: a question is not answered, and a run is interrupted that
// wants to do something.
func (a *ask) dismiss(m *model) tea.Cmd {
	switch {
	case a.limits != nil:
		m.refused = m.view.Run.Stopped
		return nil
	case a.asks:
		return m.decide(words.Dismissed(a.pending.Call.ID))
	}
	return m.interrupt()
}

// answer sends what was chosen or written, or says what is wrong with it.
func (a *ask) answer(m *model) tea.Cmd {
	text := strings.TrimSpace(a.reply.parts().Text())
	if name, args, ok := words.Slash(text); ok {
		if c, known := m.commands().named(name); known {
			return a.command(m, c, args)
		}
	}
	if a.at >= 0 && text == "" {
		text = a.choices[a.at].text
	}
	if a.limits != nil {
		return a.limit(m, text)
	}
	d, problem := words.Decision(a.pending.Call.ID, a.pending.Rules, text)
	if a.asks {
		d, problem = words.Answer(a.pending.Call, text)
	}
	if problem != "" {
		a.problem, a.reply = problem, editor{}
		return nil
	}
	return m.decide(d)
}

// command does what a slash command says that leaves the session as it is. It is never
// an answer: the question stays.
func (a *ask) command(m *model, c Command, args string) tea.Cmd {
	a.reply = editor{}
	if c.calm || c.Print != nil {
		return m.do(c, args)
	}
	a.problem = "Please answer first; /" + words.OneLine(c.Name, 30) + " has to wait until then."
	return nil
}

// limit answers whether a limit may be passed.
func (a *ask) limit(m *model, text string) tea.Cmd {
	switch {
	case text == "":
		a.problem = "Please answer; nothing goes on before you do."
	case strings.EqualFold(text, "y"), strings.EqualFold(text, "yes"):
		return m.start(event.Switched{Limits: a.limits}, event.Said{})
	default:
		m.refused = m.view.Run.Stopped
	}
	return nil
}

// decide sends a decision into the run that goes on. Where none does, it is kept until all
// calls that wait are decided on, and a run begins with them.
func (m *model) decide(d event.Decided) tea.Cmd {
	m.decided = append(m.decided, d)
	if m.running {
		m.ask = nil
		m.seat.post(m.next(d, false, ""))
		return nil
	}
	if _, more := m.view.asking(m.decided); more {
		return nil
	}
	return m.start(m.decided...)
}

// undecide puts a question again whose answer did not arrive.
func (m *model) undecide(d event.Decided) {
	m.decided = slices.DeleteFunc(m.decided, func(b event.Body) bool { o, ok := b.(event.Decided); return ok && o.Call == d.Call })
}

// heardAnswer says who has answered a question that is on the screen, unless it was done here.
func (m *model) heardAnswer(d event.Decided) {
	here := decides(m.decided, d.Call)
	m.undecide(d)
	i := slices.IndexFunc(m.view.Now.Questions, func(q *transcript.Question) bool { return d.On(q.ID, q.Seq) })
	if i >= 0 && !here && m.seat.session() != nil {
		m.tell(elsewhere(m.view.Now.Questions[i], d))
	}
}
