package sandbox

import (
	"context"
	"io"
	"os/exec"
)

// Foreground runs one of the person's programs, such as their editor, on this program's terminal, and waits for
// it. It is not sandboxed, and is in the same process group, so that interrupt keys reach it.
func Foreground(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
	return cmd.Run()
}
