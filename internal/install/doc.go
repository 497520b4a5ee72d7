// Package install turns settings into a running agent. Each package makes one part of it from one
// config.Installation, and app wires the parts into a host.
//
// Begin with config, then app.
//
//	config      one strict settings file
//	providers   models: providers, keys, the router, discovery
//	connect     connections to MCP servers, tools about them, and logins
//	permission  rules of all scopes, boxes, judges and secrets of an installation
//	equipment   tools of a session, and additions by users, workspaces and plugins
//	knowledge   the system prompt: instructions, facts of machine and folder; memory and its tool, past sessions
//	running     running sessions and their processes, checkpoints, and rewind
//	schedule    runs that begin by themselves: cron, webhooks, files, the system's timer
//	app         turns settings into a running agent
//	setup       checks, a first model, and imports from other agents
package install
