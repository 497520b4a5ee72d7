package event

// ErrorClass is the kind of fault that made a call fail. Use it to count failures; error texts vary and should
// not be parsed.
type ErrorClass string

// Error classes. A call with the outcome "ok" may have one: a command that ran and exited with a code other
// than 0.
const (
	ErrorNone       ErrorClass = ""
	ErrorTimeout    ErrorClass = "timeout"      // it took too long
	ErrorPanic      ErrorClass = "panic"        // its tool panicked
	ErrorArguments  ErrorClass = "arguments"    // unusable arguments
	ErrorUnknown    ErrorClass = "unknown_tool" // no such tool; version 0.1 says "arguments"
	ErrorNotFound   ErrorClass = "not_found"    // a file or another object was missing
	ErrorPermission ErrorClass = "permission"   // refused by the system or the sandbox
	ErrorNetwork    ErrorClass = "network"      // a host could not be reached, or did not answer
	ErrorDisk       ErrorClass = "disk"         // no room, or a disk fault
	ErrorExit       ErrorClass = "exit"         // a command exited with a code other than 0
	ErrorDiverged   ErrorClass = "diverged"     // a tool did not repeat itself
	ErrorTool       ErrorClass = "tool"         // any other error of the tool
)
