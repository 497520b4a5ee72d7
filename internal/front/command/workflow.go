package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/front/tui"
	"github.com/inspan/inspan/internal/install/app"
)

func (c *command) workflow() *cobra.Command {
	return group("workflow", "Run, check and list workflows: fixed steps of commands, agents and approvals",
		c.workflowList(), c.workflowShow(), c.workflowCheck(), c.workflowGraph(), c.workflowRun(), c.workflowResume())
}

func (c *command) workflowList() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the workflows that can be run in this folder",
		Args:  exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, root, err := c.at(cwd)
			if err == nil {
				app.Workflows(a, root, "").Told(cmd.OutOrStdout())
			}
			return err
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` to list them for")
	return cmd
}

func (c *command) workflowShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Print the file of a workflow",
		Args:  exactly(1, 1, "a NAME"),
		RunE: c.inFolder(nil, func(cmd *cobra.Command, a *app.App, root string, args []string) error {
			return app.Workflows(a, root, "").Write(cmd.OutOrStdout(), args[0])
		}),
	}
}

func (c *command) workflowCheck() *cobra.Command {
	return &cobra.Command{
		Use:     "check NAME|FILE",
		Short:   "Check a workflow: each mistake with its line and its correction",
		Example: "  inspan workflow check .inspan/workflows/release.yaml",
		Args:    exactly(1, 1, "a NAME or a FILE"),
		RunE: c.inFolder(nil, func(cmd *cobra.Command, a *app.App, root string, args []string) error {
			return app.Workflows(a, root, "").Check(cmd.Context(), cmd.OutOrStdout(), args[0])
		}),
	}
}

func (c *command) workflowGraph() *cobra.Command {
	var mermaid bool
	cmd := &cobra.Command{
		Use:   "graph NAME|FILE",
		Short: "Draw the steps of a workflow; of a script, those that it would take",
		Args:  exactly(1, 1, "a NAME or a FILE"),
		RunE: c.inFolder(nil, func(cmd *cobra.Command, a *app.App, root string, args []string) error {
			return app.Workflows(a, root, "").Draw(cmd.Context(), cmd.OutOrStdout(), args[0], mermaid)
		}),
	}
	cmd.Flags().BoolVar(&mermaid, "mermaid", false, "draw it as a flowchart for Mermaid")
	return cmd
}

func (c *command) workflowRun() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run NAME|FILE [INPUT=VALUE ...]",
		Short: "Run a workflow in this folder",
		Long: "Each step is stored with its result. After a crash, an interrupt or a limit, 'inspan workflow resume' continues:\n" +
			"finished steps don't run again. Words without = fill the one input that is missing.\n" +
			"Without a terminal the run stops where a person must decide, and continues after the decision: see 'inspan send --help'.\n\n" +
			exitPointer,
		Example: "  inspan workflow run piv \"add a --verbose flag\"\n" +
			"  inspan workflow run piv task=\"fix the race\" check=\"go test -race ./...\"",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return misused("inspan workflow run needs the NAME of a workflow; see 'inspan workflow list'")
			}
			return c.flow(cmd, &f, args)
		},
	}
	f.add(cmd)
	f.addNew(cmd)
	f.addOwn(cmd)
	f.addDetach(cmd)
	return cmd
}

// flow runs a workflow: its name, and its inputs as typed.
func (c *command) flow(cmd *cobra.Command, f *runFlags, typed []string) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	if err := cmp.Or(f.plain("can't be used with a workflow"), c.fresh(cmd.Context(), f)); err != nil {
		return err
	}
	a, root, err := c.at(f.cwd)
	if err != nil {
		return err
	}
	flows := app.Workflows(a, root, f.Trust)
	flows.Kinds = f.Kinds
	if f.Program, err = flows.Program(typed[0], typed[1:]); err != nil {
		return err
	}
	f.Model = cmp.Or(f.Model, f.Program.Model())
	if f.flow = typed; f.detach {
		return c.detach(cmd, f, typed)
	}
	s, err := c.begin(cmd.Context(), a, f)
	if err != nil {
		return err
	}
	defer s.Close()
	c.code = c.console.Run(cmd.Context(), s, f.Program.Begin())
	return c.leave(cmd.Context(), a, f)
}

func (c *command) workflowResume() *cobra.Command {
	cmd := c.resume()
	again := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := cmd.Flags().Set("output", cmp.Or(cmd.Flag("output").Value.String(), "text")); err != nil { // so that it runs without a person
			return err
		}
		return again(cmd, args)
	}
	cmd.Args = exactly(0, 1, "at most an ID")
	cmd.Use, cmd.Short = "resume [ID]", "Continue the run of a workflow"
	cmd.Long = "The same as 'inspan resume': finished steps don't run again, in this or any other process.\n\n" + exitPointer
	cmd.Example = "  inspan workflow resume\n  inspan workflow resume --max-cost 5 20261121-1403"
	return cmd
}

// flowSlashes returns slash commands that run workflows, each in its own process and session with no more
// permissions than the current one.
func (c *command) flowSlashes(a *app.App, root string, f *runFlags) []tui.Command {
	flows := app.Workflows(a, root, f.Trust)
	start := func(ctx context.Context, st inspan.Status, typed []string) (string, error) {
		p, err := flows.Program(typed[0], typed[1:])
		if err != nil {
			return "", err
		}
		o := app.Order{Text: p.Begin().Parts.Text(), Flow: typed}
		begun, err := a.Running.Detach(ctx, c.program(), append([]string{"detached", "--cwd=" + root}, f.like(st)...), o)
		if err := cmp.Or(err, begun.Err()); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s runs as session %s. Its questions and its end are on the board ('inspan board'); 'inspan attach %s' shows it.",
			typed[0], begun.Session, begun.Session), nil
	}
	return []tui.Command{{
		Name: "workflow", Args: "[NAME [INPUT=VALUE ...]]", Doc: "list the workflows, or run one in a process of its own",
		Begin: func(ctx context.Context, st inspan.Status, args string) (string, error) {
			if typed := flows.Words(args); len(typed) > 0 {
				return start(ctx, st, typed)
			}
			var b strings.Builder
			flows.Told(&b)
			return b.String(), nil
		},
	}, {
		Name: "goal", Args: "<GOAL --check COMMAND>", Doc: "work on a goal in a process of its own until the command passes",
		Begin: func(ctx context.Context, st inspan.Status, args string) (string, error) {
			goal, check, ok := strings.Cut(args, "--check ")
			if !ok || strings.TrimSpace(goal) == "" || strings.TrimSpace(check) == "" {
				return "", errors.New("want /goal GOAL --check COMMAND, where the command passes once the goal is reached; nothing was done")
			}
			return start(ctx, st, []string{"goal", "goal=" + strings.TrimSpace(goal), "check=" + strings.TrimSpace(check)})
		},
	}}
}

// like returns flags for another session with no more permissions than one with the status st that was started
// with the flags f.
func (f *runFlags) like(st inspan.Status) (flags []string) {
	add := func(name string, values ...string) {
		for _, v := range values {
			if v != "" {
				flags = append(flags, "--"+name+"="+v)
			}
		}
	}
	add("model", cmp.Or(st.Route, f.Model))
	add("mode", string(cmp.Or(st.Mode, f.Mode)))
	add("add-dir", st.Folders...)
	add("ask", f.Ask...)
	add("deny", f.Deny...)
	add("allow", f.Allow...)
	add("container", f.Container)
	add("trust", f.Trust)
	return flags
}
