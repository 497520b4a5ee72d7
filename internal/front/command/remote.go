package command

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/view/words"
)

// remoteFlags name a server whose sessions a command is about, in place of this machine's.
type remoteFlags struct {
	url       string
	tokenFile string
	plain     bool
}

func (f *remoteFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.url, "remote", "", "use the sessions of the 'inspan serve' at this `URL`, with the token in INSPAN_REMOTE_TOKEN")
	cmd.Flags().StringVar(&f.tokenFile, "token-file", "", "with --remote: `file` with the token")
}

// addPlain adds the flag to run without the front end.
func (f *remoteFlags) addPlain(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.plain, "plain", false, "with --remote: show and read lines, without the front end")
}

// addRemote adds the flags to run a session on a server.
func (f *runFlags) addRemote(cmd *cobra.Command) {
	f.remote.add(cmd)
	cmd.Flags().StringVar(&f.repository, "repository", "", "with --remote: `URL` of a git repository that the server clones to work in")
	cmd.Flags().StringVar(&f.ref, "ref", "", "with --remote: `branch` or tag of the repository to start from")
}

// server returns the named server; nil means none is named.
func (f *remoteFlags) server() (*server.Remote, error) {
	if f.url == "" {
		if f.tokenFile != "" {
			return nil, misused("--token-file needs --remote")
		}
		if f.plain {
			return nil, misused("--plain needs --remote")
		}
		return nil, nil
	}
	r := &server.Remote{URL: f.url}
	err := r.Check()
	if err == nil {
		r.Token, err = server.TokenOf(f.tokenFile)
	}
	if err != nil {
		return nil, misused("--remote: %w", err)
	}
	return r, nil
}

// load loads the settings. If a server is named, the running sessions are the server's.
func (c *command) load(f *remoteFlags) (*app.App, *server.Remote, error) {
	a, err := c.installation()
	if err != nil {
		return nil, nil, err
	}
	r, err := f.server()
	if r != nil {
		a.Running.Sessions, a.Running.Server = r, r.URL
	}
	return a, r, err
}

// found finds the session that the text means, here or on the server.
func (c *command) found(ctx context.Context, f *remoteFlags, text string) (*app.App, *server.Remote, string, error) {
	a, r, err := c.load(f)
	if err != nil {
		return nil, nil, "", err
	}
	if r != nil {
		id, err := r.Resolve(ctx, text)
		return a, r, id, err
	}
	id, err := a.Running.Here(ctx, text)
	return a, nil, id, err
}

// spec returns the task on a server for the flags of a local run.
func (f *runFlags) spec(cmd *cobra.Command, text string) (server.Spec, error) {
	for _, name := range []string{
		"system", "add-dir", "allow", "container", "trust", "keep-jobs", "record", "replay", "max-tokens", "retry-for", "cwd", "input-format",
		"mcp-config", "agents", "json-schema", "image", "session-id", "worktree",
	} {
		if fl := cmd.Flags().Lookup(name); fl != nil && fl.Changed {
			return server.Spec{}, misused("--%s has no meaning with --remote: the server decides that", name)
		}
	}
	if err := f.check(cmd); err != nil {
		return server.Spec{}, err
	}
	s := server.Spec{
		Prompt: text, Model: f.Model, Mode: f.Mode, MaxCost: max(f.Limits.Cost, 0), System: f.AppendSystem, Ask: f.Ask, Deny: f.Deny, Labels: f.Labels,
		Timeout: int(f.maxTime / time.Second), Unattended: f.denies,
	}
	if cmd.Flags().Changed("max-turns") {
		s.MaxTurns = f.maxTurns
	}
	if f.repository != "" {
		s.Repository = &server.Repository{URL: f.repository, Ref: f.ref}
	}
	return s, nil
}

// away runs a task on a server, and shows the work of its agent.
func (c *command) away(cmd *cobra.Command, f *runFlags, text string, open bool) error {
	a, r, err := c.load(&f.remote)
	if err != nil {
		return err
	}
	spec, err := f.spec(cmd, text)
	if err != nil {
		return err
	}
	spec.Open = open
	heard, stop := c.signals(cmd.Context()) // a submitted task is reported, whatever is pressed
	defer stop()
	context.AfterFunc(heard, stop) // a second signal ends the command
	t, err := begun(heard, r, spec)
	if err != nil {
		return err
	}
	if f.detach {
		fmt.Fprintln(cmd.OutOrStdout(), t.Session)
		return nil
	}
	keys := "Ctrl-C detaches and the agent continues"
	if open {
		keys = "Ctrl-C interrupts a run, Ctrl-D leaves the task open, /help lists commands"
	}
	how := console.Attachment{
		Whole: true, Interrupts: open, Greeting: fmt.Sprintf("%s on %s; %s", t.ID, r.URL, keys),
		Left: func() bool { return heard.Err() != nil },
	}
	if isTerminal(c.in) {
		how.Person, how.Leaves = console.NewPerson(c.console, c.in, c.console.Err), true
	}
	return c.watchAway(cmd.Context(), a, r, t, t.Session, how)
}

