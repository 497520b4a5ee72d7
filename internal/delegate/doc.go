// Package delegate lets agents work for agents: subagents and teams, questions over texts of any size, scripts
// that call tools.
//
// Begin with subagent: spawn.go makes a child, child.go drives it.
//
//	subagent  sessions that work for a session
//	corpus    text of any size as a variable: listing, searching, cutting, asking a small model, citing
//	script    scripts in JavaScript, each in a process that can do nothing else, and code mode
package delegate
