package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/cost"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

// facts holds the facts about a session and its settings that commands show, as of the moment when the person asks.
// Slow facts are found out in the background, from these fields only.
type facts struct {
	app         *app.App // of this machine; nil if the sessions are elsewhere
	past        *app.App // reads the sessions
	backend     backend
	server      string  // the server that has the session; empty means this machine
	session     session // nil if none is open
	id          string  // empty if none is open
	local       string  // the folder on this machine that the session works in, or the front end's own folder
	root        string  // where the session works
	folders     []string
	route, mode string
	effort      string            // empty means the vendor's default
	spent       string            // cost of the session, in words
	given       map[string]string // how rules were approved for the session, in words
	list        []tool.Todo
	commands    catalog
	keys        keymap
	now         time.Time
	warn        func(string)
}

func (c *commander) facts() facts {
	t := c.talk
	t.measure()
	return facts{
		app: c.tui.here(), past: c.tui.App, backend: t.backend, server: c.tui.at(), session: t.runner.session(), id: t.runner.id(), local: t.localFolder(), root: t.root(), folders: t.folders(), route: t.route(),
		mode: string(t.mode()), effort: t.effort(), spent: words.Cost(t.view.Spent.Cost, t.view.Spent.Unpriced),
		given: maps.Clone(t.view.given), list: t.view.Todo, commands: c.offered(), keys: c.keys, now: c.tui.clock(), warn: t.warner(),
	}
}

var errNoSession = errors.New("there is no session yet")

func (f facts) sessions(string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		list, err := f.past.Running.Sessions.List(ctx)
		if err != nil {
			return "", err
		}
		var b strings.Builder
		for _, s := range list {
			if f.backend.has(s.Root) && s.Parent == "" && !s.Empty {
				mark := " "
				if s.ID == f.id {
					mark = "›"
				}
				fmt.Fprintf(&b, "%s %s  %-12s %s\n", mark, s.ID, ago(f.now.Sub(s.Modified)), words.OneLine(cmp.Or(s.Title, s.Preview), 80))
			}
		}
		return cmp.Or(b.String(), "no sessions yet"), nil
	}
}

func (f facts) permissions(string) func(context.Context) (string, error) {
	var granted []string
	if f.session != nil {
		granted = f.session.Status().Granted
	}
	return func(context.Context) (string, error) {
		rules, err := f.app.Permission.Rules(f.root)
		if err != nil {
			return "", err
		}
		var b strings.Builder
		fmt.Fprintf(&b, "mode %s\n", f.mode)
		for _, rule := range granted {
			fmt.Fprintf(&b, "  %-6s %s  (this session: %s)\n", tool.Allow, rule, cmp.Or(f.given[rule], "approved"))
		}
		for _, r := range rules {
			fmt.Fprintf(&b, "  %-6s %s  (%s)\n", r.Action, r.Text, cmp.Or(r.Scope, "built in"))
		}
		if len(rules)+len(granted) == 0 {
			b.WriteString("  no rules\n")
		}
		return b.String(), nil
	}
}

func (f facts) context(string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		var c inspan.Context
		var err error
		switch {
		case f.session != nil:
			c = f.session.Context()
		case f.app == nil:
			err = errNoSession
		default:
			c, err = f.app.Context(ctx, f.root, "", f.warn)
		}
		if err != nil {
			return "", err
		}
		var b strings.Builder
		err = cost.PrintContext(&b, c)
		return b.String(), err
	}
}

