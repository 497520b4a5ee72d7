package command

import (
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/service/server"
)

func (c *command) web() *cobra.Command {
	f := serverDefaults()
	f.keep = string(server.KeepAlways)
	s := server.Server{Setup: server.Setup{Ours: true, AtOnce: server.DefaultAtOnce}}
	w := server.Web{Private: c.console.Live, Tell: func(text string) { fmt.Fprintln(c.console.Err, "inspan: "+text) }} // with its code, which warnings would redact
	cmd := &cobra.Command{
		Use:   "web",
		Short: "Open the web page with all sessions of this machine and their questions",
		Long: "inspan serves a page on this machine, and opens it in your browser: the board of all sessions, the inbox of all\n" +
			"open questions, each session as it runs, traces and costs. Sessions that you start there work in the current folder.\n" +
			"If 'inspan serve' runs already, its page opens.\n\n" + console.ModesHelp(),
		Example: "  inspan web\n  inspan web --no-open --listen 127.0.0.1:9000",
		Args:    exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cwd, err := workspace(".")
			if err != nil {
				return err
			}
			f.folders = append(f.folders, cwd)
			f.show = func(address string) { w.Show(cmd.Context(), f.state, address, s.Code()) }
			err = c.runServer(cmd.Context(), &f, &s)
			return w.Elsewhere(cmd.Context(), err, f.state, cmp.Or(f.TokenFile, filepath.Join(f.state, "server.token")))
		},
	}
	f.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.Listen, "listen", "127.0.0.1:4774", "`address` to listen on")
	fl.StringArrayVar(&f.folders, "folder", nil, "further `folder` that sessions may work in; repeatable")
	fl.BoolVar(&w.Quiet, "no-open", false, "only print the address")
	for _, name := range []string{"cwd", "token-file"} {
		_ = fl.MarkHidden(name)
	}
	return cmd
}
