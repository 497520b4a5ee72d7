package tui

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/internal/install/app"
)

// Board is the board of all sessions of a TUI, and of the questions that wait for the person. It keeps the
// person's position, so that it can be shown again after a session was opened from it.
type Board struct {
	*TUI
	Say string // shown first, for example why a session could not be opened; may be empty

	chosen string // id of the marked row
	state  int    // state of the shown rows, as the keys count them; 0 means all
	find   editor // text that the rows must contain
}

// Run shows the board until the person leaves or ctx ends, and then restores the terminal. It returns the
// session that the person wants to open and its folder, or nothing.
func (b *Board) Run(ctx context.Context) (id, root string, err error) {
	keys, err := keysOf(b.Keys)
	if err != nil {
		return "", "", err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := newBoardModel(ctx, b, keys)
	p := tea.NewProgram(m, b.options(ctx)...)
	stopped := b.signals(p)
	_, err = p.Run()
	stopped()
	cancel()
	m.board.Close()
	if err = errors.Join(err, m.fatal); errors.Is(err, context.Canceled) {
		err = nil
	}
	return m.open.ID, m.open.Root, err
}

// boardModel is the board on the screen. Only the event loop of the program accesses it. Slow work is done in
// commands, and one of them reads at a time.
type boardModel struct {
	*Board
	ctx    context.Context //nolint:containedctx // context for the commands
	keys   keymap
	screen *screen
	hints  *hints
	board  *app.Board

	rows    []app.Row
	count   []int             // number of rows by state
	opens   []int             // rows that may wait for the person
	shown   []int             // rows that pass the filters
	at      int               // index in shown of the marked row
	top     int               // index in shown of the first row on the screen
	room    int               // rows that the screen shows
	listed  bool              // the store has been listed
	reading bool              // a command is reading
	due     time.Time         // when to list the sessions again
	typing  bool              // the keys edit the filter
	said    map[string]string // matches of the search, by id; nil without a search
	stop    func()            // ends the search; nil if none is in progress
	search  int               // number of the search
	help    bool              // the keys are shown
	ask     *ask              // the question that takes the keys; nil if none
	asked   app.Row           // the session of the question
	sent    map[uint64]bool   // questions of that session that were answered from here
	open    app.Row           // the session that the person wants to open; without an id if none
	fatal   error
	over    bool
}

// Messages of the board.
type (
	// boardRows is the board after listing or looking, which took so long.
	boardRows struct {
		rows []app.Row
		list bool
		took time.Duration
		err  error
	}
	boardFound struct {
		search int
		said   map[string]string
		err    error
	}
	// boardDecided says that a decision has arrived, or why it has not.
	boardDecided struct {
		of       app.Row
		question uint64
		err      error
	}
	boardTick struct{}
)

// How often the sessions are listed: at most this often, and only so often that it takes a twentieth of the
// time.
const (
	boardEvery = time.Second
	boardShare = 20
	boardTicks = 100 * time.Millisecond
)

// mostLooks is how many logs are read before the screen is updated.
const mostLooks = 8

func newBoardModel(ctx context.Context, b *Board, keys keymap) *boardModel {
	m := &boardModel{Board: b, ctx: ctx, keys: keys, screen: newScreen(b.TUI), hints: &hints{clock: b.clock}, board: b.App.Running.NewBoard()}
	m.countRows()
	if b.Say != "" {
		m.hints.say(b.Say)
		b.Say = ""
	}
	return m
}

// Init implements tea.Model.
func (m *boardModel) Init() tea.Cmd { return tea.Batch(tea.RequestBackgroundColor, m.list(), m.tick()) }

func (m *boardModel) tick() tea.Cmd {
	return tea.Tick(boardTicks, func(time.Time) tea.Msg { return boardTick{} })
}

// list lists the sessions.
func (m *boardModel) list() tea.Cmd {
	m.reading = true
	return func() tea.Msg {
		began := time.Now()
		rows, err := m.board.List(m.ctx)
		return boardRows{rows, true, time.Since(began), err}
	}
}

// read starts reading what is needed next, unless a read is in progress.
func (m *boardModel) read() tea.Cmd {
	switch ids := m.wanted(); {
	case m.reading:
		return nil
	case !m.clock().Before(m.due):
		return m.list()
	case len(ids) > 0:
		m.reading = true
		return func() tea.Msg { return boardRows{rows: m.board.Look(m.ctx, ids...)} }
	}
	return nil
}

// wanted returns the sessions whose logs to read next: those that may wait for the person, then those on the
// screen. A server has to send a whole log, so only logs of sessions that may wait are read.
func (m *boardModel) wanted() (ids []string) {
	want := func(r app.Row, wanted bool) {
		if wanted && r.Stale && len(ids) < mostLooks && !slices.Contains(ids, r.ID) {
			ids = append(ids, r.ID)
		}
	}
	visible := m.shown[min(m.top, len(m.shown)):min(m.top+m.room, len(m.shown))]
	for _, i := range visible {
		want(m.rows[i], m.rows[i].Open)
	}
	for _, i := range m.opens {
		want(m.rows[i], true)
	}
	for _, i := range visible {
		want(m.rows[i], m.server() == "")
	}
	return ids
}

// Update implements tea.Model.
func (m *boardModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := m.update(msg)
	m.hints.expire()
	return m, tea.Batch(cmd, m.read())
}

func (m *boardModel) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.screen.resize(nil, msg.Width, msg.Height)
	case tea.BackgroundColorMsg:
		m.screen.onBackground(!msg.IsDark())
	case tea.KeyPressMsg:
		return m.key(msg)
	case tea.PasteMsg:
		m.paste(msg.Content)
	case tea.MouseWheelMsg:
		m.move(map[bool]int{true: -3, false: 3}[msg.Button == tea.MouseWheelUp])
	case boardRows:
		return m.takeRead(msg)
	case boardFound:
		m.addFound(msg)
	case boardDecided:
		m.onDecided(msg)
	case leave:
		return m.quit()
	case boardTick:
		if m.ask != nil {
			return tea.Batch(m.tick(), m.ask.answerHeldKey(m.clock()))
		}
		return m.tick()
	}
	return nil
}

