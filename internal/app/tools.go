package app

import (
	"slices"

	"github.com/inspan/inspan/internal/lsp"
	"github.com/inspan/inspan/internal/tools"
	"github.com/inspan/inspan/tool"
)

// BuiltIn lists the tools that are part of inspan. They belong to no session.
func BuiltIn() []tool.Tool {
	return slices.Concat(tools.WithLSP(&lsp.Manager{}, tools.Core(&tools.Shell{}, "")), tools.Web{}.Tools())
}

// toolbox lists the tools of a session.
func (a *App) toolbox(shell *tools.Shell, edit string, servers *lsp.Manager) []tool.Tool {
	list := tools.Core(shell, edit)
	if !a.Config.NoLSP {
		list = tools.WithLSP(servers, list)
	}
	if a.Config.Web.Off {
		return list
	}
	w := tools.Web{Search: a.Config.Web.Engine(), Secrets: map[string]tools.Secret{}}
	for name, s := range a.Config.Web.Secrets {
		w.Secrets[name] = tools.Secret{Hosts: s.Hosts, Value: s.Value, Plain: s.Plain}
	}
	return append(list, w.Tools()...)
}

// Shell is the shell of a session that is open here, with its jobs; nil if it is not.
func (a *App) Shell(session string) *tools.Shell {
	sh, _ := a.shells.Load(session)
	shell, _ := sh.(*tools.Shell)
	return shell
}

// protected are the branches that the git tool does not push to.
func (a *App) protected() []string {
	if a.Config.Protected != nil {
		return a.Config.Protected
	}
	return []string{"main", "master"}
}
