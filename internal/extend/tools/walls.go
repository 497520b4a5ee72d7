package tools

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/kernel/hold"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/safety/shell"
	"github.com/inspan/inspan/internal/world/ability"
	"github.com/inspan/inspan/tool"
)

// plan is the effect of a command, which determines its sandbox, so nothing can happen that was not judged.
type plan struct {
	effects []tool.Effect
	class   tool.Class
	git     bool // it reads the repository, with inert settings
	writes  bool // all that is not proven is git, which may write the repository
	mixed   bool // git runs with other programs; it may get a copy of the repository
	makes   bool // it makes a repository, and runs nothing that could be misled by it
	outside bool // it can't run in a sandbox
	throws  bool // its changes in the workspace are discarded
}

// namesGit matches git in the text of a command, whatever it means there: git may then only write a copy.
var namesGit = regexp.MustCompile(`\bgit\b`)

// namesTemp matches the variables for temporary files, and commands that print all variables: a command that
// only reads must find the files of earlier commands there.
var namesTemp = regexp.MustCompile(`\b(TMPDIR|TMP|TEMP|env|printenv|set|declare)\b`)

// plan returns the plan of a call of bash.
func (sh *Shell) plan(ctx context.Context, c *tool.Call, in bashArgs) plan {
	p := sh.explain(c, in)
	out := plan{class: tool.ProvenRead, git: p.Git, effects: p.Calls()}
	if p.Git && !c.Env.Walls.Read {
		// The sandbox of a reader contains whatever git runs; without it nothing does.
		if err := inertRepository(ctx, c.Env); err != nil {
			out.git = false
			out.effects = append(out.effects, tool.Effect{Kind: tool.Execute, Text: in.Command, Words: &tool.Words{}},
				tool.Effect{Kind: tool.External, Text: "let git run what the repository names: " + err.Error()})
		}
	}
	if in.TTY || in.Interactive && len(p.Segments) > 0 {
		// Later input is judged when it comes.
		out.class = tool.Unproven
		for i := range out.effects {
			out.effects[i].Class = tool.Unproven
		}
	}
	for _, e := range out.effects {
		if e.Kind == tool.Execute && e.Class != tool.ProvenRead && out.class != tool.Unproven {
			out.class = e.Class
		}
	}
	if out.class == tool.Unproven {
		out.git = false // nothing depends on restrictions of git, and the hooks of a commit must run
	}
	out.writes = onlyGit(out.effects, plainGit)
	out.mixed = out.class == tool.Unproven && c.Env.Walls.Throwaway && namesGit.MatchString(in.Command)
	if top := repositoryTop(ctx, c.Env); top != "" && top != c.Env.Root && namesGit.MatchString(in.Command) {
		out.effects = append(out.effects, tool.Effect{Kind: tool.Read, Path: top}) // git reads its whole work tree
	}
	if out.class == tool.ProvenRead && namesTemp.MatchString(in.Command) && c.Env.IsTemporary("/tmp/x", true) {
		out.effects = append(out.effects, tool.Effect{Kind: tool.Read, Path: "/tmp"})
	}
	for _, host := range in.Network {
		if host == "true" { // written by models that mean network: true
			host = "*"
		}
		out.effects = append(out.effects, tool.Effect{Kind: tool.Network, Text: host, FromArgument: true})
	}
	out.outside = in.Outside
	out.throws = throws(c, out)
	switch makes := makesRepository(c, in, out.effects); {
	case out.throws: // its output is discarded
	case makes && c.Env.Walls.Workspace && !in.Outside && onlyGit(out.effects, plainInit):
		pushes := false
		out.effects, pushes = nearby(out.effects)
		out.makes, out.writes = true, !pushes
	case makes:
		out.outside = true
		what := "make a repository, whose settings and hooks git follows" + unasked(c, in, out.effects)
		out.effects = append(out.effects, tool.Effect{Kind: tool.External, Text: what})
	}
	if in.Outside {
		what := "run outside the sandbox" + runsHooks(ctx, c.Env, out.effects)
		out.effects = append(out.effects, tool.Effect{Kind: tool.External, Text: what})
	}
	if in.Keep {
		out.effects = append(out.effects, tool.Effect{Kind: tool.Keep, Text: in.Command})
	}
	out.effects = resolved(ctx, c, out.effects)
	sh.surround(c, out.effects, out.box(c, in))
	if out.throws {
		// They are discarded with the throwaway copy of the workspace.
		for i, e := range out.effects {
			out.effects[i].Throwaway = e.Kind == tool.Execute || e.Kind == tool.Write && text.Inside(c.Env.Root, e.Path)
		}
	}
	return out
}

