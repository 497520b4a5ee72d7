package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/setup"
	"github.com/inspan/inspan/internal/service/server"
)

func (c *command) doctor() *cobra.Command {
	var offline bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check settings, providers, sandbox, servers and programs",
		Long: "inspan asks each ready provider for one word, which costs a few tokens, and starts the MCP servers.\n" +
			"--offline skips both. 'inspan doctor sandbox' tests the sandbox, 'inspan doctor runtime' the needs of a server,\n" +
			"'inspan doctor cluster' those of several, and 'inspan doctor notify' sends a test notification.",
		Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return setup.Print(cmd.OutOrStdout(), width(cmd.OutOrStdout()), setup.Doctor(cmd.Context(), c.self, "", !offline))
		},
	}
	cmd.Flags().BoolVar(&offline, "offline", false, "contact no provider and start no server")
	cmd.AddCommand(&cobra.Command{
		Use:   "sandbox",
		Short: "Test the sandbox by trying to escape from it",
		Long: "Inside each box, inspan tries to write, to use the network, to read secrets, to signal other processes and more.\n" +
			"It makes each attempt without a box too, where it must succeed. Otherwise the test would prove nothing.\n" +
			"All of this happens in a folder made for the test.",
		Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return setup.Print(cmd.OutOrStdout(), width(cmd.OutOrStdout()), setup.Sandbox(cmd.Context(), c.self))
		},
	}, c.doctorRuntime(), c.doctorCluster(), c.doctorNotify())
	return cmd
}

func (c *command) doctorNotify() *cobra.Command {
	return &cobra.Command{
		Use:   "notify",
		Short: "Send a test notification to each place of the settings",
		Long: "The table notify of the settings names the places: the desktop, the bell, a webhook or ntfy.\n" +
			"The test ignores quiet hours. inspan reports which places accepted it; your desktop and phone decide whether to show it.",
		Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			out, terminal := cmd.OutOrStdout(), io.Writer(nil)
			if isTerminal(out) {
				terminal = out
			}
			return setup.Print(out, width(out), setup.Notify(cmd.Context(), c.self, terminal))
		},
	}
}

func (c *command) doctorRuntime() *cobra.Command {
	var model string
	var offline bool
	cmd := &cobra.Command{
		Use:   "runtime",
		Short: "Test the needs of a server: child processes under load, and one task from end to end",
		Long: "inspan starts processes in each way that sessions do, many at once while every core is busy, and reads all that they print.\n" +
			"Then it starts a server of its own at a loopback address, and has it do one small task with the model of the settings.\n" +
			"That costs a few tokens; --offline takes the offline script instead. A server that already runs is left alone.",
		Example: "  inspan doctor runtime --offline",
		Args:    exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings := append(setup.Children(cmd.Context(), c.self), c.trial(cmd.Context(), model, offline))
			return setup.Print(cmd.OutOrStdout(), width(cmd.OutOrStdout()), findings)
		},
	}
	cmd.Flags().StringVar(&model, "model", "", "`model` of the task (default: as the settings say)")
	cmd.Flags().BoolVar(&offline, "offline", false, "contact no provider")
	return cmd
}

// trialTime is the time limit for the task of a trial.
const trialTime = time.Minute

// trial makes a server do one task, and removes both.
func (c *command) trial(ctx context.Context, model string, offline bool) setup.Finding {
	f := setup.Finding{Check: "task", State: setup.Bad, Remedy: "read 'inspan doctor', and try the same with --offline"}
	dir, err := os.MkdirTemp("", "inspan-trial-")
	if err != nil {
		f.Found, f.Remedy = err.Error(), "make the folder for temporary files writable"
		return f
	}
	defer os.RemoveAll(dir)
	a, err := c.installation()
	if err != nil {
		f.Found, f.Remedy = err.Error(), "correct the file with 'inspan config edit'"
		return f
	}
	spec := server.Spec{Prompt: "Answer with the single word ready. Use no tools.", MaxTurns: 3}
	if model = cmp.Or(model, a.Config.Model); offline || model == "" {
		model, spec.Prompt = "script/commands", "bash: echo from a tool\nsay: ready"
	}
	s := &server.Server{Setup: server.Setup{
		Options: app.Options{Model: model, Mode: "auto", NoServers: true}, Keep: server.KeepNever, AtOnce: 1,
	}}
	if err := c.equip(a, s); err != nil {
		f.Found = err.Error()
		return f
	}
	ctx, stop := context.WithTimeout(ctx, trialTime)
	defer stop()
	began := time.Now()
	t, err := s.Trial(ctx, dir, spec)
	f.Elapsed = time.Since(began)
	if t.Session != "" {
		err = errors.Join(err, a.Store().Remove(context.WithoutCancel(ctx), t.Session))
	}
	if err != nil {
		f.Found = fmt.Sprintf("%s: %v", model, err)
		return f
	}
	f.State, f.Remedy = setup.Good, ""
	f.Found = fmt.Sprintf("server, agent, %s and back: %q", model, t.Result.Says)
	return f
}
