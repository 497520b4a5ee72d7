package tui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/internal/transcript"
	"github.com/inspan/inspan/internal/words"
	"github.com/inspan/inspan/tool"
)

// behind is how old a picture may be that a busy machine's terminal still shows.
const behind = time.Second

// Most lines that parts of the picture take.
const (
	mostPrompt  = 10
	mostCalls   = 8
	mostTodo    = 6
	mostPending = 3
)

// View implements tea.Model: the live part at the bottom, or all of the screen.
func (m *model) View() tea.View {
	if m.quitting { // only what is printed stays
		return tea.NewView("")
	}
	rows := max(m.height-1, 1)
	if m.printing {
		rows = min(rows, m.room)
	}
	lines, x, y := m.live(rows)
	if m.full != nil {
		above := m.full.visible(m.height-len(lines), m.print.tail)
		y += len(above)
		lines = append(above, lines...)
	}
	for i, line := range lines { // whatever happens, a line is a line
		if len(line) > m.look.width && cells(line) > m.look.width {
			lines[i] = ansi.Truncate(line, m.look.width, "")
		}
	}
	m.remember(len(lines))
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = m.full != nil
	if x >= 0 {
		v.Cursor = tea.NewCursor(min(x, m.look.width), y)
	}
	return v
}

// remember notes how high a picture is, as the terminal may show one of the last moment
// instead of this one.
func (m *model) remember(rows int) {
	now := m.clock()
	if m.shown.IsZero() {
		m.shown = now
	}
	for len(m.recent) > 1 && now.Sub(m.recent[1].at) > behind {
		m.recent = m.recent[1:]
	}
	if n := len(m.recent); n == 0 || m.recent[n-1].rows != rows {
		m.recent = append(m.recent, tall{now, rows})
	}
}

// live draws what goes on in at most rows lines, and tells where the cursor is.
// What matters most gets its room first: the line of the status, then what takes
// the keys, then what goes on, then the text that streams in.
func (m *model) live(rows int) (out []string, x, y int) {
	status := m.status()
	left := rows
	var foot []string
	if rows > 1 {
		foot = append(foot, status)
		left--
	}
	if m.hint != "" && left > 1 {
		foot = append([]string{m.look.paint(yellow, words.OneLine(m.hint, m.look.width))}, foot...)
		left--
	}
	var front []string
	if b := m.box(); b != nil {
		front, x, y = b.lines(m, left)
		front = front[:min(len(front), left)]
	} else {
		front, x, y = m.promptBox(left)
	}
	left -= len(front)
	var parts [][]string
	for _, part := range [][]string{m.pendingLines(), m.pauseLines(), m.callLines(), m.todoLines()} {
		part = part[:min(len(part), max(0, left))]
		left -= len(part)
		parts = append(parts, part)
	}
	if left > 0 && (m.running || m.view.Run.Busy) {
		parts = append(parts, []string{""}) // some air below the scrollback
		left--
	} else {
		parts = append(parts, nil)
	}
	var tail []string
	if m.full == nil {
		tail = m.print.tail
		tail = tail[len(tail)-max(0, min(len(tail), left)):]
	}
	for _, part := range [][]string{tail, parts[4], parts[2], parts[1], parts[3], parts[0]} {
		out = append(out, part...)
	}
	y += len(out)
	return append(append(out, front...), foot...), x, y
}

// promptBox is the prompt with what could complete it.
func (m *model) promptBox(rows int) (out []string, x, y int) {
	empty := "say what to do"
	switch {
	case m.running:
		empty = "enter says it into the run, tab keeps it for after"
	case m.cutOff() && m.driver != "":
		empty = m.driven()
	case m.view.Run.Busy:
		empty = "the run was cut off; enter goes on with it"
	}
	offers := m.offerLines(min(offered, rows-1))
	out, x, y = promptLines(m.look, &m.prompt, min(mostPrompt, max(1, rows-len(offers))), empty)
	return append(out, offers...), x, y
}

