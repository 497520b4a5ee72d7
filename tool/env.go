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
	"strings"
	"time"
)

// Env is the world as tools see it: every effect of every tool passes through
// one of its seams, so the same tool runs on the local machine, in a sandbox,
// in a container or in a test. Implementations are proven by
// harnesstest.TestEnv.
type Env struct {
	Root string // the workspace: an absolute path without symbolic links
	// Folders are further ones that are as Root is, but that no relative path leads into by itself.
	Folders []string
	Files   Files
	Procs   Procs // nil: no process can be started
	HTTP    HTTP  // nil: no server can be reached
	Blobs   Blobs // nil: big outputs are cut and the rest is lost
	// Clean takes secrets out of text that will be stored. Nil: it stays as it is.
	Clean   func(io.Reader) io.Reader
	History History // nil: what was said before can't be looked up
	Walls   Walls   // the boxes that Procs can build; zero: none, so judges ask more
	// Throwaway says that commands which do more than read may run although the mode
	// only reads, in [Box.Throwaway].
	Throwaway bool
	// Temporary reports whether a path leads into the folder for temporary
	// files that the session has to itself, such as /tmp/x.log: as a process in
	// [BoxWorkspace] sees it if boxed, else as Files do, which also reach what
	// the machine has there. Nil: there is no such folder.
	Temporary func(path string, boxed bool) bool
}

// Own reports whether what is written to a path goes to the session's folder for
// temporary files; see Temporary.
func (e Env) Own(path string, boxed bool) bool {
	return e.Temporary != nil && e.Temporary(path, boxed)
}

// Unwalled is the environment of calls whose processes run without walls: it has
// no folder for temporary files but that of the machine.
func (e Env) Unwalled() Env {
	if f, ok := e.Files.(interface{ Machine() Files }); ok {
		e.Files = f.Machine()
	}
	e.Temporary = nil
	return e
}

