package tool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"time"
)

// Env is the world as tools see it. Every effect of every tool passes through one of its fields, so the same
// tool runs on the local machine, in a sandbox, in a container or in a test. Implementations are tested with
// harnesstest.TestEnv.
type Env struct {
	Root string // the workspace: an absolute path without symbolic links
	// Folders are further workspace folders. They are like Root, but relative paths never resolve into them.
	Folders []string
	Files   Files
	Procs   Procs // nil means no process can be started
	HTTP    HTTP  // nil means no server can be reached
	Blobs   Blobs // nil means big outputs are cut and the rest is lost
	// Clean removes secrets from text before it is stored. Nil means text is stored unchanged.
	Clean   func(io.Reader) io.Reader
	History History // nil means what was said before can't be looked up
	Walls   Walls   // the boxes that Procs can build; zero means none, so judges ask more
	// Throwaway says that commands that do more than read may run in a read-only mode, in [Box.Throwaway].
	Throwaway bool
	// Temporary reports whether a path leads into the session's own folder for temporary files, such as /tmp/x.log.
	// If boxed, the path is meant as processes in [BoxWorkspace] see it, else as Files does, which also reaches the
	// machine's /tmp. Nil means there is no such folder.
	Temporary func(path string, boxed bool) bool
}

// IsTemporary reports whether a write to a path goes to the session's folder for temporary files; see Temporary.
func (e Env) IsTemporary(path string, boxed bool) bool {
	return e.Temporary != nil && e.Temporary(path, boxed)
}

// Unwalled returns the environment for calls whose processes run without a sandbox: its only folder for
// temporary files is the machine's.
func (e Env) Unwalled() Env {
	if f, ok := e.Files.(interface{ Machine() Files }); ok {
		e.Files = f.Machine()
	}
	e.Temporary = nil
	return e
}