// status describes the present state on one screen, and names missing parts.
func (f facts) status(string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		var b strings.Builder
		line := func(name, text string) {
			if text != "" {
				fmt.Fprintf(&b, "%-10s %s\n", name, text)
			}
		}
		walls, missing := f.missing(ctx)
		for _, m := range missing { // first: beside another line, it would seem to be about that
			line("missing", m)
		}
		line("server", f.server)
		line("model", strings.TrimSpace(f.route+"  "+cmp.Or(f.effort, "default")+" effort"))
		line("mode", strings.Trim(f.mode+" · "+tool.Mode(f.mode).Doc(), " ·"))
		line("workspace", f.root)
		line("folders", strings.Join(f.folders, "  "))
		line("session", cmp.Or(f.id, "none yet; your first message starts one"))
		if f.session != nil {
			c := f.session.Context()
			line("context", fmt.Sprintf("about %s tokens, in %s", text.Thousands(c.Tokens), words.Window(c.Window, c.Assumed)))
		}
		line("cost", f.spent)
		line("sandbox", walls)
		return b.String(), nil
	}
}

// missing describes the strength of the sandbox, and the parts that the person should set up.
func (f facts) missing(ctx context.Context) (walls string, missing []string) {
	if f.app == nil {
		return "", nil
	}
	if _, err := f.app.Providers.Model(ctx, f.route, ""); err != nil {
		missing = append(missing, "a model: "+words.OneLine(err.Error(), 200))
	} else if _, lacks, why := f.app.Providers.Ready(ctx, f.route); why != nil {
		missing = append(missing, lacks+": "+words.OneLine(why.Error(), 200))
	}
	if tool.Mode(f.mode) == tool.ModeYolo {
		return "not used in mode yolo: commands run without it", missing
	}
	env, err := f.app.Permission.Env(f.root)
	if err != nil {
		return "unknown", append(missing, "a sandbox: "+words.OneLine(err.Error(), 200))
	}
	defer func() { _ = env.Close() }()
	switch w := env.Walls; {
	case w.Read && w.Workspace && w.Hosts:
		walls = "full: commands write only in the workspace and reach only approved hosts"
	case w.Read && w.Workspace:
		walls = "commands write only in the workspace and reach no network"
	case w.Read:
		walls = "only for commands that read"
	default:
		walls = "none: commands that are not proven to only read ask"
	}
	if env.Walls.Why != "" {
		missing = append(missing, "a full sandbox: "+words.OneLine(env.Walls.Why, 200))
	}
	return walls, missing
}

func (f facts) cost(string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if f.id == "" {
			return "", errNoSession
		}
		rows, err := f.past.Running.Spent(ctx, f.id, f.warn)
		if err != nil {
			return "", err
		}
		var b strings.Builder
		err = cost.Print(&b, "model", rows)
		return b.String(), err
	}
}

// spend lists the largest costs, and ways to avoid them.
func (f facts) spend(string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if f.id == "" {
			return "", errNoSession
		}
		list, err := f.past.Running.Costliest(ctx, f.id, f.warn)
		var b strings.Builder
		for _, c := range list {
			fmt.Fprintln(&b, c.Line())
		}
		return cmp.Or(b.String(), "nothing was spent yet"), err
	}
}

func (f facts) export(path string) func(context.Context) (string, error) {
	path, err := exported(realPath(f.local), cmp.Or(path, "inspan-"+f.id+".md"))
	return func(ctx context.Context) (string, error) {
		if f.id == "" {
			return "", errNoSession
		}
		if err == nil {
			err = f.past.Running.Export(ctx, f.id, path)
		}
		if errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("%s exists already and was not changed; name another file: /export FILE", path)
		}
		return "written to " + path, err
	}
}

// exported returns the path for a file that a person names. An explicit path outside of the workspace is
// intended; a link that leads out of the workspace may not be.
func exported(root, named string) (string, error) {
	path := named
	switch rest, home := strings.CutPrefix(named, "~/"); {
	case home:
		dir, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		path = filepath.Join(dir, rest)
	case !filepath.IsAbs(named):
		path = filepath.Join(root, named)
	}
	dir := filepath.Dir(path)
	if real := realPath(dir); text.Inside(root, path) && !text.Inside(root, real) {
		return "", fmt.Errorf("%s leads out of the workspace, to %s; name that folder if you mean it", dir, real)
	}
	return path, nil
}

