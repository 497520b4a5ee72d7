package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/session"
	"github.com/inspan/inspan/llm"
)

func (c *command) resume() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   `resume [ID] ["what to do next"]`,
		Short: "Continue a session after an interrupt, a crash or a limit, or with a new task",
		Long: "The session continues exactly where its log ends. Without an ID, inspan takes the last session of this folder.\n" +
			"A unique part of an ID is enough. \"last\" is the last session of any folder.\n" +
			"Without a new task, an unfinished run continues. Mode and limits stay the same unless you set flags.\n\n" + exitPointer,
		Example: "  inspan resume\n  inspan resume last \"now update the changelog\"\n  inspan resume --max-cost 5 20261121-1403",
		Args:    exactly(0, 2, "[ID] [TASK]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			if f.detach {
				return c.detach(cmd, &f, args)
			}
			a, err := app.Load(c.self)
			if err != nil {
				return err
			}
			id, text, err := idAndTask(cmd, a.Store(), args)
			if err != nil {
				return err
			}
			text, done, err := c.typed(cmd, &f, []string{text}, text)
			if err != nil || done {
				return err
			}
			s, err := c.open(cmd, &f, id)
			if err != nil {
				return err
			}
			defer s.Close()
			inputs, err := next(s.Status(), text, "resume")
			if err != nil {
				return err
			}
			c.code = c.console.Run(cmd.Context(), s, inputs...)
			return nil
		},
	}
	f.add(cmd)
	f.addDetach(cmd)
	return cmd
}

// next is what a session goes on with; how is the command that was given.
func next(st inspan.Status, text, how string) ([]event.Body, error) {
	switch {
	case text != "":
		return []event.Body{event.Said{Parts: llm.Say(text)}}, nil
	case st.Stopped != nil && st.Stopped.Reason == event.ReasonDone:
		return nil, usageError{fmt.Errorf("session %s is done; give it a new task: inspan %s %s \"...\"", st.Session, how, st.Session)}
	case st.Stopped != nil:
		return []event.Body{event.Said{}}, nil
	}
	return nil, nil
}

// open opens a session so that it can be run.
func (c *command) open(cmd *cobra.Command, f *runFlags, id string) (*inspan.Session, error) {
	host, err := c.host(f)
	if err != nil {
		return nil, err
	}
	return host.Open(cmd.Context(), id)
}

// idAndTask tells the two optional arguments apart: a lone argument is an ID
// if a session has it, and a task otherwise.
func idAndTask(cmd *cobra.Command, store *session.Store, args []string) (id, task string, err error) {
	if len(args) == 2 {
		return args[0], args[1], nil
	}
	if len(args) == 1 {
		_, err = store.Resolve(cmd.Context(), args[0])
		if err == nil || !errors.Is(err, fs.ErrNotExist) || !strings.ContainsAny(args[0], " \t\n") {
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%w; if this is a task, use: inspan resume last %q", err, args[0])
			}
			return args[0], "", err
		}
		task = args[0]
	}
	id, err = lastHere(cmd, store)
	return id, task, err
}

// lastHere is the session used last in the current folder.
func lastHere(cmd *cobra.Command, store *session.Store) (string, error) {
	here, err := filepath.Abs(".")
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err != nil {
		return "", err
	}
	list, err := store.List(cmd.Context())
	if err != nil {
		return "", err
	}
	for _, s := range list {
		if s.Root == here && s.Parent == "" && !s.Empty {
			return s.ID, nil
		}
	}
	return "", usageError{fmt.Errorf("no session has run in %s; name one from 'inspan sessions list'", here)}
}
