// Package extend has the extensions of an agent: the built-in tools, MCP servers, hooks, skills, plugins,
// memory, a person's own programs. A session works without any of it.
//
// Begin with tools: one tool is one .go and one .md.
//
//	profile  adjustments for single models, and the memory of graphics cards; pure
//	hook     hooks of users, including the hook files of Claude Code
//	custom   users' programs as tools
//	mcp      servers of the Model Context Protocol as tools
//	oauth    logins: getting, storing and refreshing tokens, one process at a time
//	skill    skills and their tool, slash commands and kinds of subagents
//	memory   the memory between sessions, in markdown files
//	recall   full text search over all sessions
//	plugin   folders of skills, commands, agents, hooks and tools, pinned by content
//	tools    the built-in tools, one .go and one .md each
package extend
