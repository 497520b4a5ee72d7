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
	"github.com/inspan/inspan/tool"
)

// mostLooked is how much of a file is looked through for secrets, in bytes. What
// is longer is a secret if its name says so.
const mostLooked = 1 << 20

// mostInAll bounds what is looked through for one session, in bytes, so that a
// repository of files with such names can't keep it busy. Beyond it names decide.
const mostInAll = 256 << 20

// Looker tells of files that are named like secrets whether they are. It
// remembers what it saw for as long as the file stays the same, and what the
// session has made. Safe for concurrent use.
//
// A file is the session's own only while it is as the session left it: what
// somebody else writes into it or puts in its place is theirs.
type Looker struct {
	mu   sync.Mutex
	own  map[string]fs.FileInfo
	seen map[string]looked
	read int64 // bytes that were looked through
}

// looked is what was seen of a file.
type looked struct {
	info    fs.FileInfo
	content tool.Content
}

// mostSeen bounds what is remembered of files.
const mostSeen = 10000

// Sees makes a map that looks with it.
func (l *Looker) Sees(m places.Map) places.Map {
	m.Look = l.Look
	return m
}

// Look tells what a path holds, which is resolved: what turns out to be a link
// is not followed. Opening does not wait for the other end of a pipe.
func (l *Looker) Look(path string) tool.Content {
	at, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return tool.ContentNone
	}
	if err != nil || !at.Mode().IsRegular() {
		return tool.ContentUnknown
	}
	if content, ok := l.known(path, at); ok {
		return content
	}
	file, err := os.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return tool.ContentUnknown
	}
	defer file.Close()
	content, info, _ := l.lookInto(file, path)
	if info == nil || !os.SameFile(at, info) {
		return tool.ContentUnknown
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil || len(l.seen) >= mostSeen {
		l.seen = map[string]looked{}
	}
	l.seen[path] = looked{info, content}
	return content
}

// known is what is remembered of a file that is as it was.
func (l *Looker) known(path string, now fs.FileInfo) (tool.Content, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if same(l.own[path], now) {
		return tool.ContentOwn, true
	}
	was := l.seen[path]
	return was.content, same(was.info, now)
}

// same reports whether a file is the one it was and nobody has written to it.
func same(was, now fs.FileInfo) bool {
	return was != nil && os.SameFile(was, now) && was.Size() == now.Size() && was.ModTime().Equal(now.ModTime())
}

// lookInto looks through an open file, and returns what it read, so that nobody
// gets to see what came later. Info is nil for what is not a regular file.
func (l *Looker) lookInto(file *os.File, path string) (content tool.Content, info fs.FileInfo, data []byte) {
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return tool.ContentUnknown, nil, nil
	}
	if content, ok := l.known(path, info); ok && content == tool.ContentOwn {
		return content, info, nil
	}
	if info.Size() > mostLooked || !l.mayRead(info.Size()) {
		return tool.ContentUnknown, info, nil
	}
	data, err = io.ReadAll(io.NewSectionReader(file, 0, mostLooked+1))
	switch {
	case err != nil || len(data) > mostLooked:
		return tool.ContentUnknown, info, nil
	case secret.Plain(path, data):
		return tool.ContentPlain, info, data
	}
	return tool.ContentSecret, info, nil
}

// mayRead reports whether so many bytes more may be looked through.
func (l *Looker) mayRead(size int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read += size
	return l.read <= mostInAll
}

// NoteMade takes a file down as one that the session has made or changed.
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

// readFile is an open file of which only what was looked through is read. It has
// no other way to its content, such as that of [io.WriterTo].
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