// begun submits a task to a server, and waits for its session.
func begun(ctx context.Context, r *server.Remote, spec server.Spec) (server.Task, error) {
	t, err := r.Submit(ctx, spec)
	is := "was"
	switch {
	case err != nil && ctx.Err() == nil:
		return t, err
	case err != nil:
		is = "may have been"
	default:
		t, err = r.Await(ctx, t.ID)
	}
	if err != nil {
		err = fmt.Errorf("%w; the task %s submitted, look for it with: %s", cmp.Or(context.Cause(ctx), err), is, words.Command(r.URL, "ps"))
	}
	return t, err
}

// abroad is a server for the front end. New sessions there follow the spec.
type abroad struct {
	*server.Remote
	spec server.Spec
}

// Begin implements [tui.Server].
func (a abroad) Begin(ctx context.Context) (string, error) {
	t, err := begun(ctx, a.Remote, a.spec)
	return t.Session, err
}

// Finish implements [tui.Server].
func (a abroad) Finish(ctx context.Context, session string) error {
	t, err := a.Task(ctx, session)
	if err != nil {
		return err
	}
	return a.Close(ctx, t.ID)
}

// screenAway runs the front end with the sessions of a server: with a new one, or the one with an id.
func (c *command) screenAway(cmd *cobra.Command, f *screenFlags, id string) error {
	a, r, err := c.load(&f.remote)
	if err != nil {
		return err
	}
	spec, err := f.spec(cmd, "")
	if err != nil {
		return err
	}
	spec.Open = true
	if id != "" && id != anySession {
		if id, err = r.Resolve(cmd.Context(), id); err != nil {
			return err
		}
	}
	t := c.frontEnd(cmd, a, ".", f)
	t.Server, t.Session = abroad{r, spec}, id
	t.Commands = c.slashes(a, ".", &runFlags{}, func(string, string) {})
	c.code, err = t.Run(cmd.Context())
	return err
}

// attachAway lets a person watch a session of a server and talk to its agent.
func (c *command) attachAway(cmd *cobra.Command, f *remoteFlags, a *app.App, r *server.Remote, id string) error {
	ctx := cmd.Context()
	t, err := r.Task(ctx, id)
	if err != nil {
		return err
	}
	h, err := r.Holder(ctx, id)
	if err != nil {
		return err
	}
	if h == nil {
		return fmt.Errorf("session %s of %s is over: %s; see it with: %s", id, t.ID, t.Stage, words.Command(r.URL, "logs", id))
	}
	if c.watched() && !f.plain {
		return c.screenAway(cmd, &screenFlags{runFlags: runFlags{remote: *f, output: console.Text}}, id)
	}
	return c.watchAway(ctx, a, r, t, id, console.Attachment{
		Greeting: fmt.Sprintf("attached to session %s of %s, which is %s; type to steer it; Ctrl-C detaches and the agent continues",
			id, t.ID, t.Stage),
		Person: console.NewPerson(c.console, c.in, c.console.Err), Leaves: isTerminal(c.in),
	})
}

// watchAway shows a session of a server that belongs to a task.
func (c *command) watchAway(ctx context.Context, a *app.App, r *server.Remote, t server.Task, id string, how console.Attachment) error {
	s, err := a.Running.Watch(ctx, id)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	how.Server = r.URL
	how.Driven = func(context.Context) (bool, error) {
		over, _ := r.Link(id)
		return !over, nil
	}
	how.Lost = func() error {
		_, lost := r.Link(id)
		return lost
	}
	if how.Stays = how.Person != nil && t.Spec.Open && t.Session == id; how.Stays {
		how.Close = func(ctx context.Context) error { return r.Close(ctx, t.ID) }
	}
	return c.attached(ctx, s, how)
}

// stopAway stops a run on a server. An open task that is idle is closed.
func (c *command) stopAway(cmd *cobra.Command, a *app.App, r *server.Remote, id string, wait time.Duration) error {
	t, err := r.Task(cmd.Context(), id)
	if err != nil {
		return err
	}
	open := t.Spec.Open && t.Session == id
	what := "closed"
	if open && t.Stage == server.StageIdle {
		err = r.Close(cmd.Context(), t.ID)
	} else if what, err = a.Running.Stop(cmd.Context(), id, false, wait); open {
		what += "; the task stays open, and another stop closes it"
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", id, what)
	return nil
}
