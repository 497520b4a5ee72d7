package tui

import (
	"time"

	"github.com/inspan/inspan/internal/view/words"
)

// hints is the line above the status line. It shows the effect of a key for a moment.
type hints struct {
	clock func() time.Time
	text  string
	since time.Time
}

// hintTime is how long a hint stays.
const hintTime = 4 * time.Second

func (h *hints) say(text string) { h.text, h.since = words.Hidden(text), h.clock() }

func (h *hints) reset() { h.text = "" }

// expire removes an old hint.
func (h *hints) expire() {
	if h.clock().Sub(h.since) >= hintTime {
		h.reset()
	}
}

func (h *hints) lines(l look) []string {
	if h.text == "" {
		return nil
	}
	return []string{l.paint(yellow, words.OneLine(h.text, l.width))}
}

// taps detects keys that count when pressed twice.
type taps struct {
	action string
	at     time.Time
}

// twice reports whether the same action happened a moment ago.
func (t *taps) twice(action string, now time.Time) bool {
	again := t.action == action && now.Sub(t.at) < 1500*time.Millisecond
	t.action, t.at = action, now
	return again
}
