// Package recall searches what was said and done in past sessions. The logs of
// the sessions are the truth: the index is one SQLite file that can be deleted
// at any time, and is filled again from the logs.
//
// # How it finds
//
// The index holds each document's words, without their order, in an FTS5 table,
// and the documents themselves beside it. A search takes the newest documents
// that hold the words, looks at their text for phrases and how often each word
// stands in them, and ranks them by BM25. See [Index.Search] for what that
// trades.
package recall

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"

	"github.com/inspan/inspan/internal/keep"
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
	// Untrusted says that it is, or may come from, content that nobody vouches for.
	Untrusted bool
}

// Mark says how far a session is indexed.
type Mark struct {
	Seq  uint64 // last event that was looked at
	Size int64  // bytes of the log up to there; nothing here reads it
}

// ErrDamaged says that the file is no sound index any more. Close the index and
// open it again: the file is moved aside then, and a new one begun.
var ErrDamaged = errors.New("the index of past sessions is damaged; it is made anew when it is opened again")

// ErrInUse says that a damaged file can't be moved aside, as another process has
// it open.
var ErrInUse = errors.New("the index of past sessions is damaged, and another process has it open")

// Index is an open index. It is safe for concurrent use, and several processes
// may use one file at once: they wait for one another up to ten seconds.
type Index struct {
	// Path is the file. Beside it lie those of SQLite, and two of Open: .lock
	// and, after damage, .damaged.
	Path string
	// Aside is where Open moved a file that was damaged, of another version of the
	// index, or no index at all; empty if it did not. An earlier file there is
	// replaced.
	Aside string

	db   *sql.DB
	lock *keep.Lock // shared, as long as the index is open
}

const (
	application = 0x696e7370 // marks the file as one of these
	version     = 1          // of schema and tokens: another one is made anew
	busyMillis  = 10_000
	pollEvery   = 5 * time.Millisecond
	openTime    = 10 * time.Second // to wait for others that move a file aside
)

// schema makes the tables.
//
// The words of a document are cut and folded in Go (tokens.go) and reach SQLite
// parted by spaces. Its kind, session and root are words too, so that filters
// cost no more than words.
const schema = `
CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE marks (session INTEGER PRIMARY KEY, seq INTEGER NOT NULL, size INTEGER NOT NULL);
CREATE TABLE docs (id INTEGER PRIMARY KEY, session INTEGER NOT NULL, root INTEGER NOT NULL, seq INTEGER NOT NULL,
	time INTEGER NOT NULL, kind INTEGER NOT NULL, untrusted INTEGER NOT NULL, text TEXT NOT NULL);
CREATE TABLE spans (block INTEGER PRIMARY KEY, since INTEGER NOT NULL, until INTEGER NOT NULL);
CREATE VIRTUAL TABLE words USING fts5(word, content='', columnsize=0, detail=none, tokenize="ascii tokenchars '_'");
`

// Open opens the index at path, or makes one; folders that lack are made for
// this user alone. A file that can't be used (not SQLite, of another program or
// another version, or one in which damage was met) is moved aside and a new
// one begun, unless another process has it open: then the error is [ErrInUse].
func Open(ctx context.Context, path string) (*Index, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	x := &Index{Path: path}
	err := x.share(ctx)
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
	if info, err := os.Lstat(x.Path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no file", x.Path)
	}
	if err := private(x.Path); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", source(x.Path))
	if err != nil {
		return err
	}
	x.db = db
	db.SetMaxOpenConns(4)
	err = x.prepare(ctx)
	for late := time.Now().Add(openTime); busy(err) && time.Now().Before(late); err = x.prepare(ctx) {
		if keep.Sleep(ctx, pollEvery) != nil {
			break
		}
	}
	if err != nil {
		return errors.Join(x.wrap(ctx, "read", err), x.shut())
	}
	return nil
}

// busy reports whether another process is at the file. SQLite waits for that by itself, but not
// while the other makes a new file one with a journal.
func busy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == codeBusy
}

// private makes the file, if it is not there, for this user alone. SQLite gives
// those beside it the same mode.
func private(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// source names the file to the driver. It is an address, so that no character of
// the path means anything else. The file is not mapped into memory: one that is
// cut off by somebody else would end the process.
func source(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: path}
	q := url.Values{"_txlock": {"immediate"}, "_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyMillis), "synchronous(normal)", "temp_store(memory)",
		"cache_size(-16384)", "mmap_size(0)", "trusted_schema(0)",
	}}
	return u.String() + "?" + q.Encode()
}

// prepare checks that the file is ours, and makes the tables in an empty one.
func (x *Index) prepare(ctx context.Context) error {
	ours, empty, err := x.whose(ctx)
	if err != nil || ours {
		return err
	}
	if !empty {
		return ErrDamaged
	}
	var mode string
	if err := x.db.QueryRowContext(ctx, "PRAGMA journal_mode=wal").Scan(&mode); err != nil {
		return err
	}
	tx, err := x.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var tables int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil || tables > 0 {
		return err // another process was faster
	}
	if _, err := tx.ExecContext(ctx, schema+fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d",
		application, version)); err != nil {
		return err
	}
	return tx.Commit()
}

// whose tells what is in the file.
func (x *Index) whose(ctx context.Context) (ours, empty bool, err error) {
	var app, is, tables int
	err = x.db.QueryRowContext(ctx, `SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),
		(SELECT count(*) FROM sqlite_schema)`).Scan(&app, &is, &tables)
	return app == application && is == version, tables == 0 && app == 0, err
}

// renew moves the file aside and begins a new one, alone.
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
	err = x.open(ctx) // somebody else may have renewed it meanwhile
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
	for _, end := range []string{"-wal", "-shm", "-journal", ".damaged"} {
		if err := os.Remove(x.Path + end); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Close closes the index. It may be called more than once.
func (x *Index) Close() error { return errors.Join(x.shut(), x.lock.Close()) }

func (x *Index) shut() error {
	if x.db == nil {
		return nil
	}
	return x.db.Close()
}

// wrap says what failed. Damage is noted beside the file for the next that opens
// it.
func (x *Index) wrap(ctx context.Context, doing string, err error) error {
	var e *sqlite.Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		err = ctx.Err()
	case errors.Is(err, ErrDamaged):
	case errors.As(err, &e) && (e.Code()&0xff == codeCorrupt || e.Code()&0xff == codeNotDB):
		_ = os.WriteFile(x.Path+".damaged", nil, 0o600)
		err = fmt.Errorf("%w (%w)", ErrDamaged, err)
	}
	return fmt.Errorf("%s index: %w", doing, err)
}

// Result codes of SQLite: another process is at it, and those that tell of damage.
const (
	codeBusy    = 5
	codeCorrupt = 11
	codeNotDB   = 26
)
