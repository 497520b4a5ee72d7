package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/hook"
	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/front/tui"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/setup"
	"github.com/inspan/inspan/internal/view/words"
)

// screenFlags are the flags of the interactive front end, in addition to those of a run.
type screenFlags struct {
	runFlags
	fullscreen bool
	print      bool
	goOn       bool
	resume     string
	says       string // the first message
}

func (f *screenFlags) add(cmd *cobra.Command) {
	f.runFlags.add(cmd)
	f.addRemote(cmd)
	f.remote.addPlain(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&f.fullscreen, "fullscreen", false, "use the whole screen instead of the scrollback")
	fl.BoolVarP(&f.print, "print", "p", false, "print the answer to the task and exit, as 'inspan run' does")
	fl.BoolVarP(&f.goOn, "continue", "c", false, "continue the last session in this folder, or in that of --cwd")
	fl.StringVarP(&f.resume, "resume", "r", "", "continue the session `ID`; without an ID, choose from a list")
	fl.Lookup("resume").NoOptDefVal = anySession
	fl.StringVar(&f.cwd, "cwd", ".", "`folder` to work in (the workspace)")
	f.addOwn(cmd)
}

// take reads the arguments: the task, and before it the ID of -r ID. A first word that looks like a command is
// treated as a mistyped one, unless a flag says that it is a task.
func (f *screenFlags) take(cmd *cobra.Command, args []string) error {
	if f.resume == anySession && len(args) > 0 {
		f.resume, args = args[0], args[1:]
	}
	f.says = strings.Join(args, " ")
	named := f.print || f.goOn || f.resume != ""
	if !named {
		if err := meansPeer(args); err != nil {
			return err
		}
	}
	if len(args) > 0 && !named && words.Nearly(args[0], commands(cmd)) {
		return misused("%w; for a task of your own use: inspan run %q", unknown(cmd, args[0]), f.says)
	}
	return nil
}

// anySession is the session of a --resume without an ID: the person chooses.
const anySession = "?"

// front opens the front end, or without a terminal prints the answer to a task.
func (c *command) front(cmd *cobra.Command, f *screenFlags) error {
	if (f.goOn || f.resume != "") && (f.id != "" || f.copied != "") {
		return misused("--session-id and --worktree are for a new session; remove --continue and --resume")
	}
	switch {
	case f.remote.url != "" && (f.goOn || f.resume != "") && (f.print || f.remote.plain || !c.watched()):
		return misused("--continue and --resume with --remote are for the front end, which needs a terminal; use: %s, or %s",
			words.Command(f.remote.url, "send", "ID", `"..."`), words.Command(f.remote.url, "attach", "ID"))
	case f.remote.url != "" && !f.print && !f.remote.plain && c.watched():
		id := f.resume
		if f.goOn {
			id = "last"
		}
		return c.screenAway(cmd, f, id)
	case f.remote.url != "" && !f.print && isTerminal(c.in):
		return c.away(cmd, &f.runFlags, f.says, true)
	case f.print, f.says != "" && !c.watched():
		return c.answered(cmd, f)
	case !c.watched():
		if isTerminal(c.in) && isTerminal(c.console.Out) {
			return misused(`the terminal can only print lines (TERM=%s); use: inspan -p "task", or inspan run "task"`, os.Getenv("TERM"))
		}
		return misused(`standard input or output is not a terminal; for scripts use: inspan -p "task", or inspan run "task"`)
	}
	if f.goOn {
		id, err := c.last(cmd.Context(), f.cwd)
		if err != nil {
			return err
		}
		f.resume = id
	}
	return c.screen(cmd, f)
}

// watched reports whether a person is at a terminal that can show the front end.
func (c *command) watched() bool { return isTerminal(c.in) && drawable(c.console.Out) }

// answered runs one task in a new session or in the one of the flags, and prints the answer.
func (c *command) answered(cmd *cobra.Command, f *screenFlags) error {
	var task []string
	if f.says != "" {
		task = []string{f.says}
	}
	id, err := f.resume, error(nil)
	switch {
	case id == anySession:
		return misused(`--resume needs an ID here: inspan -p -r ID "task"`)
	case f.goOn:
		id, err = c.last(cmd.Context(), f.cwd)
	case id == "":
		return c.perform(&f.runFlags)(cmd, task)
	}
	if err != nil {
		return err
	}
	return c.goOn(cmd, &f.runFlags, []string{id, cmp.Or(f.says, "-")})
}

// last returns the session used last in a folder.
func (c *command) last(ctx context.Context, folder string) (string, error) {
	a, root, err := c.at(folder)
	if err != nil {
		return "", err
	}
	return a.Running.LastIn(ctx, root)
}

