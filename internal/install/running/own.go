package running

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/shell"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Bytes of the output of a person's command: kept while it runs, and told to the model.
const (
	ownKept = 1 << 20
	ownTold = 16 << 10
)

// Own runs a command of the person in their own shell, in the folder root: outside of the sandbox, with their
// environment and without input. It returns the text about it for the session, even if ctx ends. The words are not
// the person's wish. They count as text by strangers unless the command is proven to stay on this machine, and as
// private if it reads beyond root.
func (t *Table) Own(ctx context.Context, root, command string) (event.Said, error) {
	env, err := sandbox.Local(root, nil, sandbox.Options{})
	if err != nil {
		return event.Said{}, err
	}
	printed := &keep.Tail{Limit: ownKept}
	proc, err := env.Procs.Start(ctx, tool.Command{
		Args: []string{cmp.Or(os.Getenv("SHELL"), "sh"), "-c", command}, Dir: env.Root, Env: os.Environ(), Output: printed,
	})
	if err != nil {
		return event.Said{}, err
	}
	code, err := proc.Wait()
	if err != nil && ctx.Err() == nil {
		return event.Said{}, err
	}
	head, tail, dropped := text.CutMiddle(strings.ToValidUTF8(printed.Text(), "\uFFFD"), ownTold)
	return event.Said{
		Parts: llm.Say(words.Ran(command, head, tail, dropped, code, ctx.Err() != nil)), By: words.OwnShell,
		Origin: event.OriginCommand, Taint: taintOf(command, env.Root),
	}, nil
}

// taintOf returns the taint of a command's output.
func taintOf(command, root string) event.Taint {
	plan := shell.Explain(command, shell.Place{Root: root, Cwd: root, Home: keep.Home()})
	beyond := func(e tool.Effect) bool {
		rel, err := filepath.Rel(root, e.Path)
		return e.Kind == tool.Read && (err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)))
	}
	return event.Taint{Untrusted: plan.Class == shell.Full, Private: slices.ContainsFunc(plan.Effects, beyond)}
}
