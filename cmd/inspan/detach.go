package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/console"
	"github.com/inspan/inspan/internal/sandbox"
	"github.com/inspan/inspan/internal/session"
	"github.com/inspan/inspan/llm"
)

// runLog is the file in a session's folder that has what its detached process
// printed.
const runLog = "run.log"

// patience is how long a detached run waits for a model that can't be had, unless
// somebody said otherwise: nobody looks.
const patience = 15 * time.Minute

// order is what a detached process is to do.
type order struct {
	ID         string `json:"id"` // to go on with; empty: a new session
	Text       string `json:"text"`
	Unattended bool   `json:"unattended"`
	Log        string `json:"log"` // what it prints to, until the session has a folder
}

// begun is what a detached process tells once its run has begun.
type begun struct {
	Session string `json:"session"`
	Warned  int64  `json:"warned"` // bytes that it had printed before
}

const detachHelp = "With --detach the run goes on in a process of its own, without a terminal, and the id of the session is printed once it has begun. What would ask waits, also\n" +
	"for days, until 'inspan attach' or 'inspan send --allow' answers; with --unattended it is denied. See 'inspan ps', 'logs', 'attach' and 'stop'. What the process\n" +
	"prints is in " + runLog + " in the session's folder: the end of it, at most two megabytes."

// detachable lets a command that runs a session leave it to a process of its own.
func (c *command) detachable(cmd *cobra.Command) *cobra.Command {
	var detach, unattended bool
	cmd.Flags().BoolVar(&detach, "detach", false, "let it run in a process of its own, and print the session's id")
	cmd.Flags().BoolVar(&unattended, "unattended", false, "with --detach: deny what would ask, instead of waiting for an answer")
	head, codes, _ := strings.Cut(cmd.Long, "\n\nExit codes:")
	cmd.Long = head + "\n\n" + detachHelp + "\n\nExit codes:" + codes
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case detach:
			return c.detach(cmd, args, unattended)
		case unattended:
			return usageError{errors.New("--unattended goes with --detach; without a terminal, what would ask is denied anyway")}
		}
		return run(cmd, args)
	}
	return cmd
}

// detach starts the process and waits until its run has begun.
func (c *command) detach(cmd *cobra.Command, args []string, unattended bool) error {
	a, err := app.Load(c.self)
	if err != nil {
		return err
	}
	o := order{Unattended: unattended}
	if cmd.Name() == "resume" {
		o.ID, o.Text, err = idAndTask(cmd, a.Store(), args)
	} else {
		o.Text, err = c.task(args)
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(a.StateDir, 0o700); err != nil {
		return err
	}
	log, err := newLog(a.StateDir)
	if err != nil {
		return err
	}
	defer log.Close()
	o.Log = log.Name()
	defer os.Remove(o.Log) // it has moved, unless the run never began
	return c.begin(cmd, o, log)
}

// newLog makes the file that a detached process prints to.
func newLog(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, ".detached-*.log")
	if err != nil {
		return nil, err
	}
	f.Close()
	return os.OpenFile(f.Name(), os.O_RDWR|os.O_APPEND, 0o600)
}

// begin starts the process and tells what became of it.
func (c *command) begin(cmd *cobra.Command, o order, log *os.File) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	raw, err := json.Marshal(o)
	if err != nil {
		return err
	}
	p, err := sandbox.Detach(c.program(), append([]string{"detached"}, given(cmd.Flags())...), log, raw)
	if err != nil {
		return err
	}
	defer p.Close()
	told, err := p.Report(ctx)
	var b begun
	if err == nil && json.Unmarshal(told, &b) == nil {
		_, _ = io.Copy(c.console.Err, io.NewSectionReader(log, 0, b.Warned))
		_, err = fmt.Fprintln(c.console.Out, b.Session)
		return err
	}
	code, waitErr := p.Wait()
	if err = errors.Join(err, waitErr); err != nil {
		return err
	}
	return c.neverBegan(code, log)
}

