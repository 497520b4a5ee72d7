// Package recall searches everything said and done in past sessions. The logs of the sessions are the source:
// the index is a file of SQLite that can be deleted at any time, and is filled again from the logs.
//
// # How it finds
//
// The words of each document are cut and folded by tokens.go, and FTS5 stores which documents have which words.
// The kind, session and root of a document are words too, so that filters cost no more than words. A search
// takes the newest documents that have the words, checks how often and where each occurs in their text, and
// ranks them by BM25. See [Index.Search] for the trade-offs.
package recall

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/inspan/inspan/internal/base/keep"
)

// Kinds of documents.
const (
	Said    = "said"    // by a person
	Replied = "replied" // by the model
	Call    = "call"    // of a tool
	Result  = "result"  // of a call
	Title   = "title"   // of a session
	Note    = "note"
)

// Doc is one thing that was said or done.
type Doc struct {
	Session string
	Seq     uint64 // of its event; several documents may be of one event
	Time    time.Time
	Root    string // workspace of the session
	Kind    string // one of the above
	Text    string
	// Untrusted says that it is, or may come from, untrusted content.
	Untrusted bool
}

// Mark says how far a session is indexed.
type Mark struct {
	Seq  uint64 // last event that was read
	Size int64  // bytes of the log up to there; nothing here reads it
}

// ErrDamaged says that the index file is damaged. Close the index and open it again: the file is then moved
// aside, and a new one begun.
var ErrDamaged = errors.New("the index of past sessions is damaged; inspan rebuilds it when it is opened again")

// ErrInUse says that a damaged file can't be moved aside, as another process has it open.
var ErrInUse = errors.New("the index of past sessions is damaged, and another process has it open")

// Index is an open index. It is safe for concurrent use, and several processes may use one file at once.
// Writers wait for one another up to ten seconds; searches don't wait.
type Index struct {
	// Path is the file. Next to it are the files of SQLite, of locks and of Open: -wal, -shm, .write, .lock
	// and, after damage, .damaged and .aside.
	Path string
	// Aside is where Open moved a file that was damaged, of another version of the index, or not an index at
	// all; empty if it did not. An earlier file there is replaced.
	Aside string

	lock *keep.Lock // shared, while the index is open

	mu     sync.Mutex
	db     *sql.DB
	file   fs.FileInfo // the file that db has open
	closed bool
}

const (
	openTime = 10 * time.Second // wait for others that move a file aside
	busyTime = 10 * time.Second // wait for other writers
)

// version is that of the tables and of the rules for words. An index of another version is rebuilt.
const version = 3

// tables are those of an index. A session tells which documents it has at most and within which time they lie, so
// that a search within some time need not look at others. The column text of words has the words of a document as
// they follow one another, the column also what else it is found by. All words are in vocabulary too, where
// guessing looks at them.
const tables = `
CREATE TABLE sessions (id INTEGER PRIMARY KEY, name TEXT UNIQUE, seq INTEGER, size INTEGER,
	first INTEGER, last INTEGER, since INTEGER, until INTEGER);
CREATE TABLE docs (id INTEGER PRIMARY KEY, session INTEGER, seq INTEGER, time INTEGER, root TEXT, kind TEXT, untrusted INTEGER, text TEXT);
CREATE INDEX docs_of_session ON docs (session);
CREATE VIRTUAL TABLE words USING fts5 (text, also, content='', contentless_delete=1, tokenize="ascii tokenchars '_'");
CREATE VIRTUAL TABLE terms USING fts5vocab (words, row);
CREATE TABLE vocabulary (word TEXT UNIQUE);
`