// explain analyzes a command with the HOME that it would have. Commands that only read, and git that has the
// repository, get the person's own, not one that earlier commands have set; any other command that depends on
// it is not proven.
func (sh *Shell) explain(c *tool.Call, in bashArgs) shell.Plan {
	at := shell.Place{Root: c.Env.Root, Also: c.Env.Folders, Cwd: c.Cwd, Home: sh.Home, Held: c.Env.Walls.Read}
	p := shell.Explain(in.Command, at)
	r := reachOf(plan{class: tool.Unproven, outside: in.Outside, effects: p.Calls()}.box(c, in))
	sh.mu.Lock()
	home, set := sh.vars[r].value("HOME")
	sh.mu.Unlock()
	if !set || home == sh.Home {
		return p
	}
	if at.Home = ""; filepath.IsAbs(home) {
		at.Home = filepath.Clean(home)
	}
	led := shell.Explain(in.Command, at)
	if reflect.DeepEqual(p, led) || p.Class == shell.Full && onlyGit(p.Calls(), plainGit) {
		return p
	}
	led.Class = shell.Full
	for i := range led.Segments {
		led.Segments[i].Class, led.Segments[i].Why = shell.Full, "it depends on HOME, which a command before it has set"
	}
	return led
}

// surround describes for the first command where it starts, and the variables that earlier ones have exported to
// it: a person's approval depends on both, and the command later gets only these.
func (sh *Shell) surround(c *tool.Call, effects []tool.Effect, b tool.Box) {
	i := slices.IndexFunc(effects, func(e tool.Effect) bool { return e.Kind == tool.Execute })
	if i < 0 {
		return
	}
	if c.Cwd != c.Env.Root {
		effects[i].Dir = c.Cwd
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	effects[i].Vars = hold.Exported(sh.vars[reachOf(b)].inside(b, c.Env.Root))
}

// throws reports whether a command runs in a throwaway copy of the workspace: the mode is read-only, the
// session may have such copies, and the read sandbox would not do.
func throws(c *tool.Call, p plan) bool {
	return c.Mode == tool.ModePlan && c.Env.Throwaway && c.Env.Walls.Throwaway && !p.outside &&
		(p.class != tool.ProvenRead || !c.Env.Walls.Read)
}

// onlyGit reports whether only plain git, or a command that removes a lock of a repository, runs in addition to
// proven commands.
func onlyGit(effects []tool.Effect, plain func(tool.Effect) bool) bool {
	some := false
	for _, e := range effects {
		switch {
		case e.Kind == tool.Write && places.GitLock(e.Path):
			some = true
		case e.Kind != tool.Execute || e.Class == tool.ProvenRead || temporary(e):
		case plain(e):
			some = true
		case e.Class != tool.ProvenInside:
			return false
		}
	}
	return some
}

// resolved follows the links of paths. A path that leads elsewhere counts both as written and as reached.
func resolved(ctx context.Context, c *tool.Call, effects []tool.Effect) []tool.Effect {
	var out []tool.Effect
	for _, e := range effects {
		out = append(out, e)
		if e.Kind != tool.Read && e.Kind != tool.Write {
			continue
		}
		real, err := c.Env.Files.Resolve(ctx, e.Path)
		switch {
		case err != nil:
			out = append(out, tool.Effect{Kind: tool.External, Text: "reach a path that can't be resolved: " + e.Path})
		case real != e.Path:
			out = append(out, tool.Effect{Kind: e.Kind, Path: real})
		}
	}
	return out
}

// box returns the sandbox for a command: no wider than the judged effects. If a level can't be built, the judges
// have asked, and a person has approved.
func (p plan) box(c *tool.Call, in bashArgs) tool.Box {
	b := tool.Box{Level: tool.BoxWorkspace}
	switch {
	case c.Mode == tool.ModeYolo || p.outside:
		return tool.Box{Level: tool.BoxNone}
	case p.throws:
		b.Throwaway = true
	case p.class == tool.ProvenRead && len(in.Network) == 0:
		b.Level = tool.BoxRead
	}
	if len(in.Network) > 0 && !c.Env.Walls.Hosts {
		return tool.Box{Level: tool.BoxNone}
	}
	if b.Level == tool.BoxRead && !c.Env.Walls.Read || b.Level == tool.BoxWorkspace && !c.Env.Walls.Workspace {
		return tool.Box{Level: tool.BoxNone}
	}
	made := map[string]bool{} // temporary files of the session that the command has written before it reads them
	for _, e := range p.effects {
		switch {
		case e.Kind == tool.Read && e.Path != "/" && !text.Inside(c.Env.Root, e.Path):
			if !made[e.Path] { // else it is not the machine's file of that name
				b.Read = add(b.Read, e.Path)
			}
		case p.throws:
		case e.Kind == tool.Write && b.Level == tool.BoxWorkspace && c.Env.IsTemporary(e.Path, true):
			made[e.Path] = true
		case e.Kind == tool.Write && b.Level == tool.BoxWorkspace:
			b.Write = add(b.Write, e.Path)
		case e.Kind == tool.Network && b.Level == tool.BoxWorkspace && !netguard.Loopback(e.Text):
			b.Hosts = add(b.Hosts, cmp.Or(e.Text, "*"))
		}
	}
	b.Git = b.Level == tool.BoxWorkspace && (p.writes || p.mixed) && !p.throws
	b.Mixed = b.Git && !p.writes
	b.Init = b.Level == tool.BoxWorkspace && p.makes && !p.throws
	return b
}

// ready prepares the sandboxes in which most commands of a mode run.
func ready(c *tool.Call) {
	procs, ok := c.Env.Procs.(ability.Readier)
	if !ok {
		return
	}
	boxes := []tool.Box{plan{class: tool.ProvenRead}.box(c, bashArgs{})}
	if c.Mode == tool.ModeAuto {
		boxes = append(boxes, plan{class: tool.Unproven}.box(c, bashArgs{}))
	}
	procs.Ready(boxes...)
}

func add(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}

// maxGitConfig is how many bytes of git's configuration are read.
const maxGitConfig = 64 << 10

// inertRepository returns nil if the settings of the repository that git would find from the workspace name no
// program that git would run while it reads. Without a repository git fails, which is harmless too.
func inertRepository(ctx context.Context, env tool.Env) error {
	top := repositoryTop(ctx, env)
	if top == "" {
		return nil
	}
	// A submodule may request that it is looked into, whatever the command says.
	modules, err := readSmall(ctx, env, filepath.Join(top, ".gitmodules"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) || strings.Contains(strings.ToLower(modules), "ignore") {
		return errOdd("submodules with settings of their own")
	}
	dir, common, err := gitFolders(ctx, env, top)
	if err != nil {
		return err
	}
	for _, path := range []string{
		filepath.Join(dir, "config.worktree"),
		filepath.Join(common, "config.worktree"), filepath.Join(common, "config"),
	} {
		text, err := readSmall(ctx, env, path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := shell.GitInert(text); err != nil {
			return err
		}
	}
	return nil
}

// gitFolders returns the folder of a work tree's repository, and the one it
// shares with other work trees; see gitrepository-layout(5).
func gitFolders(ctx context.Context, env tool.Env, top string) (dir, common string, err error) {
	dir = filepath.Join(top, ".git")
	if text, err := readSmall(ctx, env, dir); err == nil {
		to, ok := strings.CutPrefix(strings.TrimSpace(text), "gitdir: ")
		if !ok {
			return "", "", errOdd("a .git that is not understood")
		}
		dir = absolute(top, to)
	}
	text, err := readSmall(ctx, env, filepath.Join(dir, "commondir"))
	if errors.Is(err, fs.ErrNotExist) {
		return dir, dir, nil
	}
	return dir, absolute(dir, strings.TrimSpace(text)), err
}

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

type errOdd string

func (e errOdd) Error() string { return "its repository has " + string(e) }

func exists(ctx context.Context, env tool.Env, path string) bool {
	f, err := env.Files.Open(ctx, path)
	if err == nil {
		f.Close()
	}
	return err == nil
}

func readSmall(ctx context.Context, env tool.Env, path string) (string, error) {
	f, err := env.Files.Open(ctx, path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxGitConfig))
	if err == nil && len(raw) == maxGitConfig {
		err = errOdd("a configuration too long to look at")
	}
	return string(raw), err
}
