package main

import (
	"github.com/spf13/cobra"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/running"
)

func (c *command) resume() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   `resume [ID] ["what to do next"]`,
		Short: "Go on with a session: after an interrupt, a crash, a limit, or with something new to do",
		Long: "Go on with a session exactly where its log ends. Without an ID it is the one used last in this folder; a unique part of an ID\n" +
			"is enough, and \"last\" is the one used last anywhere.\n" +
			"Without a new task an unfinished run goes on. Mode and limits stay as they were unless flags say otherwise.\n\n" + exitHelp(),
		Args: exactly(0, 2, "[ID] [TASK]"),
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
			id, text, err := a.Running.Named(cmd.Context(), args)
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
			inputs, err := running.Next(s.Status(), text, "resume")
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

// open opens a session so that it can be run.
func (c *command) open(cmd *cobra.Command, f *runFlags, id string) (*inspan.Session, error) {
	host, err := c.host(f)
	if err != nil {
		return nil, err
	}
	return host.Open(cmd.Context(), id)
}