func (f facts) help() string {
	var b strings.Builder
	b.WriteString("Commands:\n")
	for _, c := range f.commands {
		fmt.Fprintf(&b, "  %s\t%s\n", strings.TrimSpace("/"+c.Name+" "+c.Args), c.Doc)
	}
	b.WriteString("\n" + f.keyList() + "\nModes:\n")
	for _, mode := range tool.Modes() {
		fmt.Fprintf(&b, "  %s\t%s\n", mode, mode.Doc())
	}
	return b.String()
}

// card shows the commonest keys at a glance, in two columns if they fit into the width.
func (f facts) card(width int) string {
	const keys, does = 11, 26 // cells of the columns
	var cells []string
	add := func(key, text string) { cells = append(cells, fmt.Sprintf("%-*s %-*s", keys, key, does, text)) }
	for _, k := range []struct{ action, text string }{
		{"send", "send; in a run, steer it"},
		{"queue", "in a run, queue the text"},
		{"newline", "new line"},
		{"escape", "interrupt; twice: rewind"},
		{"interrupt", "interrupt; twice: quit"},
		{"mode", "next permission mode"},
		{"unfold", "unfold results"},
		{"background", "command to the background"},
		{"reasoning", "the model's reasoning"},
		{"search", "search earlier messages"},
		{"edit", "write in an editor"},
		{"paste-image", "attach a copied image"},
	} {
		if key, _, _ := strings.Cut(f.keys.named(k.action), ", "); key != "" {
			add(key, k.text)
		}
	}
	add("/", "commands")
	add("@", "attach a file")
	add("!", "run a command yourself")
	add("#", "add to the memory")
	left := cells
	if two := 2*(keys+1+does) + 2; width >= two {
		half := (len(cells) + 1) / 2
		left = cells[:half]
		for i, right := range cells[half:] {
			left[i] += "  " + right
		}
	}
	return strings.Join(left, "\n") + "\n\n/help lists all commands, keys and modes."
}

// keyList lists the keys and their effects.
func (f facts) keyList() string {
	var b strings.Builder
	b.WriteString("Keys:\n")
	for _, k := range Bindings() {
		if keys := f.keys.named(k.Action); keys != "" {
			fmt.Fprintf(&b, "  %s\t%s\n", keys, k.Doc)
		}
	}
	b.WriteString("  ?\tshow and hide the commonest keys, if the input is empty\n\n")
	b.WriteString("@ completes file names, / completes commands, and ! runs a command in your own shell.\n" +
		"Text files and images that a message names with @ come with it. A line that begins with # and a space goes into the memory, if you say so.\n" +
		"inspan attaches pasted or dropped images.\n")
	return b.String()
}

func (f facts) todo() string {
	if len(f.list) == 0 {
		return "the todo list is empty"
	}
	var b strings.Builder
	for _, t := range f.list {
		mark := "☐"
		switch t.State {
		case tool.TodoDoing:
			mark = "▣"
		case tool.TodoDone:
			mark = "☑"
		}
		fmt.Fprintf(&b, "%s %s\n", mark, strings.ReplaceAll(t.Text, "\n", " "))
	}
	return b.String()
}

func (f facts) tools(string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		list, err := f.app.Tools(ctx, f.root, f.warn)
		var b strings.Builder
		for _, t := range list {
			fmt.Fprintf(&b, "  %s\t%s\n", t.Name, words.OneLine(strings.SplitN(t.Doc, "\n", 2)[0], 100))
		}
		return b.String(), err
	}
}

func (f facts) config() string {
	var b strings.Builder
	fmt.Fprintf(&b, "workspace  %s\nmodel      %s\nmode       %s\n", f.root, f.route, f.mode)
	if f.id != "" {
		fmt.Fprintf(&b, "session    %s\n", f.id)
	}
	if f.server != "" {
		fmt.Fprintf(&b, "server     %s\n", f.server)
	}
	if f.app != nil {
		fmt.Fprintf(&b, "settings   %s\nsessions   %s\n", f.app.ConfigPath, f.app.Store().Dir)
	}
	return b.String()
}
