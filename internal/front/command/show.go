package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// view is a way to look at sessions: a command of its own, and a flag of show.
type view struct {
	name, says string
	cmd        *cobra.Command
}

func (c *command) views() []view {
	return []view{
		{"cost", "its cost, by session, day, model, tool or agent", c.cost()},
		{"spend", "the cause of each token and dollar", c.spend()},
		{"stats", "how long requests and calls took, and how many failed", c.stats()},
		{"trace", "requests, calls and waits on a time line", c.traceShow()},
		{"context", "the next prompt: its sources and their tokens", c.context()},
		{"effects", "effects that a rewind can't undo", c.effects()},
	}
}

// show shows a session, in a view if a flag says so. The command of that name makes the view, with its own
// flags.
func (c *command) show() *cobra.Command {
	views := c.views()
	var names []string
	of := map[string][]string{} // the views that have a flag
	for _, v := range views {
		names = append(names, v.name)
		v.cmd.Flags().VisitAll(func(f *pflag.Flag) { of[f.Name] = append(of[f.Name], v.name) })
	}
	cmd := &cobra.Command{
		Use:   "show [SESSION]",
		Short: "Show the state, costs, times, prompt and effects of a session",
		Long: "Without a SESSION, inspan takes the last one of this folder. --cost, --spend and --stats are then about all sessions.\n" +
			"The other flags belong to a view, which is a command too: 'inspan cost --help' explains those of --cost.\n" +
			"'inspan logs' prints the transcript, and 'inspan trace export' sends a trace to a receiver of OpenTelemetry.",
		Example: "  inspan show\n  inspan show last --spend --by tool\n  inspan show --cost --since 2026-11-01\n  inspan show 20261127 --trace",
		Args:    exactly(0, 1, "at most one SESSION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			at := slices.IndexFunc(views, func(v view) bool { return isOn(cmd, v.name) })
			var picked *cobra.Command
			if at >= 0 {
				picked = views[at].cmd
			}
			var wrong error
			cmd.Flags().Visit(func(f *pflag.Flag) {
				switch has := of[f.Name]; {
				case has == nil || wrong != nil || at < 0 && f.Name == "json":
				case at < 0:
					wrong = misused("--%s needs --%s", f.Name, strings.Join(has, " or --"))
				case !slices.Contains(has, views[at].name):
					wrong = misused("--%s has no meaning with --%s", f.Name, views[at].name)
				default:
					if err := picked.Flags().Set(f.Name, f.Value.String()); err != nil {
						wrong = flagError(picked, err)
					}
				}
			})
			switch {
			case wrong != nil:
				return wrong
			case at < 0:
				return c.summary(cmd, named(args), isOn(cmd, "json"))
			}
			if flag := picked.Flags().Lookup("session"); flag != nil && len(args) > 0 {
				if err := picked.Flags().Set("session", args[0]); err != nil {
					return err
				}
				args = nil
			}
			picked.SetContext(cmd.Context())
			picked.SetOut(cmd.OutOrStdout())
			picked.SetErr(cmd.ErrOrStderr())
			return picked.RunE(picked, args)
		},
	}
	fl := cmd.Flags()
	for _, v := range views {
		fl.Bool(v.name, false, v.says)
	}
	says := map[string]string{
		"json": "print JSON", "by": "group by `kind`, which the help of the view lists",
		"since": "only from this `day` on, such as 2026-11-21",
	}
	for _, v := range views {
		v.cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "session" || fl.Lookup(f.Name) != nil {
				return
			}
			usage := cmp.Or(says[f.Name], f.Usage)
			if f.Name != "json" {
				usage = "with --" + strings.Join(of[f.Name], ", --") + ": " + usage
			}
			if f.Value.Type() == "bool" {
				fl.Bool(f.Name, false, usage)
			} else {
				fl.String(f.Name, "", usage)
			}
		})
	}
	delete(of, "session")
	oneOf(cmd, names...)
	return cmd
}

