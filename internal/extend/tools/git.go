package tools

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

//go:embed git.md
var gitDoc string

type gitArgs struct {
	Action  string   `json:"action" enum:"status,diff,log,show,blame,branches,commit,branch,switch,delete_branch,worktree,worktrees,remove_worktree,clone,pull,push"`
	Paths   []string `json:"paths,omitempty" jsonschema:"files or folders it is about"`
	Ref     string   `json:"ref,omitempty" jsonschema:"commit, branch or tag"`
	To      string   `json:"to,omitempty" jsonschema:"second commit, to compare with"`
	Name    string   `json:"name,omitempty" jsonschema:"name of the branch"`
	Message string   `json:"message,omitempty" jsonschema:"message of the commit"`
	Remote  string   `json:"remote,omitempty" jsonschema:"remote; origin if not given"`
	URL     string   `json:"url,omitempty" jsonschema:"what to clone"`
	Path    string   `json:"path,omitempty" jsonschema:"folder of the clone or worktree"`
	Staged  bool     `json:"staged,omitempty" jsonschema:"what is staged"`
	Stat    bool     `json:"stat,omitempty" jsonschema:"only how much of which files"`
	Max     int      `json:"max,omitempty" jsonschema:"most commits of a log; 20 if not given"`
	Amend   bool     `json:"amend,omitempty" jsonschema:"change the last commit, which must not have been pushed"`
	Force   bool     `json:"force,omitempty" jsonschema:"push even if the remote has other commits, unless someone has pushed meanwhile"`
}

// git stands for bash, so that git commands are judged, sandboxed and shown in one way. Protected are globs of
// branches that are not pushed to.
func git(protected []string) tool.Tool {
	doc := gitDoc
	if len(protected) > 0 {
		doc += "\nProtected: " + strings.Join(protected, ", ") + ".\n"
	}
	t := tool.New("git", doc, func(context.Context, *tool.Call, gitArgs) (tool.Result, error) {
		return tool.Result{}, errors.New("there is no bash here to run git")
	})
	t.Resolve = func(ctx context.Context, c *tool.Call) (string, json.RawMessage, error) {
		in, err := tool.Args[gitArgs](c)
		if err != nil {
			return "", nil, err
		}
		g := gitLine{in: in, call: c, protected: protected}
		command, err := g.command(ctx)
		if err != nil {
			return "", nil, err
		}
		args, err := json.Marshal(command)
		return "bash", args, err
	}
	return t
}

// gitLine makes the command line of a call.
type gitLine struct {
	in        gitArgs
	call      *tool.Call
	protected []string
}

func (g gitLine) command(ctx context.Context) (bashArgs, error) {
	in := g.in
	for _, word := range []string{in.Ref, in.To, in.Name, in.Remote, in.URL, in.Path} {
		if strings.HasPrefix(word, "-") {
			return bashArgs{}, fmt.Errorf("%q looks like an option", word)
		}
	}
	switch in.Action {
	case "status":
		return line(given("git", "status", when(!g.midway(ctx), "--short"), "--branch")...), nil
	case "diff":
		return line(g.paths(given("git", "diff", when(in.Staged, "--staged"), when(in.Stat, "--stat"), in.Ref, in.To))...), nil
	case "log":
		most := in.Max
		if most <= 0 {
			most = 20
		}
		return line(g.paths(given("git", "log", fmt.Sprintf("--max-count=%d", most),
			"--date=short", "--format=%h %ad %an: %s", when(in.Stat, "--stat"), in.Ref))...), nil
	case "show":
		return line(g.paths(given("git", "show", when(in.Stat, "--stat"), in.Ref))...), nil
	case "blame":
		return g.one(given("git", "blame", "--date=short", in.Ref)...)
	case "branches":
		return line("git", "branch", "--all", "--verbose"), nil
	case "worktrees":
		return line("git", "worktree", "list"), nil
	}
	return g.changing(ctx)
}

