package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/app"
)

func (c *command) send() *cobra.Command {
	var m app.Message
	var f remoteFlags
	cmd := &cobra.Command{
		Use:   `send ID ["text"]`,
		Short: "Send a message or a decision to a session",
		Long: "inspan appends the input to the session's log. A process that runs the session reads it at once; otherwise it waits for 'inspan " +
			"resume'.\n" +
			"Plain text answers the question that the session asks, or starts a new run after the current one.\n" +
			"If a session has only one open question, --allow or --deny with the session's ID alone answers it: inspan send --allow last.",
		Example: "  inspan send --steer last \"use the existing helper\"\n  inspan send --cancel last\n  inspan send --allow call_1 last",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && m.Allow+m.Deny != "" {
				return nil // then the flag names the session
			}
			return exactly(1, 2, "an ID and an optional TEXT")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			m.By, m.Text = "inspan send", strings.Join(args[min(1, len(args)):], " ")
			a, r, err := c.load(&f)
			if err != nil {
				return err
			}
			if r != nil && (m.For == "project" || m.For == "always") {
				return misused("--for %s writes to settings of this machine; with --remote an approval holds for the session at most", m.For)
			}
			id := m.Allow + m.Deny // one of them, without arguments
			if len(args) > 0 {
				id = args[0] // it is found after the message has been checked
			}
			if r != nil {
				if id, err = r.Resolve(cmd.Context(), id); err != nil {
					return err
				}
			}
			if len(args) == 0 {
				only, err := onlyQuestion(cmd.Context(), a, id)
				if err != nil {
					return err
				}
				if m.Allow != "" {
					m.Allow = only
				} else {
					m.Deny = only
				}
			}
			e, err := a.Send(cmd.Context(), id, m)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: event %d\n", e.Session, e.Seq)
			if _, waits := e.Body.(event.Said); !waits || r != nil {
				return nil
			}
			if ids, err := a.Undecided(cmd.Context(), e.Session); err == nil && len(ids) > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "it waits until this is decided: %s; decide with: inspan send --allow %s %s\n",
					text.Line(strings.Join(ids, ", ")), text.Line(ids[0]), e.Session)
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&m.Steer, "steer", false, "steer: the model sees the text during the current run")
	fl.BoolVar(&m.Cancel, "cancel", false, "interrupt the current run")
	fl.StringVar(&m.Allow, "allow", "", "allow the waiting call with this `id`")
	fl.StringVar(&m.For, "for", "once", "`scope` of --allow: once, session, edits, host, project or always")
	fl.StringVar(&m.Deny, "deny", "", "deny the waiting call with this `id`, with the text as the reason")
	f.add(cmd)
	oneOf(cmd, "steer", "cancel", "allow", "deny")
	return cmd
}

// onlyQuestion returns the id of the only open question of a session.
func onlyQuestion(ctx context.Context, a *app.App, session string) (string, error) {
	id, err := a.Running.Here(ctx, session)
	if err != nil {
		return "", err
	}
	ids, err := a.Undecided(ctx, id)
	switch {
	case err != nil:
		return "", err
	case len(ids) == 0:
		return "", misused("no question is open in session %s", id)
	case len(ids) > 1:
		return "", misused("%d questions are open; name one of them before the session: %s", len(ids), text.Line(strings.Join(ids, ", ")))
	}
	return ids[0], nil
}
