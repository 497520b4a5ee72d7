package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"time"
)

const (
	defaultQuota   = 2 << 30
	defaultMaxFile = 64 << 20
	bigObject      = 1 << 20 // minimum bytes of an object with a file of its own
)

// Errors that a caller distinguishes.
var (
	// ErrNoCheckpoint says that a checkpoint does not exist; it may have been cleaned up.
	ErrNoCheckpoint = errors.New("no such checkpoint")
	// ErrFull says that the checkpoint would exceed the store's quota. Nothing was changed; Clean may free
	// enough space.
	ErrFull = errors.New("the quota of the checkpoints is used up")
	// ErrUnfinished says that a restore was interrupted. Recover finishes it.
	ErrUnfinished = errors.New("an earlier restore was cut off and must be finished first")
)

// DamageError says that stored data has changed since it was written.
type DamageError struct {
	Checkpoint string // the damaged checkpoint; "" if it concerns all
	Path       string // in the workspace; "" if it concerns none
	What       string
}

func (e *DamageError) Error() string {
	msg := "the store of checkpoints is damaged: "
	if e.Checkpoint != "" {
		msg = "checkpoint " + e.Checkpoint + " is damaged: "
	}
	if e.Path != "" {
		msg += fmt.Sprintf("%q: ", e.Path)
	}
	return msg + e.What
}

// Store holds the checkpoints of one workspace. Set the fields before the first use and don't change them.
// Methods are safe for concurrent use by goroutines and processes. Changes wait for each other, and honour the
// context while they wait.
type Store struct {
	// Dir is the folder of the store, outside of the workspace. It is created with mode 0700 when first needed.
	Dir string
	// Root is the workspace: absolute, symbolic links resolved.
	Root string
	// Skip reports paths that, with everything below them, are neither kept nor touched. The path is relative
	// to Root, with slashes. It is called concurrently. Nil skips nothing.
	Skip func(path string, dir bool) bool
	// Whole also keeps everything named .git and the times of files. A file above MaxFile is ErrFull. It is for
	// a workspace that moves between machines, with its commits, index and hooks.
	Whole bool
	// Quota is the maximum size of the store in bytes; 0 means 2 GiB.
	Quota int64
	// MaxFile is the maximum size in bytes of a file whose content is kept; 0 means 64 MiB.
	MaxFile int64

	hook func(op string) // for tests: called before each change of a file system
}

// Checkpoint describes a checkpoint.
type Checkpoint struct {
	ID    string    `json:"id"` // sorts by age
	Time  time.Time `json:"time"`
	Files int       `json:"files"` // regular files whose content is kept
	Bytes int64     `json:"bytes"` // total size of these
	New   int64     `json:"new"`   // bytes that it added to the store
	Left  int       `json:"left"`  // files and folders without content: too large or unreadable
}

// Span is the checkpoints before and after a piece of work.
type Span struct{ Before, After string }

// Kind is the kind of a change.
type Kind string

// The kinds of changes.
const (
	Create    Kind = "create"
	Edit      Kind = "change" // other content
	Delete    Kind = "delete"
	ChangeMod Kind = "mode" // only other permissions
	Retype    Kind = "type" // for example, a file becomes a folder
)

// Change is a difference at one path.
type Change struct {
	Path string // relative to the workspace, with slashes; "." is the workspace itself
	Kind Kind
	Mode fs.FileMode // type and permission bits of the future or the later state
	Why  string      // for people: why a path is kept as it is, or a note
}

// Plan is the plan of a restore.
type Plan struct {
	Changes []Change // sorted by path
	Kept    []Change // differing paths that are not touched, with the reason; sorted by path
}

// Restored is the result of a restore.
type Restored struct {
	// Checkpoints around the restore. Restore(ctx, Before, []Span{{Before, After}}, false) undoes it.
	Before, After string
	Plan
}

func (s *Store) quota() int64 {
	if s.Quota == 0 {
		return defaultQuota
	}
	return s.Quota
}

func (s *Store) maxFile() int64 {
	if s.MaxFile == 0 {
		return defaultMaxFile
	}
	return s.MaxFile
}

// step is called before every change of a file system.
func (s *Store) step(op string) {
	if s.hook != nil {
		s.hook(op)
	}
}
