package command

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/delegate/subagent"
	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/front/tui"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/store"
)

// givenFlags bring parts of a session along, in files or as JSON.
type givenFlags struct {
	servers []string // MCP servers
	kinds   string   // kinds of subagents
	schema  string   // of the answer
	images  []string // files that come with the task
	id      string   // another name of the new session
	copied  string   // the new session works in a copy of this name

	answer   *subagent.Answer // by the schema; nil means words
	pictures []tui.Picture
	warnings []string
	tree     string // the copy
	made     bool   // the copy is new
	done     bool   // the flags were read
}

// anyWorktree is the name of a --worktree without one: a copy of its own.
const anyWorktree = "*"

// addGiven declares the flags for new and existing sessions.
func (f *givenFlags) addGiven(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.servers, "mcp-config", nil, "`file` in the form of .mcp.json, or JSON, with more MCP servers; repeatable")
	fl.StringVar(&f.kinds, "agents", "", "`JSON`, or a file, with more kinds of subagents: {\"NAME\": {\"description\": \"...\", \"prompt\": \"...\"}}")
	fl.StringVar(&f.schema, "json-schema", "", "`JSON` Schema, or a file with one, of the answer that is printed")
	fl.StringArrayVarP(&f.images, "image", "i", nil, "image `file` that comes with the task; repeatable. @FILE in the task does the same")
}

// addOwn declares the flags for new sessions.
func (f *givenFlags) addOwn(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.id, "session-id", "", "`UUID` by which other commands find the session too")
	fl.StringVar(&f.copied, "worktree", "", "work in a git worktree, a copy of the folder; --worktree=`NAME` uses the same copy again")
	fl.Lookup("worktree").NoOptDefVal = anyWorktree
}

// read reads the values of the flags, once.
func (f *givenFlags) read(flags *pflag.FlagSet, o *app.Options, root string) error {
	if f.done {
		return nil
	}
	f.done = true
	if name := firstEmpty(flags, "mcp-config", "agents", "json-schema", "image", "session-id", "worktree"); name != "" {
		return misused("--%s is empty; give it a value, or remove it", name)
	}
	for i := range f.servers {
		name, data, err := fileOrJSON("--mcp-config", &f.servers[i])
		if err != nil {
			return err
		}
		servers, warnings, err := mcp.ReadGiven(name, root, data)
		if err != nil {
			return misused("--mcp-config: %w", err)
		}
		o.Servers, f.warnings = append(o.Servers, servers...), append(f.warnings, warnings...)
	}
	if f.kinds != "" {
		_, data, err := fileOrJSON("--agents", &f.kinds)
		if err != nil {
			return err
		}
		if o.Kinds, err = skill.ReadKinds(data); err != nil {
			return misused("--agents: %w", err)
		}
		for _, kind := range o.Kinds {
			for _, p := range kind.Problems {
				f.warnings = append(f.warnings, "--agents: "+kind.Name+": "+p)
			}
		}
	}
	if f.schema != "" {
		_, data, err := fileOrJSON("--json-schema", &f.schema)
		if err != nil {
			return err
		}
		if f.answer, err = subagent.NewAnswer(data); err != nil {
			return misused("--json-schema: %w", err)
		}
		o.Tools, o.Hooks = append(o.Tools, f.answer.Tool()), append(o.Hooks, f.answer)
	}
	for i, path := range f.images {
		image, err := tui.ReadPicture(path)
		if err == nil {
			f.images[i], err = filepath.Abs(path)
		}
		if err != nil {
			return misused("--image: %w", err)
		}
		f.pictures = append(f.pictures, image)
	}
	if f.id = strings.ToLower(f.id); f.id != "" && !text.IsUUID(f.id) {
		return misused("--session-id: %q is not a UUID such as 550e8400-e29b-41d4-a716-446655440000", f.id)
	}
	if f.copied != anyWorktree && strings.Trim(f.copied, nameChars) != "" {
		return misused("--worktree: a name has letters, digits, dots, dashes and underscores")
	}
	return nil
}

