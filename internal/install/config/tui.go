package config

import (
	"errors"
	"fmt"
	"strings"
)

// TUI configures the appearance and behaviour of the interactive front end.
type TUI struct {
	Theme string `toml:"theme"` // light, dark or auto: ask the terminal; empty: auto
	// command whose first line of output is the status line; it reads the state as JSON
	StatusLine   string `toml:"status_line"`
	Vim          bool   `toml:"vim"`           // the prompt has vim's normal and insert mode
	ScreenReader bool   `toml:"screen_reader"` // plain lines with words for marks, and nothing that moves
}

// Check returns errors for invalid values.
func (t TUI) Check() error {
	line := error(nil)
	if strings.ContainsAny(t.StatusLine, "\x00\n") {
		line = fmt.Errorf("tui.status_line: %q is not one line", t.StatusLine)
	}
	return errors.Join(oneOf("tui.theme", t.Theme, "light", "dark", "auto"), line)
}
