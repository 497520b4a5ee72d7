package acp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	wire "github.com/coder/acp-go-sdk"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/base/jsonrpc"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

// terminals are the client's terminals, for the commands of one call. Its rules:
//
//   - Only commands that the person has let out of the sandbox run there, and only without input. Everything
//     else runs in our processes, since a terminal has no sandbox and no keeper.
//   - The command, its environment and where it ends are the same as outside of a terminal. A script of ours
//     sets them, since clients add variables of their own, and some split what they are given at spaces.
//   - How a killed command ends is up to the client: processes that have left the terminal are out of our
//     reach.
type terminals struct {
	tool.Procs // our own processes
	conn       *jsonrpc.Conn
	session    string
	call       *tool.Call
	opened     func(terminal string)
}

const (
	maxTerminal = 1 << 20                // bytes of output that the client is asked to keep
	lookEvery   = 200 * time.Millisecond // at most
)

// lendTerminals lets the commands of an agent run in terminals of the client.
func (st *session) lendTerminals(agent *inspan.Agent, id string) {
	client, _ := st.agent.capabilities()
	o := st.agent.App.Config.Sandbox
	if !client.Terminal || agent.Env.Procs == nil || cmp.Or(st.options.Container, o.Container) != "" {
		return
	}
	agent.Tools = slices.Clone(agent.Tools)
	for i, t := range agent.Tools {
		if t.Name != "bash" {
			continue
		}
		agent.Tools[i].Run = func(ctx context.Context, c *tool.Call) (tool.Result, error) {
			here := *c
			here.Env.Procs = &terminals{
				Procs: c.Env.Procs, conn: st.agent.conn, session: id, call: c,
				opened: func(terminal string) { st.recordTerminal(c.ID, terminal) },
			}
			return t.Run(ctx, &here)
		}
	}
}

// recordTerminal records that a call runs in a terminal.
func (st *session) recordTerminal(call, terminal string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.terminals == nil {
		st.terminals = map[string]string{}
	}
	st.terminals[call] = terminal
}

// terminal returns the terminal that a call runs in; empty if none.
func (st *session) terminal(call string) string {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.terminals[call]
}

// Start implements [tool.Procs].
func (t *terminals) Start(ctx context.Context, c tool.Command) (tool.Process, error) {
	if c.Box.Level != tool.BoxNone || c.Stdin != nil {
		return t.Procs.Start(ctx, c)
	}
	env, err := t.environment(ctx, c) // also says whether there is such a shell
	if err != nil {
		return nil, err
	}
	c.Env, c.Vars = env, nil
	p := &terminal{terminals: t, command: c, done: make(chan struct{})}
	if err := p.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("the editor did not open a terminal: %w", err), os.RemoveAll(p.dir))
	}
	t.opened(p.id)
	t.call.Progress("[in a terminal of the editor]\n")
	go p.supervise(ctx)
	return p, nil
}

// environment returns the environment that the shell would have as our process.
func (t *terminals) environment(ctx context.Context, c tool.Command) ([]string, error) {
	var out bytes.Buffer
	p, err := t.Procs.Start(ctx, tool.Command{
		Args: []string{c.Args[0], "-c", "env -0 >&3"},
		Dir:  c.Dir, Report: &out, Env: c.Env, Vars: c.Vars, Box: c.Box,
	})
	if err != nil {
		return nil, err
	}
	if code, err := p.Wait(); err != nil || code != 0 {
		return nil, errors.Join(fmt.Errorf("the environment can't be told (%d)", code), err)
	}
	env := strings.Split(strings.TrimRight(out.String(), "\x00"), "\x00")
	return slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "INSPAN_CALL=") }), nil
}

// terminal is a process in a terminal of the client.
type terminal struct {
	*terminals
	command tool.Command
	id      string
	dir     string // where it starts and what it reports to, readable by this user only
	killing sync.Once
	taken   int    // bytes of its output that were taken
	last    string // the end of them

	done chan struct{} // closed when it has ended; the other fields are set before
	code int
	err  error
}

// Wait implements [tool.Process].
func (p *terminal) Wait() (int, error) {
	<-p.done
	return p.code, p.err
}