// screen runs the interactive front end.
func (c *command) screen(cmd *cobra.Command, f *screenFlags) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	if f.schema != "" {
		return misused("--json-schema prints the answer to one task; use: inspan -p --json-schema ... \"task\"")
	}
	if err := c.fresh(cmd.Context(), &f.runFlags); err != nil {
		return err
	}
	a, root, err := c.at(f.cwd)
	if err != nil {
		return err
	}
	if err := a.Permission.Broken(root); err != nil {
		return err // no session could begin here
	}
	if why := a.Providers.Missing(f.Model); why != nil && f.resume == "" && !f.goOn && f.Replay == "" {
		if name := cmp.Or(f.Model, a.Config.Model); name != "" {
			c.warn(why.Error())
		}
		if done, err := c.setUp(cmd, a, root); err != nil || !done {
			c.code = cmp.Or(c.code, console.ExitConfig)
			return err
		}
		if a, root, err = c.at(f.cwd); err != nil {
			return err
		}
	}
	wrote := false
	if f.resume == "" && !f.goOn && f.Replay == "" {
		wrote, err = c.talk(cmd, a, root).Offer(cmd.Context())
		if err = c.stopped(err); err != nil || c.code != 0 {
			return err
		}
	}
	if err := c.apart(cmd.Context(), a, &f.runFlags); err != nil {
		return err
	}
	if wrote || f.tree != "" { // other settings, or another folder
		if a, root, err = c.at(f.cwd); err != nil {
			return err
		}
	}
	for _, w := range f.warnings {
		c.warn(w)
	}
	t := c.frontEnd(cmd, a, root, f)
	t.Pictures = f.pictures
	t.Session = f.resume
	t.Commands = c.slashes(a, root, &f.runFlags, func(_, why string) { c.warn(why) })
	t.Jobs = func(session string) tui.Jobs { return shellJobs{a.Running.Shell(session)} }
	warm := a.Hubs.Warm(root, f.Trust)
	t.Begun, t.Ended = warm.Begin, warm.Close
	t.More = func() (list []tui.Command) {
		for _, p := range a.Hubs.Prompts(root) {
			list = append(list, tui.Command{
				Name: p.Command, Args: p.Usage, Doc: cmp.Or(p.Doc, "from the MCP server "+p.Server),
				Prompt: func(ctx context.Context, args string) (string, error) { return a.Hubs.Fill(ctx, root, p.Prompt, args) },
			})
		}
		return list
	}
	c.code, err = t.Run(cmd.Context())
	return errors.Join(err, c.leave(cmd.Context(), a, &f.runFlags))
}

// frontEnd is the interactive front end in a folder.
func (c *command) frontEnd(cmd *cobra.Command, a *app.App, root string, f *screenFlags) *tui.TUI {
	return &tui.TUI{
		App: a, Options: f.Options, Root: root, Say: f.says, Version: setup.Version(),
		Fullscreen: f.fullscreen, NoColor: !colored(os.Stdout), Keys: a.Config.Keys, Edit: editor(cmd.Context()),
	}
}

// shellJobs are the jobs of a session's shell; nil if it has none here.
type shellJobs struct{ shell *tools.Shell }

// List implements [tui.Jobs].
func (j shellJobs) List() (list []tui.Job) {
	if j.shell != nil {
		for _, job := range j.shell.Jobs() {
			list = append(list, tui.Job(job))
		}
	}
	return list
}

// Background implements [tui.Jobs].
func (j shellJobs) Background() int {
	if j.shell == nil {
		return 0
	}
	return j.shell.Background()
}

// Kill implements [tui.Jobs].
func (j shellJobs) Kill(ctx context.Context, id string) error {
	if j.shell == nil {
		return errors.New("the session has no jobs")
	}
	return j.shell.Kill(ctx, id)
}

// slashes returns the slash commands that the front end does not have itself, with the flags of its start. Shadowed
// is called with the names of command files that are not among them, and why.
func (c *command) slashes(a *app.App, root string, f *runFlags, shadowed func(name, why string)) []tui.Command {
	printed := func(name, doc string, f func(ctx context.Context, out, complain io.Writer) error) tui.Command {
		return tui.Command{Name: name, Doc: doc, Print: func(ctx context.Context, args string) (string, error) {
			if args != "" {
				return "", fmt.Errorf("/%s takes no arguments; nothing was done", name)
			}
			var b strings.Builder
			err := f(ctx, &b, &b)
			return b.String(), err
		}}
	}
	list := []tui.Command{
		memorySlash(a, root),
		printed("doctor", "check settings, keys, providers, disk and programs", func(ctx context.Context, out, _ io.Writer) error {
			return setup.Print(out, 0, setup.Doctor(ctx, c.self, f.Model, false))
		}),
		printed("skills", "list the skills", func(_ context.Context, out, complain io.Writer) error {
			return printSkills(out, complain, a.Extensions.Skills(root))
		}),
		printed("hooks", "list the hooks", func(_ context.Context, out, complain io.Writer) error {
			list, err := a.Extensions.ListHooks(root, func(why string) { fmt.Fprintln(complain, why) })
			if err != nil {
				return err
			}
			return printHooks(out, list)
		}),
		printed("agents", "list the kinds of subagents", func(_ context.Context, out, complain io.Writer) error {
			return printRoles(out, complain, a.Extensions.Roles(root, func(string) {}))
		}),
		serverSlash(a, root),
	}
	list = append(list, c.flowSlashes(a, root, f)...)
	list = append(list, skillSlashes(a, root)...)
	ours := append(tui.Commands(), list...)
	for _, m := range a.Extensions.Commands(root, func(string) {}) {
		if slices.ContainsFunc(ours, func(c tui.Command) bool { return c.Name == m.Name }) {
			shadowed(m.Name, fmt.Sprintf("the command file %s.md (%s) is not used, because another command is called /%s; rename the file",
				strings.ReplaceAll(m.Name, ":", "/"), m.Source, m.Name))
			continue // no command takes a name that the person knows, least of all one from a repository
		}
		list = append(list, tui.Command{
			Name: m.Name, Args: m.Hint, Doc: cmp.Or(m.Description, "from "+m.Source),
			Prompt: func(_ context.Context, args string) (string, error) { return m.Expand(args), nil },
		})
	}
	return list
}

