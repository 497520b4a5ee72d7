// Package mcpserver offers inspan's abilities to clients of the Model Context Protocol: its tools, and
// run_agent, which gives a task to an agent.
//
// No call bypasses the loop. The calls of one connection belong to a session of their own, whose model is the
// client: a request of the client becomes a reply with that one call, and nothing else is ever said (caller.go). So
// the rules for models apply: policy, hooks, sandbox, redaction, reading before editing, and the log. A connection
// is a process at the other end of a pipe, an HTTP session in revisions that have sessions, or all requests of a
// principal without one. Calls of a connection run concurrently: a call that comes while another is running or
// asking is made in a second session (connection.go), which knows the files that the client has read (shared.go).
//
// Calls that need approval are put to the person at the client as a form. Clients that speak revision
// 2025-11-25 or older are sent a request; those of 2026-07-28 get a result that asks, and call again with the
// answer. In both cases the work continues in its own goroutine and waits there. The answer must come with the
// same call by the same principal and with an unguessable key that works once (call.go). A client without forms
// is told what was denied.
//
// The SDK speaks the protocol; none of its types leave this package.
package mcpserver
