package command

import (
	"github.com/spf13/cobra"

	"github.com/inspan/inspan"
)

func (c *command) resume() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   `resume [ID] ["what to do next"]`,
		Short: "Continue a session, or give it a new task",
		Long: "The session continues exactly where its log ends. Without an ID, inspan takes the last session of this folder.\n" +
			"A unique part of an ID is enough. \"last\" is the last session of this folder.\n" +
			"Without a new task, inspan opens the session on a terminal; elsewhere, or with --output, an unfinished run continues.\n" +
			"With - the task comes from standard input, and inspan adds piped text to a task that you give.\n" +
			"Mode and limits stay the same unless you set flags.\n" +
			"A session of 'inspan ask-corpus' keeps its sources, and inspan verifies its answer.\n\n" + exitPointer,
		Example: "  inspan resume\n  inspan resume last \"now update the changelog\"\n  inspan resume --max-cost 5 20261121-1403",
		Args:    exactly(0, 2, "at most an ID and a TASK"),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.goOn(cmd, &f, args) },
	}
	f.add(cmd)
	f.addDetach(cmd)
	return cmd
}

// goOn continues a session: with a new task, or with its interrupted work. On a terminal it opens the front
// end, unless there is a task.
func (c *command) goOn(cmd *cobra.Command, f *runFlags, args []string) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	if f.detach {
		return c.detach(cmd, f, args)
	}
	a, err := c.installation()
	if err != nil {
		return err
	}
	o, err := a.Running.Named(cmd.Context(), args)
	if err != nil {
		return err
	}
	asks, err := a.Running.Asks(cmd.Context(), o.ID)
	if err != nil {
		return err
	}
	if o.Text == "" && !asks && c.watched() && !cmd.Flags().Changed("output") && f.answer == nil {
		return c.screen(cmd, &screenFlags{runFlags: *f, resume: o.ID})
	}
	args = []string{o.Text}
	if o.Text == "-" {
		if o.Text, err = c.task(args); err != nil {
			return err
		}
	}
	typed, done, err := c.typed(cmd, f, args, o.Text)
	if err != nil || done {
		return err
	}
	if o.Text = typed; typed != "" {
		if o.Text, err = c.piped(typed, args); err != nil {
			return err
		}
	}
	if piped(args) {
		typed = ""
	}
	s, err := c.open(cmd, f, o.ID)
	if err != nil {
		return err
	}
	defer s.Close()
	inputs, err := o.Next(s.Status(), "resume")
	if err == nil {
		inputs, err = f.with(cmd.Context(), a, s.Status().Root, typed, inputs)
	}
	if err != nil {
		return err
	}
	if asks {
		if err := f.plain("can't be used with a session of ask-corpus"); err != nil {
			return err
		}
		c.code, err = resumeCorpus(cmd.Context(), c.console, a.Running.Sessions, s, inputs...)
		return err
	}
	c.code = c.console.Run(cmd.Context(), s, inputs...)
	return nil
}

// open opens a session so that it can be run.
func (c *command) open(cmd *cobra.Command, f *runFlags, id string) (*inspan.Session, error) {
	host, err := c.host(f)
	if err != nil {
		return nil, err
	}
	return host.Open(cmd.Context(), id)
}
