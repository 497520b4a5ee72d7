package fault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"syscall"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/tool"
)

// Reasons why a call ends before its tool has returned.
var (
	ErrTimeout     = errors.New("it took too long")
	ErrUnstoppable = errors.New("it did not stop when asked to, and may still be running")
	ErrInterrupted = errors.New("interrupted")
	ErrTimeUp      = fmt.Errorf("%w: the time of the run is used up", ErrInterrupted)
	ErrBreaker     = fmt.Errorf("%w: the run spent too much within a minute", ErrInterrupted)
)

// Error classes. A call with the outcome "ok" may have one: a command that ran and exited with a code other
// than 0.
const (
	ErrorNone       event.ErrorClass = ""
	ErrorTimeout    event.ErrorClass = "timeout"      // it took too long
	ErrorPanic      event.ErrorClass = "panic"        // its tool panicked
	ErrorArguments  event.ErrorClass = "arguments"    // unusable arguments
	ErrorUnknown    event.ErrorClass = "unknown_tool" // no such tool; version 0.1 says "arguments"
	ErrorNotFound   event.ErrorClass = "not_found"    // a file or another object was missing
	ErrorPermission event.ErrorClass = "permission"   // refused by the system or the sandbox
	ErrorNetwork    event.ErrorClass = "network"      // a host could not be reached, or did not answer
	ErrorDisk       event.ErrorClass = "disk"         // no room, or a disk fault
	ErrorExit       event.ErrorClass = "exit"         // a command exited with a code other than 0
	ErrorDiverged   event.ErrorClass = "diverged"     // a tool did not repeat itself
	ErrorTool       event.ErrorClass = "tool"         // any other error of the tool
)

// ClassOf returns the class of a tool's error, or of the exit code of its command if err is nil. It
// compares no error texts.
func ClassOf(err error, exit *int) event.ErrorClass {
	var panicked *Panic
	var network net.Error
	is := func(targets ...error) bool {
		return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
	}
	switch {
	case err == nil && exit != nil && *exit != 0:
		return ErrorExit
	case err == nil:
		return ErrorNone
	case errors.As(err, &panicked):
		return ErrorPanic
	case is(ErrTimeout, ErrUnstoppable, context.DeadlineExceeded, os.ErrDeadlineExceeded):
		return ErrorTimeout
	case is(tool.ErrInvalid):
		return ErrorArguments
	case is(fs.ErrNotExist):
		return ErrorNotFound
	case is(fs.ErrPermission):
		return ErrorPermission
	case keep.DiskFault(err):
		return ErrorDisk
	case errors.As(err, &network), is(syscall.ECONNREFUSED, syscall.ECONNRESET, io.ErrUnexpectedEOF):
		return ErrorNetwork
	}
	return ErrorTool
}
