package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/schedule"
)

func (c *command) schedule() *cobra.Command {
	remove := c.ofSchedule("remove", "Remove a schedule; started runs continue", func(cmd *cobra.Command, set *schedule.Set, id string) error {
		return set.Remove(cmd.Context(), id)
	})
	pause := c.ofSchedule("pause", "Pause a schedule", func(cmd *cobra.Command, set *schedule.Set, id string) error {
		_, err := set.Pause(cmd.Context(), id, true)
		return err
	})
	resume := c.ofSchedule("resume", "Resume a paused schedule, from now on", func(cmd *cobra.Command, set *schedule.Set, id string) error {
		_, err := set.Pause(cmd.Context(), id, false)
		return err
	})
	run := c.ofSchedule("run", "Begin a run of a schedule now", func(cmd *cobra.Command, set *schedule.Set, id string) error {
		o, err := set.Run(cmd.Context(), id)
		switch {
		case o.Session != "":
			fmt.Fprintln(cmd.OutOrStdout(), o.Session)
		case o.Skipped:
			fmt.Fprintln(cmd.ErrOrStderr(), "left out: "+o.Why)
		case o.Why != "":
			return errors.Join(errors.New(o.Why), err)
		case o.Key != "":
			fmt.Fprintln(cmd.ErrOrStderr(), "the run starts as soon as the previous run has ended")
		}
		return err
	})
	return group("schedule", "Start runs at set times, on webhooks or when files change",
		c.scheduleAdd(), c.scheduleList(), remove, pause, resume, run, c.scheduleDue(), c.scheduleInstall(), c.scheduleUninstall())
}

// schedules returns the schedules of this machine.
func (c *command) schedules(a *app.App) *schedule.Set {
	return &schedule.Set{Table: a.Running, Program: c.program(), Failed: func(ctx context.Context, s schedule.Schedule, o schedule.Occasion) {
		text := "schedule " + s.ID + " could not start its run: " + o.Why
		c.warn(text)
		_ = a.Notify.Tell(ctx, inspan.Status{Title: "schedule " + s.ID, Root: s.Root}, text) // 'inspan schedule list' shows it too
	}}
}

// scheduleFlags are the flags of a schedule, in addition to those of its runs.
type scheduleFlags struct {
	run            runFlags
	workflow, task string
	on             string
	maps           []string
	one            schedule.Schedule
	overlap, catch string
}

func (c *command) scheduleAdd() *cobra.Command {
	var f scheduleFlags
	cmd := &cobra.Command{
		Use:   `add "CRON" [INPUT=VALUE ...]`,
		Short: "Add a schedule: a task or workflow, and a time or an event",
		Long: "CRON has five fields: minute, hour, day of the month, month, day of the week. With --on, leave it out.\n" +
			"Runs are sessions like any other: questions wait on the board, and 'inspan attach' shows them.\n" +
			"A process must watch the schedules: 'inspan schedule install' sets up a timer; 'inspan serve' and 'inspan web' watch too.\n" +
			"The run has the flags that you give here, such as --mode and --max-cost.\n\n" +
			"--on webhook prints a secret. Callers sign POST /hooks/NAME of 'inspan serve' with it, as Standard Webhooks or GitHub do.\n" +
			"--on github:issues.opened,push starts runs only for those events. --on file:GLOB starts one for each new content of a file.\n" +
			"An event fills the inputs that have the names of its fields; the input \"event\" gets all of it. The prompt of a task includes the event.\n" +
			"A webhook without --workflow and --task answers the workflow steps that wait for it.",
		Example: "  inspan schedule add \"0 7 * * 1-5\" --workflow upgrade-deps --mode auto --max-cost 5\n" +
			"  inspan schedule add \"*/30 9-17 * * *\" --zone Europe/Berlin --task \"Answer new review comments\"\n" +
			"  inspan schedule add --on github:issues.opened --workflow fix-issue --map issue=issue.html_url\n" +
			"  inspan schedule add --on \"file:inbox/*.csv\" --task \"Import the file\"",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return c.addSchedule(cmd, &f, args) },
	}
	run := &cobra.Command{}
	f.run.add(run)
	f.run.addNew(run)
	for _, name := range []string{"output", "record", "replay"} {
		_ = run.Flags().MarkHidden(name)
	}
	cmd.Flags().AddFlagSet(run.Flags())
	fl := cmd.Flags()
	fl.StringVar(&f.one.ID, "name", "", "`name` of the schedule (default: made from the workflow)")
	fl.StringVar(&f.workflow, "workflow", "", "`name` or file of the workflow to run")
	fl.StringVar(&f.task, "task", "", "`text` of the task to run")
	fl.StringVar(&f.on, "on", "", "`event` instead of times: webhook, github:EVENT,... or file:GLOB")
	fl.StringArrayVar(&f.maps, "map", nil, "`INPUT=FIELD`: the input gets this field of the event, such as issue.number; repeatable")
	fl.StringVar(&f.one.Zone, "zone", "", "time `zone` of the times, such as Europe/Berlin (default: that of the machine)")
	fl.DurationVar(&f.one.Jitter, "jitter", 0, "start up to so much `time` later, each schedule by its own amount")
	fl.StringVar(&f.catch, "catch-up", "", "times that were missed: none, once (default: make up for the last) or all (at most ten)")
	fl.StringVar(&f.overlap, "overlap", "",
		"if the previous run has not ended: skip (default for times), queue (default for events) or parallel")
	fl.BoolVar(&f.one.Unattended, "unattended", false, "deny calls that would ask, instead of waiting for an answer")
	return cmd
}

