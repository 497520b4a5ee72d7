package session

import "sync"

// notifier gets notifications of the system about changed files. It uses nothing while it has no file. The zero
// value is ready.
type notifier struct {
	mu      sync.Mutex
	watcher *watcher         // nil without a file
	files   map[string]int32 // the system's number of a file, by path
	bells   map[int32]*bell  // by the system's number of the file
}

// add rings the bell at every change of the file from now on, until remove, and reports whether it can: the
// system may not support it, or not for as many files.
func (n *notifier) add(path string, b *bell) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, known := n.files[path]; known {
		return true
	}
	if n.watcher == nil {
		w, err := newWatcher()
		if err != nil {
			return false
		}
		n.watcher, n.files, n.bells = w, map[string]int32{}, map[int32]*bell{}
		go w.listen(n.ring)
	}
	watch, err := n.watcher.add(path)
	if err != nil {
		n.rest()
		return false
	}
	n.files[path], n.bells[watch] = watch, b
	return true
}

// remove undoes add, if that has succeeded.
func (n *notifier) remove(path string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	watch, known := n.files[path]
	if !known {
		return
	}
	delete(n.files, path)
	delete(n.bells, watch)
	n.watcher.remove(watch)
	n.rest()
}

// rest closes the watcher if it has no file. The caller holds n.mu.
func (n *notifier) rest() {
	if len(n.files) == 0 {
		n.watcher.close()
		n.watcher = nil
	}
}

// ring rings the bell of a changed file; negative: the system lost track of which.
func (n *notifier) ring(watch int32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if b := n.bells[watch]; b != nil {
		b.ring()
	}
	if watch >= 0 {
		return
	}
	for _, b := range n.bells {
		b.ring()
	}
}
