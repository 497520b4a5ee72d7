package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

//go:embed bash.md
var bashDoc string

const (
	progressEvery = 250 * time.Millisecond
	maxProgress   = 4 << 10 // bytes shown to a watcher at a time
	// settling is how long a background job is watched, so that one that
	// fails at once is reported at once.
	settling = 300 * time.Millisecond
	// ttyUsual is how long a program on a terminal may be silent at first.
	ttyUsual = 5 * time.Second
)

type bashArgs struct {
	Command    string `json:"command" jsonschema:"command line for bash"`
	Timeout    int    `json:"timeout,omitempty" jsonschema:"seconds until the command continues as a background job; at most 600"`
	Background bool   `json:"background,omitempty" jsonschema:"start as a background job and return at once"`
	Keep       bool   `json:"keep,omitempty" jsonschema:"the command continues after the session has ended, its ports reachable at localhost; needs approval"`
	// Standard input is empty by default: left open, grep, rg and cat without
	// a file would wait for it until they are moved to the background.
	Interactive bool `json:"interactive,omitempty" jsonschema:"keep standard input open for the jobs tool to feed"`
	TTY         bool `json:"tty,omitempty" jsonschema:"run on a terminal (120x40), for REPLs, debuggers, editors and whatever asks"`
	// Access beyond the sandbox is requested in the call, so that a person decides on it before anything runs.
	Network []string `json:"network,omitempty" jsonschema:"hosts the command must reach, such as registry.npmjs.org; needs approval"`
	Outside bool     `json:"outside,omitempty" jsonschema:"run outside of the sandbox; needs approval"`
}

func bash(sh *Shell) tool.Tool {
	t := tool.New("bash", bashDoc, sh.runBash)
	t.Effects = withArgs(func(ctx context.Context, c *tool.Call, in bashArgs) ([]tool.Effect, error) {
		return sh.plan(ctx, c, in).effects, nil
	})
	t.Ready = ready
	return t
}

func (sh *Shell) runBash(ctx context.Context, c *tool.Call, in bashArgs) (tool.Result, error) {
	switch {
	case strings.TrimSpace(in.Command) == "":
		return tool.Result{}, errors.New("command is empty")
	case strings.ContainsRune(in.Command, 0):
		return tool.Result{}, errors.New("command has a NUL byte in it")
	case in.Keep && sh.NoKeep != "":
		return tool.Result{}, errors.New("keep is unavailable: " + sh.NoKeep)
	case in.Keep && in.TTY:
		return tool.Result{}, errors.New("a kept command can't have a terminal, which ends with the session")
	case sh.NoJobs && !in.Keep && (in.Background || in.Interactive || in.TTY):
		return tool.Result{}, errors.New("the command ends with this call: background, interactive and tty are unavailable")
	case in.Timeout < 0:
		return tool.Result{}, errors.New("timeout is negative")
	}
	if r, err := needDir(ctx, c); err != nil {
		return r, err
	}
	j, err := sh.start(ctx, c, in)
	if err != nil {
		return tool.Result{}, err
	}
	wait := sh.soft()
	switch {
	case in.TTY:
		wait = 0
		j.settle(ctx, 0, in.onTerminal(sh), nil)
	case in.Background:
		wait = settling
	case in.Timeout > 0:
		wait = seconds(in.Timeout, sh.hard())
	}
	switch how := watch(ctx, c, j, watching{most: wait, found: j.moved}); how {
	case interrupted:
		return j.stopped(), fmt.Errorf("the command was interrupted and ended: %w", ctx.Err())
	case late, appeared:
		if sh.NoJobs && !in.Keep {
			return j.stopped(), fmt.Errorf("the command timed out after %v and was ended", wait)
		}
		why := ""
		if how == appeared {
			why = ", since the user sent it to the background"
		}
		if res, moved, err := sh.background(c, j, why); moved || err != nil {
			return res, err
		}
	}
	if in.Background {
		// Later commands must not depend on how soon it ended.
		return tool.Result{Parts: llm.Say(j.result()), Exit: j.exit(), LeftProcesses: sh.leaves()}, nil
	}
	return sh.finished(ctx, c, j)
}

