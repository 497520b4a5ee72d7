package tui

import "time"

// SetClock has the front end take the time from the test.
func (t *TUI) SetClock(now func() time.Time) { t.now = now }
