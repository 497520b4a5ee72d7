// Package front is people and programs at the door: the command, the terminal, editors, other agents. A front end
// reads events and sends inputs; it keeps no state and folds nothing itself.
//
// Begin with command/run.go.
//
//	console    the plain front end, and tables and lists for subcommands
//	tui        the interactive front end
//	acp        the front end for editors: the Agent Client Protocol
//	mcpserver  our tools and agents as an MCP server
//	a2a        sessions as tasks of the Agent2Agent protocol
//	command    the command: flags and no logic
package front
