package session

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// memDisk is a disk in memory that separates written from durable data, and can make any one operation fail.
type memDisk struct {
	mu    sync.Mutex
	nodes map[string]*memFile // by path

	ops    int    // operations that could have failed
	failAt int    // number of the one that fails; 0 means none
	how    fault  // how it fails
	dead   bool   // everything after it fails too, as for a process that is gone
	hit    string // the operation that failed
}

// fault is how an operation fails.
type fault int

const (
	failNothing fault = iota // nothing is done: EIO
	failHalf                 // a write stores half of it: ENOSPC
	failSilent               // a write stores half of it and reports so without an error
	failAll                  // a write stores all of it: EIO
	faults
)

// memFile is a file or a folder.
type memFile struct {
	dir     bool
	entries map[string]*memFile // of a folder, those that survive a power loss

	data   []byte // what a reader sees
	synced []byte // what survives a power loss
	lost   bool   // a sync failed: what was not durable then never will be
	owner  *memHandle
}

func newMemDisk() *memDisk {
	return &memDisk{nodes: map[string]*memFile{"/": {dir: true}}}
}

// step counts an operation and reports whether it is the one to fail.
func (m *memDisk) step(name string) bool {
	m.ops++
	if m.ops == m.failAt {
		m.hit = name
		return true
	}
	return m.dead && m.hit != ""
}

// crash returns the disk after the death of the process, and with power after a power loss. Of data that was not
// durable, keep bytes at the end of each file may still be there, or with nul set be there as NUL bytes.
func (m *memDisk) crash(power bool, keep int, nul bool) *memDisk {
	m.mu.Lock()
	defer m.mu.Unlock()
	after, from := newMemDisk(), m.nodes
	if power {
		from = map[string]*memFile{"/": m.nodes["/"]}
		m.nodes["/"].walk("/", from)
	}
	for path, f := range from {
		data := f.data
		if power {
			more := f.data[min(len(f.data), len(f.synced)):]
			more = bytes.Clone(more[:min(len(more), keep)])
			if nul {
				clear(more)
			}
			data = slices.Concat(f.synced, more)
		}
		after.nodes[path] = &memFile{dir: f.dir, data: bytes.Clone(data), synced: bytes.Clone(data)}
	}
	for path, f := range after.nodes {
		f.entries = after.children(path)
	}
	return after
}

// walk collects the durable entries below a folder.
func (f *memFile) walk(path string, into map[string]*memFile) {
	for name, e := range f.entries {
		into[filepath.Join(path, name)] = e
		e.walk(filepath.Join(path, name), into)
	}
}

// children returns the entries of a folder as they are now.
func (m *memDisk) children(path string) map[string]*memFile {
	entries := map[string]*memFile{}
	for p, f := range m.nodes {
		if filepath.Dir(p) == path && p != path {
			entries[filepath.Base(p)] = f
		}
	}
	return entries
}

func (m *memDisk) Open(path string, flag int) (file, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.nodes[path]
	switch {
	case f == nil && flag&os.O_CREATE == 0, m.nodes[filepath.Dir(path)] == nil:
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	case f != nil && flag&os.O_EXCL != 0:
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrExist}
	case m.step("open " + filepath.Base(path)):
		return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.EIO}
	}
	if f == nil {
		f = new(memFile)
		m.nodes[path] = f
	}
	if flag&os.O_TRUNC != 0 {
		f.data = nil
	}
	return &memHandle{disk: m, f: f, name: filepath.Base(path)}, nil
}

func (m *memDisk) Mkdir(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.nodes[path] != nil:
		return &fs.PathError{Op: "mkdir", Path: path, Err: fs.ErrExist}
	case m.nodes[filepath.Dir(path)] == nil:
		return &fs.PathError{Op: "mkdir", Path: path, Err: fs.ErrNotExist}
	case m.step("mkdir " + path):
		return &fs.PathError{Op: "mkdir", Path: path, Err: syscall.ENOSPC}
	}
	m.nodes[path] = &memFile{dir: true}
	return nil
}

// Stats tells of files that have just changed, as all have here.
func (m *memDisk) Stats(dir string) (stats, error) {
	return stats{func(path string) (stamp, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		f := m.nodes[filepath.Join(dir, path)]
		if f == nil {
			return stamp{}, &fs.PathError{Op: "stat", Path: path, Err: fs.ErrNotExist}
		}
		return stamp{int64(len(f.data)), time.Now()}, nil
	}, func() error { return nil }}, nil
}

