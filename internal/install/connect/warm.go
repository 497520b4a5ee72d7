package connect

import "sync"

// Warm keeps the servers of a folder connected while a front end is there, so that they are when the
// first session needs them.
type Warm struct {
	hubs      *Hubs
	root, sum string

	mu   sync.Mutex
	hub  *Hub
	over bool
}

// Warm is for a folder; sum is what is trusted there, as [consent.Sum] says. Nothing is started
// before Begin.
func (h *Hubs) Warm(root, sum string) *Warm { return &Warm{hubs: h, root: root, sum: sum} }

// Begin starts the servers. What is wrong with them a session says.
func (w *Warm) Begin() {
	hub, err := w.hubs.OpenAt(w.root, w.sum, nil, func(string) {})
	if err != nil || hub == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		hub.Close()
		return
	}
	w.hub = hub
}

// Close lets go of the servers, also of those that a Begin is still starting.
func (w *Warm) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.hub != nil {
		w.hub.Close()
	}
}