// changing makes the command line of a changing action.
func (g gitLine) changing(ctx context.Context) (bashArgs, error) {
	in := g.in
	switch in.Action {
	case "commit":
		return g.commit()
	case "branch":
		return g.named(given("git", "switch", "--create", in.Name, in.Ref)...)
	case "switch":
		return g.named("git", "switch", in.Name)
	case "delete_branch":
		return g.named("git", "branch", "--delete", in.Name)
	case "worktree":
		if in.Path == "" {
			return bashArgs{}, errors.New("a worktree needs the path of its folder")
		}
		return g.named(given("git", "worktree", "add", "-b", in.Name, in.Path, in.Ref)...)
	case "remove_worktree":
		if in.Path == "" {
			return bashArgs{}, errors.New("which worktree? give the path of its folder")
		}
		return line("git", "worktree", "remove", in.Path), nil
	case "clone":
		if g.in.URL == "" {
			return bashArgs{}, errors.New("a clone needs a url")
		}
		return reaching(line(given("git", "clone", when(g.in.Name != "", "--branch="+g.in.Name), g.in.URL, g.in.Path)...), g.in.URL), nil
	case "pull":
		return g.remote(ctx, line(given("git", "pull", "--ff-only", in.Remote, when(in.Remote != "", in.Name))...))
	case "push":
		return g.push(ctx)
	}
	return bashArgs{}, fmt.Errorf("there is no action %q; bash runs git with anything else", in.Action)
}

func (g gitLine) commit() (bashArgs, error) {
	if strings.TrimSpace(g.in.Message) == "" && !g.in.Amend {
		return bashArgs{}, errors.New("a commit needs a message")
	}
	argv := given("git", "commit", when(g.in.Amend, "--amend"))
	if g.in.Message != "" {
		argv = append(argv, "--message="+g.in.Message)
	} else {
		argv = append(argv, "--no-edit")
	}
	out := line(argv...)
	if len(g.in.Paths) > 0 { // other staged changes stay staged
		out.Command = line(g.paths([]string{"git", "add"})...).Command + " && " + line(g.paths(append(argv, "--only"))...).Command
	}
	return out, nil
}

// push pushes a branch, never to a protected one, and never overwrites another person's push. It needs the
// person's credentials, so it runs outside of the sandbox, which asks.
func (g gitLine) push(ctx context.Context) (bashArgs, error) {
	name := g.in.Name
	if name == "" {
		name = g.current(ctx)
	}
	if name == "" {
		return bashArgs{}, errors.New("the current branch is not known; give its name")
	}
	if !plainBranch(name) {
		return bashArgs{}, fmt.Errorf("%q is not a plain name of a branch", name)
	}
	if g.isProtected(name) {
		return bashArgs{}, fmt.Errorf("%s is protected: push another branch, so that people can review it", name)
	}
	remote := cmp.Or(g.in.Remote, "origin")
	// Both sides are spelled out, so that no setting sends it elsewhere.
	full := "refs/heads/" + name
	out := line(given("git", "push", "--set-upstream", when(g.in.Force, "--force-with-lease"), remote, full+":"+full)...)
	out.Outside = true // where it may reach any host
	return out, nil
}

// plainBranch reports whether a name is a plain branch name that git would not look up elsewhere.
func plainBranch(name string) bool {
	for _, odd := range []string{"refs/", "heads/", "tags/", "remotes/"} {
		if strings.HasPrefix(name, odd) {
			return false
		}
	}
	return name != "HEAD" && name != "@" && !strings.ContainsAny(name, ":+*^~?[\\ \t\n") &&
		!strings.Contains(name, "@{") && !strings.Contains(name, "..")
}

// isProtected reports whether a branch must not be pushed to. A pattern that ends in /* covers all below, at
// any depth.
func (g gitLine) isProtected(name string) bool {
	return slices.ContainsFunc(g.protected, func(glob string) bool {
		ok, err := path.Match(glob, name)
		below, deep := strings.CutSuffix(glob, "*")
		return ok || err != nil || deep && strings.HasSuffix(below, "/") && strings.HasPrefix(name, below)
	})
}

