// Package store defines what keeps sessions: their logs, their blobs, and who drives them.
//
// [Store] is the seam. The store of the command is a folder; [Memory] keeps sessions in memory; engine/postgres
// keeps them in a database. A program on one machine needs no store of its own. Implement [Store] if several
// machines share sessions, and test it with harnesstest.TestStore. [Info.Add] and [Find] define what lists and
// searches show, for all stores.
//
// # Compatibility
//
// [Store] and [Log] keep their methods. Further abilities are optional interfaces: [RecentLister], [Mover], [Booker],
// [Brancher]. Without one of them, what needs it is slower or refused.
package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"regexp"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// Store keeps sessions. Implementations must be safe for concurrent use, even by several processes if those can
// reach the same sessions.
//
// Methods take the whole id of a session, see [IsID]. If there is no such session, the error wraps
// [fs.ErrNotExist]. [Resolve] finds the id that a person means.
type Store interface {
	// Create creates an empty session and opens it.
	Create(ctx context.Context) (Log, error)

	// Child opens the session that works for parent under a name, and creates it if there is none. Its id is
	// [ChildID], so the same parent and name mean the same session. IsNew means that it has no events.
	Child(ctx context.Context, parent, name string) (l Log, isNew bool, err error)

	// Open opens a session. It may be open several times. A damaged log opens too; reading it reports the
	// damage.
	Open(ctx context.Context, id string) (Log, error)

	// Fork creates a session from the events of another up to seq, or from all if seq is 0, and from its blobs,
	// appends an [event.Forked], and opens it. The copied events keep number, time and session. The original is
	// only read. An incomplete fork is never visible.
	Fork(ctx context.Context, id string, seq uint64) (Log, error)

	// IDs returns the ids of all sessions, the oldest first, without reading any.
	IDs(ctx context.Context) ([]string, error)

	// List returns all sessions including children, the most recently changed first. A session that can't be
	// read is listed with its Damage.
	List(ctx context.Context) ([]Info, error)

	// Search yields the matches of [Find], the newest session first, in order within a session. For a session
	// that can't be read to its end, it yields an error after the session's hits, with the id in the Hit, and
	// continues with the next.
	Search(ctx context.Context, match *regexp.Regexp) iter.Seq2[Hit, error]

	// Holder returns who drives a session; nil if no one does, or if there is no such session.
	Holder(ctx context.Context, id string) (*Holder, error)

	// Held returns who drives sessions now, sorted by session id, the oldest first. A session that is taken or
	// released meanwhile may be missing or included. One whose holder can't be found out is included, with
	// nothing but its id.
	Held(ctx context.Context) ([]Holder, error)

	// Usage returns the approximate size in bytes of a session with its blobs, without its children.
	Usage(ctx context.Context, id string) (int64, error)

	// Remove deletes a session with everything that belongs to it, including its children. It fails with a
	// [*BusyError] while one of them is being driven.
	Remove(ctx context.Context, id string) error
}

// Log is the open log of one session. Test implementations with harnesstest.TestLog.
//
// AppendAs fails with [event.ErrNotDriver] without a prior [event.Leaser.Lease]. Lease fails with a
// [*BusyError] if another log of the session has the lease.
type Log interface {
	event.Log
	event.Waiter
	event.Starter
	event.Leaser

	// ID returns the id of the session.
	ID() string
	// Blobs returns the blobs of the session. They can be used until the session is removed, even after the log
	// is closed.
	Blobs() tool.Blobs
	// Close gives up the lease and closes the log. It completes appends in progress; later ones fail with
	// [fs.ErrClosed].
	Close() error
}

// Booker is an optional interface of a [Store] that also keeps books: logs next to the sessions, in which a server
// keeps its own data. Lists and searches don't include them. The holder of a book's lease is its only server. A log
// of a book that has lost the lease can't append any more: it fails with [event.ErrFenced].
type Booker interface {
	// Book opens the book of that name, and creates it if there is none. See [BookID].
	Book(ctx context.Context, name string) (Log, error)
}

// Brancher is an optional interface of a [Store] that can begin a child session as a copy of another session.
type Brancher interface {
	// Branch is like [Store.Child], but if there is no such child, it creates one as a fork of all of session
	// id, see [Store.Fork], and isNew is true.
	Branch(ctx context.Context, id, parent, name string) (l Log, isNew bool, err error)
}

// Holder is who drives a session, by its own account.
type Holder struct {
	Session string
	PID     int
	Host    string
	Since   time.Time
}

// Here reports whether the holder runs on this machine, so that its PID is meaningful.
func (h Holder) Here() bool {
	host, err := os.Hostname()
	return err == nil && h.Host == host
}

// ErrBusy means that another process drives the session. The error that wraps it is a [*BusyError].
var ErrBusy = errors.New("session is busy")

// BusyError says who has the lease of a session, as far as known: any field may be empty.
type BusyError struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
}

// Error implements error.
func (e *BusyError) Error() string {
	if e.PID == 0 {
		return ErrBusy.Error()
	}
	return fmt.Sprintf("%v: process %d on %s has held it since %s", ErrBusy, e.PID, e.Host, e.Since.Local().Format(time.DateTime))
}

// Unwrap returns [ErrBusy].
func (e *BusyError) Unwrap() error { return ErrBusy }

// ErrUnavailable means that the store can't be reached at the moment; the same call may succeed later.
var ErrUnavailable = errors.New("the store of sessions can't be reached")

// Opening returns the event that opened a session; nil if the session is empty.
func Opening(ctx context.Context, s Store, id string) (*event.Opened, error) {
	for e, err := range Events(ctx, s, id) {
		if err != nil {
			return nil, err
		}
		if opened, is := e.Body.(event.Opened); is {
			return &opened, nil
		}
	}
	return nil, nil
}

// Events yields the events of a session without keeping it open. If the log is damaged, the events before the
// damage come first, and the error last.
func Events(ctx context.Context, s Store, id string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		l, err := s.Open(ctx, id)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		defer l.Close()
		l.Read(ctx, 0)(yield)
	}
}
