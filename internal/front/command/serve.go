package command

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/service/managed"
	"github.com/inspan/inspan/internal/service/server"
)

// serverFlags are the flags of inspan serve in addition to those of all servers.
type serverFlags struct {
	serveFlags
	workspaces string
	carried    string
	folders    []string
	contract   string
	keep       string
	drain      time.Duration
	disk       int64
	store      string
	engine     string
	only       string
	advertise  string
	newOwner   bool
	state      string               // the folder, once known
	show       func(address string) // shows a person the page; nil means it can't
}

// The places for the workspaces of tasks.
const (
	workspacesHere    = "folder"
	workspacesInStore = "store"
)

// serverDefaults returns the default flags of a server.
func serverDefaults() serverFlags {
	return serverFlags{keep: string(server.KeepFailed), disk: server.DefaultFloor >> 20, drain: server.DefaultDrain}
}

func (c *command) server() *cobra.Command {
	f := serverDefaults()
	s := server.Server{Setup: server.Setup{AtOnce: server.DefaultAtOnce}}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run many unattended agents as tasks, over HTTP",
		Long: "inspan takes tasks over HTTP and works on them, each with an agent, a session and a workspace of its own.\n" +
			"Tasks outlast the server: after kill -9, the next server continues them.\n" +
			"A call that asks waits for a decision in the list of approvals, or for 'inspan send --allow'.\n" +
			"On SIGTERM the server finishes running calls, starts no others, and ends.\n" +
			"GET /api/v1/openapi.json describes the API. See docs/SERVER.md.\n" +
			"The official Managed Agents SDKs can drive it too, see docs/MANAGED.md.\n\n" +
			"Several servers can share a store. One leads; the others pass requests on to it, and replace it if it dies.\n" +
			"If the store is a database, all of them run sessions; see docs/SERVER.md.\n\n" + console.ModesHelp(),
		Example: "  inspan serve --mode auto --listen 127.0.0.1:8080\n" +
			"  curl -H \"Authorization: Bearer $(cat TOKEN_FILE)\" -H 'Content-Type: application/json' \\\n" +
			"    -d '{\"prompt\": \"Fix the failing test\", \"repository\": {\"url\": \"https://...\"}}' http://127.0.0.1:8080/api/v1/tasks",
		Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.Runtime {
				if f.Public = true; !cmd.Flags().Changed("listen") {
					f.Listen = "0.0.0.0:8080"
				}
			}
			return c.runServer(cmd.Context(), &f, &s)
		},
	}
	f.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.Listen, "listen", "127.0.0.1:8080", "`address` to listen on")
	fl.IntVar(&s.AtOnce, "at-once", s.AtOnce, "`number` of tasks that work at the same time")
	fl.StringVar(&f.workspaces, "workspaces", "", "`folder` for the workspaces of tasks (default: next to the state folder)")
	fl.StringVar(&f.carried, "workspaces-in", f.carried,
		"`place` of workspaces for all machines: folder (all share --workspaces) or store (default: store with a database as --store, else folder)")
	fl.StringArrayVar(&f.folders, "folder", nil, "`folder` of this machine that tasks may work in or clone from; repeatable (default: none)")
	fl.StringArrayVar((*[]string)(&s.CloneFrom), "clone-from", nil,
		"`host` with a private address that tasks may clone from, as HOST, *.HOST, HOST:PORT or *; repeatable (default: only public hosts)")
	fl.StringArrayVar((*[]string)(&s.WebhookTo), "webhook-to", nil,
		"`host` with a private address that webhooks may call, as for --clone-from, also over http; repeatable (default: only public hosts)")
	fl.StringVar(&s.GitHub.API, "github-api", "", "`URL` of the API of your GitHub Enterprise Server (default: https://api.github.com)")
	fl.StringVar(&s.OIDC.Issuer, "oidc-issuer", "", "`URL` of an OpenID Connect provider whose tokens identities can have (default: none)")
	fl.StringVar(&s.OIDC.Audience, "oidc-audience", "", "`audience` that tokens of --oidc-issuer must be for")
	fl.StringVar(&f.contract, "contract", "", "`file` with the rules that every task gets, instead of inspan's own")
	fl.StringVar(&f.keep, "keep", f.keep, "`when` to keep the workspace of an ended task: never, failed or always")
	fl.Int64Var(&f.disk, "disk", f.disk, "`MiB` that must stay free; with less, tasks pause and none starts")
	fl.BoolVar(&s.SkipMissed, "skip-missed", false,
		"leave out runs of schedules that were due while the server was down (default: it makes up the last one of each)")
	fl.BoolVar(&s.Runtime, "agentcore", false,
		"run in Bedrock AgentCore: listen at 0.0.0.0:8080 and take /invocations, /ws and /ping without a token (see docs/AGENTCORE.md)")
	fl.BoolVar(&s.Ours, "ours", false, "show the owner the sessions of this machine's terminals too")
	fl.DurationVar(&f.drain, "drain", f.drain, "`time` that running calls get to finish on SIGTERM")
	fl.StringVar(&f.store, "store", "",
		"`URL` of the store that several servers share, postgres://... (default: $"+app.StoreVariable+", else this machine's folder)")
	fl.StringVar(&f.engine, "engine", "",
		"`URL` of the engine that says which machine runs a session, temporal://host:port/namespace (default: the database of --store)")
	fl.StringVar(&f.only, "only", "", "with --store: `role` of this process, api or work (default: both)")
	fl.StringVar(&f.advertise, "advertise", "",
		"with --store: `URL` at which the other servers reach this one (default: the address of --listen)")
	fl.BoolVar(&f.newOwner, "new-owner", false, "with --store: make the owner's token of this server that of all (default: it must have theirs)")
	_ = fl.MarkHidden("cwd") // a task names its own folder
	return cmd
}

