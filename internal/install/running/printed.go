package running

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"sync"
)

// RunLog is the file in a session's folder with the output of its detached process.
const RunLog = "run.log"

// NewRunLog creates the output file of a detached process, until the session has a folder. The caller must
// close it, and remove it unless KeepRunLog has moved it.
func (t *Table) NewRunLog() (*os.File, error) {
	if err := os.MkdirAll(t.StateDir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(t.StateDir, ".detached-*.log")
	if err != nil {
		return nil, err
	}
	f.Close()
	return os.OpenFile(f.Name(), os.O_RDWR|os.O_APPEND, 0o600)
}

// KeepRunLog moves the file of that name to the session.
func (t *Table) KeepRunLog(name, id string) error {
	return os.Rename(name, filepath.Join(t.SessionsDir(), id, RunLog))
}

// Printed is a file that holds the end of its content. It is safe for concurrent use.
type Printed struct {
	File *os.File // opened for appending and reading; empty at first
	Most int64    // most bytes that it holds; 0 means two megabytes

	mu   sync.Mutex
	size int64
}

// Size returns the size of the file in bytes.
func (p *Printed) Size() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.size
}

// Write implements [io.Writer]. When the file would get too long, its older half is dropped.
func (p *Printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if most := cmp.Or(p.Most, 2<<20); p.size+int64(len(b)) > most {
		if err := p.halve(most); err != nil {
			return 0, err
		}
	}
	n, err := p.File.Write(b)
	p.size += int64(n)
	return n, err
}

func (p *Printed) halve(most int64) error {
	kept := make([]byte, min(p.size, most/2))
	if _, err := p.File.ReadAt(kept, p.size-int64(len(kept))); err != nil {
		return err
	}
	if _, rest, ok := bytes.Cut(kept, []byte("\n")); ok {
		kept = rest
	}
	if err := p.File.Truncate(0); err != nil {
		return err
	}
	n, err := p.File.Write(append([]byte("(earlier output was dropped)\n"), kept...))
	p.size = int64(n)
	return err
}