// remote opens the network for the remote of the call.
func (g gitLine) remote(ctx context.Context, out bashArgs) (bashArgs, error) {
	remote := cmp.Or(g.in.Remote, "origin")
	if at := gitSetting(g.read(ctx, "config"), (`[remote "` + remote + `"]`), "url"); at != "" {
		remote = at
	}
	return reaching(out, remote), nil
}

// reaching opens the network for an address. An address that is not fetched over http runs outside of the
// sandbox.
func reaching(out bashArgs, address string) bashArgs {
	if u, err := url.Parse(address); err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" {
		out.Network = []string{u.Hostname()}
		return out
	}
	out.Outside = true
	return out
}

// current returns the branch that is checked out; empty if unknown.
func (g gitLine) current(ctx context.Context) string {
	head := g.read(ctx, "HEAD")
	name, ok := strings.CutPrefix(strings.TrimSpace(head), "ref: refs/heads/")
	if !ok {
		return ""
	}
	return name
}

// midway reports whether something like a rebase or a merge is in progress, which only the long form of a
// status shows.
func (g gitLine) midway(ctx context.Context) bool {
	dir := g.repository(ctx)
	return slices.ContainsFunc([]string{"rebase-merge", "rebase-apply", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG"},
		func(name string) bool {
			return exists(ctx, g.call.Env, filepath.Join(dir, name))
		})
}

// gitSetting returns the last value in a file of git's settings; empty means none.
func gitSetting(config, section, key string) string {
	inside, value := false, ""
	for l := range strings.Lines(config) {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "[") {
			inside = l == section
			continue
		}
		k, v, ok := strings.Cut(l, "=")
		if inside && ok && strings.EqualFold(strings.TrimSpace(k), key) {
			value = strings.TrimSpace(v)
		}
	}
	return value
}

// repository returns the one that git would find: that of the current directory.
func (g gitLine) repository(ctx context.Context) string {
	for dir := g.call.Cwd; text.Inside(g.call.Env.Root, dir) && dir != g.call.Env.Root; dir = filepath.Dir(dir) {
		if f, err := g.call.Env.Files.Open(ctx, filepath.Join(dir, ".git")); err == nil {
			_ = f.Close() // it exists, which is all that matters
			return filepath.Join(dir, ".git")
		}
	}
	return filepath.Join(g.call.Env.Root, ".git")
}

// read reads a small file of the repository.
func (g gitLine) read(ctx context.Context, name string) string {
	f, err := g.call.Env.Files.Open(ctx, filepath.Join(g.repository(ctx), name))
	if err != nil {
		return ""
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return ""
	}
	return string(raw)
}

// named returns the line of an action that needs a name.
func (g gitLine) named(argv ...string) (bashArgs, error) {
	if g.in.Name == "" {
		return bashArgs{}, fmt.Errorf("%s needs the name of a branch", g.in.Action)
	}
	return line(argv...), nil
}

// one returns the line of an action on one path.
func (g gitLine) one(argv ...string) (bashArgs, error) {
	if len(g.in.Paths) != 1 {
		return bashArgs{}, fmt.Errorf("%s needs one path", g.in.Action)
	}
	return line(g.paths(argv)...), nil
}

func (g gitLine) paths(argv []string) []string {
	if len(g.in.Paths) == 0 {
		return argv
	}
	return slices.Concat(argv, []string{"--"}, g.in.Paths)
}

// given omits empty words.
func given(list ...string) []string {
	return slices.DeleteFunc(list, func(w string) bool { return w == "" })
}

func when(yes bool, word string) string {
	if yes {
		return word
	}
	return ""
}

// line is a call of bash that runs exactly these words.
func line(argv ...string) bashArgs {
	quoted := make([]string, len(argv))
	for i, w := range argv {
		q, err := syntax.Quote(w, syntax.LangBash)
		if err != nil { // a NUL, which bash refuses
			q = w
		}
		quoted[i] = q
	}
	return bashArgs{Command: strings.Join(quoted, " ")}
}
