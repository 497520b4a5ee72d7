package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/world/ability"
	"github.com/inspan/inspan/tool"
)

const (
	defaultSoft = 120 * time.Second
	defaultHard = 600 * time.Second
	maxJobs     = 50      // jobs that are remembered, running or not
	maxReport   = 4 << 20 // bytes of the environments a shell reports
	maxFed      = 1 << 20 // bytes of input that wait for a job to read them
)

// Shell is the state that outlives single commands of a session: the environment they leave for the next one, and
// the jobs in the background. The environment is in memory only, because it may contain secrets. The zero value is
// ready. Safe for concurrent use. Close it when the session ends.
type Shell struct {
	// Soft is how long a command may run in the foreground if it does not ask for a timeout; then it continues
	// as a job. Zero means two minutes.
	Soft time.Duration
	// Hard is the longest timeout a command can ask for. Zero means ten
	// minutes.
	Hard time.Duration
	// Home is the user's home folder, where ~ leads; may be empty.
	Home string
	// Protected are globs of branches that the git tool does not push to.
	Protected []string
	// NoKeep gives the reason why no process may outlive the session, even if bash is asked to keep it; empty means
	// it may.
	NoKeep string
	// NoJobs: the session is one call, and no one could manage background jobs. A command that is not to be
	// kept ends with its call.
	NoJobs bool
	// Withheld returns the variables of the person's environment that commands don't get in a mode: why, by name.
	// Nil means none.
	Withheld func(mode tool.Mode) map[string]string

	starting sync.WaitGroup // commands that are starting

	mu     sync.Mutex
	vars   [unwalled + 1]vars // changes that commands have left, by their reach
	jobs   []*job             // in the order of their ids
	lastID int
	active map[*job]bool  // all running ones, including those in the foreground
	ended  []remains      // of finished ones
	handed bool           // another session's shell has taken over a process
	after  []func() error // ends environments of sessions that have worked for this one
	closed bool
	told   map[string]bool // names of withheld variables that were reported
}

func (sh *Shell) soft() time.Duration {
	if sh.Soft > 0 {
		return min(sh.Soft, sh.hard())
	}
	return min(defaultSoft, sh.hard())
}

func (sh *Shell) hard() time.Duration {
	if sh.Hard > 0 {
		return sh.Hard
	}
	return defaultHard
}

// A job is one command, in the foreground or not.
type job struct {
	id      string // empty in the foreground
	command string
	box     tool.Box
	git     bool // it reads the repository with git
	keep    bool // it must outlive the session
	writes  []written
	made    []place  // for it
	vars    vars     // with which it started
	lacks   []string // names of withheld variables
	process tool.Process
	started time.Time
	cancel  context.CancelFunc // ends the process group
	out     *capture
	screen  *screen     // of its terminal; nil means it has none
	input   *keep.Input // nil means standard input is empty
	report  *shellReport

	moved  chan struct{} // closed when the person sends it to the background
	moving bool          // it is closed; guarded by Shell.mu
	done   chan struct{} // closed when it has ended; the fields below are set before
	end    ending

	read     int64             // end of the output that the model has seen; guarded by Shell.mu
	finished func(tool.JobEnd) // reports the end to the session; nil in the foreground; guarded by Shell.mu
}

// ending is how a job ended.
type ending struct {
	at       time.Time
	code     int
	err      error  // the exit code is unknown
	blob     string // holds the output if it was long
	complete bool   // the blob has all of it
	blobErr  error
	refused  []string // by the sandbox
	fetched  map[string]int
}

var errClosed = errors.New("the session is closing")

// start starts a command. The job does not end with the call's context: the waiting caller decides that.
func (sh *Shell) start(calling context.Context, c *tool.Call, in bashArgs) (*job, error) {
	if c.Env.Procs == nil {
		return nil, errors.New("commands cannot be run in this session")
	}
	plan := sh.plan(calling, c, in)
	ctx, cancel := context.WithCancel(context.Background())
	j := &job{
		command: in.Command, box: plan.box(c, in), git: plan.git, keep: in.Keep, started: time.Now(), cancel: cancel, done: make(chan struct{}), moved: make(chan struct{}),
		out: &capture{blobs: storeOf(c.Env)}, report: &shellReport{}, writes: toWrite(calling, c, plan.effects),
	}
	if in.Background || in.Interactive || in.TTY {
		j.input = keep.NewInput(maxFed)
	}
	if in.TTY {
		j.screen = newScreen(j.input)
	}
	if !sh.begin(j) {
		cancel()
		return nil, errClosed
	}
	defer sh.starting.Done()
	j.vars = j.vars.inside(j.box, c.Env.Root)
	j.made = prepare(calling, c, j.box, plan.effects)
	var err error
	if j.process, err = launch(ctx, c, j); err != nil {
		unused(j.made, -1)
		cancel()
		return nil, err
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.active == nil {
		sh.active = map[*job]bool{}
	}
	sh.active[j] = true
	go sh.see(j, ctx)
	return j, nil
}

// begin gives a command the environment that others have left. Until starting is done, the session does not
// leave. It reports false if the session is leaving.
func (sh *Shell) begin(j *job) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.closed {
		return false
	}
	sh.starting.Add(1)
	at := reachOf(j.box)
	j.vars, j.lacks = sh.vars[at], sh.vars[sandboxed].beyond(sh.vars[at])
	return true
}