// runServer serves until it is asked to end.
func (c *command) runServer(ctx context.Context, f *serverFlags, s *server.Server) (err error) {
	a, err := c.served(ctx, &f.serveFlags, f.folders...)
	if err != nil {
		return err
	}
	if err := f.settle(s); err != nil {
		return err
	}
	ctx, stop := c.signals(ctx)
	defer stop()
	apart, err := c.sharing(ctx, f, a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, apart.close()) }()
	if err := c.equip(a, s); err != nil {
		return err
	}
	if s.Unwalled != "" {
		c.warn("commands run without a sandbox: " + s.Unwalled + "; only identities without a tenant can approve them")
	}
	s.GitHub.Token = cmp.Or(os.Getenv("GITHUB_TOKEN"), os.Getenv("GH_TOKEN"))
	s.State, s.Floor, f.state = a.StateDir, f.disk<<20, a.StateDir
	s.Options, s.Dir = f.Options, cmp.Or(f.workspaces, a.StateDir+"-tasks") // agents have no access to the state folder
	if f.carried == workspacesInStore || f.carried == "" && apart.engine != nil {
		s.Travel()
		s.Fleeting = f.only == "work"
	}
	f.Opened = func(address string) {
		if f.show != nil {
			go f.show(address) // the browser's requests are answered from now on
			return
		}
		here, devices := server.ReachedAt(address)
		told := "serving tasks at http://" + here + "/"
		if devices[0] != here {
			told += "; other devices reach it at http://" + strings.Join(devices, "/ or http://") + "/"
		}
		c.warn(told + f.token())
	}
	f.Ending = func(grace time.Duration) { c.warn("ending; running calls have " + grace.String() + " to finish") }
	if apart.store == nil {
		return s.Serve(ctx, f.Door, f.drain)
	}
	if s.Runtime {
		return misused("--agentcore is for a single server; remove --store")
	}
	s.Engine = apart.engine
	return c.serveAmong(ctx, a, f, s, apart)
}

// token says where the owner's token is; empty means other servers have it.
func (f *serverFlags) token() string {
	if _, err := os.Stat(f.TokenFile); err != nil {
		return ""
	}
	return "; the owner's token is in " + f.TokenFile
}

// equip configures a server.
func (c *command) equip(a *app.App, s *server.Server) (err error) {
	s.Sessions, s.Send, s.Redact, s.Git, s.Warn = a.Running.Sessions, a.Send, a.Permission.Redacted, a.Extensions.Store().Git, c.warn
	hosts := &app.Hosts{
		Load: func() (*app.App, error) { return c.installation() },
		Warn: c.warn, Nice: server.Nice, Closed: a.Permission.Closed, Sessions: a.Running.Sessions,
	}
	s.Host, s.ToolNames, s.Trees = hosts.Host, a.Extensions.ToolNames, a.Running.Trees
	s.HasModel, s.Rewind, s.Workflows = a.Providers.Known, a.Rewind, app.Workflows(a, "", "").Checked
	s.Schedules = c.schedules(a)
	managed.Join(s)
	s.Guard = a.Permission.Guard()
	s.Unwalled, err = a.Permission.Unwalled()
	return err
}

// settle reads files and the like that flags name.
func (f *serverFlags) settle(s *server.Server) error {
	if s.Keep = server.Keep(f.keep); !s.Keep.Known() {
		return misused("--keep: unknown value %q; use never, failed or always", f.keep)
	}
	if f.carried != "" && f.carried != workspacesHere && f.carried != workspacesInStore {
		return misused("--workspaces-in: unknown value %q; use folder or store", f.carried)
	}
	if s.AtOnce < 1 {
		return misused("--at-once: it must be 1 or more, not %d", s.AtOnce)
	}
	if f.disk < 0 || f.drain < 0 {
		return misused("--disk and --drain can't be negative")
	}
	for _, folder := range f.folders {
		abs, err := filepath.Abs(folder)
		if err == nil {
			abs, err = filepath.EvalSymlinks(abs)
		}
		if err != nil {
			return misused("--folder: %v", err)
		}
		s.Folders = append(s.Folders, abs)
	}
	if f.contract == "" {
		return nil
	}
	raw, err := os.ReadFile(f.contract)
	if err != nil {
		return misused("--contract: %v", err)
	}
	s.Contract = strings.TrimSpace(string(raw))
	return nil
}
