package store

// Lose makes the store believe that no process drives the session; the driver does not learn of it.
func (m *Memory) Lose(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sessions[id].holder = nil
}
