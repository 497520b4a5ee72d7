package tui

import (
	"cmp"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/internal/view/markdown"
)

// screen is the known state of the terminal, and the text printed on it.
type screen struct {
	look   look
	height int
	habits preferences

	print     printer
	full      *scroll // for fullscreen; nil if inline
	heights   []int   // of the frames that the terminal may show, the newest last
	settled   bool    // the terminal shows a frame of ours; without one, the renderer can't print above it
	fence     fence
	printing  bool // lines are on their way to the terminal
	redrawDue bool // redraw the frame when they have arrived
	away      bool // another program has the terminal
	room      int  // rows that the frame may have meanwhile
}

// fence is a pair of marks. When the second has been written, the terminal shows the frame that was the newest
// at the first, or a later one.
type fence struct {
	first  int // number of the first mark
	last   int // number of the last mark that was sent
	frames int // frames in heights that are older than the fence
	up     bool
}

func newScreen(t *TUI) *screen {
	s := &screen{
		height: cmp.Or(t.Height, 24), look: look{noColor: t.NoColor, lexers: &markdown.Lexers{}},
	}
	s.habits = t.preferences()
	s.look.light, s.look.reader = s.habits.light(), s.habits.reader
	s.look.width = s.cells(cmp.Or(t.Width, 80))
	s.look.noColor = s.look.noColor || s.look.reader
	s.print = printer{look: s.look}
	if t.Fullscreen {
		s.full = &scroll{}
	}
	return s
}

// remember records the height of a frame, since the terminal may still show an earlier one.
func (s *screen) remember(rows int) {
	if n := len(s.heights); n == 0 || s.heights[n-1] != rows {
		s.heights = append(s.heights, rows)
	}
}

// raise begins a fence with a mark.
func (s *screen) raise() tea.Cmd {
	s.fence = fence{first: s.fence.last + 1, last: s.fence.last + 1, frames: max(0, len(s.heights)-1), up: true}
	return mark(s.fence.last)
}

// onMarkWritten handles a mark that has been written. Those of an earlier fence count for nothing.
func (s *screen) onMarkWritten(m markWritten) tea.Cmd {
	switch {
	case !s.fence.up || m.number < s.fence.first:
	case m.number == s.fence.first:
		s.fence.last++
		return mark(s.fence.last)
	default:
		s.fence.up, s.settled = false, true
		s.heights = s.heights[s.fence.frames:]
	}
	return nil
}

// onFrameLost records that the terminal no longer shows a frame of ours.
func (s *screen) onFrameLost() { s.settled, s.fence.up = false, false }

// leave hands the terminal to another program until back is called.
func (s *screen) leave() { s.away = true }

func (s *screen) back() {
	s.away = false
	s.onFrameLost()
}

// flush sends printed lines to the terminal, at most as many as there is room for above the live part, which
// would otherwise scroll away with them.
func (s *screen) flush(v *view) tea.Cmd {
	v.blocks = s.print.take(s.keep(v.blocks))
	if s.full != nil {
		s.full.lines = append(s.full.lines, s.print.lines...)
		s.print.lines = nil
		return nil
	}
	if s.away {
		return nil
	}
	if !s.fence.up && (len(s.heights) > 1 || !s.settled && len(s.print.lines) > 0) {
		return tea.Batch(s.raise(), s.flush(v))
	}
	if s.printing || len(s.print.lines) == 0 || !s.settled {
		return nil
	}
	n := min(len(s.print.lines), max(1, s.height-s.maxLiveRows()-1))
	chunk := strings.Join(rewrap(s.print.lines[:n], s.look.width), "\n")
	s.print.lines = s.print.lines[n:]
	if chunk == "" {
		chunk = " " // an empty text would print no line
	}
	s.printing, s.room = true, max(1, s.height-1-n)
	return tea.Sequence(tea.Println(chunk), func() tea.Msg { return printed{} })
}

// redraw redraws the frame. No lines may arrive meanwhile, since the renderer would take them for part of the
// frame.
func (s *screen) redraw() tea.Cmd {
	if s.redrawDue = s.printing || !s.settled && len(s.print.lines) > 0; s.redrawDue {
		return nil
	}
	s.settled = false
	return tea.Sequence(tea.ClearScreen, s.raise())
}

// onPrinted records that lines have reached the terminal.
func (s *screen) onPrinted() tea.Cmd {
	s.printing = false
	if s.redrawDue {
		return s.redraw()
	}
	return nil
}

// maxLiveRows returns how high the live part may be.
func (s *screen) maxLiveRows() int {
	rows := 0
	for _, n := range s.heights {
		rows = max(rows, n)
	}
	return rows
}

// resize handles a new size of the terminal.
func (s *screen) resize(v *view, width, height int) {
	if width < 1 || height < 1 {
		return
	}
	s.height = height
	if s.look.width == s.cells(width) {
		return
	}
	s.look.width = s.cells(width)
	s.print.look = s.look
	s.reflow(v)
}

// cells returns how many cells a line may have. Terminals differ in the last cell of a line, and for a screen
// reader a mark becomes several words.
func (s *screen) cells(width int) int {
	if s.look.reader {
		width -= len("Question: ")
	}
	return max(width-1, 1)
}

func (s *screen) wheel(msg tea.MouseWheelMsg) {
	if s.full != nil {
		s.full.scroll(map[bool]int{true: 3, false: -3}[msg.Button == tea.MouseWheelUp])
	}
}

// scroll is the transcript in fullscreen.
type scroll struct {
	blocks []*block // all blocks, to render them again
	lines  []string
	up     int // lines below the frame
}

// visible returns the lines that fit.
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

// keep remembers blocks for fullscreen, which may have to render them again.
func (s *screen) keep(blocks []*block) []*block {
	if s.full == nil {
		return blocks
	}
	for _, b := range blocks {
		if !b.kept {
			b.kept = true
			s.full.blocks = append(s.full.blocks, b)
		}
	}
	return blocks
}

// clearTranscript empties the transcript of fullscreen, and reports whether there is one.
func (s *screen) clearTranscript() bool {
	if s.full == nil {
		return false
	}
	s.full.blocks, s.full.lines = nil, nil
	s.print = printer{look: s.look}
	return true
}

// onBackground handles what the terminal reports about its background. The settings take precedence.
func (s *screen) onBackground(light bool) {
	if s.habits.theme != "" {
		return
	}
	s.look.light = light
	s.print.look = s.look
}

// setTheme handles the person's choice of a theme; empty means to ask the terminal.
func (s *screen) setTheme(theme string) {
	s.habits.theme = theme
	s.look.light = s.habits.light()
	s.print.look = s.look
}

// rows returns how many rows the live part may have.
func (s *screen) rows() int {
	rows := max(s.height-1, 1)
	if s.printing {
		rows = min(rows, s.room)
	}
	return rows
}

// tail returns the end of the open reply that is not printed yet, in at most so many lines. In fullscreen it is
// shown above.
func (s *screen) tail(rows int) []string {
	if s.full != nil || s.look.reader {
		return nil
	}
	tail := s.print.tail
	return tail[len(tail)-max(0, min(len(tail), rows)):]
}

// reflow renders everything in fullscreen again.
func (s *screen) reflow(v *view) {
	if s.full == nil {
		return
	}
	s.print = printer{look: s.look}
	s.full.lines = nil
	v.blocks = s.full.blocks
}

// unfold shows a result in full; in fullscreen in its place, and folded again the next time.
func (s *screen) unfold(v *view, b *block) {
	if s.full != nil {
		b.whole = !b.whole
		s.reflow(v)
		return
	}
	whole := *b
	whole.whole = true
	v.add(&whole)
}