// Close ends what Procs keeps for all processes of the environment, such as a shared network. The processes
// must have ended.
func (e Env) Close() error {
	if c, ok := e.Procs.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Walls says which boxes an environment has proven it can build.
type Walls struct {
	Read      bool   // [BoxRead]
	Workspace bool   // [BoxWorkspace]
	Hosts     bool   // single hosts can be reached from inside of [BoxWorkspace]
	Why       string // what is missing and how to get it, for people; empty if nothing is

	Throwaway   bool   // [Box.Throwaway]
	NoThrowaway string // what keeps that from being had, for people; empty if nothing does
}

// Level is how much the sandbox around a process allows.
type Level string

// Levels. An environment that can't build a level refuses to start the process: a box is never weaker than
// requested.
const (
	// BoxDefault is the environment's default.
	BoxDefault Level = ""
	// BoxRead lets a process read the workspace and world-readable files, and nothing else: it can't write a
	// file that outlasts it, reach a network, read a secret or signal other processes.
	BoxRead Level = "read"
	// BoxWorkspace also lets a process write below the workspace and in a temporary folder of its own, except
	// to files there that name programs for others to run. The network is closed except for the given hosts.
	BoxWorkspace Level = "workspace"
	// BoxNone has no sandbox.
	BoxNone Level = "none"
)

// Box is the sandbox around one process and its descendants.
type Box struct {
	Level Level
	// Read lists resolved paths that may be read too, Write those that may be written (BoxWorkspace only); a
	// folder includes everything below it. Secrets and protected files stay closed.
	Read, Write []string
	// Program is the resolved folder of the program itself, installed by a person; it may be read too. This is
	// not an effect of the call, and the model does not see it.
	Program string
	// Hosts lists hosts that can be reached through a proxy: "example.com", "*.example.com", with ":443" for
	// one port only, or "*". BoxWorkspace only.
	Hosts []string
	// Git lets the process write to the insides of the workspace's repository, except to settings and hooks.
	// Where the system can, the process writes to a copy, and after its end only changes that name no program
	// are taken over. BoxWorkspace only.
	Git bool
	// Mixed says that programs other than plain git run where Git is set. The process then gets the usual
	// environment, and a copy of the repository or no repository at all.
	Mixed bool
	// Init keeps repositories that the process creates in the workspace, except for settings and hooks that
	// name programs. BoxWorkspace only.
	Init bool
	// Cache names a cache of the workspace that outlives the session and is only visible to boxes with the same
	// name. Empty means caches written in the box end with the session. BoxWorkspace only.
	Cache string
	// Throwaway shows the process the workspace at its path, and discards all changes to it when the last
	// process of the box ends. Nothing else may be opened for writing, and no host can be reached. BoxWorkspace
	// only.
	Throwaway bool
}

// ErrNoBox says that a process was not started because the requested sandbox can't be built here.
var ErrNoBox = errors.New("the sandbox can't be built here")

// Files reads and changes files. Paths are absolute. Safe for concurrent use.
type Files interface {
	// Resolve returns the path that Open and Change would reach: cleaned, with every symbolic link followed.
	// The path need not exist; missing parts stay as written.
	Resolve(ctx context.Context, path string) (string, error)

	// Open opens a file or directory for reading. A directory's file
	// implements [fs.ReadDirFile]. Errors are [*fs.PathError].
	Open(ctx context.Context, path string) (fs.File, error)

	// Change writes or removes one file as a whole: after a crash at any moment the old or the new content is
	// there, never a mixture.
	Change(ctx context.Context, c Change) error
}

// Pass lists the sensitive places that a call may reach.
type Pass struct {
	// All opens everything except the harness's own files and places that people's rules close.
	All bool
	// Read and Write list resolved paths of single files that are secret by their names and were part of the
	// judged effects.
	Read, Write []string
}

// Any reports whether anything is open.
func (p Pass) Any() bool { return p.All || len(p.Read)+len(p.Write) > 0 }

// Change is one change of one file.
type Change struct {
	Path string
	// Data is the new content. Ignored if Remove is set.
	Data []byte
	// Mode is the permission of a new file; 0 means 0o644. A file that exists keeps its mode, and stays linked
	// if it is behind a symbolic or hard link.
	Mode fs.FileMode
	// Exec sets or clears the permission of an existing file to be executed, for everyone who may read it. Nil
	// leaves it as it is.
	Exec *bool
	// Exact says that Path is the judged path: if a symbolic link has appeared in it since, Change returns an
	// error that wraps [ErrChanged].
	Exact bool
	// Remove deletes the file, or the directory with everything in it.
	Remove bool
	// IfDigest, when not empty, is the digest that the file must still have; [NoFile] means that it must not exist.
	// Otherwise Change does nothing and returns [ErrChanged].
	IfDigest string
}

// NoFile is the Change.IfDigest of a file that must not exist yet.
const NoFile = "none"

// ErrChanged says that a file is not in the state that the caller expected.
var ErrChanged = errors.New("file has changed")

// Digest names content: the first 32 hex digits of its SHA-256.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// Procs starts processes. Safe for concurrent use.
type Procs interface {
	// Start starts a command in a process group of its own. When ctx is done the whole group gets SIGTERM, and
	// SIGKILL two seconds later. The error wraps [fs.ErrNotExist] if the program or directory does not exist.
	Start(ctx context.Context, c Command) (Process, error)
}

// Command describes a process to start.
type Command struct {
	Args   []string  // program, looked up in PATH, and its arguments
	Dir    string    // working directory, absolute
	Env    []string  // the complete environment as KEY=value; nil means a default one without secrets
	Vars   []string  // what differs from Env, or from the default: NAME=value sets a variable, NAME takes it away
	Stdin  io.Reader // nil means empty
	Output io.Writer // receives standard output and standard error, interleaved; written by one goroutine
	Report io.Writer // receives what the process writes to its descriptor 3; nil means not open
	// AtEnd says that Report is only needed when the process has ended. It may then get everything at once,
	// without the part after the first 4 MiB, and without later output of other processes.
	AtEnd bool
	Box   Box // the walls around it
	// Results are files that the command says it writes. Those in the session's own folders for temporary
	// files are there afterwards as if a tool had written them.
	Results []string
	// TTY gives the process a terminal of this size, as its standard streams and its controlling terminal: Stdin is
	// the typed input, Output the screen. The variable TERM names its capabilities. Zero means no terminal.
	TTY TTY
	// Keep says that the process may outlive this program: ports on which it listens in a
	// network of its own can be reached at the same ports of this machine's loopback addresses from now on, and
	// only from this machine.
	Keep bool
	// Serves says that the process is a server, which runs until it is no longer needed: later commands don't
	// wait for its box.
	Serves bool
	// Pass lists the sensitive places it may reach. With All and a nil Env it gets the person's environment
	// without the keys of the harness. Judging sets it.
	Pass Pass
}

// TTY is the size of a terminal.
type TTY struct{ Rows, Cols int }

// HTTP reaches servers. Safe for concurrent use.
type HTTP interface {
	// Do sends a request to the host of its URL, which must be part of the call's judged effects, and follows
	// no redirects: the caller has each target judged. The caller closes the body of the response.
	Do(req *http.Request) (*http.Response, error)
}

// Process is a running process. Safe for concurrent use.
type Process interface {
	// Wait returns once the process has ended and its output is written. It does not wait for descendants that
	// left the group or keep the output open for longer than a second. Its result is the exit code, 128+n for
	// an end by signal n. An error means that the outcome could not be learned.
	Wait() (code int, err error)
	// Kill ends the whole process group at once. After the end of the process, it ends remaining descendants if
	// they can be told from unrelated processes; otherwise it does nothing.
	Kill()
}

// Port is one port on which a kept process listens inside its sandbox.
type Port struct {
	Number int    `json:"port,omitempty"`  // 0: the error is about all of them
	Error  string `json:"error,omitempty"` // why it can't be reached from this machine; empty: it can
}

// String says where the port can be reached, or why it can't.
func (p Port) String() string {
	switch {
	case p.Error == "":
		return fmt.Sprintf("reachable at localhost:%d", p.Number)
	case p.Number == 0:
		return p.Error
	}
	return fmt.Sprintf("port %d can't be reached from outside of the sandbox: %s", p.Number, p.Error)
}

// History is the conversation and the calls of a session, including the parts that the model no longer sees. Safe
// for concurrent use.
type History interface {
	// Find returns the newest passages for which match is true, at most limit, oldest first.
	Find(ctx context.Context, limit int, match func(Passage) bool) ([]Passage, error)
}

// Passage is one thing that was said or done.
type Passage struct {
	Seq  uint64    // number of its event
	Time time.Time // when
	Who  string    // "person", "model", "harness", or for what a call brought the name of its tool
	Call string    // id of that call
	Text string
}

// Blobs stores large content by its digest. Safe for concurrent use.
type Blobs interface {
	// Put stores all of r and returns its name, "sha256-" and 64 hex digits.
	// When it returns, the blob is as durable as the session log.
	Put(ctx context.Context, r io.Reader) (name string, err error)
	// Get opens a blob. The error wraps [fs.ErrNotExist] if there is none.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
}