func (m *memDisk) ReadDir(path string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.nodes[path] == nil {
		return nil, &fs.PathError{Op: "readdir", Path: path, Err: fs.ErrNotExist}
	}
	if m.step("readdir " + path) {
		return nil, syscall.EIO
	}
	return slices.Sorted(maps.Keys(m.children(path))), nil
}

func (m *memDisk) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.nodes[from]
	if f == nil {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	if f.dir && m.nodes[to] != nil {
		return &fs.PathError{Op: "rename", Path: to, Err: fs.ErrExist}
	}
	if m.step("rename " + filepath.Base(from)) {
		return syscall.EIO
	}
	for p, f := range maps.Clone(m.nodes) {
		if p == from || strings.HasPrefix(p, from+"/") {
			delete(m.nodes, p)
			m.nodes[to+strings.TrimPrefix(p, from)] = f
		}
	}
	return nil
}

func (m *memDisk) Link(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.step("link") {
		return syscall.EMLINK
	}
	m.nodes[to] = m.nodes[from]
	return nil
}

func (m *memDisk) Touch(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.step("touch " + filepath.Base(path)) {
		return syscall.EIO
	}
	return nil
}

func (m *memDisk) Remove(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.step("remove " + path) {
		return syscall.EIO
	}
	for p := range m.nodes {
		if p == path || strings.HasPrefix(p, path+"/") {
			delete(m.nodes, p)
		}
	}
	return nil
}

func (m *memDisk) SyncDir(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.step("syncdir " + path) {
		return syscall.EIO
	}
	m.nodes[path].entries = m.children(path)
	return nil
}

// memHandle is an open file.
type memHandle struct {
	disk   *memDisk
	f      *memFile
	name   string
	closed bool
}

func (h *memHandle) ReadAt(p []byte, off int64) (int, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if h.closed {
		return 0, fs.ErrClosed
	}
	return bytes.NewReader(h.f.data).ReadAt(p, off)
}

func (h *memHandle) Write(p []byte) (int, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if h.closed {
		return 0, fs.ErrClosed
	}
	if !h.disk.step("write " + h.name) {
		h.f.data = append(h.f.data, p...)
		return len(p), nil
	}
	n, err := 0, error(syscall.EIO)
	if h.disk.ops > h.disk.failAt {
		return 0, err
	}
	switch h.disk.how {
	case failHalf:
		n, err = len(p)/2, syscall.ENOSPC
	case failSilent:
		n, err = len(p)/2, nil
	case failAll:
		n = len(p)
	}
	h.f.data = append(h.f.data, p[:n]...)
	if h.disk.how == failAll {
		n = 0
	}
	if n == 0 && err == nil {
		err = io.ErrShortWrite
	}
	return n, err
}

// WriteAt is for marks: only a fault of its own makes it fail.
func (h *memHandle) WriteAt(p []byte, off int64) (int, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if h.closed {
		return 0, fs.ErrClosed
	}
	if h.disk.step("mark " + h.name) {
		return 0, syscall.EIO
	}
	if grow := int(off) + len(p) - len(h.f.data); grow > 0 {
		h.f.data = append(h.f.data, make([]byte, grow)...)
	}
	return copy(h.f.data[off:], p), nil
}

func (h *memHandle) Is(path string) (bool, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	return h.disk.nodes[path] == h.f, nil
}

func (h *memHandle) Changed() (time.Time, error) { return time.Now(), nil }

func (h *memHandle) Size() (int64, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	return int64(len(h.f.data)), nil
}

func (h *memHandle) Truncate(size int64) error {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if h.disk.step("truncate " + h.name) {
		return syscall.EIO
	}
	h.f.data = h.f.data[:size]
	return nil
}

// Sync fails like Linux: after an error the next call succeeds, although the data was dropped.
func (h *memHandle) Sync() error {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if h.disk.step("sync " + h.name) {
		h.f.lost = true
		return syscall.EIO
	}
	if !h.f.lost {
		h.f.synced = bytes.Clone(h.f.data)
	}
	return nil
}

func (h *memHandle) TryLock() (bool, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if h.disk.step("lock " + h.name) {
		return false, syscall.ENOLCK
	}
	if h.f.owner == nil {
		h.f.owner = h
	}
	return h.f.owner == h, nil
}

func (h *memHandle) Unlock() error {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if h.f.owner == h {
		h.f.owner = nil
	}
	return nil
}

func (h *memHandle) Close() error {
	if h.closed {
		return errors.New("closed twice")
	}
	h.closed = true
	return h.Unlock()
}
