package equipment

import (
	"slices"

	"github.com/inspan/inspan/internal/delegate/corpus"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/world/lsp"
	"github.com/inspan/inspan/tool"
)

// BuiltIn lists the built-in tools, without a session.
func BuiltIn() []tool.Tool {
	return slices.Concat(tools.WithLSP(&lsp.Manager{}, tools.Core(&tools.Shell{}, "")), tools.Web{}.Tools())
}

// Names lists the names of all built-in tools. A session has some of them.
func Names() []string {
	out := []string{
		"apply_patch", "ask_corpus", "call_tool", "edit_file", "edit_lines", "finish_task", "history", "lsp_rename", MakeTool, "manage_agents", "mcp_resource", "mcp_server_list", "memory",
		"memory_store", "oauth_flow", "plan_workflow", "read_issue", "return_result", "script", "skill", "spawn_agent", "team", "tool_search",
		"tool_types", "web_search",
	}
	for _, t := range BuiltIn() {
		out = append(out, t.Name)
	}
	return slices.Concat(out, corpus.Names())
}

// Tools lists the built-in tools of a session according to the settings. Edit is the edit format for its model.
// The function ends everything that the tools started.
func Tools(c config.Config, shell *tools.Shell, edit string, env tool.Env) (list []tool.Tool, end func()) {
	servers := &lsp.Manager{Env: env}
	list = tools.Core(shell, edit)
	if !c.NoLSP {
		list = tools.WithLSP(servers, list)
	}
	if !c.Web.Off {
		w := tools.Web{Search: c.Web.Engine(), Secrets: map[string]tools.Secret{}}
		for name, s := range c.Web.Secrets {
			w.Secrets[name] = tools.Secret{Hosts: s.Hosts, Value: s.Value, Plain: s.Plain}
		}
		list = append(list, w.Tools()...)
	}
	return list, servers.Close
}

// OffMachine keeps the tools that use no files or commands of this machine, and those that work in another world if the
// session has one.
func OffMachine(list []tool.Tool, world *tool.Env) []tool.Tool {
	keep := []string{"todo", "web_fetch", "web_search"}
	if world != nil {
		for _, t := range tools.Files() {
			keep = append(keep, t.Name)
		}
		keep = append(keep, "edit_lines")
	}
	if world != nil && world.Procs != nil {
		keep = append(keep, "bash", "jobs", "git")
	}
	return slices.DeleteFunc(list, func(t tool.Tool) bool { return !slices.Contains(keep, t.Name) })
}

// Skilled adds the tool that loads skills, unless skills are off.
func Skilled(c config.Config, l *skill.Library, list []tool.Tool) []tool.Tool {
	if c.Skills.Off {
		return list
	}
	return append(list, l.Tool())
}