// Open opens the index at path, or makes one; missing folders are made only for this user. An unusable file (of
// another program or another version, or with damage) is moved aside and a new one begun, unless another
// process has it open: then the error is [ErrInUse].
func Open(ctx context.Context, path string) (*Index, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	x := &Index{Path: path}
	err = x.share(ctx)
	if err == nil {
		err = x.open(ctx)
		if errors.Is(err, ErrDamaged) {
			err = x.renew(ctx)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open index: %w", err), x.Close())
	}
	return x, nil
}

// share takes the lock that keeps others from moving the file aside.
func (x *Index) share(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	var err error
	x.lock, err = keep.LockShared(ctx, x.Path+".lock", 0)
	return err
}

// open opens the file as it is.
func (x *Index) open(ctx context.Context) error {
	if _, err := os.Lstat(x.Path + ".damaged"); err == nil {
		return ErrDamaged
	}
	_, err := x.use(ctx)
	return err
}

// use returns the open database. If its file was deleted, it begins a new one.
func (x *Index) use(ctx context.Context) (*sql.DB, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, fs.ErrClosed
	}
	if x.db != nil {
		if now, err := os.Stat(x.Path); err == nil && os.SameFile(now, x.file) {
			return x.db, nil
		}
	}
	if err := x.drop(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(x.Path, os.O_RDWR|os.O_CREATE, 0o600) // SQLite would let others read it
	if err != nil {
		return nil, err
	}
	if x.file, err = f.Stat(); err == nil && !x.file.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", x.Path)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if x.db, err = sql.Open("sqlite", address(x.Path)); err != nil {
		return nil, err
	}
	if err := x.check(ctx); err != nil {
		return nil, errors.Join(err, x.drop())
	}
	return x.db, nil
}

func (x *Index) drop() error {
	db := x.db
	if x.db = nil; db == nil {
		return nil
	}
	return db.Close()
}

// address returns the file's name in the form for SQLite. Deleted data is overwritten.
func address(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // of a drive
		path = "/" + path
	}
	set := url.Values{"_pragma": {fmt.Sprintf("busy_timeout(%d)", busyTime.Milliseconds()), "synchronous(normal)", "secure_delete(on)", "cache_size(-8000)"}}
	return "file://" + (&url.URL{Path: path}).EscapedPath() + "?" + set.Encode()
}

// check checks that the file is an index, and turns an empty file into one.
func (x *Index) check(ctx context.Context) error {
	if x.file.Size() > 0 && x.sound(ctx) == nil {
		return nil // it was not waited for
	}
	alone, err := keep.LockFile(ctx, x.Path+".write", busyTime)
	if err != nil {
		return err
	}
	defer func() { _ = alone.Close() }()
	if info, err := os.Stat(x.Path); err == nil && info.Size() == 0 {
		if _, err := x.db.ExecContext(ctx, fmt.Sprintf("PRAGMA journal_mode = wal; BEGIN; %s PRAGMA user_version = %d; COMMIT", tables, version)); err != nil {
			return damage(err)
		}
	}
	return x.sound(ctx)
}

func (x *Index) sound(ctx context.Context) error {
	is := 0
	err := x.db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&is)
	if err == nil && is != version {
		return ErrDamaged
	}
	return damage(err)
}

// damage returns ErrDamaged if an error of SQLite means that.
func damage(err error) error {
	var e *sqlite.Error
	if errors.As(err, &e) {
		switch code := e.Code(); {
		case code&0xff == sqlite3.SQLITE_CORRUPT, code&0xff == sqlite3.SQLITE_NOTADB, code == sqlite3.SQLITE_IOERR_SHORT_READ:
			return ErrDamaged
		}
	}
	return err
}

// renew moves the file aside and begins a new one, with exclusive access.
func (x *Index) renew(ctx context.Context) error {
	if err := x.lock.Close(); err != nil {
		return err
	}
	alone, err := keep.LockFile(ctx, x.Path+".lock", openTime/5)
	if x.lock = alone; err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return ErrInUse
	}
	err = x.open(ctx) // another process may have renewed it meanwhile
	if errors.Is(err, ErrDamaged) {
		if err = x.moveAside(); err == nil {
			err = x.open(ctx)
		}
	}
	if err == nil {
		err = x.lock.Close()
	}
	if err == nil {
		err = x.share(ctx)
	}
	return err
}

func (x *Index) moveAside() error {
	x.Aside = x.Path + ".aside"
	if err := os.Rename(x.Path, x.Aside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, end := range []string{"-wal", "-shm", "-journal", ".new", ".damaged"} {
		if err := os.Remove(x.Path + end); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Close closes the index. It may be called more than once.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	return errors.Join(x.drop(), x.lock.Close())
}

// wrap says what failed. Damage is recorded next to the file for the next process that opens it.
func (x *Index) wrap(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	err = damage(err)
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case errors.Is(err, ErrDamaged):
		_ = os.WriteFile(x.Path+".damaged", nil, 0o600)
	}
	return fmt.Errorf("%s index: %w", doing, err)
}