// promptLines shows an editor in at most rows lines.
func promptLines(l look, e *editor, rows int, empty string) (out []string, x, y int) {
	width := max(l.width-2, 1)
	if e.empty() {
		return []string{l.paint(bold, "› ") + l.paint(dim, words.OneLine(empty, width))}, 2, 0
	}
	all := e.rows(width)
	cy, cx := e.place(all, width)
	from := max(0, min(cy-rows/2, len(all)-rows))
	for i := from; i < min(from+rows, len(all)); i++ {
		mark := "  "
		switch i {
		case 0:
			mark = l.paint(bold, "› ")
		case from:
			mark = l.paint(dim, "↑ ")
		}
		out = append(out, mark+textOf(e.atoms[all[i].from:all[i].to]))
	}
	return out, cx + 2, cy - from
}

func (m *model) offerLines(rows int) []string {
	o := m.offer
	if !o.open() || rows < 1 {
		return nil
	}
	from := max(0, min(o.at-rows/2, len(o.items)-rows))
	var out []string
	for i := from; i < min(from+rows, len(o.items)); i++ {
		out = append(out, choiceLine(m.look, o.items[i], i == o.at))
	}
	return out
}

// pendingLines are the inputs that the model has not seen.
func (m *model) pendingLines() []string {
	var out []string
	add := func(what, text string) {
		out = append(out, m.look.paint(dim, "  ↳ "+what+": "+words.OneLine(text, m.look.width-16)))
	}
	for _, s := range m.view.Now.Steered {
		add("telling", s.Text)
	}
	for _, s := range m.view.Queued() {
		add("after it", s.Text)
	}
	for _, b := range m.held {
		if said, ok := b.(event.Said); ok && len(said.Parts) > 0 {
			add("next", transcript.Spoken(said.Parts))
		}
	}
	for _, p := range m.mine {
		add(map[bool]string{true: "telling", false: "after it"}[p.steer], p.text)
	}
	if more := len(out) - mostPending; more > 0 {
		out = append(out[:mostPending], m.look.paint(dim, fmt.Sprintf("  ↳ and %d more", more)))
	}
	return out
}

func (m *model) pauseLines() []string {
	w := m.view.Now.Wait
	if w == nil || !m.running {
		return nil
	}
	return []string{m.look.paint(yellow, "  "+w.What+" in "+words.Left(w.Until.Sub(m.clock())))}
}

// callLines are the calls that run, and what the model is about to do.
func (m *model) callLines() []string {
	l, now := m.look, m.clock()
	var out []string
	for _, c := range m.view.Now.Running {
		took := " " + clock(now.Sub(c.Started))
		narrow := l
		narrow.width -= len(took)
		out = append(out, callLine(narrow, c.Call)+l.paint(dim, took))
		if line := lastLine(c.Latest); line != "" {
			out = append(out, l.paint(dim, "    "+words.OneLine(ansi.Strip(line), l.width-4)))
		}
	}
	for _, c := range m.view.Now.Children {
		if s := c.Spawned; s.Background {
			took := " " + clock(now.Sub(c.Since))
			out = append(out, l.paint(dim, words.OneLine("◦ "+words.Agent(s.Agent, s.Child)+" in the background: "+s.Task, l.width-len(took))+took))
		}
	}
	if more := len(out) - mostCalls; more > 1 {
		out = append(out[:mostCalls], l.paint(dim, fmt.Sprintf("  … +%s", text.Count(more, "line"))))
	}
	if len(m.view.Now.Running) == 0 && m.running {
		out = append(out, l.paint(dim, m.doing(now)))
	}
	return out
}

// doing says what is waited for.
func (m *model) doing(now time.Time) string {
	since := clock(now.Sub(m.view.Run.Began))
	switch v := m.view.Now; {
	case v.Draft.Name != "":
		return words.OneLine(fmt.Sprintf("∙ writing %s, %s · %s", v.Draft.Name, text.Count(v.Draft.Bytes, "character"), since), m.look.width)
	case v.Thinking != "":
		return words.OneLine("∙ "+since+" thinking: "+lastLine(v.Thinking), m.look.width)
	case v.Wait != nil:
		return words.OneLine("∙ waiting · "+since, m.look.width)
	}
	return words.OneLine("∙ working · "+since+" · esc interrupts", m.look.width)
}

