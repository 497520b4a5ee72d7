package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/inspan/inspan/tool"
)

// FirstLine runs a program, unsandboxed, and returns the first line of its standard output. An exit code other
// than 0 is an error.
func FirstLine(ctx context.Context, args ...string) (string, error) {
	text, err := Output(ctx, nil, args...)
	line, _, _ := strings.Cut(text, "\n")
	return line, err
}

// Output runs a program and returns its standard output, without surrounding white space. environ is as in
// [tool.Command].
func Output(ctx context.Context, environ []string, args ...string) (string, error) {
	printed, complaints, code, err := Capture(ctx, environ, args...)
	if err == nil && code != 0 {
		err = fmt.Errorf("%s ended with %d: %.200s", args[0], code, strings.TrimSpace(complaints))
	}
	return strings.TrimSpace(string(printed)), err
}

// Capture runs a program in the root folder, see CaptureIn.
func Capture(ctx context.Context, environ []string, args ...string) (printed []byte, complaints string, code int, err error) {
	return CaptureIn(ctx, tool.Command{Args: args, Dir: "/", Env: environ})
}

// CaptureIn runs a program, unsandboxed, and returns its standard output and, separately, its standard error.
// Output and Report of the command are ignored.
func CaptureIn(ctx context.Context, c tool.Command) (printed []byte, complaints string, code int, err error) {
	env, err := Local(c.Dir, nil, Options{})
	if err != nil {
		return nil, "", 0, err
	}
	return CaptureFrom(ctx, env, c)
}

// CaptureFrom is [CaptureIn] in an environment, with the box that the command requests.
func CaptureFrom(ctx context.Context, env tool.Env, c tool.Command) (printed []byte, complaints string, code int, err error) {
	var out, errs bytes.Buffer
	// Standard output goes to descriptor 3, separate from standard error.
	c.Args = append([]string{"sh", "-c", `exec "$@" >&3 3>&-`, "sh"}, c.Args...)
	c.Output, c.Report = &errs, &out
	proc, err := env.Procs.Start(ctx, c)
	if err != nil {
		return nil, "", 0, err
	}
	code, err = proc.Wait()
	return out.Bytes(), errs.String(), code, err
}

// Git runs git in a folder, unsandboxed, and returns its standard output. An exit code other than 0 is also an
// error; -1 means that git could not be run. The caller must keep git from running programs of the repository.
func Git(ctx context.Context, dir string, stdin []byte, args ...string) (printed []byte, code int, err error) {
	printed, complaints, code, err := CaptureIn(ctx, tool.Command{
		Args: append([]string{"git"}, args...), Dir: dir, Stdin: bytes.NewReader(stdin),
	})
	if err != nil {
		return nil, -1, err
	}
	if code != 0 {
		err = fmt.Errorf("exit code %d: %.500s", code, strings.TrimSpace(complaints))
	}
	return printed, code, err
}
