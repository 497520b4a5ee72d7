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
	bigObject      = 1 << 20 // bytes from which an object has a file of its own
)

// Errors that a caller branches on.
var (
	// ErrNoCheckpoint: there is none of that name; it may have been cleaned up.
	ErrNoCheckpoint = errors.New("no such checkpoint")
	// ErrFull: the checkpoint would make the store larger than its quota.
	// Nothing was changed; after Clean there may be room.
	ErrFull = errors.New("the quota of the checkpoints is used up")
	// ErrUnfinished: a restore was cut off. Recover finishes it.
	ErrUnfinished = errors.New("an earlier restore was cut off and must be finished first")
)

// DamageError says that something in the store isn't what was written.
type DamageError struct {
	Checkpoint string // that can't be read whole; "" if it concerns all
	Path       string // in the workspace, or "" if it isn't about one
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

// Store holds the checkpoints of one workspace. Set the fields before the first
// use and don't change them. All methods may be called at any time from
// several goroutines and processes; those that change something wait for each
// other, and honour the context while they wait.
type Store struct {
	// Dir is the folder of the store, outside of the workspace. It is made with
	// mode 0700 when first needed.
	Dir string
	// Root is the workspace: absolute, symbolic links resolved.
	Root string
	// Skip reports paths that are neither kept nor touched, with all below
	// them. The path is relative to Root, with slashes. Called from several
	// goroutines at once. Nil skips nothing.
	Skip func(path string, dir bool) bool
	// Whole keeps what is named .git too, the times of files, and all else or nothing: a file above MaxFile is
	// ErrFull. It is for a workspace that travels, with its commits, index and hooks.
	Whole bool
	// Quota is how many bytes the store may take; 0 means 2 GiB.
	Quota int64
	// MaxFile is the size in bytes above which a file's content is not kept; 0
	// means 64 MiB.
	MaxFile int64

	hook func(op string) // tests: called before each change of a file system
}

// Checkpoint describes what was taken.
type Checkpoint struct {
	ID    string    `json:"id"` // sorts by age
	Time  time.Time `json:"time"`
	Files int       `json:"files"` // regular files whose content is kept
	Bytes int64     `json:"bytes"` // size of these together
	New   int64     `json:"new"`   // bytes that it added to the store
	Left  int       `json:"left"`  // files and folders whose content is left out: too large, not readable
}

// Span names the checkpoints around a piece of work.
type Span struct{ Before, After string }

// Kind is what happens to a path.
type Kind string

// The kinds of changes.
const (
	Create    Kind = "create"
	Edit      Kind = "change" // other content
	Delete    Kind = "delete"
	ChangeMod Kind = "mode" // other permissions only
	Retype    Kind = "type" // say, a file becomes a folder
)

// Node is what is at a path. The zero Node is nothing.
type Node struct {
	Mode   fs.FileMode // type and permission bits
	Exists bool
	Kept   bool   // false: the content is not in the store
	Size   int64  // of a file, in bytes
	Target string // of a symbolic link
}

// Change is a difference at one path.
type Change struct {
	Path string // relative to the workspace, with slashes; "." is the workspace itself
	Kind Kind
	Old  Node   // what is, or was first
	New  Node   // what will be, or was last
	Why  string // for people: why a path is kept as it is, or what is special
}

// Plan is what a restore would do.
type Plan struct {
	Changes []Change // sorted by path
	Kept    []Change // what differs but isn't touched, and why; sorted by path
}

// Restored is what a restore did.
type Restored struct {
	// Checkpoints around the restore: what undoes it is
	// Restore(ctx, Before, []Span{{Before, After}}, false).
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
