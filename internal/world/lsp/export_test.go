package lsp

import "time"

// SetLimits sets how long a server may take to start, and to answer; 0 means as usual.
func (m *Manager) SetLimits(start, answer time.Duration) { m.startIn, m.answerIn = start, answer }