// firstEmpty returns the first of the named flags that was given without a value, as by a variable of a script that
// is not set; empty means there is none.
func firstEmpty(flags *pflag.FlagSet, names ...string) string {
	for _, name := range names {
		f := flags.Lookup(name)
		if f == nil || !f.Changed {
			continue
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		if slices.ContainsFunc(values, func(v string) bool { return strings.TrimSpace(v) == "" }) {
			return name
		}
	}
	return ""
}

const nameChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

// fileOrJSON returns the content of a flag's file, or the JSON that is its value, with a name for messages. The path
// becomes absolute, as another process may get the flag.
func fileOrJSON(flag string, value *string) (name string, data []byte, err error) {
	if name = *value; isJSON.MatchString(name) {
		return "the JSON", []byte(name), nil
	}
	if data, err = config.ReadFile(name); err == nil {
		*value, err = filepath.Abs(name)
	}
	if err != nil {
		return "", nil, misused("%s: %w", flag, err)
	}
	return name, data, nil
}

// isJSON matches a value that can't be meant as the path of a file.
var isJSON = regexp.MustCompile(`^\s*[{\[]`)

// plain refuses flags that shape one task and its answer, where there is no such task.
func (f *givenFlags) plain(why string) error {
	switch {
	case f.schema != "":
		return misused("--json-schema %s: it prints the answer to one task", why)
	case f.images != nil:
		return misused("--image %s: the images come with one task", why)
	}
	return nil
}

// fresh checks the flags for a new session before it begins: its name must be unused, and a copy of its folder
// must be possible.
func (c *command) fresh(ctx context.Context, f *runFlags) error {
	if f.id == "" && f.copied == "" || f.remote.url != "" { // a server refuses both
		return nil
	}
	a, root, err := c.at(f.cwd)
	if err != nil {
		return err
	}
	if f.id != "" {
		if err := f.unused(ctx, a); err != nil {
			return err
		}
		f.label(store.UUIDLabel, f.id)
	}
	if f.copied == "" {
		return nil
	}
	if a.Running.Trees == nil {
		return misused("--worktree: there is no cache folder for copies; set HOME")
	}
	if _, _, err := a.Running.Trees.Find(ctx, root, f.copyName()); err != nil {
		return misused("--worktree: %w", err)
	}
	return nil
}

// unused returns an error if a session has the UUID of --session-id.
func (f *runFlags) unused(ctx context.Context, a *app.App) error {
	id, err := store.Resolve(ctx, a.Running.Sessions, f.id)
	switch {
	case err == nil:
		return misused("--session-id: %s already names session %s; continue it with: inspan resume %s", f.id, id, f.id)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// alone locks a file in the state folder. Other processes wait for it.
func alone(ctx context.Context, a *app.App, name string) (*keep.Lock, error) {
	if err := os.MkdirAll(a.StateDir, 0o700); err != nil {
		return nil, err
	}
	return keep.LockFile(ctx, filepath.Join(a.StateDir, name), 0)
}

// claim keeps the UUID of --session-id from other processes until the lock is closed, which is after the session has it.
func (f *runFlags) claim(ctx context.Context, a *app.App) (*keep.Lock, error) {
	if f.id == "" {
		return nil, nil
	}
	lock, err := alone(ctx, a, "session-ids.lock")
	if err != nil {
		return nil, err
	}
	if err := f.unused(ctx, a); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

func (f *runFlags) label(name, value string) {
	if f.Labels == nil {
		f.Labels = map[string]string{}
	}
	f.Labels[name] = value
}

// copyName returns the name of the copy of --worktree.
func (f *givenFlags) copyName() string { return "worktree " + f.copied }

// apart makes the copy of --worktree, in which the new session works.
func (c *command) apart(ctx context.Context, a *app.App, f *runFlags) error {
	if f.copied == "" {
		return nil
	}
	root, err := workspace(f.cwd)
	if err != nil {
		return err
	}
	if f.copied == anyWorktree {
		f.copied = rand.Text()
	}
	// Runs that begin at once with one name share the copy of the first.
	making, err := alone(ctx, a, "worktrees.lock")
	if err != nil {
		return err
	}
	defer func() { _ = making.Close() }()
	_, found, err := a.Running.Trees.Find(ctx, root, f.copyName())
	if err != nil {
		return misused("--worktree: %w", err)
	}
	tree, err := a.Running.Trees.Make(ctx, root, f.copyName())
	if err != nil {
		return err
	}
	for _, left := range slices.Concat(tree.Left, tree.Missing) {
		c.warn("the worktree lacks " + left)
	}
	c.warn("the session works in the worktree " + tree.Root)
	f.tree, f.made = tree.Root, !found
	f.label(running.CopyLabel, root)
	f.cwd = tree.Root
	return nil
}

// leave says last where the work of a session in a worktree is. A new worktree that no session has used is removed.
func (c *command) leave(ctx context.Context, a *app.App, f *runFlags) error {
	if f.tree == "" {
		return nil
	}
	trees := a.Running.Trees
	list, err := a.Running.Sessions.List(context.WithoutCancel(ctx))
	used := slices.ContainsFunc(list, func(s store.Info) bool { return trees.Copy(s.Root) == trees.Copy(f.tree) })
	if err == nil && !used && f.made {
		return trees.Discard(context.WithoutCancel(ctx), f.Labels[running.CopyLabel], f.tree)
	}
	c.warn("the session's work is in the worktree " + f.tree)
	return nil
}

// with adds to the inputs of a run the images of the flags, and the files that a typed task names as @FILE. A task
// from standard input names none.
func (f *givenFlags) with(ctx context.Context, a *app.App, root, typed string, inputs []event.Body) ([]event.Body, error) {
	i := slices.IndexFunc(inputs, func(b event.Body) bool {
		said, ok := b.(event.Said)
		return ok && len(said.Parts) > 0 && said.By == ""
	})
	if i < 0 {
		if f.pictures != nil {
			return nil, misused("--image needs a task")
		}
		return inputs, nil
	}
	said := inputs[i].(event.Said)
	said.Parts = slices.Clone(said.Parts)
	for _, p := range f.pictures {
		said.Parts = append(said.Parts, p.Image)
	}
	inputs[i] = said
	named, err := a.Permission.Named(ctx, root, typed)
	if len(named.Parts) > 0 {
		inputs = append(inputs, named)
	}
	return inputs, err
}
