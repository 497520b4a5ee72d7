// Package hook runs what people have set up to be run at moments of a session:
// command lines, requests to servers and Go functions. Files with hooks of Claude
// Code are read as they are ([ReadClaude]).
//
// # What a command is told
//
// A command is run by sh in the workspace, one of Claude Code by bash. It finds one line
// of JSON on its standard input:
//
//	{"version":1,"moment":"before_call","session":"20261122-x7","root":"/home/ann/shop","mode":"ask",
//	 "cwd":"/home/ann/shop","call":"c1","tool":"bash","args":{"command":"go test ./..."},
//	 "effects":[{"kind":"execute","text":"go test ./..."}]}
//
// Version, moment, session, root and mode are always there; the others where they
// mean something:
//
//	agent, parent, lead     in the session of an      its kind, the session it works for, the one at the
//	                        agent, and about one      top; they are not there in a person's session
//	cwd, call, tool, args   before_call, after_call   the call, with placeholders for secrets
//	effects                 before_call               what it would do
//	result, exit, failed    after_call                what it brought, without secrets; exit code of its command; why it failed
//	text                    prompt, before_compact,   what the person said, what is to be kept,
//	                        stop, subagent_stop       what the model said last
//	why                     session_start, stop,      "new" or "resumed", why the run ends,
//	                        before_/after_compact     why it is compacted
//	rounds                  stop                      how often a hook has made this run go on
//
// Fields may come to be added; version then stays what it is.
//
// # What it may answer
//
// The exit code comes first:
//
//	0       fine. Standard output may hold an answer (below).
//	2       it objects; standard error says why, and standard output counts for nothing:
//	          before_call             the call is denied, and the model told why
//	          prompt                  the run ends before the model is asked
//	          before_compact          the conversation stays as it is
//	          stop, subagent_stop     the model is told why, and goes on
//	          after_call              the model is told, beside the result
//	          any other moment        people are told; nothing is stopped
//	other   the hook failed: people are told the first line of standard error, and
//	        the session goes on, unless on_failure is "deny", as it is for commands of
//	        Claude Code. A shell that says it can't run a line has then failed with 0, too
//
// So it is when it takes longer than its timeout (all it has started is ended), or
// can't be started. Beware that shells and Python end with 2 themselves when they
// can't read a script.
//
// Standard output that begins with { is an answer in JSON. All fields may be left
// out, and one that means nothing at the moment is a failure:
//
//	action   before_call: "allow", "ask" or "deny"; prompt, before_compact: "allow" or "deny"
//	reason   beside action; for the model and for people
//	args     before_call: other arguments, all of them; the call is then judged anew
//	result   after_call: text in the place of what the call brought
//	text     everywhere but at session_end: for the model
//
// "allow" answers no more than what the mode would ask. At session_start and
// prompt, output that is not JSON is text for the model; elsewhere it counts for
// nothing. No more than 64 KiB of each output are taken, and only the start of a
// longer text; an answer in JSON that is longer is a failure.
//
// # Servers
//
// A hook with an address gets the same JSON as a POST request. A status of 2xx is
// like exit code 0, with the body as standard output; 403 is like 2, with the body
// as the reason; anything else, a redirect too, is a failure.
//
// # Hooks of Claude Code
//
// They are told and may answer what Claude Code documents: its names of events,
// tools, arguments and modes, its exit codes, which are those above, and its JSON
// (continue, stopReason, systemMessage, decision, reason, hookSpecificOutput). For a person
// the session of an agent is a part of theirs: SessionStart, UserPromptSubmit, Stop and
// SessionEnd do not run there. The differences:
//
//   - hooks run one after another, not all at once
//   - regular expressions are those of RE2, which can't look ahead
//   - "continue": false can't end a run after a call; the model is asked to end its turn
//   - hooks of the types prompt, agent and mcp_tool, and events that have no moment
//     here, do not run; ReadClaude tells which
//   - there is no CLAUDE_ENV_FILE, and the log at transcript_path has another format
package hook
