package app

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/inspan/inspan/internal/lsp"
	"github.com/inspan/inspan/internal/sandbox"
	"github.com/inspan/inspan/internal/tools"
	"github.com/inspan/inspan/tool"
)

// Tools lists the built-in tools. They belong to no session.
func Tools() []tool.Tool {
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

// CallTool runs one tool for a person, in the folder cwd, and returns what the
// model would see. Nobody is asked: the person has typed the call.
func (a *App) CallTool(ctx context.Context, cwd, name string, args json.RawMessage) (text string, err error) {
	env, err := sandbox.Local(cwd, nil, sandbox.Options{})
	if err != nil {
		return "", err
	}
	env.HTTP = a.http()
	shell, servers := &tools.Shell{Protected: a.protected()}, &lsp.Manager{Env: env}
	defer shell.Close()
	defer servers.Close()
	list := slices.Concat(tools.WithLSP(servers, tools.Core(shell, "")), tools.Web{}.Tools())
	t, err := named(list, name)
	if err != nil {
		return "", err
	}
	c := &tool.Call{ID: "call", Name: name, Env: env, Cwd: env.Root, Progress: func(string) {}}
	if c.Args, err = t.Check(args); err != nil {
		return "", err
	}
	if t.Stands != nil {
		if c.Name, c.Args, err = t.Stands(ctx, c); err != nil {
			return "", err
		}
		if t, err = named(list, c.Name); err != nil {
			return "", err
		}
	}
	res, err := t.Run(ctx, c)
	return res.Parts.Text(), err
}

func named(list []tool.Tool, name string) (tool.Tool, error) {
	var names []string
	for _, t := range list {
		if names = append(names, t.Name); t.Name == name {
			return t, nil
		}
	}
	if near := tool.Nearest(name, names); near != "" {
		return tool.Tool{}, fmt.Errorf("no tool %q; did you mean %q?", name, near)
	}
	return tool.Tool{}, fmt.Errorf("no tool %q; see 'inspan tools list'", name)
}
