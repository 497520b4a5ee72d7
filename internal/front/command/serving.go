package command

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/service/server"
)

// serveFlags are the flags of commands that others can reach.
type serveFlags struct {
	app.Options
	server.Door
	cwd string
}

func (f *serveFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.Model, "model", "", "model of agents, as `provider/model`; see 'inspan models'")
	addPermissions(fl, &f.Options)
	fl.Var((*dollars)(&f.Limits.Cost), "max-cost", "maximum cost of an agent's session in US `dollars`; 0 means no limit")
	fl.StringVar(&f.cwd, "cwd", ".", "`folder` to work in (the workspace)")
	fl.StringVar(&f.TokenFile, "token-file", "",
		"private `file` with the token that clients must send; created if missing (default: in the state folder)")
	fl.BoolVar(&f.Public, "public", false,
		"allow an address that other machines can reach, over HTTP without encryption; only in a network that you trust")
	fl.StringArrayVar(&f.Hosts, "host", nil,
		"further `name` by which clients reach the server, such as that of a proxy, as HOST or HOST:PORT; repeatable")
}

// served reads the settings, and the options of every session of a server. The mode is always set, so that old
// sessions can't have more permissions than new ones. Rules may name the tools of the workspace and of further
// folders.
func (c *command) served(ctx context.Context, f *serveFlags, folders ...string) (*app.App, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	a, err := c.installation()
	if err != nil {
		return nil, err
	}
	if f.Model != "" {
		if err := a.Providers.Known(f.Model); err != nil {
			return nil, err
		}
	}
	f.Mode = cmp.Or(f.Mode, a.Config.Mode, "ask")
	f.TokenFile = cmp.Or(f.TokenFile, filepath.Join(a.StateDir, "server.token"))
	if err := a.Permission.Close(f.TokenFile); err != nil {
		return nil, err
	}
	if f.cwd, err = workspace(f.cwd); err != nil {
		return nil, err
	}
	if len(f.Allow)+len(f.Ask)+len(f.Deny) > 0 { // listing installed tools takes a while
		var installed []string
		for _, dir := range append(folders, f.cwd) {
			installed = append(installed, a.Extensions.ToolNames(ctx, dir)...)
		}
		if err := f.CheckNames(installed); err != nil {
			return nil, err
		}
	}
	f.Opened = func(address string) {
		fmt.Fprintf(c.console.Err, "inspan: serving %s at http://%s/; the token is in %s\n", f.cwd, address, f.TokenFile)
	}
	return a, nil
}