// launch starts bash, or sh if there is no bash.
func launch(ctx context.Context, c *tool.Call, j *job) (tool.Process, error) {
	command := tool.Command{Dir: c.Cwd, Vars: j.vars, Output: j.out, Report: j.report, AtEnd: true, Box: j.box, Keep: j.keep}
	for _, w := range j.writes {
		command.Results = append(command.Results, w.path)
	}
	if j.input != nil {
		command.Stdin = j.input
	}
	if j.screen != nil {
		command.TTY, command.Output = tool.TTY{Rows: screenRows, Cols: screenCols}, io.MultiWriter(j.screen, j.out)
	}
	before := ""
	if j.git {
		before = gitScript
		if !c.Env.Walls.Read {
			before += gitAlone
		}
	}
	pieces, whole := inPieces(j.command)
	script := func(text string) string { return before + strings.Replace(text, `"$1"`, whole, 1) }
	command.Args = append([]string{"bash", "--noprofile", "--norc", "-c", script(bashScript), "bash"}, pieces...)
	p, err := c.Env.Procs.Start(ctx, command)
	if errors.Is(err, fs.ErrNotExist) {
		command.Args = append([]string{"sh", "-c", script(shScript), "sh"}, pieces...)
		p, err = c.Env.Procs.Start(ctx, command)
	}
	return p, err
}

// mostArgument is how many bytes one argument of a process may have on Linux, with some room
// (MAX_ARG_STRLEN, execve(2)).
const mostArgument = 120 << 10

// inPieces splits a command into arguments that the kernel accepts. Whole is a shell expression for all of
// them.
func inPieces(command string) (pieces []string, whole string) {
	for piece := range slices.Chunk([]byte(command), mostArgument) {
		pieces = append(pieces, string(piece))
		whole += fmt.Sprintf("${%d}", len(pieces))
	}
	return pieces, `"` + whole + `"`
}

// see waits for the end of a job and cleans up after it.
func (sh *Shell) see(j *job, ctx context.Context) {
	defer j.cancel()
	j.end.code, j.end.err = j.process.Wait()
	unused(j.made, j.end.code)
	if j.input != nil {
		_ = j.input.Close() // never fails
	}
	if j.screen != nil {
		j.screen.close()
	}
	j.end.blob, j.end.complete, j.end.blobErr = j.out.finish(ctx.Err() != nil)
	j.end.at = time.Now()
	if r, ok := j.process.(ability.Refuser); ok {
		j.end.refused = r.Refused()
	}
	if f, ok := j.process.(ability.Fetcher); ok {
		j.end.fetched = f.Fetched()
	}
	if finished := sh.over(j); finished != nil {
		finished(j.jobEnd())
	}
}

// over removes a job that has ended from the list, and returns the function to call.
func (sh *Shell) over(j *job) func(tool.JobEnd) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	delete(sh.active, j)
	if l, ok := j.process.(ability.Leaver); !ok || l.Left() {
		sh.ended = append(sh.ended, remains{j.process, j.command, j.keep, nil})
	}
	close(j.done)
	return j.finished
}

