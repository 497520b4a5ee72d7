package command

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/setup"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/store"
)

func (c *command) doctorCluster() *cobra.Command {
	var where, token string
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Check a store that several servers share, and what this machine lacks to join them",
		Long: "inspan opens the store, which makes its tables if they are missing, and looks at the database, the servers, the\n" +
			"owner's token and the sessions that no worker continues. Run it on each machine before 'inspan serve --store'.",
		Example: "  INSPAN_STORE=postgres://user:password@host/inspan inspan doctor cluster",
		Args:    exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings, err := c.clusterFindings(cmd.Context(), where, token)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			return setup.Print(out, width(out), findings)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&where, "store", "", "`URL` of the store (default: $"+app.StoreVariable+")")
	fl.StringVar(&token, "token-file", "", "`file` with the owner's token (default: server.token in the state folder)")
	return cmd
}

func (c *command) clusterFindings(ctx context.Context, where, token string) (out []setup.Finding, err error) {
	a, err := c.installation()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	s, name, err := c.shared.Open(ctx, app.StoreOf(where))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	out = append(out, setup.Finding{Check: "store", State: setup.Good, Found: name, Elapsed: time.Since(began)})
	engine, err := c.shared.Connect(ctx, "", s)
	if err != nil {
		return nil, err
	}
	if engine == nil {
		out[0].State = setup.Warn
		out[0].Remedy = "use a database for several machines: a folder has one server at work, and the others replace it"
	} else if c.examine != nil {
		out = append(out, c.examine(ctx, s)...)
	}
	return append(out, serversOf(ctx, s, cmp.Or(token, filepath.Join(a.StateDir, "server.token")))...), nil
}

// serversOf looks at the servers of a store, and whether this machine can join them.
func serversOf(ctx context.Context, s store.Store, file string) []setup.Finding {
	token, err := netguard.KnownToken(file)
	missing := errors.Is(err, fs.ErrNotExist)
	var of server.Cluster
	if err == nil || missing {
		of, err = server.ClusterOf(ctx, s, token)
	}
	if err != nil {
		return []setup.Finding{{Check: "servers", State: setup.Bad, Found: err.Error(), Remedy: "correct " + file + " or the rights in the store"}}
	}
	leads, owner := setup.Finding{Check: "servers", State: setup.Good}, setup.Finding{Check: "owner", State: setup.Good}
	switch {
	case of.Leader == "":
		leads.Found = "no server has used this store yet; the first 'inspan serve' leads"
	case (&server.Remote{URL: of.Leader, Patience: 3 * time.Second}).Alive(ctx):
		leads.Found = of.Leader + " leads, and can be reached from here"
	default:
		leads.State, leads.Found = setup.Warn, of.Leader+" was the last to lead, and can't be reached from here"
		leads.Remedy = "start a server, or if one runs there, let this machine reach it: requests are passed on to it (--advertise)"
	}
	switch {
	case missing && of.Leader == "":
		owner.Found = "no token yet; the first server makes " + file
	case missing:
		owner.Found = "this machine has no token, and joins the servers with theirs"
	case of.SameOwner:
		owner.Found = "the token in " + file + " is that of the servers"
	default:
		owner.State, owner.Found = setup.Bad, "the token in "+file+" is not that of the servers"
		owner.Remedy = "remove the file to join with theirs, or start a server with --new-owner to make this the token of all"
	}
	return []setup.Finding{leads, owner}
}
