package connect

import "sync"

// Warm keeps the servers of a folder connected while a front end runs, so that they are ready for the first
// session.
type Warm struct {
	hubs      *Hubs
	root, sum string

	mu   sync.Mutex
	hub  *Hub
	over bool
}

// Warm returns a Warm for a folder; sum is the trusted content, as for [consent.Sum]. Servers start with Begin.
func (h *Hubs) Warm(root, sum string) *Warm { return &Warm{hubs: h, root: root, sum: sum} }

// Begin starts the servers. A session reports their errors.
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

// Close releases the servers, including those that a Begin is still starting.
func (w *Warm) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.hub != nil {
		w.hub.Close()
	}
}
