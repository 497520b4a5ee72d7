package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/view/words"
)

func (c *command) team() *cobra.Command {
	var assign string
	cmd := &cobra.Command{
		Use:   "team [ID]",
		Short: "Show the team of a session: members, what each does, costs and waits for, and the tasks",
		Long: "Without an ID, inspan shows the last session of this folder.\n" +
			"Speak to a member with 'inspan send' and its session, pause it with --cancel there.",
		Example: "  inspan agents team last\n  inspan agents team --assign 3=scout last",
		Args:    exactly(0, 1, "at most one ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, _, err := c.at(".")
			if err != nil {
				return err
			}
			id := ""
			if len(args) == 1 {
				id, err = a.Running.Here(cmd.Context(), args[0])
			} else {
				id, err = a.Running.LastHere(cmd.Context())
			}
			if err != nil {
				return err
			}
			if assign != "" {
				if err := assignTask(cmd.Context(), a, id, assign); err != nil {
					return err
				}
			}
			return printTeam(cmd.Context(), cmd.OutOrStdout(), a, id)
		},
	}
	cmd.Flags().StringVar(&assign, "assign", "", "give a task to a member, or to all: `TASK=NAME`, TASK=all")
	return cmd
}

// assignTask takes a task from who has it, and gives it to a member.
func assignTask(ctx context.Context, a *app.App, id, order string) error {
	task, name, _ := strings.Cut(order, "=")
	w, err := a.Running.Watch(ctx, id)
	if err != nil {
		return err
	}
	defer w.Close()
	st := w.Status()
	b := event.Tasked{Action: loop.TaskAssign, ID: task, By: st.Session}
	if name != "all" {
		i := slices.IndexFunc(st.Children, func(k inspan.Child) bool { return name != "" && strings.EqualFold(k.Name, name) })
		if i < 0 {
			return misused("--assign: there is no member %q", name)
		}
		b.For = st.Children[i].Child
	}
	if found := st.Tasks.Find(task); found == nil || found.Done {
		return misused("--assign: there is no open task %q", task)
	}
	return w.Send(ctx, b)
}

// printTeam prints the members and the tasks of a session.
func printTeam(ctx context.Context, out io.Writer, a *app.App, id string) error {
	st, err := a.Running.Status(ctx, id)
	if err != nil {
		return err
	}
	names := map[string]string{st.Session: "the lead"}
	w := text.NewTable(out, "MEMBER", "KIND", "STATE", "COST", "WAITS FOR", "SESSION", "TASK")
	for _, k := range st.Children {
		names[k.Child] = cmp.Or(k.Name, words.Agent(k.Agent, k.Child))
		state := "ended"
		switch {
		case k.Open:
			state = "works"
		case k.Returned != nil && k.Returned.Idle:
			state = "idle"
		case k.Returned == nil || k.Returned.Reason != event.ReasonDone:
			state = "stopped"
		}
		cost, waits := k.Cost, ""
		if k.Open {
			theirs, err := a.Running.Status(ctx, k.Child)
			if err != nil {
				return err
			}
			cost, waits = theirs.Cost, awaited(st, theirs)
		}
		w.Row(names[k.Child], k.Agent, state, words.Cost(cost, k.Returned != nil && k.Returned.Unpriced), waits, k.Child, words.OneLine(k.Task, 50))
	}
	if err := w.Flush(); err != nil || len(st.Tasks.List) == 0 {
		return err
	}
	fmt.Fprintln(out)
	w = text.NewTable(out, "TASK", "STATE", "WHO", "CHECK", "TEXT")
	for i := range st.Tasks.List {
		task := &st.Tasks.List[i]
		state, check := "open", task.Check
		switch waits := st.Tasks.WaitsFor(task); {
		case task.Done:
			state = "done"
		case task.Holder != "":
			state = "claimed"
		case len(waits) > 0:
			state = "waits for " + strings.Join(waits, ", ")
		}
		if task.Evidence != "" {
			check += " (passed)"
		}
		w.Row(task.ID, state, names[cmp.Or(task.Holder, task.For)], words.OneLine(check, 40), words.OneLine(task.Text, 60))
	}
	return w.Flush()
}

// awaited says what a member waits for: a person's answer, or the end of a call.
func awaited(lead, member inspan.Status) string {
	for _, q := range lead.Raised {
		if q.Child == member.Session {
			return "you: " + q.Tool + " (" + q.ID + ")"
		}
	}
	for _, p := range member.Open {
		return p.Call.Name
	}
	if member.Asking {
		return "its model"
	}
	return ""
}