// takeRead updates the board with the sessions that were read.
func (m *boardModel) takeRead(msg boardRows) tea.Cmd {
	m.reading = false
	if msg.list {
		m.due = m.clock().Add(max(boardEvery, boardShare*msg.took))
	}
	switch {
	case msg.err != nil && m.ctx.Err() != nil:
		return nil
	case msg.err != nil && !m.listed:
		m.fatal = msg.err
		return m.quit()
	case msg.err != nil:
		m.hints.say("the sessions can't be listed: " + msg.err.Error())
		return nil
	}
	m.rows, m.listed = msg.rows, true
	m.countRows()
	m.filter()
	m.answered()
	return nil
}

// countRows counts the rows.
func (m *boardModel) countRows() {
	states := m.board.Standings()
	m.count, m.opens = make([]int, len(states)), nil
	for i := range m.rows {
		m.count[slices.Index(states, m.rows[i].Standing)]++
		if m.rows[i].Open {
			m.opens = append(m.opens, i)
		}
	}
}

// filter finds the rows to show, and keeps the marked row.
func (m *boardModel) filter() {
	m.shown = m.shown[:0]
	typed := strings.ToLower(strings.TrimSpace(m.find.text()))
	states := m.board.Standings()
	for i := range m.rows {
		r := &m.rows[i]
		if m.state > 0 && r.Standing != states[m.state-1] {
			continue
		}
		if _, said := m.said[r.ID]; m.said != nil && !said {
			continue
		}
		if m.said == nil && typed != "" && rankOf(strings.ToLower(r.Name), strings.ToLower(r.ID+" "+r.Root+" "+r.Words), typed) > 2 {
			continue
		}
		m.shown = append(m.shown, i)
	}
	if at := slices.IndexFunc(m.shown, func(i int) bool { return m.rows[i].ID == m.chosen }); at >= 0 && m.chosen != "" {
		m.at = at
	}
	m.move(0)
}

// move marks another row.
func (m *boardModel) move(by int) {
	m.at = max(0, min(m.at+by, len(m.shown)-1))
	if r, ok := m.marked(); ok && by != 0 {
		m.chosen = r.ID
	}
	m.scroll()
}

// scroll brings the marked row onto the screen.
func (m *boardModel) scroll() {
	m.top = max(0, min(m.top, m.at, len(m.shown)-m.room))
	m.top = max(m.top, m.at-m.room+1)
}

// marked returns the row that the keys apply to.
func (m *boardModel) marked() (app.Row, bool) {
	if m.at >= len(m.shown) {
		return app.Row{}, false
	}
	return m.rows[m.shown[m.at]], true
}

// searchMessages searches all messages for the typed text.
func (m *boardModel) searchMessages() tea.Cmd {
	m.stopSearch()
	m.said = nil
	typed := strings.TrimSpace(m.find.text())
	if typed == "" {
		m.filter()
		return nil
	}
	ctx, stop := context.WithCancel(m.ctx)
	m.search++
	m.stop = stop
	n := m.search
	return func() tea.Msg {
		said, err := m.board.Search(ctx, typed)
		return boardFound{n, said, err}
	}
}

// stopSearch ends the search in progress.
func (m *boardModel) stopSearch() {
	if m.stop != nil {
		m.stop()
		m.stop = nil
	}
}

// addFound takes the result of a search, unless it was stopped.
func (m *boardModel) addFound(msg boardFound) {
	if m.stop == nil || msg.search != m.search {
		return
	}
	m.stopSearch()
	if msg.err != nil {
		m.hints.say(msg.err.Error())
		return
	}
	m.said = msg.said
	m.filter()
}

// server returns the server that has the sessions; empty means this machine.
func (m *boardModel) server() string { return m.App.Running.Server }

func (m *boardModel) quit() tea.Cmd {
	m.over = true
	m.stopSearch()
	return tea.Quit
}

// enter opens the marked session.
func (m *boardModel) enter() tea.Cmd {
	r, ok := m.marked()
	if !ok {
		return nil
	}
	m.open, m.chosen = r, r.ID
	return m.quit()
}
