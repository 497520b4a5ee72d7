package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/llm"
)

func (c *command) send() *cobra.Command {
	var steer, cancel bool
	var allow, deny, scope string
	cmd := &cobra.Command{
		Use:   `send ID ["text"]`,
		Short: "Send a message or a decision to a session",
		Long: "inspan appends the input to the session's log. A process that runs the session reads it at once; otherwise it waits for 'inspan resume'.\n" +
			"Plain text starts a new run after the current one.",
		Example: "  inspan send --steer last \"use the existing helper\"\n  inspan send --cancel last\n  inspan send --allow call_1 last",
		Args:    exactly(1, 2, "ID [TEXT]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text := strings.Join(args[1:], " ")
			input, err := input(text, steer, cancel, allow, deny)
			if err != nil {
				return usageError{err}
			}
			a, id, err := c.one(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			log, err := a.Store().Open(cmd.Context(), id)
			if err != nil {
				return err
			}
			defer log.Close()
			w, err := (&inspan.Host{Dir: a.Store().Dir}).Watch(cmd.Context(), id) // or nobody here could go on with it
			if err != nil {
				return err
			}
			if d, ok := input.(event.Decided); ok {
				input, err = c.decision(cmd.Context(), w.Status(), d, scope)
			}
			if err := errors.Join(err, w.Close()); err != nil {
				return err
			}
			events, err := log.Append(cmd.Context(), a.Permission.Redacted(input))
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: event %d\n", log.ID(), events[0].Seq)
			return nil
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&steer, "steer", false, "steer: the model sees the text during the current run")
	fl.BoolVar(&cancel, "cancel", false, "interrupt the current run")
	fl.StringVar(&allow, "allow", "", "allow the waiting call with this `id`")
	fl.StringVar(&scope, "for", "once", "`scope` of --allow: once, session, project or always")
	fl.StringVar(&deny, "deny", "", "deny the waiting call with this `id`, with the text as the reason")
	cmd.MarkFlagsMutuallyExclusive("steer", "cancel", "allow", "deny")
	return cmd
}

// questions are those that wait in a session, by their ids.
func questions(st inspan.Status) map[string]inspan.Pending {
	open := map[string]inspan.Pending{}
	for _, p := range st.Waiting {
		open[p.Call.ID] = p
	}
	for _, r := range st.Raised {
		open[r.ID] = inspan.Asked(r)
	}
	return open
}

// decision is what was decided, if somebody waits for it. One that holds for longer
// holds for the rules that the question names; the settings keep them.
func (c *command) decision(ctx context.Context, st inspan.Status, d event.Decided, scope string) (event.Body, error) {
	scopes := map[string]event.Scope{"once": event.ScopeOnce, "session": event.ScopeSession, "project": event.ScopeProject, "always": event.ScopeAlways}
	holds, known := scopes[scope]
	if !known {
		return nil, usageError{fmt.Errorf("--for: %q is none of once, session, project, always", scope)}
	}
	open := questions(st)
	asked, waits := open[d.Call]
	d.Question = asked.Question
	switch {
	case !waits && len(open) == 0:
		return nil, usageError{errors.New("nothing in this session waits for a decision")}
	case !waits:
		return nil, usageError{fmt.Errorf("%q does not wait for a decision; what does: %s", d.Call, strings.Join(slices.Sorted(maps.Keys(open)), ", "))}
	case !d.Allow:
		return d, nil
	}
	d.Scope = holds
	if holds != event.ScopeOnce && len(asked.Rules) == 0 {
		return nil, usageError{errors.New("no rule could safely stand for this call, so it can only be allowed once")}
	}
	if holds != event.ScopeProject && holds != event.ScopeAlways {
		return d, nil
	}
	a, err := app.Load(c.self)
	if err != nil {
		return nil, err
	}
	return d, a.Permission.Remember(ctx, st.Root, holds, asked.Rules)
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