// Close ends what Procs keeps for all processes of the environment, such as a
// network that they share. The processes are to have ended before.
func (e Env) Close() error {
	if c, ok := e.Procs.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Walls says which boxes an environment has been seen to build.
type Walls struct {
	Read      bool   // [BoxRead]
	Workspace bool   // [BoxWorkspace]
	Hosts     bool   // single hosts can be reached from inside of [BoxWorkspace]
	Why       string // what is missing and how to get it, for people; empty if nothing is

	Throwaway   bool   // [Box.Throwaway]
	NoThrowaway string // what keeps that from being had, for people; empty if nothing does
}

// Level is how much the walls around a process let through.
type Level string

// Levels. An environment without the walls that a level needs refuses to start
// the process: no box is ever weaker than what was asked for.
const (
	// BoxDefault is what the environment gives to those who ask for nothing.
	BoxDefault Level = ""
	// BoxRead lets a process read the workspace and what everybody may read,
	// and nothing else: it can't write a file that outlasts it, reach a network,
	// read a secret or signal others.
	BoxRead Level = "read"
	// BoxWorkspace also lets it write below the workspace and in a temporary
	// folder of its own, but nothing there that names programs for others to
	// run. The network is closed but for the hosts given.
	BoxWorkspace Level = "workspace"
	// BoxNone has no walls.
	BoxNone Level = "none"
)

// Box are the walls around one process and all it starts.
type Box struct {
	Level Level
	// Read lists resolved paths that may be read too, Write those that may be
	// written (BoxWorkspace only); folders stand for all below them. Secrets
	// and what is never written stay closed.
	Read, Write []string
	// Program is the resolved folder of the program itself, which a person has installed; it
	// may be read too. That is no effect of a call: the model sees nothing of it.
	Program string
	// Hosts lists what may be reached through a proxy: "example.com",
	// "*.example.com", with ":443" for one port only, or "*". BoxWorkspace only.
	Hosts []string
	// Git opens the insides of the workspace's repository for writing, but for
	// its settings and hooks. Where the system can, the process writes a copy of them, of
	// which only what names no program is taken over when it has ended. BoxWorkspace only.
	Git bool
	// Mixed says that programs besides plain git run where Git is set. The process gets the
	// environment of any other, and the copy of the repository or none.
	Mixed bool
	// Init lets repositories stay that the process makes in the workspace, but
	// for settings and hooks that name programs. BoxWorkspace only.
	Init bool
	// Cache names a cache of the workspace that outlives the session, and that only boxes with
	// this name see. Empty: the caches that programs in the box write end with the session.
	// BoxWorkspace only.
	Cache string
	// Throwaway lets the process see the workspace as it is, at its path, and keeps
	// what it changes there away from it: that is gone with the last process of the
	// box. Nothing else may be opened for writing, and no host. BoxWorkspace only.
	Throwaway bool
}

// ErrNoBox says that a process was not started because the walls it was to have
// can't be built here.
var ErrNoBox = errors.New("the sandbox can't be built here")

// Files reads and changes files. Paths are absolute. Safe for concurrent use.
type Files interface {
	// Resolve returns the path that Open and Change would reach: cleaned, with
	// every symbolic link followed. The path need not exist; what does not is
	// kept as written.
	Resolve(ctx context.Context, path string) (string, error)

	// Open opens a file or directory for reading. A directory's file
	// implements [fs.ReadDirFile]. Errors are [*fs.PathError].
	Open(ctx context.Context, path string) (fs.File, error)

	// Change writes or removes one file as a whole: after a crash at any
	// moment the old or the new content is there, never a mixture.
	Change(ctx context.Context, c Change) error
}

// Content is what is known of what a file holds.
type Content string

// Contents.
const (
	ContentUnknown Content = ""       // it can't be told: it is not a regular file, too big, or can't be read
	ContentNone    Content = "none"   // there is no such file
	ContentPlain   Content = "plain"  // there is no secret in it
	ContentSecret  Content = "secret" // there may be one
	ContentOwn     Content = "own"    // the session has made it
)

// Looker is an optional interface of [Files] that can tell of a file that is
// named like a secret whether it is one.
type Looker interface {
	// Look tells what is at a resolved path. It follows no link and waits for
	// nothing.
	Look(path string) Content
}

// Opener is an optional interface of [Files] that keep sensitive places closed.
type Opener interface {
	// Opened returns the same files, with open what a call may reach although it is
	// sensitive.
	Opened(p Pass) Files
}

// Pass is what a call may reach although it is sensitive.
type Pass struct {
	// All opens everything but what belongs to the harness itself and what rules of
	// people close.
	All bool
	// Read and Write list the resolved paths of single files that are secret by their
	// names, and that the call was judged by.
	Read, Write []string
}

// Some reports whether anything is open.
func (p Pass) Some() bool { return p.All || len(p.Read)+len(p.Write) > 0 }

// Change is one change of one file.
type Change struct {
	Path string
	// Data is the new content. Ignored if Remove is set.
	Data []byte
	// Mode is the permission of a new file; 0 means 0o644. A file that exists
	// keeps its own mode, and one behind a symbolic or hard link stays linked.
	Mode fs.FileMode
	// Exec says whether a file that exists may be executed from now on, by all who may read it. Nil: it
	// stays as it was.
	Exec *bool
	// Exact says that Path is what was judged: that a symbolic link has come to
	// stand in it since is an error that wraps [ErrChanged].
	Exact bool
	// Remove deletes the file, or the directory with all in it.
	Remove bool
	// If, when not empty, is the digest the file must still have; [NoFile]
	// means it must not exist. Otherwise Change does nothing and returns
	// [ErrChanged].
	If string
}

// NoFile is the Change.If of a file that must not exist yet.
const NoFile = "none"

// ErrChanged says that a file is not what the caller believed it to be.
var ErrChanged = errors.New("file has changed")

// Digest names content: the first 32 hex digits of its SHA-256.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// BlobName is the name of a blob, by the SHA-256 of its content: see [Blobs].
func BlobName(sum []byte) string { return "sha256-" + hex.EncodeToString(sum) }

// Procs starts processes. Safe for concurrent use.
type Procs interface {
	// Start starts a command in a process group of its own. When ctx is done
	// the whole group is asked to end (SIGTERM) and killed two seconds later.
	// The error wraps [fs.ErrNotExist] if there is no such program or
	// directory.
	Start(ctx context.Context, c Command) (Process, error)
}

// Readier is an optional interface of [Procs] that need time before the first command runs in
// a box, or the first one after a while.
type Readier interface {
	// Ready makes boxes ready, in the background and soon. Commands for which they would be
	// built the same then start in less time; for others nothing changes. Without any, none are
	// made ready that have not been begun.
	Ready(boxes ...Box)
}

// Command describes a process to start.
type Command struct {
	Args   []string  // program, looked up in PATH, and its arguments
	Dir    string    // working directory, absolute
	Env    []string  // the complete environment as KEY=value; nil: a default one without secrets
	Vars   []string  // what differs from Env, or from the default: NAME=value sets a variable, NAME takes it away
	Stdin  io.Reader // nil: empty
	Output io.Writer // receives standard output and standard error, interleaved; written by one goroutine
	Report io.Writer // receives what the process writes to its descriptor 3; nil: not open
	// AtEnd says that Report is of use only when the process has ended. It may then get all at once,
	// without what comes behind the first 4 MiB, or from others than the process later.
	AtEnd bool
	Box   Box // the walls around it
	// Results are files that the command says it writes. Those in the session's own folders for temporary
	// files are there afterwards as if a tool had written them.
	Results []string
	// TTY gives the process a terminal of this size, as its standard streams and as what
	// controls it: Stdin is what is typed, Output what appears. The variable TERM says
	// what programs can expect of it. Zero: it has none.
	TTY TTY
	// Keep says that the process may go on without this program, see [Keepable]: what it
	// listens on in a network of its own can be reached at the same port of this machine's
	// loopback addresses, from now on and by nobody who comes from elsewhere.
	Keep bool
	// Serves says that the process is a server, which goes on until nobody needs it any longer:
	// no later command waits for the box that it leaves.
	Serves bool
	// Pass is what it may reach although it is sensitive. With All and a nil Env it
	// gets the environment of the person but for the keys of the harness. Whoever
	// judges calls sets it.
	Pass Pass
}

// Exported writes variables as [Command] has them one a line, so that people and judges can
// look at them: line ends in their values stand as \n.
func Exported(vars []string) string {
	lines := make([]string, len(vars))
	for i, kv := range vars {
		lines[i] = strings.NewReplacer("\\", `\\`, "\n", `\n`).Replace(kv)
	}
	return strings.Join(lines, "\n")
}

// TTY is the size of a terminal.
type TTY struct{ Rows, Cols int }

// HTTP reaches servers. Safe for concurrent use.
type HTTP interface {
	// Do sends a request to the host of its address, which the call must have
	// been judged by, and follows no redirect: where one leads is for the caller
	// to judge anew. The caller closes the body of the answer.
	Do(req *http.Request) (*http.Response, error)
}

// Process is a running process. Safe for concurrent use.
type Process interface {
	// Wait returns once the process has ended and its output is written. It
	// does not wait for descendants that left the group or keep the output
	// open for longer than a second. Its result is the exit code, 128+n for
	// an end by signal n. An error means the outcome could not be learned.
	Wait() (code int, err error)
	// Kill ends the whole process group at once. Once the process has ended,
	// it ends what the process left behind, where that can be told from
	// strangers; else it is a no-op.
	Kill()
}

// Leaver is an optional interface of a [Process] that can tell whether it left
// others behind, so that one that did not need not be remembered.
type Leaver interface {
	// Left reports, once the process has ended, whether Kill has anything left
	// to end by now. It waits for the end.
	Left() bool
}

// Keepable is an optional interface of a [Process] that can go on without the program
// that has started it.
type Keepable interface {
	// Keep lets the process, and all that it has started, go on when this program ends,
	// inside the walls that they have. What they print from then on goes to the file
	// output, up to a limit; their standard input ends. Register is called with what names
	// them first: if it fails they are not kept. After Keep, Wait returns an error and
	// Kill does nothing; [Kept] tells how to end them.
	//
	// What they listen on in a network of their own, now or later, can be reached at the
	// same ports of this machine's loopback addresses until they end. Keep returns the
	// ports of now; without a network of their own there are none to tell of.
	Keep(output string, register func(Kept) error) ([]Port, error)
}

// Port is one on which what is kept listens behind its walls.
type Port struct {
	Number int    `json:"port,omitempty"`  // 0: the error is about all of them
	Error  string `json:"error,omitempty"` // why it can't be reached from this machine; empty: it can
}

// String says where it can be reached, or why it can't.
func (p Port) String() string {
	switch {
	case p.Error == "":
		return fmt.Sprintf("reachable at localhost:%d", p.Number)
	case p.Number == 0:
		return p.Error
	}
	return fmt.Sprintf("port %d can't be reached from outside of the sandbox: %s", p.Number, p.Error)
}

// Kept names a process that goes on without the program that has started it, with all
// its descendants.
type Kept struct {
	PID  int    `json:"pid"`  // of the keeper, which ends them all when it is told to end
	Mark string `json:"mark"` // tells this process from others that had or will have its PID
}

// Refuser is an optional interface of a [Process] that can tell what the walls
// around it did.
type Refuser interface {
	// Refused lists, in words for people and models, what the walls kept from
	// the process or took away from what it made. It is complete once the
	// process and its descendants have ended.
	Refused() []string
}

// Fetcher is an optional interface of a [Process] that may fetch from package registries.
type Fetcher interface {
	// Fetched counts its requests to them, by host. It is complete once the process and its descendants have ended.
	Fetched() map[string]int
}

// History is what a session has been through, also what the model no longer
// sees. Safe for concurrent use.
type History interface {
	// Find returns the newest passages, at most limit, for which match is true,
	// oldest first.
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

// Blobs stores big things by their content. Safe for concurrent use.
type Blobs interface {
	// Put stores all of r and returns its name, "sha256-" and 64 hex digits.
	// When it returns, the blob is as durable as the session log.
	Put(ctx context.Context, r io.Reader) (name string, err error)
	// Get opens a blob. The error wraps [fs.ErrNotExist] if there is none.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
}
