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
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/console"
	"github.com/inspan/inspan/internal/running"
	"github.com/inspan/inspan/internal/sandbox"
	"github.com/inspan/inspan/llm"
)

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
	"prints is in " + running.RunLog + " in the session's folder: the end of it, at most two megabytes."

// addDetach lets a command that runs a session leave it to a process of its own.
func (f *runFlags) addDetach(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.detach, "detach", false, "let it run in a process of its own, and print the session's id")
	cmd.Flags().BoolVar(&f.denies, "unattended", false, "with --detach: deny what would ask, instead of waiting for an answer")
	head, codes, _ := strings.Cut(cmd.Long, "\n\nExit codes:")
	cmd.Long = head + "\n\n" + detachHelp + "\n\nExit codes:" + codes
}

// detach starts the process and waits until its run has begun.
func (c *command) detach(cmd *cobra.Command, f *runFlags, args []string) error {
	a, err := app.Load(c.self)
	if err != nil {
		return err
	}
	o := order{Unattended: f.denies}
	if cmd.Name() == "resume" {
		o.ID, o.Text, err = idAndTask(cmd, a.Store(), args)
		args = []string{o.Text}
	} else {
		o.Text, err = c.task(args)
	}
	if err != nil {
		return err
	}
	done := false
	if o.Text, done, err = c.typed(cmd, f, args, o.Text); err != nil || done {
		return err
	}
	log, err := a.Running.NewRunLog()
	if err != nil {
		return err
	}
	defer log.Close()
	o.Log = log.Name()
	defer os.Remove(o.Log) // it has moved, unless the run never began
	return c.begin(cmd, o, log)
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
	f.addNew(cmd)
	return cmd
}

// background is a session that runs in a detached process.
type background struct {
	*command
	order  order
	flags  *runFlags
	app    *app.App
	report io.WriteCloser
	once   sync.Once // of closing report
	warned int64
}

func (b *background) close() { b.once.Do(func() { b.report.Close() }) }

// run does what the order says.
func (b *background) run(cmd *cobra.Command) error {
	out := &running.Printed{File: os.Stdout}
	b.console.Out, b.console.Err = out, out
	if err := b.flags.check(cmd); err != nil {
		return err
	}
	var err error
	if b.app, err = app.Load(b.self); err != nil {
		return err
	}
	b.flags.Unattended, b.flags.Patient = b.order.Unattended, true
	joined := make(chan struct{})
	host := b.app.Host(b.flags.Options, func(text string) { fmt.Fprintln(b.console.Err, "inspan: "+text) })
	announced(host, joined)
	s, inputs, err := b.session(cmd.Context(), host)
	if err != nil {
		return err
	}
	defer s.Close()
	b.warned = out.Size()
	ctx, stop := context.WithCancel(cmd.Context())
	told := make(chan struct{})
	go func() {
		defer close(told)
		b.announce(ctx, s, joined)
	}()
	run := b.console.RunOn
	if b.console.Unattended = b.order.Unattended; b.order.Unattended {
		run = b.console.Run
	}
	b.code = run(cmd.Context(), s, inputs...)
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
	if b.order.ID == "" {
		s, err := host.New(ctx, b.flags.cwd)
		return s, []event.Body{event.Said{Parts: llm.Say(b.order.Text)}}, err
	}
	s, err := host.Open(ctx, b.order.ID)
	if err != nil {
		return nil, nil, err
	}
	inputs, err := next(s.Status(), b.order.Text, "resume --detach")
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, inputs, nil
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
	_ = b.app.Running.KeepRunLog(b.order.Log, s.ID()) // else what is printed is lost, and the log has all that matters
	raw, err := json.Marshal(begun{s.ID(), b.warned})
	if err == nil {
		_, _ = b.report.Write(raw) // if nobody listens any more, it goes on
	}
	b.close()
}