// Left implements [ability.Leaver]: leftover processes are the client's.
func (p *terminal) Left() bool { return false }

// Kill implements [tool.Process].
func (p *terminal) Kill() {
	p.killing.Do(func() { p.conn.Go(p.kill) })
}

func (p *terminal) kill() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.conn.Context()), patience)
	defer cancel()
	_ = p.ask(ctx, wire.ClientMethodTerminalKill, nil) // if it does not end, supervise says so
}

// open makes the client start the command.
func (p *terminal) open(ctx context.Context) (err error) {
	if p.dir, err = os.MkdirTemp("", "inspan-"); err != nil {
		return err
	}
	script, err := p.script()
	if err != nil {
		return err
	}
	name := filepath.Join(p.dir, scriptName(p.call))
	begin := fmt.Sprintf("exec /usr/bin/env -i /bin/sh %s 3>%s </dev/null\n", text.ShellQuote(p.holdsProcess()), text.ShellQuote(p.report()))
	if err := errors.Join(os.WriteFile(p.holdsProcess(), []byte(script), 0o600), os.WriteFile(name, []byte(begin), 0o600)); err != nil {
		return err
	}
	return p.create(ctx, wire.CreateTerminalRequest{
		SessionId: wire.SessionId(p.session), Command: "sh", Args: []string{name}, Cwd: &p.command.Dir, OutputByteLimit: wire.Ptr(maxTerminal),
	})
}

// create asks for the terminal. A terminal that arrives after the caller has given up is released.
func (p *terminal) create(ctx context.Context, request wire.CreateTerminalRequest) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	came := make(chan error)
	asked := p.conn.Go(func() {
		var answer wire.CreateTerminalResponse
		err := p.conn.Call(context.WithoutCancel(ctx), wire.ClientMethodTerminalCreate, request, &answer)
		p.id = answer.TerminalId
		select {
		case came <- err:
		case <-ctx.Done():
			if err == nil {
				p.kill()
				p.release()
			}
		}
	})
	if !asked {
		return errGone
	}
	select {
	case err := <-came:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// script writes the command with its environment to a file, so that no list of processes shows it.
func (p *terminal) script() (string, error) {
	var out strings.Builder
	for _, kv := range p.command.Env {
		if name, value, _ := strings.Cut(kv, "="); isName(name) {
			fmt.Fprintf(&out, "export %s=%s\n", name, text.ShellQuote(value))
		}
	}
	out.WriteString("exec")
	for _, w := range p.command.Args {
		out.WriteString(" " + text.ShellQuote(w))
	}
	if strings.ContainsRune(out.String(), 0) {
		return "", errors.New("a command can't contain a zero byte")
	}
	return out.String() + "\n", nil
}

// isName reports whether a shell can export a variable of this name. Some names belong to the shell, and would
// make it end.
func isName(name string) bool {
	if slices.Contains([]string{"UID", "EUID", "PPID", "SHELLOPTS", "BASHOPTS", "BASH_VERSINFO"}, name) {
		return false
	}
	for i, r := range name {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

func (p *terminal) report() string       { return filepath.Join(p.dir, "report") }
func (p *terminal) holdsProcess() string { return filepath.Join(p.dir, "inside") }

// scriptName returns a file name that tells people which command it starts, without the command's arguments.
func scriptName(c *tool.Call) string {
	var args struct {
		Command string `json:"command"`
	}
	_ = json.Unmarshal(c.Args, &args) // they were valid for the schema
	program, _, _ := strings.Cut(strings.TrimSpace(args.Command), " ")
	program = filepath.Base(program)
	for _, r := range program {
		if r != '-' && r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') {
			return "command.sh"
		}
	}
	return program[:min(len(program), 60)] + ".sh"
}

// ask asks the client about the terminal.
func (p *terminal) ask(ctx context.Context, method string, result any) error {
	return p.conn.Call(ctx, method, wire.TerminalOutputRequest{SessionId: wire.SessionId(p.session), TerminalId: p.id}, result)
}

// supervise reads the output until the command has ended.
func (p *terminal) supervise(ctx context.Context) {
	defer close(p.done)
	asking, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var exit wire.WaitForTerminalExitResponse
	exited := make(chan error, 1)
	go func() { exited <- p.ask(asking, wire.ClientMethodTerminalWaitForExit, &exit) }()
	look := time.NewTimer(lookEvery)
	defer look.Stop()
	var late <-chan time.Time
	cancelled := ctx.Done()
	for ended := false; !ended && p.err == nil; {
		select {
		case <-look.C:
			began := time.Now()
			_ = p.takeOutput(ctx, false)                     // the next look brings what this one did not
			look.Reset(max(lookEvery, 10*time.Since(began))) // each one brings all of the output
		case <-cancelled:
			p.Kill()
			cancelled, late = nil, time.After(patience)
			look.Stop()
		case <-late:
			p.err = errors.New("the command did not end when it was killed")
		case p.err = <-exited:
			ended = true
		}
	}
	if p.err != nil {
		p.err = fmt.Errorf("the terminal of the editor: %w", p.err)
	} else {
		p.code = exitOf(exit)
	}
	if err := p.takeOutput(asking, true); err != nil {
		fmt.Fprintf(p.command.Output, "\n[the editor did not say what was printed last: %s]\n", words.OneLine(err.Error(), 200))
	}
	p.takeReport()
}

// takeReport takes the report and releases the terminal, which the client continues to show.
func (p *terminal) takeReport() {
	if info, err := os.Lstat(p.report()); err == nil && info.Mode().IsRegular() {
		if f, err := os.Open(p.report()); err == nil {
			_, _ = io.Copy(p.command.Report, f)
			f.Close()
		}
	}
	_ = os.RemoveAll(p.dir)
	p.release()
}

func (p *terminal) release() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.conn.Context()), patience)
	defer cancel()
	_ = p.ask(ctx, wire.ClientMethodTerminalRelease, nil) // it ends with the session at the latest
}

