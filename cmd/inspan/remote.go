package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/console"
	"github.com/inspan/inspan/internal/server"
)

// remoteFlags name a server whose sessions a command is about, in place of those of this machine.
type remoteFlags struct {
	url       string
	tokenFile string
}

func (f *remoteFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.url, "remote", "", "`URL` of an 'inspan serve' whose sessions are meant, with the token in INSPAN_REMOTE_TOKEN")
	cmd.Flags().StringVar(&f.tokenFile, "token-file", "", "with --remote: `file` with the token")
}

// addRemote lets a command that runs a session have a server do it.
func (f *runFlags) addRemote(cmd *cobra.Command) {
	f.remote.add(cmd)
	cmd.Flags().StringVar(&f.repository, "repository", "", "with --remote: `URL` of a git repository that the server clones to work in")
	cmd.Flags().StringVar(&f.ref, "ref", "", "with --remote: `branch` or tag of the repository to start from")
}

// server is the server that is named; nil: none is.
func (f *remoteFlags) server() (*server.Remote, error) {
	if f.url == "" {
		if f.tokenFile != "" {
			return nil, misused("--token-file needs --remote")
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

// load loads the settings. The sessions that run are those of the server, if one is named.
func (c *command) load(f *remoteFlags) (*app.App, *server.Remote, error) {
	a, err := app.Load(c.self)
	if err != nil {
		return nil, nil, err
	}
	r, err := f.server()
	if r != nil {
		a.Running.Sessions = r
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

// spec is what a task on a server is, in words of a run here.
func (f *runFlags) spec(cmd *cobra.Command, text string) (server.Spec, error) {
	for _, name := range []string{
		"system", "allow", "container", "trust", "keep-jobs", "record", "replay", "max-tokens", "retry-for", "cwd", "input-format",
	} {
		if fl := cmd.Flags().Lookup(name); fl != nil && fl.Changed {
			return server.Spec{}, misused("--%s has no meaning with --remote: the server decides that", name)
		}
	}
	if err := f.check(cmd); err != nil {
		return server.Spec{}, err
	}
	s := server.Spec{
		Prompt: text, Model: f.Model, Mode: f.Mode, MaxCost: f.MaxCost, System: f.AppendSystem, Ask: f.Ask, Deny: f.Deny, Labels: f.Labels,
		Timeout: int(f.MaxTime / time.Second), Unattended: f.denies,
	}
	if cmd.Flags().Changed("max-turns") {
		s.MaxTurns = f.maxTurns
	}
	if f.repository != "" {
		s.Repository = &server.Repository{URL: f.repository, Ref: f.ref}
	}
	return s, nil
}

// away has a server do a task, and shows what its agent does.
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
	t, err := r.Submit(cmd.Context(), spec)
	if err == nil {
		t, err = r.Await(cmd.Context(), t.ID)
	}
	if err != nil {
		return err
	}
	if f.detach {
		fmt.Fprintln(cmd.OutOrStdout(), t.Session)
		return nil
	}
	fmt.Fprintf(c.console.Err, "%s on %s; Ctrl-C detaches and the agent continues\n", t.ID, r.URL)
	how := console.Attachment{Whole: true, Stays: open}
	if isTerminal(c.in) {
		how.Person, how.Leaves = console.NewPerson(c.console, c.in, c.console.Err), true
	}
	return c.watchAway(cmd.Context(), a, r, t.Session, how)
}

// attachAway lets a person watch a session of a server and talk to its agent.
func (c *command) attachAway(ctx context.Context, a *app.App, r *server.Remote, id string) error {
	t, err := r.Task(ctx, id)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.console.Err, "attached to session %s of %s, which is %s; type to steer it; Ctrl-C detaches and the agent continues\n",
		id, t.ID, t.Stage)
	return c.watchAway(ctx, a, r, id, console.Attachment{
		Person: console.NewPerson(c.console, c.in, c.console.Err), Leaves: isTerminal(c.in), Stays: t.Spec.Open,
	})
}

// watchAway shows a session of a server.
func (c *command) watchAway(ctx context.Context, a *app.App, r *server.Remote, id string, how console.Attachment) error {
	s, err := a.Running.Watch(ctx, id)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	how.Again = strings.TrimSpace("inspan attach --remote " + r.URL)
	var asked time.Time
	driven := true
	how.Driven = func(ctx context.Context) (bool, error) { // it is asked for often
		if time.Since(asked) < askEvery {
			return driven, nil
		}
		h, err := r.Holder(ctx, id)
		asked, driven = time.Now(), h != nil || err != nil // a server that restarts goes on
		return driven, nil
	}
	c.code, err = c.console.Attach(ctx, s, how)
	return err
}

const askEvery = 2 * time.Second // whether a server still has a session