// neverBegan passes on what a process printed that ended before its run began.
func (c *command) neverBegan(code int, log io.ReaderAt) error {
	printed, err := io.ReadAll(io.NewSectionReader(log, 0, 1<<20))
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(printed)) == 0 {
		return fmt.Errorf("the process ended with code %d before the run began", code)
	}
	to := c.console.Err
	if c.console.Form != console.Text {
		to = c.console.Out
	}
	c.code = code
	if code == 0 {
		c.code = console.ExitError
	}
	_, err = to.Write(printed)
	return err
}

// program is what to start to have this program again, by a name that people
// recognise where there is one.
func (c *command) program() string {
	if path, err := os.Executable(); err == nil {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return c.self
}

// given are the flags that were given, for another process.
func given(flags *pflag.FlagSet) []string {
	var args []string
	flags.Visit(func(f *pflag.Flag) {
		if f.Name == "detach" || f.Name == "unattended" {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			args = append(args, "--"+f.Name+"="+v)
		}
	})
	return args
}

// detached is the process that --detach starts.
func (c *command) detached() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:    "detached",
		Hidden: true,
		Args:   exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			raw, report, err := sandbox.Ordered()
			if err != nil {
				return usageError{errors.New("this is what 'inspan run --detach' starts; nobody else does")}
			}
			b := &background{command: c, flags: &f, report: report}
			defer b.close()
			if err := json.Unmarshal(raw, &b.order); err != nil {
				return err
			}
			return b.run(cmd)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.System, "system", "", "`text` that replaces inspan's own system prompt")
	cmd.Flags().StringVar(&f.AppendSystem, "append-system", "", "`text` to add to the system prompt")
	cmd.Flags().StringVar(&f.cwd, "cwd", ".", "`folder` to work in, the workspace")
	return cmd
}

// background is a session that runs in a detached process.
type background struct {
	*command
	order  order
	flags  *runFlags
	store  *session.Store
	report io.WriteCloser
	once   sync.Once // of closing report
	warned int64
}

func (b *background) close() { b.once.Do(func() { b.report.Close() }) }

// run does what the order says.
func (b *background) run(cmd *cobra.Command) error {
	out := &tail{f: os.Stdout, most: 2 << 20}
	b.console.Out, b.console.Err = out, out
	if err := b.flags.check(cmd); err != nil {
		return err
	}
	a, err := app.Load(b.self)
	if err != nil {
		return err
	}
	b.store = a.Store()
	b.flags.Unattended = b.order.Unattended
	if b.flags.RetryFor == 0 && a.Config.RetryFor == 0 && !b.flags.Unattended {
		b.flags.RetryFor = patience
	}
	joined := make(chan struct{})
	host := a.Host(b.flags.Options, func(text string) { fmt.Fprintln(b.console.Err, "inspan: "+text) })
	announced(host, joined)
	s, inputs, err := b.session(cmd.Context(), host)
	if err != nil {
		return err
	}
	defer s.Close()
	b.warned = out.size
	ctx, stop := context.WithCancel(cmd.Context())
	told := make(chan struct{})
	go func() {
		defer close(told)
		b.announce(ctx, s, joined)
	}()
	b.code = b.drive(cmd.Context(), s, inputs)
	stop()
	<-told
	return nil
}

// announced has joined closed when a session of the host is being driven.
func announced(host *inspan.Host, joined chan struct{}) {
	made := host.Agent
	host.Agent = func(ctx context.Context, at inspan.Place) (*inspan.Agent, error) {
		agent, err := made(ctx, at)
		if err != nil {
			return nil, err
		}
		before := agent.Joined
		agent.Joined = func(s *inspan.Session) {
			if before != nil {
				before(s)
			}
			close(joined)
		}
		return agent, nil
	}
}

// session opens the session, with what its run begins with.
func (b *background) session(ctx context.Context, host *inspan.Host) (*inspan.Session, []event.Body, error) {
	said := []event.Body{event.Said{Parts: llm.Say(b.order.Text)}}
	if b.order.ID == "" {
		s, err := host.New(ctx, b.flags.cwd)
		return s, said, err
	}
	s, err := host.Open(ctx, b.order.ID)
	if err != nil || b.order.Text != "" {
		return s, said, err
	}
	st := s.Status()
	switch {
	case st.Stopped == nil:
		return s, nil, nil
	case st.Stopped.Reason == event.ReasonDone:
		s.Close()
		return nil, nil, usageError{fmt.Errorf("session %s is done; say what to do next: inspan resume --detach %s \"...\"", st.Session, st.Session)}
	}
	return s, []event.Body{event.Said{}}, nil
}

