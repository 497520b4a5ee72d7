package tui

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// boardStill is a board without a terminal, with a session of each state.
func boardStill(t *testing.T, width, height int, l look) *boardModel {
	t.Helper()
	now := time.Unix(1.8e9, 0)
	a := app.New(&config.Installation{StateDir: t.TempDir()})
	b := &Board{TUI: &TUI{App: a, Width: width, Height: height, NoColor: l.noColor, now: func() time.Time { return now }}}
	keys, err := keysOf(nil)
	if err != nil {
		t.Fatal(err)
	}
	m := newBoardModel(context.Background(), b, keys)
	m.screen.look.light = l.light
	states := m.board.Standings()
	asked := inspan.Pending{
		Call: llm.Call{ID: "c", Name: "bash", Args: json.RawMessage(`{"command":"rm -r \u001b[31mbuild"}`)}, Question: 7, Waits: true,
		Reason: "it would change files", Effects: []tool.Effect{{Kind: tool.Write, Path: "/w/shop/build"}}, Rules: []string{"bash(rm *)"},
	}
	row := func(state int, name, root string, age time.Duration) app.Row {
		id := fmt.Sprintf("2026010%d-000000-aaaa", state)
		return app.Row{ID: id, Name: name, Root: root, Standing: states[state], Modified: now.Add(-age)}
	}
	waits := row(0, "Clean the \x1b]0;evil\x07build folder of the whole shop before the release", "/w/shop", 0)
	waits.Driven, waits.Agents, waits.Known, waits.Cost = true, 3, true, 1.5
	waits.Words, waits.Questions = "bash asks: rm -r build", []inspan.Pending{asked}
	failed := row(3, "Port it", "/w/shop", 50*time.Hour)
	failed.Known, failed.Unpriced, failed.Words = true, true, "budget: 2 of 2 dollars"
	rows := []app.Row{
		waits, row(1, "Fix the test", "/w/a/very/long/way/to/the/folder/of/the/site", 3*time.Minute),
		row(2, "見て", "/w/shop", 5*time.Hour), failed,
	}
	for i := range 30 {
		r := row(4, fmt.Sprintf("Task %d", i), "/w", 1000*time.Hour)
		r.ID = fmt.Sprintf("20250101-000000-%04d", i)
		rows = append(rows, r)
	}
	m.update(boardRows{rows: rows, list: true})
	return m
}

func types(m *boardModel, keys ...rune) {
	for _, k := range keys {
		m.update(tea.KeyPressMsg{Code: k, Text: string(k)})
	}
}

// TestFramesOfBoard checks how the board looks, and that no line is too long and no text drives the terminal.
func TestFramesOfBoard(t *testing.T) {
	sizes := []struct {
		name          string
		width, height int
		look          look
	}{
		{"40x12", 40, 12, look{noColor: true}},
		{"80x24", 80, 24, look{noColor: true}},
		{"200x24", 200, 24, look{}},
	}
	frames := map[string]func(m *boardModel){
		"list":     func(*boardModel) {},
		"end":      func(m *boardModel) { types(m, 'G') },
		"failed":   func(m *boardModel) { types(m, '4') },
		"filter":   func(m *boardModel) { types(m, '/', 's', 'h', 'o', 'p') },
		"keys":     func(m *boardModel) { types(m, '?') },
		"question": func(m *boardModel) { types(m, 'y') },
		"empty":    func(m *boardModel) { m.update(boardRows{list: true}) },
	}
	for name, do := range frames {
		for _, size := range sizes {
			t.Run(name+"/"+size.name, func(t *testing.T) {
				m := boardStill(t, size.width, size.height, size.look)
				do(m)
				m.View()
				got := m.View().Content + "\n"
				for line := range strings.SplitSeq(got, "\n") {
					if ansi.StringWidth(line) >= size.width {
						t.Errorf("a line of %d cells: %q", ansi.StringWidth(line), line)
					}
				}
				if n := strings.Count(got, "\n"); n != size.height {
					t.Errorf("the screen has %d lines", n)
				}
				if strings.Contains(got, "\x07") || size.look.noColor && strings.Contains(got, "\x1b") {
					t.Errorf("text drives the terminal: %q", got)
				}
				golden(t, filepath.Join("testdata", "board", name+"."+size.name+".txt"), strings.ReplaceAll(got, "\x1b", "^["))
			})
		}
	}
}

// TestBoardKeepsRow checks that the marked row stays marked when others come before it, and that its question closes
// when it is no longer open.
func TestBoardKeepsRow(t *testing.T) {
	m := boardStill(t, 80, 24, look{noColor: true})
	types(m, 'j', 'j', 'k', 'k')
	rows := append([]app.Row{{ID: "20260102-000000-aaaa", Name: "new", Standing: m.rows[0].Standing}}, m.rows...)
	m.update(boardRows{rows: rows, list: true})
	if r, _ := m.marked(); r.ID != "20260100-000000-aaaa" || m.at != 1 {
		t.Errorf("%s is marked, at %d", r.ID, m.at)
	}
	if types(m, 'n'); m.ask == nil {
		t.Fatal("no question is shown")
	}
	rows[1].Questions = nil
	if m.update(boardRows{rows: rows}); m.ask != nil {
		t.Error("the question is still open")
	}
}

// TestBoardAnswersWhatIsShown checks that an answer is for the question that stood on the screen: another one of the
// same call, which came meanwhile, stays open.
func TestBoardAnswersWhatIsShown(t *testing.T) {
	m := boardStill(t, 80, 24, look{noColor: true})
	log, err := m.App.Store().Create(t.Context())
	if err == nil {
		err = log.Lease(t.Context())
	}
	if err == nil {
		_, err = harnesstest.Write(t.Context(), log, event.Opened{Format: event.Format, Root: "/w"}, event.Say("go"), event.Asked{Turn: 1},
			event.Replied{Parts: llm.Parts{llm.Call{ID: "c", Name: "bash"}}}, event.Judged{Call: "c", Action: tool.Ask}, event.Waiting{Call: "c"})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	m.rows[0].ID = log.ID()
	answer := func() boardDecided {
		t.Helper()
		types(m, 'y')
		m.View()
		m.ask.drawn = m.ask.drawn.Add(-seeing)
		return m.update(tea.KeyPressMsg{Code: 'y', Text: "y"})().(boardDecided)
	}
	msg := answer() // it shows question 7
	if msg.err == nil || !strings.Contains(msg.err.Error(), "no longer open") {
		t.Fatal(msg.err)
	}
	m.update(msg)
	if m.question(); m.ask == nil {
		t.Error("the question can't be answered again")
	}
	m.ask = nil
	m.rows[0].Questions[0].Question = 6
	if msg := answer(); msg.err != nil {
		t.Error(msg.err)
	}
}
