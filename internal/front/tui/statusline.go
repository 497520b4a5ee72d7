package tui

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/tool"
)

// statusLine is a status line printed by a command of the person's. The command gets the state as JSON on its
// standard input, with the field names that other agents use. It runs when the state changes; until it has run,
// the line stays as it was. The mode and the warnings follow the line. If the command fails, our own line is shown.
type statusLine struct {
	command string // empty if there is none
	version string
	ctx     context.Context
	clock   func() time.Time
	app     app.StatusLine

	shown string // empty means our own line
	state string // the last state that was passed
	runs  bool
	next  time.Time // earliest time of the next run
}

const (
	lineTime  = 2 * time.Second        // for the command
	lineEvery = 300 * time.Millisecond // at least between two runs
)

// stateOf returns the state as JSON. Nothing in it changes with time alone.
func (s *statusLine) stateOf(st status, t *talk) string {
	v := st.view
	type named struct {
		ID   string `json:"id"`
		Name string `json:"display_name"`
	}
	_, name, _ := strings.Cut(st.route, "/")
	var window any // null before it is known
	if v.Session.Window > 0 {
		window = v.Session.Window
	}
	raw, err := json.Marshal(map[string]any{
		"hook_event_name": "Status", "version": s.version, "session_id": v.Session.ID, "cwd": t.root(),
		"model":     named{st.route, name},
		"workspace": map[string]any{"current_dir": t.root(), "project_dir": t.root()},
		"mode":      st.mode, "effort": t.effort(),
		"cost": map[string]any{"total_cost_usd": v.Spent.Cost, "unpriced": v.Spent.Unpriced},
		"context_window": map[string]any{
			"context_window_size": window, "used_percentage": max(0, v.windowPercent()),
			"total_input_tokens": v.Spent.Prompt.Prompt(), "total_output_tokens": v.Spent.Prompt.Output,
		},
		"busy": v.Run.Busy,
	})
	if err != nil {
		return ""
	}
	return string(raw)
}

// refresh runs the command if the state has changed.
func (s *statusLine) refresh(st status, t *talk) tea.Cmd {
	if s.command == "" || s.runs {
		return nil
	}
	state := s.stateOf(st, t)
	if state == s.state {
		return nil
	}
	s.runs = true
	wait, root, mode := s.next.Sub(s.clock()), t.localFolder(), tool.Mode(st.mode)
	if wait > 0 { // the state may change until then
		return tea.Tick(wait, func(time.Time) tea.Msg { return later(func() tea.Cmd { s.runs = false; return nil }) })
	}
	s.state, s.next = state, s.clock().Add(lineEvery)
	return func() tea.Msg {
		line := s.run(root, mode, state)
		return later(func() tea.Cmd {
			s.shown, s.runs = line, false
			return nil
		})
	}
}

// run returns the first line that the command prints, without anything that controls a terminal; empty if it
// failed or took too long.
func (s *statusLine) run(root string, mode tool.Mode, state string) string {
	ctx, cancel := context.WithTimeout(s.ctx, lineTime)
	defer cancel()
	printed, err := s.app.Run(ctx, root, mode, state)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(printed), "\n")
	return text.Line(text.Cut(ansi.Strip(line), mostLine))
}

const mostLine = 1000 // bytes of the line
