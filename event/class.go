package event

// ErrorClass is what kind of fault made a call fail, for whoever counts failures: the texts of
// errors differ, and nobody should read them.
type ErrorClass string

// Error classes. A call may have one although its outcome is "ok": a command that ran and exited
// with another code than 0.
const (
	ErrorNone       ErrorClass = ""
	ErrorTimeout    ErrorClass = "timeout"      // it took too long
	ErrorPanic      ErrorClass = "panic"        // its tool crashed
	ErrorArguments  ErrorClass = "arguments"    // they did not fit
	ErrorUnknown    ErrorClass = "unknown_tool" // there is no such tool; until version 0.1 "arguments"
	ErrorNotFound   ErrorClass = "not_found"    // a file or what else it was about is not there
	ErrorPermission ErrorClass = "permission"   // the system or the sandbox refused it
	ErrorNetwork    ErrorClass = "network"      // a host could not be reached, or did not answer
	ErrorDisk       ErrorClass = "disk"         // no room, or a fault of the disk
	ErrorExit       ErrorClass = "exit"         // a command exited with another code than 0
	ErrorDiverged   ErrorClass = "diverged"     // a tool did not repeat itself, see [tool.ErrDiverged]
	ErrorTool       ErrorClass = "tool"         // the tool said so, and nothing more is known
)
