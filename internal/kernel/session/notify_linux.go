package session

import (
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"
)

// watcher is an instance of inotify(7).
type watcher struct {
	fd   int
	file *os.File // of fd; closing it ends listen
}

func newWatcher() (*watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return &watcher{fd, os.NewFile(uintptr(fd), "inotify")}, nil
}

// add returns the number of the file in events.
func (w *watcher) add(path string) (int32, error) {
	watch, err := unix.InotifyAddWatch(w.fd, path, unix.IN_MODIFY|unix.IN_ATTRIB|unix.IN_MOVE_SELF|unix.IN_DELETE_SELF)
	return int32(watch), err
}

// remove fails if the file is gone, and the watch with it.
func (w *watcher) remove(watch int32) { _, _ = unix.InotifyRmWatch(w.fd, uint32(watch)) }

func (w *watcher) close() { _ = w.file.Close() }

// listen reports changed files, -1 for any, until the watcher is closed.
func (w *watcher) listen(tell func(watch int32)) {
	buf := make([]byte, 64*unix.SizeofInotifyEvent)
	for {
		n, err := w.file.Read(buf)
		if err != nil {
			return
		}
		for e := buf[:n]; len(e) >= unix.SizeofInotifyEvent; {
			tell(int32(binary.NativeEndian.Uint32(e))) // -1 if the queue was too full
			e = e[min(len(e), unix.SizeofInotifyEvent+int(binary.NativeEndian.Uint32(e[12:]))):]
		}
	}
}
