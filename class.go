package inspan

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"syscall"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/keep"
	"github.com/inspan/inspan/tool"
)

// classOf is what kind of fault an error of a tool is, or the exit code of its command. It reads
// no texts.
func classOf(err error, exit *int) event.ErrorClass {
	var panicked *crash
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
	case is(errTimeout, errLeft, context.DeadlineExceeded, os.ErrDeadlineExceeded):
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
