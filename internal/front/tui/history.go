package tui

// history holds earlier messages, to send them again.
type history struct {
	lines []string
	at    int // from the end; 0 is the text being written
	draft editor
}

func (h *history) add(text string) {
	if n := len(h.lines); text != "" && (n == 0 || h.lines[n-1] != text) {
		h.lines = append(h.lines, text)
	}
	h.saveDraft()
}

// saveDraft records that a new text is being written.
func (h *history) saveDraft() { h.at = 0 }
