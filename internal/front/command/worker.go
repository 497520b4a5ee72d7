package command

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/service/managed"
)

// worker returns the command that makes calls of sessions of a server on this machine.
func (c *command) worker() *cobra.Command {
	var remote remoteFlags
	var folder string
	w := managed.Worker{Say: c.warn}
	o := app.Options{Unattended: true, NoServers: true}
	cmd := &cobra.Command{
		Use:   "worker --remote URL --environment ID",
		Short: "Run the tool calls of a server's sessions on this machine",
		Long: "A session in a self-hosted environment of an 'inspan serve' works where a worker is: the worker polls the server\n" +
			"for sessions, runs their calls in its folder and sends the results. The server never connects to the worker.\n" +
			"Mode, rules and sandbox of this machine judge every call. A call that would ask is denied.\n" +
			"On SIGTERM the worker finishes the calls that run and hands its sessions to other workers.\n" +
			"See docs/SERVER.md.\n\n" + console.ModesHelp(),
		Example: "  inspan worker --remote https://agents.example.org --environment env_abc --folder ~/shop --mode auto",
		Args:    exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if w.AtOnce < 1 {
				return misused("--at-once: it must be 1 or more, not %d", w.AtOnce)
			}
			for _, name := range []string{"remote", "environment"} {
				if cmd.Flag(name).Value.String() == "" {
					return misused("--%s is missing", name)
				}
			}
			if err := o.Check(); err != nil {
				return err
			}
			a, root, err := c.at(folder)
			if err != nil {
				return err
			}
			if w.Remote, err = remote.server(); err != nil {
				return err
			}
			a.Permission.Guests = true
			if remote.tokenFile != "" {
				if err := a.Permission.Close(remote.tokenFile); err != nil {
					return err
				}
			}
			w.Call = func(ctx context.Context, name string, args json.RawMessage) (string, error) {
				return a.CallTool(ctx, o, root, name, args, c.warn)
			}
			ctx, stop := c.signals(cmd.Context())
			defer stop()
			return w.Run(ctx)
		},
	}
	remote.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&w.Environment, "environment", "", "`ID` of the self-hosted environment")
	fl.StringVar(&folder, "folder", ".", "`folder` that sessions work in")
	fl.IntVar(&w.AtOnce, "at-once", 1, "`number` of sessions at the same time; they share the folder")
	addPermissions(fl, &o)
	return cmd
}
