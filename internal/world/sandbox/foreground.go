package sandbox

import (
	"context"
	"io"
	"os/exec"
)

// Foreground runs a program of the person's own, such as their editor, on the
// terminal that this program has, and waits for it. There are no walls around it,
// and it is in the same process group, so that keys that interrupt reach it.
func Foreground(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
	return cmd.Run()
}
