// Package hook runs hooks: command lines, requests to servers and Go functions that people have set up for moments of
// a session. It reads files with hooks of Claude Code as they are ([ReadClaude]).
//
// # Input
//
// A command runs in the workspace, by sh, or by bash if it is a hook of Claude Code. It gets one line of JSON on
// its standard input:
//
//	{"version":1,"moment":"before_call","session":"20261122-x7","root":"/home/ann/shop","mode":"ask",
//	 "cwd":"/home/ann/shop","call":"c1","tool":"bash","args":{"command":"go test ./..."},
//	 "effects":[{"kind":"execute","text":"go test ./..."}]}
//
// Version, moment, session, root and mode are always there. Other fields depend on the moment:
//
//	agent, parent, lead     in the session of an      its kind, the session it works for, and the one at the
//	                        agent, and about one      top; missing in a person's session
//	cwd, call, tool, args   before_call, after_call   the call, with placeholders for secrets
//	effects                 before_call               its effects
//	result, exit, failed    after_call                its result without secrets; the exit code of its command; why it failed
//	text                    prompt, before_compact,   the person's message, what a compaction should keep,
//	                        stop, subagent_stop,      the model's last message,
//	                        teammate_idle,            the same,
//	                        task_completed            the task
//	why                     session_start, stop,      "new" or "resumed", why the run ends,
//	                        before_/after_compact,    why it is compacted,
//	                        task_completed            the number of the task
//	name                    teammate_idle,            the member of the team
//	                        task_completed
//	rounds                  stop                      how often a hook has continued this run
//
// Later versions may add fields without changing version.
//
// # Answer
//
// The exit code comes first:
//
//	0       success. Standard output may contain an answer, see below.
//	2       the hook objects. Standard error gives the reason, and standard output is ignored:
//	          before_call             the call is denied, and the model gets the reason
//	          prompt                  the run ends before the model is asked
//	          before_compact          the conversation stays as it is
//	          stop, subagent_stop,    the model gets the reason, and continues
//	          teammate_idle
//	          task_completed          the task is not done, and the model gets the reason
//	          after_call              the model gets the reason together with the result
//	          any other moment        people see the reason; nothing is stopped
//	other   the hook failed. People see the first line of standard error, and the session continues, unless
//	        on_failure is "deny", the default for commands of Claude Code. For these, a line that the shell
//	        could not run is a failure even if the exit code is 0.
//
// A hook that exceeds its timeout, or can't be started, has failed too. A timeout ends all of its processes. Shells
// and Python end with 2 themselves if they can't read a script.
//
// Standard output that begins with { is an answer in JSON. All fields are optional, and a field without a meaning at
// the moment is a failure:
//
//	action   before_call: "allow", "ask" or "deny"; prompt, before_compact, task_completed: "allow" or "deny"
//	reason   the reason for the action, for the model and for people
//	args     before_call: the new arguments, all of them; the call is then judged again
//	result   after_call: text that replaces the result
//	text     all moments except session_end: text for the model
//
// "allow" only answers a question of the mode. At session_start and prompt, output that is not JSON is text for the
// model; at other moments it is ignored. At most 64 KiB of each output count: of a longer text its beginning, while a
// longer answer in JSON is a failure.
//
// # Servers
//
// A hook with an address gets the same JSON as a POST request. A status of 2xx is like exit code 0, with the body as
// standard output. 403 is like exit code 2, with the body as the reason. Any other status, including a redirect, is a
// failure.
//
// # Hooks of Claude Code
//
// Their input and answers are those of Claude Code's documentation: its names of events, tools, arguments and modes,
// its exit codes, which are those above, and its JSON (continue, stopReason, systemMessage, decision, reason,
// hookSpecificOutput). The session of an agent is a part of its person's session: SessionStart, UserPromptSubmit, Stop
// and SessionEnd do not run there. The differences:
//
//   - hooks run one after another, not all at once
//   - regular expressions are those of RE2, which can't look ahead
//   - "continue": false can't end a run after a call; the model is asked to end its turn
//   - hooks of the types prompt, agent and mcp_tool, and events without a moment here, do not run; ReadClaude lists
//     them
//   - there is no CLAUDE_ENV_FILE, and the log at transcript_path has another format
package hook
