package tui

import (
	"os"
	"strconv"
	"strings"
)

// habits are how the person wants the front end to look and behave.
type habits struct {
	theme      string // light or dark; empty: the terminal's
	statusLine string // a command; empty: our own line
	vim        bool
	reader     bool // a screen reader reads the terminal
}

// habits are those of the settings.
func (t *TUI) habits() habits {
	if t.App == nil {
		return habits{}
	}
	set := t.App.Config.TUI
	h := habits{theme: set.Theme, statusLine: set.StatusLine, vim: set.Vim, reader: set.ScreenReader}
	if h.theme == "auto" {
		h.theme = ""
	}
	return h
}

// light reports whether the background is light, as far as is known before the terminal is asked: by
// the settings, or by what some terminals say in COLORFGBG, "15;0" for white on black.
func (h habits) light() bool {
	if h.theme != "" {
		return h.theme == "light"
	}
	fields := strings.Split(os.Getenv("COLORFGBG"), ";")
	back, err := strconv.Atoi(fields[len(fields)-1])
	return err == nil && (back == 7 || back >= 9 && back <= 15)
}
