package store

// Lose has the store believe that nobody drives the session, which its driver does not learn of.
func (m *Memory) Lose(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sessions[id].holder = nil
}
