package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/front/console"
)

func (c *command) compact() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "compact [ID] [FOCUS]",
		Short: "Summarise the older part of a conversation; the log keeps all of it",
		Long: "The model summarises the older part. Your messages and the end of the conversation stay word for word, the\n" +
			"oldest only while they fit. inspan checks the summary against the log.\n" +
			"The history tool still finds everything. inspan compacts on its own before the window is full.",
		Example: "  inspan compact last \"the failing tests\"",
		Args:    exactly(0, 2, "at most an ID and a FOCUS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			a, err := c.installation()
			if err != nil {
				return err
			}
			id, err := sessionOf(cmd, a, args)
			if err != nil {
				return err
			}
			s, err := c.open(cmd, &f, id)
			if err != nil {
				return err
			}
			defer s.Close()
			input := event.Compact{Focus: strings.Join(args[min(1, len(args)):], " ")}
			if st := s.Status(); st.Stopped == nil && st.Turns > 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "The run has not ended. inspan compacts the conversation when 'inspan resume "+
					st.Session+"' continues it.")
				return s.Send(cmd.Context(), input)
			}
			before := s.Status().Seq
			if c.code = c.console.Run(cmd.Context(), s, input); c.code != console.ExitDone {
				return nil
			}
			for e, err := range a.Store().Events(cmd.Context(), id) {
				if _, kept := e.Body.(event.Kept); err != nil || kept && e.Seq > before {
					c.code = console.ExitError // the reason is already printed
					return err
				}
			}
			return nil
		},
	}
	f.add(cmd)
	return cmd
}
