package cost

import "strings"

// advice is a way to avoid costs of a kind. Settings are in backquotes.
type advice struct {
	kind Kind
	name string // beginning of the cause's name; empty means any
	sent int    // least number of requests that carried it
	text string
}

// advices are tried in order.
func advices() []advice {
	const shorter = "compact earlier with `/compact`, or begin a new session for a new task"
	return []advice{
		{Result, "", 3, "read parts of large files, and " + shorter},
		{Result, "", 0, "ask for less of it: a part of the file, or a command that prints less"},
		{Earlier, "", 0, shorter},
		{Person, "", 3, shorter},
		{Attached, "", 3, shorter},
		{Harness, "", 3, shorter},
		{Summary, "", 3, "begin a new session for a new task"},
		{Spec, "mcp__", 0, "turn off MCP servers that the work does not need (`mcp.servers.NAME.off`)"},
		{Spec, "spawn_agent", 0, "work without subagents (`agents.off`)"},
		{Spec, "skill", 0, "work without skills (`skills.off`)"},
		{Instructions, "", 0, "shorten the file: each request carries it"},
		{Skill, "list", 0, "remove skills that you don't use, or leave out the built-in ones (`skills.no_builtin`)"},
		{Skill, "", 3, "shorten the skill, or move parts of it to files that it names"},
		{Memory, "", 0, "forget what is no longer of use (inspan memory), or work without it (`memory.off`)"},
		{Miss, "the tools", 0, "connect MCP servers before the first message"},
		{Miss, "another model", 0, "change the model at the beginning of a task: each has a cache of its own"},
		{Miss, "another effort", 0, "set the effort before the first message (`effort`)"},
		{Miss, "a pause", 0, "vendors keep a prompt for about five minutes: after a longer pause begin a new session for a new task"},
		{Miss, "compaction", 0, "do long work with a model that has a larger window"},
		{Miss, "old results", 0, "read parts of large files"},
		{Miss, "rewind", 0, "rewind early, while little has to be sent again"},
		{Reasoning, "", 0, "ask for less of it in easy tasks (`effort`)"},
		{Output, "", 0, "ask for short answers, and for edits instead of whole files"},
		{Retry, "broke off", 0, "steer a reply that goes wrong as soon as you see it"},
		{Router, "", 0, "decide by rules alone (`router.judge`)"},
		{Reviewer, "", 0, "bound its costs (`reviewer.max_cost`), or allow by rules what need not be reviewed (`allow`)"},
		{Child, "", 0, "give small tasks to a cheaper model (`agents.small`)"},
	}
}

// advice returns a way to avoid the cost; empty if nothing is known.
func (c CostCause) advice() string {
	for _, a := range advices() {
		if a.kind == c.Kind && strings.HasPrefix(c.Name, a.name) && c.Sent >= a.sent {
			return a.text
		}
	}
	return ""
}