// stopped ends a command, and returns its output.
func (j *job) stopped() tool.Result {
	j.cancel()
	<-j.done
	text, _ := j.all()
	return tool.Text(text)
}

// seconds returns the time that a model has asked for, within the limit.
func seconds(n int, most time.Duration) time.Duration {
	return min(time.Duration(min(n, 1<<20))*time.Second, most) // no number overflows
}

// onTerminal returns how long a program on a terminal may take until its first output.
func (in bashArgs) onTerminal(sh *Shell) time.Duration {
	if in.Timeout > 0 {
		return seconds(in.Timeout, sh.hard())
	}
	return min(ttyUsual, sh.hard())
}

// needDir checks that the current directory is there. A command must not run in another instead, so the call fails;
// later calls start from the workspace.
func needDir(ctx context.Context, c *tool.Call) (tool.Result, error) {
	f, err := c.Env.Files.Open(ctx, c.Cwd)
	if err == nil {
		return tool.Result{}, f.Close()
	}
	return tool.Result{Cwd: c.Env.Root}, fmt.Errorf("the current directory is gone (%w); nothing was run, and the next command starts in %s",
		err, c.Env.Root)
}

type watched int

const (
	over watched = iota
	late
	interrupted
	appeared
)

// watching describes the events that a job is watched for in addition to its end.
type watching struct {
	most  time.Duration
	shown int64           // output that a watcher has seen before
	found <-chan struct{} // closed when there is enough; nil means never
}

// watch waits for the end of a job, of the time or of the call, and shows
// progress meanwhile.
func watch(ctx context.Context, c *tool.Call, j *job, w watching) watched {
	if j.ended() {
		return over
	}
	limit := time.NewTimer(w.most)
	defer limit.Stop()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	shown := w.shown
	for {
		select {
		case <-j.done:
			return over
		case <-w.found:
			return appeared
		case <-ctx.Done():
			return interrupted
		case <-limit.C:
			return late
		case <-tick.C:
			shown = progress(c, j, shown)
		}
	}
}

// progress shows the end of the output since the last time.
func progress(c *tool.Call, j *job, shown int64) int64 {
	if c.Progress == nil {
		return shown
	}
	head, tail, _, end := j.out.since(shown)
	data := slices.Concat(head, tail)
	if len(data) > 0 {
		c.Progress(clean(data[max(0, len(data)-maxProgress):]))
	}
	return end
}

// background turns a command into a job, or ends it if there are too many. It reports false if the command has
// ended just now. Why is the reason for the model; it may be empty.
func (sh *Shell) background(c *tool.Call, j *job, why string) (res tool.Result, moved bool, err error) {
	moved, err = sh.enlist(j, c.Finished)
	if err != nil {
		return j.stopped(), false, fmt.Errorf("the command was ended: %w", err)
	}
	if !moved {
		return tool.Result{}, false, nil
	}
	text := endLine(sh.fresh(j))
	res = tool.Text(fmt.Sprintf("%s[still running as job %s%s; use the jobs tool to wait, read on, feed or kill it]", text, j.id, why))
	res.Job, res.LeftProcesses = &tool.Job{ID: j.id, Command: j.command, Keep: j.keep, TimedOut: j.input == nil}, sh.leaves()
	return res, true, nil
}

