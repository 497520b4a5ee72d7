package custom

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/inspan/inspan/tool"
)

const (
	maxDeclaration = 64 << 10 // bytes of a program's description of itself
	maxErrors      = 16 << 10 // bytes kept of the end of its standard error
)

// notStarted is a failure unrelated to the program, so it is tried again at the next search.
type notStarted struct{ err error }

func (e notStarted) Error() string {
	return "could not be asked to describe itself: " + e.err.Error()
}

func (e notStarted) Unwrap() error { return e.err }

// passing reports whether another attempt may succeed.
func passing(err error) bool {
	var n notStarted
	return errors.As(err, &n)
}

// describe asks a program to describe itself. Errors continue the name of the program.
func (s *Set) describe(ctx context.Context, p program) (declaration, error) {
	if s.Env.Procs == nil {
		return declaration{}, notStarted{errors.New("this host can't start processes")}
	}
	patience := cmp.Or(s.Patience, describeTimeout)
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, errs := output{most: maxDeclaration, full: cancel}, lines{}
	box := tool.Box{Level: tool.BoxNone}
	if s.Env.Walls.Read {
		box = tool.Box{Level: tool.BoxRead, Program: p.folder.Dir}
	}
	began := time.Now()
	proc, err := s.Env.Procs.Start(limited, tool.Command{
		Args: []string{"sh", "-c", `exec "$@" 1>&3 3>&-`, "sh", p.file, "--describe"},
		Dir:  s.Env.Root, Output: &errs, Report: &out, Box: box,
	})
	if err != nil {
		return declaration{}, notStarted{err}
	}
	code, err := proc.Wait()
	proc.Kill() // what it may have left behind
	data, dropped := out.get()
	switch {
	case dropped > 0:
		return declaration{}, fmt.Errorf("prints more than %d KiB for --describe: it must print one JSON object",
			maxDeclaration>>10)
	case limited.Err() != nil:
		return declaration{}, fmt.Errorf("did not answer --describe within %v: fix it, or remove its executable bit if it is not a tool",
			min(patience, time.Since(began)).Round(time.Millisecond))
	case err != nil:
		return declaration{}, notStarted{err}
	case code != 0:
		return declaration{}, fmt.Errorf("ended with exit code %d for --describe%s; if it is not a tool, remove its "+
			"executable bit", code, said(errs.text()))
	}
	if now, err := p.current(); err != nil || now != p.digest {
		return declaration{}, notStarted{errors.New("it changed meanwhile")}
	}
	d, err := decode(data)
	if err != nil {
		return declaration{}, fmt.Errorf("does not describe itself as a tool: %w", err)
	}
	return d, nil
}

// said continues a sentence with the last line of a program's output, which says most if a program crashed.
func said(text string) string {
	if text == "" {
		return ""
	}
	return " (" + last(text) + ")"
}