// isOn reports whether a flag without a value is given, and not as --flag=false.
func isOn(cmd *cobra.Command, flag string) bool {
	on, err := cmd.Flags().GetBool(flag)
	return err == nil && on
}

// shown is the state of a session.
type shown struct {
	Session  string    `json:"session"`
	Task     string    `json:"task,omitempty"` // its title, else the last message
	Root     string    `json:"root"`
	Model    string    `json:"model,omitempty"`
	Mode     tool.Mode `json:"mode,omitempty"`
	State    string    `json:"state"`
	Detail   string    `json:"detail,omitempty"`
	Began    time.Time `json:"began"`
	Used     time.Time `json:"used"`
	Turns    int       `json:"turns"`
	Calls    int       `json:"calls"`
	Agents   int       `json:"agents"`
	Usage    llm.Usage `json:"usage"`
	Cost     float64   `json:"cost"` // US dollars
	Unpriced bool      `json:"unpriced,omitempty"`
}

// summary prints the state of a session, and how to see more of it.
func (c *command) summary(cmd *cobra.Command, typed string, asJSON bool) error {
	a, id, err := c.seen(cmd.Context(), typed)
	if err != nil {
		return err
	}
	s, err := shownOf(cmd.Context(), a, id)
	switch {
	case err != nil:
		return err
	case asJSON:
		return printJSON(cmd.OutOrStdout(), s)
	}
	const minute = "2006-01-02 15:04"
	w := text.NewTable(cmd.OutOrStdout())
	w.Row("session", s.Session)
	w.Row("task", words.OneLine(s.Task, 200))
	w.Row("folder", text.Line(s.Root))
	w.Row("model", fmt.Sprintf("%s, mode %s", cmp.Or(text.Line(s.Model), "none yet"), s.Mode))
	w.Row("used", s.Began.Local().Format(minute)+" to "+s.Used.Local().Format(minute))
	w.Row("state", strings.TrimSuffix(s.State+": "+words.OneLine(s.Detail, 300), ": "))
	w.Row("work", text.Count(s.Turns, "turn")+", "+text.Count(s.Calls, "call")+", "+text.Count(s.Agents, "subagent"))
	w.Row("cost", fmt.Sprintf("%s, %s in, %s out", words.Cost(s.Cost, s.Unpriced), text.Thousands(s.Usage.Prompt()), text.Thousands(s.Usage.Output)))
	w.Row()
	w.Row("More of it:")
	w.Row("  inspan logs "+s.Session, "the whole transcript")
	for _, v := range c.views() {
		w.Row("  inspan show "+s.Session+" --"+v.name, v.says)
	}
	return w.Flush()
}

func shownOf(ctx context.Context, a *app.App, id string) (shown, error) {
	st, err := a.Running.Status(ctx, id)
	if err != nil {
		return shown{}, err
	}
	s := shown{
		Session: id, Task: cmp.Or(st.Title, st.Task), Root: st.Root, Model: st.Route, Mode: st.Mode, Turns: st.Turns, Calls: st.Calls,
		Agents: len(st.Children), Usage: st.Usage, Cost: st.Cost, Unpriced: st.Unpriced,
	}
	for e, err := range a.Store().Events(ctx, id) {
		if err != nil {
			return s, err
		}
		if s.Used = e.Time; s.Began.IsZero() {
			s.Began = e.Time
		}
	}
	driven, err := a.Running.Driven(ctx, id)
	if err != nil {
		return s, err
	}
	switch {
	case driven != nil:
		s.State = driven.State
	case len(st.Questions()) > 0:
		s.State = running.StateWaiting
	case st.Stopped != nil && !st.Active:
		s.State, s.Detail = strings.ReplaceAll(string(st.Stopped.Reason), "_", " "), st.Stopped.Detail
	default:
		s.State, s.Detail = "open", "continue with: inspan resume "+id
	}
	return s, nil
}
