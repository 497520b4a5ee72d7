package app

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/inspan/inspan/internal/sandbox"
	"github.com/inspan/inspan/tool"
)

// Output runs a program and returns the first line it prints to standard
// output. An exit code other than 0 is an error.
func Output(ctx context.Context, args ...string) (string, error) {
	text, err := output(ctx, nil, args...)
	line, _, _ := strings.Cut(text, "\n")
	return line, err
}

// output runs a program and returns what it prints to standard output, without
// white space around it. environ is as in [tool.Command].
func output(ctx context.Context, environ []string, args ...string) (string, error) {
	printed, complaints, code, err := run(ctx, environ, args...)
	if err == nil && code != 0 {
		err = fmt.Errorf("%s ended with %d: %.200s", args[0], code, strings.TrimSpace(complaints))
	}
	return strings.TrimSpace(string(printed)), err
}

// run runs a program in the root folder, see runIn.
func run(ctx context.Context, environ []string, args ...string) (printed []byte, complaints string, code int, err error) {
	return runIn(ctx, tool.Command{Args: args, Dir: "/", Env: environ})
}

// runIn runs a program, without walls, and returns what it prints to standard output
// and, apart from that, its complaints. Output and Report of the command are ignored.
func runIn(ctx context.Context, c tool.Command) (printed []byte, complaints string, code int, err error) {
	env, err := sandbox.Local(c.Dir, nil, sandbox.Options{})
	if err != nil {
		return nil, "", 0, err
	}
	var out, errs bytes.Buffer
	// Standard output goes to descriptor 3, apart from the complaints.
	c.Args = append([]string{"sh", "-c", `exec "$@" >&3 3>&-`, "sh"}, c.Args...)
	c.Output, c.Report = &errs, &out
	proc, err := env.Procs.Start(ctx, c)
	if err != nil {
		return nil, "", 0, err
	}
	code, err = proc.Wait()
	return out.Bytes(), errs.String(), code, err
}
