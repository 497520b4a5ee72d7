package equipment

import (
	"cmp"
	"context"
	"slices"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/delegate/script"
	"github.com/inspan/inspan/internal/extend/profile"
	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Tools that are not built in are deferred if their descriptions exceed one part in mostDescribed of the
// window, or fewDescribed tokens if the window is unknown.
const (
	mostDescribed = 10
	fewDescribed  = 20_000 // tokens
)

// Furnish decides which tools of an agent every request describes: the everyday ones. The others are found with
// tool_search. Built-in ones are deferred if the lever or the window demands it, dynamic ones if there are many.
// With told, every tool is described. Come lists the dynamic tools. Mode is that of the session; empty means ask.
// Call it last on an agent, before corpus tools.
func Furnish(agent *inspan.Agent, c *config.Installation, mode tool.Mode, come func(context.Context) []tool.Tool, told bool) {
	levers, unattended := agent.Opening.Levers, agent.Unattended
	mode = cmp.Or(mode, tool.ModeAsk)
	all := tools.DescribeFor(agent.Tools, tools.Truth{
		Mode: mode, Walls: agent.Env.Walls, Unattended: unattended, Keeps: !agent.Jobs.KeepNone && !agent.Jobs.Keep, GoesOn: agent.Jobs.Keep,
		Throwaway: agent.Env.Throwaway,
	})
	if unattended { // no person watches the session
		all = slices.DeleteFunc(slices.Clone(all), func(t tool.Tool) bool { return t.Name == "ask_user" || t.Name == "render" })
	}
	if levers.Names.Active(unattended) {
		all = tools.Mended(all)
	}
	var beside []tool.Tool // not described to the model
	switch profile.For(agent.Model.Info().Route(), c.Config.Profiles).Edit {
	case "patch":
		all, beside = tools.Patching(all)
	case "editor":
		all, beside = tools.Editing(all)
	}
	window := agent.Model.Info().Window
	room := fewDescribed
	if window > 0 {
		room = window / mostDescribed
	}
	var rare, known []tool.Tool // known have arguments that only tool_search describes
	if !told && (levers.Deferred.Active(unattended) || described(all) > room) {
		all, rare = daily(all, window)
		all, known = brief(all)
	}
	scripts := c.Scripts(levers, unattended)
	var plans tool.Tool
	if scripts {
		all, plans = append(all, script.Tool(c.Self)), planWorkflow(c.Self)
	}
	agent.Tools, agent.Dynamic.SubagentTools = all, []string{"manage_agents"}
	agent.Dynamic.Tools = func(ctx context.Context) (shown, hidden []tool.Tool) {
		shown, hidden = come(ctx), rare
		if scripts {
			hidden = append(slices.Clone(rare), script.TypesTool(slices.Concat(all, rare, shown)), plans)
		}
		if !told && described(shown) > room {
			shown, hidden = nil, slices.Concat(hidden, shown)
		}
		if len(hidden) > 0 {
			shown = slices.Concat(tools.Deferred(hidden, known, shown), shown)
		}
		hidden = slices.Concat(hidden, beside)
		if levers.Names.Active(unattended) {
			shown = tools.Mended(shown)
			hidden = slices.Concat(hidden, tools.Usual(slices.Concat(all, shown, hidden)))
		}
		return shown, hidden
	}
}

// Helper runs this process as the helper of a script, if it was started as one: see [script.Child].
func Helper() (ran bool, code int) { return script.Child() }

// brief hides rarely used arguments from the descriptions in requests. Known are the tools with hidden
// arguments.
func brief(list []tool.Tool) (out, known []tool.Tool) {
	out = slices.Clone(list)
	rare := map[string][]string{
		"spawn_agent": {"tools", "model", "mode", "plan", "budget", "deadline", "max_turns", "result_schema", "count", "reduce", "check"},
		"bash":        {"interactive"}, "jobs": {"keys"}, "history": {"around"}, "web_fetch": {"max_bytes"}, "search_files": {"max"},
	}
	for i, t := range out {
		if args := rare[t.Name]; args != nil {
			known = append(known, t)
			out[i].HiddenFields = slices.Concat(t.HiddenFields, args)
		}
	}
	return out, known
}

// leastDaily is the smallest window, in tokens, with a description of all everyday tools. In a smaller window they
// would take a third of the prompt's share.
const leastDaily = 16_000

// daily splits built-in tools into everyday ones and the rest.
func daily(list []tool.Tool, window int) (shown, rare []tool.Tool) {
	names := []string{
		"read_file", "write_file", "edit_file", "edit_lines", "apply_patch", "str_replace_based_edit_tool", "list_files", "search_files", "bash", "todo", "ask_user", "history",
	}
	if window == 0 || window >= leastDaily {
		names = append(names, "find_files", "jobs", "skill", "spawn_agent", "web_fetch")
	}
	for _, t := range list {
		if slices.Contains(names, t.Name) {
			shown = append(shown, t)
		} else {
			rare = append(rare, t)
		}
	}
	return shown, rare
}

// described estimates the tokens of the tools' descriptions.
func described(list []tool.Tool) int {
	req := llm.Request{}
	for _, t := range list {
		req.Tools = append(req.Tools, t.Spec())
	}
	return req.Tokens()
}