func (c *command) addSchedule(cmd *cobra.Command, f *scheduleFlags, args []string) error {
	if err := f.run.check(cmd); err != nil {
		return err
	}
	if err := f.run.plain("can't be used with a schedule"); err != nil {
		return err
	}
	a, root, err := c.at(f.run.cwd)
	if err != nil {
		return err
	}
	one := f.one
	one.Root, one.Task = root, f.task
	if f.on != "" {
		if err := one.On(f.on); err != nil {
			return err
		}
		one.Overlap = schedule.Queue
	} else if len(args) > 0 {
		if args[0] == "learn" {
			return misused("learning is scheduled with: inspan eval learn night SUITE --every \"0 2 * * *\"")
		}
		one.Cron, args = args[0], args[1:]
		one.Overlap, one.CatchUp = schedule.Skip, schedule.Once
	}
	if f.overlap != "" {
		one.Overlap = schedule.Overlap(f.overlap)
	}
	if f.catch != "" {
		one.CatchUp = schedule.CatchUp(f.catch)
	}
	if one.Flow, err = f.flow(args); err != nil {
		return err
	}
	if one.Flags = c.given(cmd, "cwd"); one.Flow != nil {
		if one.Inputs, err = f.inputs(a, one); err != nil {
			return err
		}
	}
	if one, err = c.schedules(a).Add(cmd.Context(), one); err != nil {
		return err
	}
	return one.Added(cmd.OutOrStdout(), time.Now())
}

// flow returns the workflow with its inputs, as typed; nil means there is none. A file is found from any folder.
func (f *scheduleFlags) flow(args []string) ([]string, error) {
	if f.workflow == "" {
		if len(f.maps) > 0 {
			return nil, misused("--map needs a --workflow, whose inputs it fills")
		}
		if len(args) > 0 {
			return nil, misused("%q: inputs need --workflow; times come first and without --on", args[0])
		}
		return nil, nil
	}
	name := f.workflow
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && filepath.Ext(name) != "" {
		if name, err = filepath.Abs(name); err != nil {
			return nil, err
		}
	}
	return append([]string{name}, args...), nil
}

// inputs returns the inputs that an event has for the workflow of a schedule. A faulty workflow and faulty
// typed inputs are errors.
func (f *scheduleFlags) inputs(a *app.App, one schedule.Schedule) (map[string]string, error) {
	flows := app.Workflows(a, one.Root, f.run.Trust)
	flows.Kinds = f.run.Kinds
	flow, err := flows.Find(one.Flow[0])
	if err != nil {
		return nil, err
	}
	mapped, err := pairs("--map", f.maps)
	if err != nil {
		return nil, err
	}
	if one.Cron == "" {
		return one.Fill(slices.Collect(maps.Keys(flow.Inputs)), mapped)
	}
	if len(mapped) > 0 {
		return nil, misused("--map needs --on: times have no fields")
	}
	_, err = flows.Program(one.Flow[0], one.Flow[1:])
	return nil, err
}

