package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/llm"
)

func (c *command) send() *cobra.Command {
	var steer, cancel bool
	var allow, deny, scope string
	cmd := &cobra.Command{
		Use:   `send ID ["text"]`,
		Short: "Put an input into a session that another process may be running",
		Long: "Append an input to a session. The process that runs the session takes note of it; without one it waits for 'inspan resume'.\n" +
			"Plain text starts a new run once the current one has stopped.",
		Example: "  inspan send --steer last \"use the existing helper\"\n  inspan send --cancel last\n  inspan send --allow call_1 last",
		Args:    exactly(1, 2, "ID [TEXT]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text := strings.Join(args[1:], " ")
			input, err := input(text, steer, cancel, allow, deny)
			if err != nil {
				return usageError{err}
			}
			store, id, err := c.found(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			log, err := store.Open(cmd.Context(), id)
			if err != nil {
				return err
			}
			defer log.Close()
			if d, ok := input.(event.Decided); ok && d.Allow {
				if input, err = c.scoped(cmd.Context(), log, d, scope); err != nil {
					return err
				}
			}
			events, err := log.Append(cmd.Context(), input)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: event %d\n", log.ID(), events[0].Seq)
			return nil
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&steer, "steer", false, "show the text to the model within the current run")
	fl.BoolVar(&cancel, "cancel", false, "interrupt the current run")
	fl.StringVar(&allow, "allow", "", "allow the waiting call with this `id`")
	fl.StringVar(&scope, "for", "once", "what --allow holds for: `once`, session, project or always")
	fl.StringVar(&deny, "deny", "", "deny the waiting call with this `id`; the text is the reason")
	cmd.MarkFlagsMutuallyExclusive("steer", "cancel", "allow", "deny")
	return cmd
}

// scoped makes a decision hold for longer. The rules are those that the question
// names; the settings keep them.
func (c *command) scoped(ctx context.Context, log event.Log, d event.Decided, scope string) (event.Body, error) {
	scopes := map[string]event.Scope{"once": event.ScopeOnce, "session": event.ScopeSession, "project": event.ScopeProject, "always": event.ScopeAlways}
	known := false
	if d.Scope, known = scopes[scope]; !known {
		return nil, usageError{fmt.Errorf("--for: %q is none of once, session, project, always", scope)}
	}
	root, rules := "", []string(nil)
	for e, err := range log.Read(ctx, 0) {
		if err != nil {
			return nil, err
		}
		switch b := e.Body.(type) {
		case event.Opened:
			root = b.Root
		case event.Waiting:
			if b.Call == d.Call {
				rules = b.Rules
			}
		case event.Raised:
			if b.ID == d.Call {
				rules = b.Rules
			}
		}
	}
	if d.Scope != event.ScopeOnce && len(rules) == 0 {
		return nil, usageError{fmt.Errorf("no rule could safely stand for this call, so it can only be allowed once")}
	}
	if d.Scope != event.ScopeProject && d.Scope != event.ScopeAlways {
		return d, nil
	}
	a, err := app.Load(c.self)
	if err != nil {
		return nil, err
	}
	return d, a.Remember(ctx, root, d.Scope, rules)
}

// input is the event the flags ask for.
func input(text string, steer, cancel bool, allow, deny string) (event.Body, error) {
	switch {
	case cancel:
		return event.Cancelled{By: "inspan send", Reason: text}, nil
	case allow != "":
		return event.Decided{Call: allow, Allow: true, Answer: text, By: "inspan send"}, nil
	case deny != "":
		return event.Decided{Call: deny, By: "inspan send", Reason: text}, nil
	case strings.TrimSpace(text) == "":
		return nil, fmt.Errorf("say what to send: inspan send ID \"...\"")
	case steer:
		return event.Steered{Parts: llm.Say(text), By: "inspan send"}, nil
	}
	return event.Said{Parts: llm.Say(text), By: "inspan send"}, nil
}
