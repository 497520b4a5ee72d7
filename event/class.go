package event

// ErrorClass is the kind of fault that made a call fail. Use it to count failures; error texts vary and should
// not be parsed. It is one of "timeout", "panic", "arguments", "unknown_tool", "not_found", "permission",
// "network", "disk", "exit" (of a command, with a code other than 0), "diverged" (a tool did not repeat itself)
// and "tool" (any other error), or empty. A call with the outcome "ok" may have one: a command that ran and
// exited with a code other than 0. Version 0.1 says "arguments" for "unknown_tool".
type ErrorClass string