// todoLines are the things to do, those that are open first if there is no room.
func (m *model) todoLines() []string {
	if !m.view.Run.Busy {
		return nil
	}
	list := m.view.Todo
	for len(list) > mostTodo && list[0].State == tool.TodoDone {
		list = list[1:]
	}
	var out []string
	for _, t := range list[:min(len(list), mostTodo)] {
		mark, sgr := "☐ ", ""
		switch t.State {
		case tool.TodoDone:
			mark, sgr = "☑ ", dim
		case tool.TodoDoing:
			mark, sgr = "▣ ", bold
		}
		line := "  " + mark + words.OneLine(t.Text, m.look.width-4)
		if sgr != "" {
			line = m.look.paint(sgr, line)
		}
		out = append(out, line)
	}
	if more := len(list) - mostTodo; more > 0 {
		out = append(out, m.look.paint(dim, fmt.Sprintf("  … and %d more", more)))
	}
	return out
}

// status is the line at the bottom: as much of it as there is room for.
func (m *model) status() string {
	v := m.view
	fields := []string{m.mode()}
	if route := m.route(); route != "" {
		fields = append([]string{route}, fields...)
	}
	if v.Spent.Turns > 0 {
		fields = append(fields, words.Cost(v.Spent.Cost, v.Spent.Unpriced))
	}
	if pct := v.share(); pct >= 0 && v.Spent.Turns > 0 {
		fields = append(fields, fmt.Sprintf("%d%% of %dk", pct, v.Session.Window/1000))
	}
	if pct := v.cached(); pct > 0 {
		fields = append(fields, fmt.Sprintf("%d%% cached", pct))
	}
	if v.Run.Busy && m.running {
		fields = append(fields, clock(m.clock().Sub(v.Run.Began)))
	}
	line := words.OneLine(fields[0], m.look.width)
	room := m.look.width - cells(line)
	for _, f := range fields[1:] {
		if n := cells(f) + 3; n <= room {
			line, room = line+" · "+f, room-n
		}
	}
	return m.look.paint(dim, line)
}

// route is the model that answers, or will.
func (m *model) route() string {
	switch {
	case m.view.Session.Route != "":
		return m.view.Session.Route
	case m.opts.Model != "":
		return m.opts.Model
	case m.App != nil:
		return m.App.Config.Model
	}
	return ""
}

// scroll is the transcript of fullscreen.
type scroll struct {
	blocks []*block // all of them, to render them anew
	lines  []string
	up     int // lines below the picture
}

// visible are the lines that fit.
func (s *scroll) visible(rows int, tail []string) []string {
	rows = max(rows, 0)
	all := len(s.lines) + len(tail)
	s.up = max(0, min(s.up, all-rows))
	to := all - s.up
	out := make([]string, 0, rows)
	for i := max(0, to-rows); i < to; i++ {
		if i < len(s.lines) {
			out = append(out, s.lines[i])
		} else {
			out = append(out, tail[i-len(s.lines)])
		}
	}
	for len(out) < rows {
		out = append(out, "")
	}
	return out
}

func (s *scroll) scroll(by int) { s.up = max(0, s.up+by) }

func (s *scroll) page(height int, up bool) {
	by := max(1, height-6)
	if !up {
		by = -by
	}
	s.scroll(by)
}

// keep remembers blocks for fullscreen, which may have to render them anew.
func (m *model) keep(blocks []*block) []*block {
	if m.full == nil {
		return blocks
	}
	for _, b := range blocks {
		if !b.kept {
			b.kept = true
			m.full.blocks = append(m.full.blocks, b)
		}
	}
	return blocks
}

// reflow renders everything of fullscreen anew.
func (m *model) reflow() {
	if m.full == nil {
		return
	}
	m.print = printer{look: m.look}
	m.full.lines = nil
	m.view.blocks = m.full.blocks
}
