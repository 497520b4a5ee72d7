package files

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/safety/secret"
)

// mostLooked bounds how much of a file is searched for secrets, in bytes. For longer files the name decides.
const mostLooked = 1 << 20

// mostInAll bounds the bytes searched for one session, so that a repository with many such files can't keep it
// busy. Beyond it names decide.
const mostInAll = 256 << 20

// Looker determines whether files with names of secrets contain any. It caches results as long as a file is
// unchanged, and records files that the session has made. It is safe for concurrent use.
//
// A file is the session's own only as long as it is unchanged since the session wrote it. If another process
// writes to it or replaces it, it no longer is.
type Looker struct {
	mu   sync.Mutex
	own  map[string]fs.FileInfo
	seen map[string]looked
	read int64 // bytes searched so far
}

// looked is the cached result for a file.
type looked struct {
	info    fs.FileInfo
	content places.Content
}

// mostSeen bounds the cached results.
const mostSeen = 10000

// Sees returns the map with this Looker.
func (l *Looker) Sees(m places.Map) places.Map {
	m.Look = l.Look
	return m
}

// Look returns the kind of content at a path, which is resolved: a link is not followed. Opening a pipe does
// not block.
func (l *Looker) Look(path string) places.Content {
	at, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return places.ContentNone
	}
	if err != nil || !at.Mode().IsRegular() {
		return places.ContentUnknown
	}
	if content, ok := l.known(path, at); ok {
		return content
	}
	file, err := os.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return places.ContentUnknown
	}
	defer file.Close()
	content, info, _ := l.lookInto(file, path)
	if info == nil || !os.SameFile(at, info) {
		return places.ContentUnknown
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil || len(l.seen) >= mostSeen {
		l.seen = map[string]looked{}
	}
	l.seen[path] = looked{info, content}
	return content
}

// known returns the cached result for an unchanged file.
func (l *Looker) known(path string, now fs.FileInfo) (places.Content, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if same(l.own[path], now) {
		return places.ContentOwn, true
	}
	was := l.seen[path]
	return was.content, same(was.info, now)
}

// same reports whether a file is the same and unchanged.
func same(was, now fs.FileInfo) bool {
	return was != nil && os.SameFile(was, now) && was.Size() == now.Size() && was.ModTime().Equal(now.ModTime())
}

// lookInto searches an open file, and returns the data that it read, so that later content is never shown. Info
// is nil if it is not a regular file.
func (l *Looker) lookInto(file *os.File, path string) (content places.Content, info fs.FileInfo, data []byte) {
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return places.ContentUnknown, nil, nil
	}
	if content, ok := l.known(path, info); ok && content == places.ContentOwn {
		return content, info, nil
	}
	if info.Size() > mostLooked || !l.mayRead(info.Size()) {
		return places.ContentUnknown, info, nil
	}
	data, err = io.ReadAll(io.NewSectionReader(file, 0, mostLooked+1))
	switch {
	case err != nil || len(data) > mostLooked:
		return places.ContentUnknown, info, nil
	case secret.Plain(path, data):
		return places.ContentPlain, info, data
	}
	return places.ContentSecret, info, nil
}

// mayRead reports whether the budget allows searching more bytes.
func (l *Looker) mayRead(size int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read += size
	return l.read <= mostInAll
}

// NoteMade records a file as made or changed by the session.
func (l *Looker) NoteMade(path string) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.own == nil {
		l.own = map[string]fs.FileInfo{}
	}
	if len(l.own) < mostSeen {
		l.own[path] = info
	}
}

// readFile is an open file from which only the searched data can be read. It has no other access to its
// content, such as [io.WriterTo].
type readFile struct {
	file *os.File
	data *bytes.Reader
}

// Stat implements [fs.File].
func (f readFile) Stat() (fs.FileInfo, error) { return f.file.Stat() }

// Read implements [fs.File].
func (f readFile) Read(p []byte) (int, error) { return f.data.Read(p) }

// ReadAt implements [io.ReaderAt].
func (f readFile) ReadAt(p []byte, at int64) (int, error) { return f.data.ReadAt(p, at) }

// Seek implements [io.Seeker].
func (f readFile) Seek(offset int64, whence int) (int64, error) { return f.data.Seek(offset, whence) }

// Close implements [fs.File].
func (f readFile) Close() error { return f.file.Close() }
