package hook

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/shell"
	"github.com/inspan/inspan/tool"
)

// Walls determines how hooks and other commands of settings run. No person types them, and they may run files that the
// model has written, such as the Makefile of the workspace.
type Walls struct {
	// Own means that the settings are the person's own and not those of a repository or a plugin. Only then Outside
	// counts, and the folder of a program that a command names is readable.
	Own bool
	// Outside lists the programs that may run without a sandbox, by absolute paths.
	Outside []string
}

// Box returns the sandbox of a command: the workspace box, if commands of the session have one.
func (w Walls) Box(ctx context.Context, env tool.Env, mode tool.Mode, c Config) tool.Box {
	segments := shell.Explain(c.line(), shell.Place{Root: env.Root, Cwd: env.Root, Home: keep.Home()}).Segments
	if mode == tool.ModeYolo || !env.Walls.Workspace || w.out(ctx, env, segments) {
		return tool.Box{Level: tool.BoxNone}
	}
	b := tool.Box{Level: tool.BoxWorkspace, Program: keep.Real(c.PluginRoot), Git: onlyGit(segments)}
	if env.Walls.Hosts {
		b.Hosts = slices.Clone(c.Hosts)
	}
	if !w.Own {
		return b
	}
	read, write := slices.Clone(c.Read), slices.Clone(c.Write)
	for _, s := range segments {
		read = append(read, keep.Installed(s.Argv)...)
		for _, e := range s.Effects { // the person has named the file that takes the output
			if e.Kind == tool.Write && e.Path != "" && !text.Inside(env.Root, e.Path) && redirected(s.Text, e.Path) {
				create(e.Path)
				write = append(write, e.Path)
			}
		}
	}
	b.Read, b.Write = resolved(ctx, env, read), resolved(ctx, env, write)
	return b
}

// redirected reports whether a segment redirects output to a file, which the shell then creates.
func redirected(segment, path string) bool {
	_, rest, some := strings.Cut(segment, ">")
	return some && strings.Contains(rest, filepath.Base(path))
}

// create creates a missing file as the shell would: a box only opens existing files.
func create(path string) {
	if f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil { // else the hook gives the reason why
		_ = f.Close()
	}
}

// out reports whether a command is a single program that may run without a sandbox and can't come from the workspace.
func (w Walls) out(ctx context.Context, env tool.Env, segments []shell.Segment) bool {
	if !w.Own || len(segments) != 1 || len(segments[0].Argv) == 0 {
		return false
	}
	program := segments[0].Argv[0]
	real, err := env.Files.Resolve(ctx, program)
	return err == nil && filepath.IsAbs(program) && !text.Inside(env.Root, real) && !env.IsTemporary(real, true) &&
		slices.Contains(w.Outside, program)
}

// onlyGit reports whether git is the only unproven part of a command. Then the command gets the repository like git in
// a session.
func onlyGit(segments []shell.Segment) bool {
	return !slices.ContainsFunc(segments, func(s shell.Segment) bool {
		return s.Class == shell.Full && (len(s.Argv) == 0 || filepath.Base(s.Argv[0]) != "git")
	})
}

// line returns the command as a shell would read it, with the person's home folder for its variable.
func (c Config) line() string {
	if c.Args == nil {
		home := keep.Home() + string(filepath.Separator)
		return strings.NewReplacer("$HOME/", home, "${HOME}/", home).Replace(c.Command)
	}
	var words []string
	for _, w := range append([]string{c.Command}, c.Args...) {
		words = append(words, text.ShellQuote(w))
	}
	return strings.Join(words, " ")
}

// resolved returns the paths that the box opens. Paths that can't be resolved stay closed.
func resolved(ctx context.Context, env tool.Env, paths []string) (out []string) {
	for _, path := range paths {
		if at, err := env.Files.Resolve(ctx, path); err == nil {
			out = append(out, at)
		}
	}
	return out
}
