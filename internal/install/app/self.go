package app

import (
	"context"
	"io"

	"github.com/inspan/inspan/internal/install/equipment"
	"github.com/inspan/inspan/internal/world/sandbox"
)

// Helper runs this process as the helper of another inspan, if it was started as one, and returns its exit
// code: see [sandbox.Keeper] and [equipment.Helper]. A program calls it first in main.
func Helper() (ran bool, code int) {
	if ran, code = sandbox.Keeper(); ran {
		return ran, code
	}
	return equipment.Helper()
}

// First runs the program in a child process if this is process 1, see [sandbox.RunAsInit]. Call it after
// Helper.
func First() (ran bool, code int) { return sandbox.RunAsInit() }

// Self returns the running program, as [Load] expects it.
func Self() string { return sandbox.Self() }

// Foreground runs a program that owns the terminal while it runs, see [sandbox.Foreground].
func Foreground(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) error {
	return sandbox.Foreground(ctx, args, in, out, errs)
}
