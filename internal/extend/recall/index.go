// Package recall searches what was said and done in past sessions. The logs of
// the sessions are the truth: the index is one file that can be deleted
// at any time, and is filled again from the logs.
//
// # How it finds
//
// The index holds for each word the documents that hold it, in segments (segment.go),
// and the documents themselves beside them. The words are cut and folded by tokens.go. The
// kind, session and root of a document are words too, so that filters cost no more than
// words. A search takes the newest documents that hold the words, looks at their text for
// phrases and how often each word stands in them, and ranks them by BM25. See
// [Index.Search] for what that trades.
package recall

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

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
// may use one file at once. Those that write wait for one another up to ten seconds; those
// that search wait for nobody. The file is open only while something is done.
type Index struct {
	// Path is the file. Beside it lie those of locks and of Open: .write, .lock
	// and, after damage, .damaged; and .new while the file is written anew.
	Path string
	// Aside is where Open moved a file that was damaged, of another version of the
	// index, or no index at all; empty if it did not. An earlier file there is
	// replaced.
	Aside string

	lock   *keep.Lock // shared, as long as the index is open
	last   atomic.Pointer[state]
	closed atomic.Bool
}

const (
	pollEvery = 5 * time.Millisecond
	openTime  = 10 * time.Second // to wait for others that move a file aside
	busyTime  = 10 * time.Second // to wait for others that write
)

// Open opens the index at path, or makes one; folders that lack are made for
// this user alone. A file that can't be used (of another program or
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
	info, err := os.Lstat(x.Path)
	if err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no file", x.Path)
	}
	if err == nil && info.Size() > 0 {
		return x.check()
	}
	// A change of nothing makes the file.
	return x.change(ctx, "read", func(*writer) error { return nil })
}

// check tells whether the file is an index, without waiting for those that write.
func (x *Index) check() error {
	f, err := os.Open(x.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = newest(f)
	return err
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
	for _, end := range []string{"-wal", "-shm", "-journal", ".damaged"} { // version 1 was of SQLite
		if err := os.Remove(x.Path + end); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Close closes the index. It may be called more than once.
func (x *Index) Close() error {
	x.closed.Store(true)
	return x.lock.Close()
}

// wrap says what failed. Damage is noted beside the file for the next that opens
// it.
func (x *Index) wrap(ctx context.Context, doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		err = ctx.Err()
	case errors.Is(err, ErrDamaged):
		_ = os.WriteFile(x.Path+".damaged", nil, 0o600)
	}
	return fmt.Errorf("%s index: %w", doing, err)
}