func (c *command) scheduleList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the schedules with their next run and the result of the last one",
		Args:  exactly(0, 0, "no arguments"),
		RunE: c.withApp(func(cmd *cobra.Command, a *app.App, _ []string) error {
			list, err := c.schedules(a).List(cmd.Context())
			for i := range list {
				if list[i].Hook != nil {
					list[i].Hook.Secret = ""
				}
				list[i].Seen = nil
			}
			switch {
			case asJSON:
				return errors.Join(err, printJSON(cmd.OutOrStdout(), list))
			case len(list) == 0 && err == nil:
				fmt.Fprintln(cmd.ErrOrStderr(), `no schedules; add one with: inspan schedule add "0 7 * * 1-5" --task "..."`)
			}
			return errors.Join(schedule.Told(cmd.OutOrStdout(), list, time.Now()), err)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// ofSchedule returns a command for one schedule.
func (c *command) ofSchedule(name, short string, do func(*cobra.Command, *schedule.Set, string) error) *cobra.Command {
	return &cobra.Command{
		Use:   name + " NAME",
		Short: short,
		Args:  exactly(1, 1, "a NAME"),
		RunE: c.withApp(func(cmd *cobra.Command, a *app.App, args []string) error {
			return do(cmd, c.schedules(a), args[0])
		}),
	}
}

func (c *command) scheduleDue() *cobra.Command {
	return &cobra.Command{
		Use:   "due",
		Short: "Start all runs that are due, for timers",
		Long:  "inspan prints the session of each started run, and ends. The runs continue in their own processes.",
		Args:  exactly(0, 0, "no arguments"),
		RunE: c.withApp(func(cmd *cobra.Command, a *app.App, _ []string) error {
			ctx, stop := c.signals(cmd.Context())
			defer stop()
			past, err := c.schedules(a).Due(ctx)
			for _, o := range past {
				if o.Session != "" {
					fmt.Fprintln(cmd.OutOrStdout(), o.Session)
				}
			}
			return err
		}),
	}
}

func (c *command) scheduleInstall() *cobra.Command {
	var show bool
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Set up a timer of the system that starts due runs",
		Long: "inspan writes a timer for systemd of this user, which runs 'inspan schedule due' each minute, and starts it.\n" +
			"So that it also works while you are logged out, type: loginctl enable-linger\n" +
			"Put keys that are only in your shell's environment into schedule.env next to config.toml, as NAME=VALUE.\n" +
			"Without systemd inspan prints a line for crontab.",
		Args: exactly(0, 0, "no arguments"),
		RunE: c.withApp(func(cmd *cobra.Command, a *app.App, _ []string) error {
			runs := []string{c.program(), "--state", a.StateDir}
			if dir := os.Getenv("INSPAN_CONFIG_DIR"); dir != "" { // there is no flag for it
				runs = append([]string{"/usr/bin/env", "INSPAN_CONFIG_DIR=" + filepath.Dir(a.ConfigPath)}, runs...)
			}
			timer := schedule.NewTimer(runs...)
			units := timer.Units(filepath.Dir(a.ConfigPath))
			if show {
				for _, name := range []string{"inspan-schedule.service", "inspan-schedule.timer"} {
					fmt.Fprintf(cmd.OutOrStdout(), "# %s\n%s\n", filepath.Join(timer.Folder, name), units[name])
				}
				return nil
			}
			err := timer.Install(cmd.Context(), filepath.Dir(a.ConfigPath))
			if errors.Is(err, schedule.ErrNoSystemd) {
				fmt.Fprintln(cmd.ErrOrStderr(), "no systemd for this user; add this line with 'crontab -e':")
				fmt.Fprintln(cmd.OutOrStdout(), timer.Crontab())
				return nil
			}
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), "the timer runs; see it with: systemctl --user list-timers")
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&show, "print", false, "only print the files")
	return cmd
}

func (c *command) scheduleUninstall() *cobra.Command {
	return &cobra.Command{
		Use:   "uninstall",
		Short: "Remove the timer of the system",
		Args:  exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			some, err := schedule.NewTimer(c.program()).Uninstall(cmd.Context())
			if !some && err == nil {
				fmt.Fprintln(cmd.ErrOrStderr(), "no timer is set up")
			}
			return err
		},
	}
}
