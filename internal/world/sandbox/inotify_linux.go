package sandbox

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// watch reports changes of folders. A nil watch reports none.
type watch struct {
	file *os.File

	mu      sync.Mutex
	folders map[int]bool // watched folders, by the kernel's number
}

// watchPool is the unused watches of a session: closing one takes the kernel longer than running a command. The
// zero value is ready.
type watchPool struct {
	mu     sync.Mutex
	closed bool
	idle   []*watch
}

// take returns an empty watch, nil if the kernel has none left.
func (ws *watchPool) take() *watch {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if n := len(ws.idle); n > 0 {
		w := ws.idle[n-1]
		ws.idle = ws.idle[:n-1]
		return w
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil
	}
	return &watch{file: os.NewFile(uintptr(fd), "inotify"), folders: map[int]bool{}}
}

// give returns a watch, or nil, that no goroutine waits for.
func (ws *watchPool) give(w *watch) {
	if w == nil {
		return
	}
	w.drain()
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed || len(ws.idle) == mostWaiting {
		w.file.Close()
		return
	}
	ws.idle = append(ws.idle, w)
}

func (ws *watchPool) close() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.closed = true
	for _, w := range ws.idle {
		w.file.Close()
	}
	ws.idle = nil
}

// add watches a folder. It fails if w is nil, or if the kernel has no more watches.
func (w *watch) add(path string, changes uint32) error {
	if w == nil {
		return unix.EMFILE
	}
	return w.control(func(fd int) error {
		folder, err := unix.InotifyAddWatch(fd, path, changes)
		if err == nil {
			w.folders[folder] = true
		}
		return err
	})
}

// wait waits for a change. It returns false if the wait was stopped.
func (w *watch) wait() bool {
	n, err := w.file.Read(make([]byte, 64<<10))
	return err == nil && n > 0
}

// stop ends every wait.
func (w *watch) stop() {
	if w != nil {
		_ = w.file.SetReadDeadline(time.Now()) // inotify supports deadlines
	}
}

// drain removes all folders, and discards their changes.
func (w *watch) drain() {
	_ = w.control(func(fd int) error {
		for folder := range w.folders {
			_, _ = unix.InotifyRmWatch(fd, uint32(folder)) // already removed with its folder
		}
		clear(w.folders)
		buf := make([]byte, 64<<10)
		for n := 1; n > 0; {
			n, _ = unix.Read(fd, buf) // until it is empty
		}
		return nil
	})
	_ = w.file.SetReadDeadline(time.Time{})
}

// control calls do with the open descriptor.
func (w *watch) control(do func(fd int) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	raw, err := w.file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = do(int(fd)) })
	if err == nil {
		err = failed
	}
	return err
}
