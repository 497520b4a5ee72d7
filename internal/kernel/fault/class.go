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
		return event.ErrorExit
	case err == nil:
		return event.ErrorNone
	case errors.As(err, &panicked):
		return event.ErrorPanic
	case is(ErrTimeout, ErrUnstoppable, context.DeadlineExceeded, os.ErrDeadlineExceeded):
		return event.ErrorTimeout
	case is(tool.ErrInvalid):
		return event.ErrorArguments
	case is(fs.ErrNotExist):
		return event.ErrorNotFound
	case is(fs.ErrPermission):
		return event.ErrorPermission
	case keep.DiskFault(err):
		return event.ErrorDisk
	case errors.As(err, &network), is(syscall.ECONNREFUSED, syscall.ECONNRESET, io.ErrUnexpectedEOF):
		return event.ErrorNetwork
	}
	return event.ErrorTool
}
