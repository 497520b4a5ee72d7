// Package store says what keeps sessions: their logs, their blobs, and who drives them.
//
// [Store] is the seam. The store of the command is a folder; [Memory] keeps sessions in memory.
// Another one, over a database say, is proven by harnesstest.TestStore. What a list and a search
// find in events is told here once, by [Info.Add] and [Find], for all of them.
//
// A program on one machine needs no store of its own: the folder of the host is one, and [Memory] is enough
// for tests. Implement [Store] if several machines share sessions; engine/postgres does.
//
// # Compatibility
//
// [Store] and [Log] keep their methods. What a store may be able to do besides is an optional interface:
// [Newest], [Mover], [Booker], [Brancher]. Without it only what needs it is slower or refused.
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

// Store keeps sessions. Implementations must be safe for concurrent use, also by several
// processes if what they keep can be reached by several.
//
// Where a method takes an id, that is the whole id of a session, see [IsID]. An error for one that
// is not there wraps [fs.ErrNotExist]; [Resolve] finds the id that a person means.
type Store interface {
	// Create makes a new, empty session and opens it.
	Create(ctx context.Context) (Log, error)

	// Child opens the session that works for parent under a name, and creates it if there is
	// none. Its id is [ChildID], so the same parent and name mean the same session. IsNew says
	// that it holds no event.
	Child(ctx context.Context, parent, name string) (l Log, isNew bool, err error)

	// Open opens a session. Several may have it open. A log that is damaged opens too, and says
	// so when it is read to there.
	Open(ctx context.Context, id string) (Log, error)

	// Fork makes a new session of the events of another up to seq, 0 for all of them, and of its
	// blobs, appends an [event.Forked] and opens it. The copied events keep number, time and
	// session. The original is only read. Nobody sees a fork that is not complete.
	Fork(ctx context.Context, id string, seq uint64) (Log, error)

	// IDs returns the ids of all sessions, the oldest first, without reading one.
	IDs(ctx context.Context) ([]string, error)

	// List returns all sessions, the one that changed last first, children among them. One that
	// can't be read is listed with its Damage.
	List(ctx context.Context) ([]Info, error)

	// Search yields what [Find] finds, the newest session first, in order within a session. A
	// session that can't be read to its end yields an error after its hits, with its id in the
	// Hit, and the search goes on with the next.
	Search(ctx context.Context, match *regexp.Regexp) iter.Seq2[Hit, error]

	// Holder returns who drives a session; nil if nobody does, or there is no such session.
	Holder(ctx context.Context, id string) (*Holder, error)

	// Held returns who drives sessions now, by the ids of these, the oldest first. A session that
	// is taken or given up meanwhile may be in it or not.
	Held(ctx context.Context) ([]Holder, error)

	// Usage is how many bytes a session takes with its blobs, about, and without its children.
	Usage(ctx context.Context, id string) (int64, error)

	// Remove deletes a session with all that belongs to it, its children included. It fails with
	// a [*BusyError] while somebody drives one of them.
	Remove(ctx context.Context, id string) error
}

// Log is the log of one session that is open. It is proven by harnesstest.TestLog.
//
// AppendAs needs [event.Leaser.Lease] first, and fails with [event.ErrNotDriver] without. Lease
// fails with a [*BusyError] if another log of the session has the lease.
type Log interface {
	event.Log
	event.Waiter
	event.Starter
	event.Leaser

	// ID returns the id of the session.
	ID() string
	// Blobs returns the blobs of the session. They can be used until the session is removed, also
	// while the log is closed.
	Blobs() tool.Blobs
	// Close gives up the lease and lets go of the log. Appends under way are finished first;
	// anything later fails with [fs.ErrClosed].
	Close() error
}

// Booker is an optional interface of a [Store] that also keeps books: logs that are no sessions, in
// which a server keeps what belongs to none. They are in no list and no search. Whoever holds the
// lease of a book is the one server of it. A log of a book that had the lease and has lost it appends
// nothing more: that fails with [event.ErrFenced].
type Booker interface {
	// Book opens the book of that name, and makes it if there is none. See [BookID].
	Book(ctx context.Context, name string) (Log, error)
}

// Brancher is an optional interface of a [Store] in which a session that works for another can begin
// as a copy of a third one.
type Brancher interface {
	// Branch is [Store.Child], but for a session that there is not yet: that is a fork of all of the
	// session with the id, see [Store.Fork], and isNew.
	Branch(ctx context.Context, id, parent, name string) (l Log, isNew bool, err error)
}

// Holder is who drives a session, as it has said itself.
type Holder struct {
	Session string
	PID     int
	Host    string
	Since   time.Time
}

// Here reports whether the holder runs on this machine, so that its PID means something.
func (h Holder) Here() bool {
	host, err := os.Hostname()
	return err == nil && h.Host == host
}

// ErrBusy says that somebody else drives the session. The error that wraps it is a [*BusyError].
var ErrBusy = errors.New("session is busy")

// BusyError tells who has the lease of a session, as far as is known: any field may be empty.
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

// ErrAway says that what keeps sessions can't be reached, though everything may be well there: the
// same may succeed later.
var ErrAway = errors.New("the store of sessions can't be reached")

// Events yields the events of a session without keeping it open, also of one that is damaged
// further on; then the error comes last.
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