// adopt takes over the changes of a command to its environment, for commands with at most its reach, and
// returns the directory in which it ended, "" if unknown.
func (sh *Shell) adopt(j *job) (cwd string) {
	cwd, left, ok := j.report.parse()
	if !ok {
		return ""
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for r := range reachOf(j.box) + 1 {
		sh.vars[r] = sh.vars[r].with(left)
	}
	return cwd
}

// enlist turns a running command into a background job, whose end is reported. It reports false if the command
// no longer runs, and fails if too many jobs are running.
func (sh *Shell) enlist(j *job, finished func(tool.JobEnd)) (bool, error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if j.ended() {
		return false, nil
	}
	if len(sh.jobs) >= maxJobs {
		oldest := slices.IndexFunc(sh.jobs, func(j *job) bool { return j.ended() })
		if oldest < 0 {
			return false, fmt.Errorf("there are %d jobs running; end some with the jobs tool", maxJobs)
		}
		sh.jobs = slices.Delete(sh.jobs, oldest, oldest+1)
	}
	sh.lastID++
	j.id, j.finished = strconv.Itoa(sh.lastID), finished
	sh.jobs = append(sh.jobs, j)
	return true, nil
}

// find returns a job by its id. Without one it is the only job, or the only one that runs.
func (sh *Shell) find(id string) (*job, error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	var ids []string
	var running []*job
	for _, j := range sh.jobs {
		if j.id == id {
			return j, nil
		}
		if ids = append(ids, j.id); !j.ended() {
			running = append(running, j)
		}
	}
	switch {
	case id == "" && len(sh.jobs) == 1:
		return sh.jobs[0], nil
	case id == "" && len(running) == 1:
		return running[0], nil
	}
	if ids == nil {
		return nil, errors.New("there are no jobs")
	}
	return nil, fmt.Errorf("there is no job %q; the jobs are %s", id, strings.Join(ids, ", "))
}

func (j *job) ended() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// jobEnd returns the report for the session about the end.
func (j *job) jobEnd() tool.JobEnd {
	end := tool.JobEnd{ID: j.id, Exit: j.exit(), Seconds: j.end.at.Sub(j.started).Seconds(), Line: j.lastLine()}
	if j.end.err != nil {
		end.Error = j.end.err.Error()
	}
	return end
}

// lastLine returns the last non-empty line of the output.
func (j *job) lastLine() string {
	head, tail, _, _ := j.out.since(max(0, j.out.size()-maxProgress))
	s := clean(slices.Concat(head, tail))
	if j.screen != nil {
		s = j.screen.text()
	}
	s = strings.TrimRight(s, " \t\n")
	return text.Cut(strings.TrimSpace(s[strings.LastIndexByte(s, '\n')+1:]), maxListedLine)
}

// seen returns how much of the output the model has seen.
func (sh *Shell) seen(j *job) int64 {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return j.read
}

// fresh returns the output of the job since the last call of fresh.
func (sh *Shell) fresh(j *job) string {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if j.screen != nil {
		j.read = j.out.size()
		return j.screen.fresh()
	}
	text, _, end := j.out.text(j.read)
	j.read = end
	return text
}

// shellReport collects the report of a shell on descriptor 3 when it ends. It is written by one goroutine and
// read when that is done.
type shellReport struct{ buf bytes.Buffer }

// Write implements [io.Writer].
func (r *shellReport) Write(p []byte) (int, error) {
	if r.buf.Len()+len(p) <= maxReport {
		r.buf.Write(p)
	}
	return len(p), nil
}

// parse decodes the directory and the changes of the environment: a shell reports the environment at its start, the
// directory, and the environment at its end, each with a NUL after it. It reports false if the report is
// incomplete, as after a kill or exec.
func (r *shellReport) parse() (cwd string, left vars, ok bool) {
	if rest, yes := strings.CutPrefix(r.buf.String(), "declared\x00"); yes {
		records := strings.Split(rest, "\x00")
		if len(records) != 4 || records[3] != "" {
			return "", nil, false
		}
		before, first := declared(records[0])
		after, last := declared(records[2])
		return strings.TrimSuffix(records[1], "\n"), changes(before, after), first && last
	}
	records := strings.Split(r.buf.String(), "\x00")
	n, first := len(records), slices.Index(records, ".")
	if first < 0 || n < first+4 || records[n-2] != "." || records[n-1] != "" {
		return "", nil, false
	}
	return records[first+1], changes(records[:first], records[first+2:n-2]), true
}

// gitScript keeps git from changing and from running anything while it reads: no refreshed index, no hooks, no
// monitor. It prints file names unquoted.
const gitScript = `export GIT_OPTIONAL_LOCKS=0 GIT_CONFIG_COUNT=3 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0=false ` +
	`GIT_CONFIG_KEY_1=core.hooksPath GIT_CONFIG_VALUE_1=/dev/null GIT_CONFIG_KEY_2=core.quotePath GIT_CONFIG_VALUE_2=false; `

// gitAlone keeps it from looking into submodules, which have their own settings, where no sandbox restricts the
// programs in those.
const gitAlone = `export GIT_CONFIG_COUNT=4 GIT_CONFIG_KEY_3=diff.ignoreSubmodules GIT_CONFIG_VALUE_3=all; `

// bashScript runs the command in $1, or in the arguments that stand for it, and reports where it ended, and what it
// exports, whether it comes to its end, exits or fails. The report's
// descriptor moves out of the way first, as commands may use 3 themselves. An
// EXIT trap of the command's own wins; then an exit in the middle goes
// unreported, and nothing changes for the next command.
//
// All of it is one line, so that line numbers in errors are those of the
// command.
//
// It starts no process: a fork takes longer than most commands.
const bashScript = `exec 57>&3 3>&-; ` +
	`{ builtin printf 'declared\0'; builtin declare -px; builtin printf '\0'; } 2>/dev/null >&57; ` +
	`__inspan_report() { ` +
	`set +eu; [ -n "${__inspan_done-}" ] && return; __inspan_done=1; ` +
	`{ builtin pwd -P; builtin printf '\0'; builtin declare -px; builtin printf '\0'; } 2>/dev/null >&57; }; ` + runScript

// shScript does the same if there is no bash.
const shScript = `exec 8>&3 3>&-; ` +
	`{ env -0; printf '.\0'; } 2>/dev/null >&8; ` +
	`__inspan_report() { ` +
	`set +eu; [ -n "${__inspan_done-}" ] && return; __inspan_done=1; ` +
	`{ printf '%s\0' "$(pwd -P)"; env -0; printf '.\0'; } 2>/dev/null >&8; }; ` + runScript

const runScript = `trap '{ __inspan_code=$?; set +x; } 2>/dev/null; __inspan_report' EXIT; ` +
	`eval "shift $#;""$1"; ` +
	`{ __inspan_code=$?; set +x; } 2>/dev/null; __inspan_report; exit "$__inspan_code"`
