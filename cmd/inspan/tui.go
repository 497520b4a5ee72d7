package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/doctor"
	"github.com/inspan/inspan/internal/sandbox"
	"github.com/inspan/inspan/internal/tools"
	"github.com/inspan/inspan/internal/tui"
	"github.com/inspan/inspan/internal/words"
)

// screenFlags are the flags of the interactive front end, beside those of a run.
type screenFlags struct {
	runFlags
	fullscreen bool
	goOn       bool
	resume     string
}

func (f *screenFlags) add(cmd *cobra.Command) {
	f.runFlags.add(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&f.fullscreen, "fullscreen", false, "take the whole screen, instead of going on below the prompt of the shell")
	fl.BoolVarP(&f.goOn, "continue", "c", false, "go on with the session used last in this folder")
	fl.StringVarP(&f.resume, "resume", "r", "", "go on with the session `ID`; without one, choose it")
	fl.Lookup("resume").NoOptDefVal = "?"
	fl.StringVar(&f.cwd, "cwd", ".", "`folder` to work in, the workspace")
}

// screen runs the interactive front end.
func (c *command) screen(cmd *cobra.Command, f *screenFlags) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	a, root, err := c.at(f.cwd)
	if err != nil {
		return err
	}
	t := &tui.TUI{
		App: a, Options: f.Options, Root: root, Session: f.resume, Version: inspan.Version,
		Fullscreen: f.fullscreen, NoColor: !colored(os.Stdout), Keys: a.Config.Keys, Edit: editor(cmd.Context()),
	}
	if f.goOn {
		if t.Session, err = lastHere(cmd, a.Store()); err != nil {
			return err
		}
	}
	t.Commands, t.Clipboard = c.slashes(a, root), a.Clipboard
	t.Jobs = func(session string) tui.Jobs { return shellJobs{a.Shell(session)} }
	c.code, err = t.Run(cmd.Context())
	return err
}

// shellJobs are the jobs of a session's shell, for the front end.
type shellJobs struct{ *tools.Shell }

// List implements [tui.Jobs].
func (j shellJobs) List() []tui.Job {
	if j.Shell == nil {
		return nil
	}
	var out []tui.Job
	for _, job := range j.Jobs() {
		out = append(out, tui.Job(job))
	}
	return out
}

// Kill implements [tui.Jobs].
func (j shellJobs) Kill(ctx context.Context, id string) error {
	if j.Shell == nil {
		return errors.New("the session has no jobs")
	}
	return j.Shell.Kill(ctx, id)
}

// slashes are the slash commands that the front end can't have of itself.
func (c *command) slashes(a *app.App, root string) []tui.Command {
	list := []tui.Command{
		{Name: "doctor", Doc: "check settings, keys, providers, disk and programs", Print: func(ctx context.Context, _ string) (string, error) {
			var b strings.Builder
			err := tell(&b, doctor.Run(ctx, c.self, false))
			return b.String(), err
		}},
		{Name: "hooks", Doc: "list what runs at moments of the session", Print: func(context.Context, string) (string, error) {
			return hookList(a), nil
		}},
	}
	printed := func(name, doc string, f func(out, complain io.Writer) error) tui.Command {
		return tui.Command{Name: name, Doc: doc, Print: func(context.Context, string) (string, error) {
			var b strings.Builder
			err := f(&b, &b)
			return b.String(), err
		}}
	}
	list = append(list,
		printed("skills", "list the skills", func(out, complain io.Writer) error { return listSkills(out, complain, a.Skills(root)) }),
		printed("memory", "list what is remembered", func(out, complain io.Writer) error { return listMemory(out, complain, a.Memory(root)) }),
		printed("agents", "list the kinds of agents", func(out, complain io.Writer) error { return listRoles(out, complain, a.Roles(root, func(string) {})) }),
	)
	list = append(list, skillSlashes(a, root)...)
	ours := append(tui.Commands(), list...)
	for _, m := range a.Commands(root, func(string) {}) {
		if m.Source == "project" && slices.ContainsFunc(ours, func(c tui.Command) bool { return c.Name == m.Name }) {
			continue // what came with a repository takes no name that the person knows
		}
		list = append(list, tui.Command{
			Name: m.Name, Args: m.Hint, Doc: cmp.Or(m.Description, "from "+m.Source),
			Prompt: func(_ context.Context, args string) (string, error) { return m.Expand(args), nil },
		})
	}
	return list
}

func hookList(a *app.App) string {
	var b strings.Builder
	for _, h := range a.Config.Hooks {
		fmt.Fprintf(&b, "%-14s %-20s %s\n", h.On, words.OneLine(h.Match, 20), words.OneLine(strings.TrimSpace(h.Command+" "+h.URL), 200))
	}
	if b.Len() == 0 {
		return "No hooks are set. Hooks of this folder run once you trust it, see 'inspan trust'."
	}
	return b.String()
}

// editor makes the program that the person writes with.
func editor(ctx context.Context) func(path string) tea.ExecCommand {
	return func(path string) tea.ExecCommand {
		args := append(strings.Fields(cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi")), path)
		return &foreground{ctx: ctx, args: args}
	}
}

// foreground is a program that has the terminal for a while.
type foreground struct {
	ctx       context.Context
	args      []string
	in        io.Reader
	out, errs io.Writer
}

func (f *foreground) SetStdin(r io.Reader)  { f.in = r }
func (f *foreground) SetStdout(w io.Writer) { f.out = w }
func (f *foreground) SetStderr(w io.Writer) { f.errs = w }

// Run implements [tea.ExecCommand].
func (f *foreground) Run() error {
	return sandbox.Foreground(f.ctx, f.args, f.in, f.out, f.errs)
}