// finished reports how a foreground command ended, and lets later commands continue in its directory and
// environment.
func (sh *Shell) finished(ctx context.Context, c *tool.Call, j *job) (r tool.Result, err error) {
	r = tool.Result{Exit: j.exit(), LeftProcesses: sh.leaves(), Files: wrote(ctx, c, j.writes)}
	text, closed, told := j.result()+sh.missing(c.Mode, j), j.outside(ctx, c, sh.Home), j.blocked()
	for _, dir := range closed {
		text, told = text+"\n["+closedTo(dir)+"]", append(told, closedTo(dir))
	}
	r.AllowFlags, r.Fetched = j.ways(closed), j.end.fetched
	if c.Parent != "" {
		text, err = j.plain(ctx, c)
	}
	if len(j.lacks) > 0 {
		text += "\n[variables that commands in the sandbox have exported are not set outside of it: " + strings.Join(j.lacks, ", ") + "]"
	}
	if cwd := sh.adopt(j); cwd != "" && cwd != c.Cwd {
		r.Cwd = cwd
		if c.Parent == "" {
			text += "\n[now in " + cwd + "]"
		}
	}
	r.Parts = llm.Say(text)
	r.Show = strings.Join(told, "\n\n")
	return r, err
}

// exit returns the exit code of a command that has ended, nil if unknown.
func (j *job) exit() *int {
	if j.end.err != nil {
		return nil
	}
	return &j.end.code
}

// all returns the shown part of the whole output, and whether that is all of it.
func (j *job) all() (text string, whole bool) {
	if j.screen != nil {
		return j.screen.fresh(), true
	}
	text, whole, _ = j.out.text(0)
	return text, whole
}

// result returns the model's text about a command that has ended.
func (j *job) result() string {
	text, whole := j.all()
	if text == "" {
		text = "[no output]"
	}
	text = endLine(text)
	if !whole {
		text += j.end.where() + "\n"
	}
	return text + j.walls() + j.end.outcome() + j.advice(text)
}

// plain returns the whole output of a command, for a program, which would mistake a part of it for the whole.
// The exit code shows how it ended.
func (j *job) plain(ctx context.Context, c *tool.Call) (string, error) {
	text, whole := j.all()
	if !whole {
		all, err := j.stored(ctx, c)
		if err != nil {
			return "", err
		}
		text = all
	}
	if walls := j.walls(); walls != "" {
		text = endLine(text) + walls
	}
	return text, nil
}

// stored returns a long output, from its blob.
func (j *job) stored(ctx context.Context, c *tool.Call) (string, error) {
	if j.end.blob == "" || !j.end.complete || c.Env.Blobs == nil {
		return "", errors.New("the command has run, and its output is too long to return: write it to a file")
	}
	r, err := c.Env.Blobs.Get(ctx, j.end.blob)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(io.LimitReader(r, maxPlain+1))
	if err == nil && len(data) > maxPlain {
		err = fmt.Errorf("the command has run, and its output has more than %s: narrow it, or read_file it in parts, as blob:%s",
			size(maxPlain), j.end.blob)
	}
	return string(data), err
}

// walls describes the sandbox of a command, and the attempts that it stopped.
func (j *job) walls() (text string) {
	for _, r := range j.end.refused {
		if !strings.HasPrefix(r, "blocked ") {
			text += "[the sandbox " + r + "]\n"
		}
	}
	for _, line := range j.blocked() {
		text += "[" + line + "; the network argument of a call asks for it]\n"
	}
	return text
}

func (e ending) outcome() string {
	if e.err != nil {
		return fmt.Sprintf("[exit code unknown: %v]", e.err)
	}
	if e.code > 128 && e.code <= 128+64 { // there are 64 signals
		return fmt.Sprintf("[exit code %d, ended by signal %d]", e.code, e.code-128)
	}
	return fmt.Sprintf("[exit code %d]", e.code)
}

// where says where the rest of a long output is.
func (e ending) where() string {
	switch {
	case e.blobErr != nil:
		return fmt.Sprintf("[the whole output could not be stored: %v]", e.blobErr)
	case e.blob == "":
		return "[the rest is lost]"
	case !e.complete:
		return fmt.Sprintf("[the first %s are in %s%s; read_file can read that]", size(maxSpilled), blobPrefix, e.blob)
	}
	return fmt.Sprintf("[the whole output is in %s%s; read_file can read that]", blobPrefix, e.blob)
}

// endLine ends the last line, if there is one.
func endLine(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
