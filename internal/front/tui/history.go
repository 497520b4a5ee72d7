package tui

// history is what was said, to say it again.
type history struct {
	lines []string
	at    int // from the end, 0: what is being written
	draft editor
}

func (h *history) add(text string) {
	if n := len(h.lines); text != "" && (n == 0 || h.lines[n-1] != text) {
		h.lines = append(h.lines, text)
	}
	h.left()
}

// left says that something new is being written.
func (h *history) left() { h.at = 0 }