// takeOutput takes the terminal's new output: only whole lines while the command runs, since programs redraw the last
// line again and again.
func (p *terminal) takeOutput(ctx context.Context, last bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var now wire.TerminalOutputResponse
	if err := p.ask(ctx, wire.ClientMethodTerminalOutput, &now); err != nil {
		return err
	}
	text := strings.ReplaceAll(now.Output, "\r\n", "\n")
	fresh, ok := p.newOutput(text, now.Truncated)
	switch {
	case last && !ok:
		fresh = "\n[the editor showed other text before, or dropped some; now it shows:]\n" + text
	case !last && !ok:
		return nil
	case !last:
		fresh = fresh[:strings.LastIndexByte(fresh, '\n')+1]
	}
	p.taken += len(fresh)
	p.last += fresh
	p.last = p.last[max(0, len(p.last)-overlap):]
	_, err := io.WriteString(p.command.Output, fresh)
	return err
}

// overlap is how many bytes of the taken output are searched for, to find where the rest begins.
const overlap = 4 << 10

// newOutput returns the part of text after what was taken; the beginning of text may have been dropped meanwhile.
// It returns false if the taken part is not in text unchanged.
func (p *terminal) newOutput(text string, dropped bool) (string, bool) {
	if !dropped {
		known := p.taken - len(p.last)
		if p.taken > len(text) || known < 0 || text[known:p.taken] != p.last {
			return "", false
		}
		return text[p.taken:], true
	}
	// Of several places the first one counts: output that comes twice is better than lost output.
	if i := strings.Index(text, p.last); len(p.last) == overlap && i >= 0 {
		return text[i+len(p.last):], true
	}
	return "", false
}

// exitOf returns 128+n for an end by signal n.
func exitOf(e wire.WaitForTerminalExitResponse) int {
	switch {
	case e.ExitCode != nil:
		return *e.ExitCode
	case e.Signal != nil:
		numbers := map[string]int{"HUP": 1, "INT": 2, "QUIT": 3, "ABRT": 6, "KILL": 9, "SEGV": 11, "PIPE": 13, "TERM": 15}
		return 128 + numbers[strings.TrimPrefix(*e.Signal, "SIG")]
	}
	return 128
}