// memorySlash lists the memory of a workspace, or adds an entry to it.
func memorySlash(a *app.App, root string) tui.Command {
	return tui.Command{
		Name: "memory", Args: "[add TEXT]", Doc: "list the memory, or add to it",
		Print: func(ctx context.Context, args string) (string, error) {
			var b strings.Builder
			verb, said, _ := strings.Cut(args, " ")
			said = strings.TrimSpace(said)
			switch {
			case args == "":
				err := printMemory(&b, &b, a.Knowledge.Memory(root))
				return b.String(), err
			case verb != "add" || said == "":
				return "", errors.New("want /memory or /memory add TEXT; 'inspan memory --help' shows the rest")
			}
			id, err := a.Knowledge.Remember(ctx, root, "project", a.Knowledge.Entry("fact", said), "")
			if err != nil {
				return "", err
			}
			return savedAs("project", id) + "\n", nil
		},
	}
}

// serverSlash shows the state of the servers, and approves a server's offer. The digest names the approved
// offer, so that the person has seen it.
func serverSlash(a *app.App, root string) tui.Command {
	return tui.Command{
		Name: "mcp", Args: "[agree NAME [DIGEST]]", Doc: "list the MCP servers, or approve a server's current tools",
		Print: func(_ context.Context, args string) (string, error) {
			fields := strings.Fields(args)
			if len(fields) > 0 && (fields[0] != "agree" || len(fields) < 2 || len(fields) > 3) {
				return "", errors.New("want /mcp, /mcp agree NAME or /mcp agree NAME DIGEST")
			}
			var b strings.Builder
			for _, m := range a.Hubs.Managers(root) {
				if len(fields) == 0 {
					if err := printServers(&b, m.Status()); err != nil {
						return "", err
					}
					continue
				}
				now, agreed, digest := m.Definitions(fields[1])
				switch {
				case digest == "":
				case len(fields) == 3 && len(fields[2]) >= shownDigest && strings.HasPrefix(digest, fields[2]):
					return "Approved the current tools of " + fields[1] + "; the next run has them.", m.Agree(fields[1], digest)
				default:
					return fmt.Sprintf("%sTo approve the current tools of %s: /mcp agree %s %s",
						differences(agreed, now), fields[1], fields[1], digest[:shownDigest]), nil
				}
			}
			switch {
			case len(fields) > 0:
				return "", fmt.Errorf("no MCP server %q is connected", fields[1])
			case b.Len() == 0:
				return "No MCP servers are set up here; 'inspan mcp add' adds one.", nil
			}
			return b.String(), nil
		},
	}
}

const shownDigest = 8 // characters of the digest that a person approves

// editor returns a function that starts the person's editor.
func editor(ctx context.Context) func(path string) tea.ExecCommand {
	return func(path string) tea.ExecCommand {
		args := append(strings.Fields(cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi")), path)
		return &foreground{ctx: ctx, args: args}
	}
}

// foreground is a program that uses the terminal for a while.
type foreground struct {
	ctx       context.Context
	args      []string
	in        io.Reader
	out, errs io.Writer
}

func (f *foreground) SetStdin(r io.Reader)  { f.in = r }
func (f *foreground) SetStdout(w io.Writer) { f.out = w }
func (f *foreground) SetStderr(w io.Writer) { f.errs = w }

// Run implements [tea.ExecCommand].
func (f *foreground) Run() error {
	return app.Foreground(f.ctx, f.args, f.in, f.out, f.errs)
}

// printHooks prints hooks in one line each, with their source.
func printHooks(out io.Writer, list []hook.Config) error {
	w := text.NewTable(out)
	for _, h := range list {
		runs := strings.TrimSpace(h.Command + " " + h.URL)
		w.Row(h.On, words.OneLine(h.Match, 20), words.OneLine(runs, 200), words.OneLine(h.Source, 200))
	}
	if len(list) == 0 {
		fmt.Fprintln(out, "No hooks are set. Hooks of this folder run once you trust it, see 'inspan trust'.")
	}
	return w.Flush()
}