// announce tells whoever started this process that the run has begun, once the
// session is ours and what it begins with is in the log.
func (b *background) announce(ctx context.Context, s *inspan.Session, joined chan struct{}) {
	after := s.Status().Seq
	select {
	case <-joined:
	case <-ctx.Done():
	}
	for _, err := range s.Events(ctx, after) {
		if err == nil {
			break
		}
	}
	if ctx.Err() != nil && s.Status().Seq == after {
		return // it is over, and has never begun
	}
	_ = os.Rename(b.order.Log, filepath.Join(b.store.Dir, s.ID(), runLog)) // else what is printed is lost, and the log has all that matters
	raw, err := json.Marshal(begun{s.ID(), b.warned})
	if err == nil {
		_, _ = b.report.Write(raw) // if nobody listens any more, it goes on
	}
	b.close()
}

// drive runs the session until it has stopped; where it asks, until somebody has
// answered from elsewhere. It keeps the lease meanwhile, so that it is seen to be
// there.
func (b *background) drive(ctx context.Context, s *inspan.Session, inputs []event.Body) int {
	for {
		code := b.console.Run(ctx, s, inputs...)
		if code != console.ExitWaiting || b.order.Unattended {
			return code
		}
		if err := b.await(ctx, s.Status()); err != nil {
			return b.console.Fail(console.ExitCode("waiting", "", err), err)
		}
		inputs = nil
	}
}

// await returns when there is an answer to a call that waits, or it is too late for
// one, or somebody has interrupted.
func (b *background) await(ctx context.Context, st inspan.Status) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var until time.Time
	waits := map[string]bool{}
	for _, p := range st.Waiting {
		waits[p.Call.ID] = true
		if !p.Until.IsZero() && (until.IsZero() || p.Until.Before(until)) {
			until = p.Until
		}
	}
	patient, cancel := ctx, context.CancelFunc(func() {})
	if !until.IsZero() {
		patient, cancel = context.WithDeadline(ctx, until)
	}
	defer cancel()
	log, err := b.store.Open(ctx, st.Session)
	if err != nil {
		return err
	}
	defer log.Close()
	if err := log.Lease(ctx); err != nil {
		return err
	}
	err = answered(patient, log, st.Seq, waits)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil
	case ctx.Err() != nil:
		return errors.New("ended while it asks; the question stays open")
	}
	return err
}

// answered reads a log on until it holds a decision on one of the calls, or an
// interrupt.
func answered(ctx context.Context, log *session.Log, after uint64, waits map[string]bool) error {
	for {
		for e, err := range log.Read(ctx, after) {
			if err != nil {
				return err
			}
			after = e.Seq
			switch body := e.Body.(type) {
			case event.Cancelled:
				return nil
			case event.Decided:
				if waits[body.Call] {
					return nil
				}
			}
		}
		if err := log.Wait(ctx, after); err != nil {
			return err
		}
	}
}

// tail is a file that holds the end of what was written to it. Safe for concurrent
// use.
type tail struct {
	f    *os.File // opened to append, and to read
	most int64    // bytes

	mu   sync.Mutex
	size int64
}

// Write implements [io.Writer]. When the file would get too long, its older half
// goes.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.size+int64(len(p)) > t.most {
		if err := t.halve(); err != nil {
			return 0, err
		}
	}
	n, err := t.f.Write(p)
	t.size += int64(n)
	return n, err
}

func (t *tail) halve() error {
	kept := make([]byte, min(t.size, t.most/2))
	if _, err := t.f.ReadAt(kept, t.size-int64(len(kept))); err != nil {
		return err
	}
	if _, rest, ok := bytes.Cut(kept, []byte("\n")); ok {
		kept = rest
	}
	if err := t.f.Truncate(0); err != nil {
		return err
	}
	n, err := t.f.Write(append([]byte("(what was here is gone)\n"), kept...))
	t.size = int64(n)
	return err
}
