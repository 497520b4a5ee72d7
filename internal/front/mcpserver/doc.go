// Package mcpserver offers what inspan can do to clients of the Model Context
// Protocol: its tools, and run_agent, which gives a task to an agent.
//
// No call goes around the loop. The calls of one connection belong to a session of
// their own, whose model is the client: what the client asks for is a reply with that
// one call, and nothing else is ever said (caller.go). So everything holds that holds
// for a model: policy, hooks, walls, redaction, what must be read before it is edited,
// the log. A connection is a process at the other end of a pipe, an HTTP session of
// the revisions that have those, or all that a principal does without one. Calls of a
// connection go on side by side: one that comes while another goes on, or asks, is made
// in a session beside that (connection.go), which knows what the client has read (shared.go).
//
// What needs approval is put to the person at the client as a form. Clients that speak
// 2025-11-25 or an older revision are sent a request for it; those of 2026-07-28 get a
// result that asks, and call again with the answer. Either way the work goes on in a
// goroutine of its own and waits there, and what comes back must be the same call of
// the same principal with a key that can't be guessed and that is good for once
// (work.go). A client that can't put forms to anybody is told what was denied.
//
// The SDK speaks the protocol; nothing of it goes further inward than this package.
package mcpserver
