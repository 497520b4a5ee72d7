package command

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/store"
)

const detachHelp = "With --detach the run continues in a process of its own, without a terminal. inspan prints the session's id once it " +
	"has begun.\n" +
	"Questions wait, even for days, until you answer with 'inspan attach' or 'inspan send --allow'. With --unattended they are denied.\n" +
	"The process prints to run.log in the session's folder, which holds the last two megabytes.\n" +
	"See 'inspan ps', 'logs', 'attach' and 'stop'."

// addDetach adds the flag that leaves a run to a background process.
func (f *runFlags) addDetach(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.detach, "detach", false, "run in a separate process and print the session's id")
	cmd.Flags().BoolVar(&f.denies, "unattended", false, "with --detach: deny calls that would ask, instead of waiting for an answer")
	head, _ := strings.CutSuffix(cmd.Long, "\n\n"+exitPointer)
	cmd.Long = head + "\n\n" + detachHelp + "\n\n" + exitPointer
}

// detach starts a background process for the command as typed, and waits until its run has begun.
func (c *command) detach(cmd *cobra.Command, f *runFlags, args []string) error {
	a, err := c.installation()
	if err != nil {
		return err
	}
	if f.schema != "" {
		return misused("--json-schema can't be used with --detach: it prints the answer to one task")
	}
	o, done, err := c.order(cmd, a, f, args)
	if err != nil || done {
		return err
	}
	o.Unattended = f.denies
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	start, err := a.Running.Detach(ctx, c.program(), append([]string{"detached"}, c.given(cmd)...), o)
	if err != nil {
		return err
	}
	if start.Session != "" {
		_, _ = c.console.Err.Write(start.Printed)
		_, err := fmt.Fprintln(c.console.Out, start.Session)
		return err
	}
	if len(bytes.TrimSpace(start.Printed)) == 0 {
		return start.Err()
	}
	to := c.console.Err
	if c.console.Form != console.Text {
		to = c.console.Out
	}
	if c.code = start.Code; c.code == 0 {
		c.code = console.ExitError
	}
	_, err = to.Write(start.Printed)
	return err
}

// order returns the work of a background process for the command as typed. Done says that nothing is left to
// do.
func (c *command) order(cmd *cobra.Command, a *app.App, f *runFlags, args []string) (o app.Order, done bool, err error) {
	text := ""
	switch {
	case f.Program != nil:
		return app.Order{Text: f.Program.Begin().Parts.Text(), Flow: f.flow}, false, nil
	case cmd.Name() == "resume":
		if o, err = a.Running.Named(cmd.Context(), args); err != nil {
			return o, false, err
		}
		args = []string{o.Text}
	default:
		if text, err = c.task(args); err != nil {
			return o, false, err
		}
		o = app.Order{Text: text}
	}
	o.Typed = !piped(args)
	o.Text, done, err = c.typed(cmd, f, args, o.Text)
	return o, done, err
}

// program returns the path to start this program again, by a name that people recognise if there is one.
func (c *command) program() string {
	if path, err := os.Executable(); err == nil {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return c.self
}

// given returns the flags that were given and that a detached process also takes, except some.
func (c *command) given(cmd *cobra.Command, but ...string) []string {
	return flagsFor(c.detached(), cmd, but...)
}

// flagsFor returns the flags that were given to a command and that another takes too, except some.
func flagsFor(other, cmd *cobra.Command, but ...string) []string {
	var args []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		taken := other.Flags().Lookup(f.Name) != nil || cmd.InheritedFlags().Lookup(f.Name) != nil
		if !f.Changed || !taken || slices.Contains(but, f.Name) {
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
		RunE: c.withApp(func(cmd *cobra.Command, a *app.App, _ []string) error {
			b, err := a.Running.Ordered()
			if err != nil {
				return misused("only 'inspan run --detach' starts this command")
			}
			defer b.Close()
			c.console.Out, c.console.Err = b.Out, b.Out
			if err := f.check(cmd); err != nil {
				return err
			}
			f.Unattended, f.Limits.RetryLong, f.Foreign, f.Unapproved = b.Unattended, true, b.Foreign, b.Unapproved
			if len(b.Flow) > 0 {
				flows := app.Workflows(a, f.cwd, f.Trust)
				flows.Kinds = f.Kinds
				if f.Program, err = flows.Program(b.Flow[0], b.Flow[1:]); err != nil {
					return err
				}
				f.Model = cmp.Or(f.Model, f.Program.Model())
				b.Text = cmp.Or(b.Text, f.Program.Begin().Parts.Text())
			}
			claimed, err := f.claim(cmd.Context(), a)
			if err != nil {
				return err
			}
			defer func() { _ = claimed.Close() }()
			if err := c.apart(cmd.Context(), a, &f); err != nil {
				return err
			}
			if f.id != "" {
				f.label(store.UUIDLabel, f.id)
			}
			for _, w := range f.warnings {
				c.warn(w)
			}
			s, inputs, err := b.Open(cmd.Context(), a.Host(f.Options, c.warn), f.cwd)
			if err != nil {
				return errors.Join(err, c.leave(cmd.Context(), a, &f))
			}
			_ = claimed.Close() // the session has the UUID
			defer s.Close()
			typed := ""
			if b.Typed {
				typed = b.Text
			}
			if inputs, err = f.with(cmd.Context(), a, s.Status().Root, typed, inputs); err != nil {
				return err
			}
			defer b.Announce(cmd.Context(), a.Running, s)()
			run := c.console.RunOn
			if c.console.Unattended = b.Unattended; b.Unattended {
				run = c.console.Run
			}
			c.code = run(cmd.Context(), s, inputs...)
			return c.leave(cmd.Context(), a, &f)
		}),
	}
	f.add(cmd)
	f.addNew(cmd)
	f.addOwn(cmd)
	return cmd
}
