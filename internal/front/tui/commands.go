package tui

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Command is a slash command. Exactly one of Prompt, Print, Begin and run is set.
type Command struct {
	Name string // without the slash
	Args string // its arguments: "<name>" is required, "[name]" optional; empty if it takes none
	Doc  string // what it does, in one line
	// Prompt returns a message for the model.
	Prompt func(ctx context.Context, args string) (string, error)
	// Print returns text for the person. It may take its time.
	Print func(ctx context.Context, args string) (string, error)
	// Begin starts something beside the session with this status, and returns text for the person.
	Begin func(ctx context.Context, st inspan.Status, args string) (string, error)

	// It may run while a question is open. Commands with Print may too.
	calm bool
	run  func(c *commander, args string) tea.Cmd
	here string // why it is only for sessions on this machine; empty if it is for all
}

// Commands lists the slash commands that are always available.
func Commands() []Command {
	return []Command{
		{Name: "help", Doc: "list commands, keys and modes", calm: true, run: (*commander).help},
		{Name: "new", Doc: "start a new session", run: idle(func(c *commander, _ string) tea.Cmd { return c.talk.startOver() })},
		{Name: "clear", Doc: "start a new session in an empty conversation; /resume returns to the old one", run: idle((*commander).startNew)},
		{Name: "status", Doc: "show the model, mode, session, cost, context and sandbox, and what is missing", calm: true, run: work(facts.status)},
		{
			Name: "resume", Args: "[id]", Doc: "resume an earlier session",
			run: idle(func(c *commander, id string) tea.Cmd { return c.sessions.resume(id) }),
		},
		{Name: "rename", Args: "[title]", Doc: "give the session another title", calm: true, run: (*commander).rename},
		{Name: "sessions", Doc: "list the sessions of this folder", calm: true, run: work(facts.sessions)},
		{Name: "continue", Doc: "continue a stopped run", run: (*commander).goOn},
		{
			Name: "loop", Args: "[interval] [prompt]", Doc: "repeat a prompt in this session, such as every 5m; /loop off ends that",
			calm: true, run: (*commander).loop,
		},
		{
			Name: "model", here: "its model is chosen when it starts, with --model", Args: "[provider/model]", Doc: "switch models",
			run: idle(func(c *commander, name string) tea.Cmd { return c.sessions.model(name) }),
		},
		{
			Name: "add-dir", here: "the server decides where it works", Args: "[folder]",
			Doc: "open a folder to this session, which it then uses like its workspace; without one, list them",
			run: idle(func(c *commander, path string) tea.Cmd { return c.sessions.addFolder(path) }),
		},
		{Name: "effort", here: "the server chooses it", Args: "[low|medium|high|xhigh|max]", Doc: "set how hard the model thinks", run: idle((*commander).effort)},
		{Name: "reasoning", Doc: "show the model's last reasoning in full", calm: true, run: (*commander).reasoning},
		{Name: "mode", here: "its mode is chosen when it starts, with --mode", Args: "[mode]", Doc: "set the permission mode: plan, ask, edit, auto or yolo", calm: true, run: (*commander).mode},
		{Name: "plan", here: "its mode is chosen when it starts, with --mode", Args: "[task]", Doc: "switch to mode plan, which only reads, and begin with a task", calm: true, run: (*commander).plan},
		{Name: "permissions", here: "its rules are those of the server", Doc: "list the rules in force, also those approved for this session", calm: true, run: work(facts.permissions)},
		{Name: "context", Doc: "show the next prompt and what fills it", calm: true, run: work(facts.context)},
		{Name: "compact", here: "the server compacts it when that is needed", Args: "[focus]", Doc: "compact the conversation; the log keeps all of it", run: (*commander).compact},
		{Name: "cost", Doc: "show the cost of the session, by model", calm: true, run: work(facts.cost)},
		{Name: "usage", Doc: "show the tokens and the cost of the session, as /cost does", calm: true, run: work(facts.cost)},
		{Name: "spend", Doc: "show what has cost most in the session, and what would have avoided it", calm: true, run: work(facts.spend)},
		{
			Name: "btw", here: "it asks in a copy on this machine", Args: "[question]",
			Doc: "ask a side question, even during a run; it leaves no trace in the conversation", calm: true,
			run: func(c *commander, question string) tea.Cmd { return c.sessions.askAside(question) },
		},
		{Name: "todo", Doc: "show the todo list", calm: true, run: show(facts.todo)},
		{Name: "diff", Doc: "show the changes to files in this session", calm: true, run: (*commander).diff},
		{
			Name: "undo", Doc: "restore the files to before your last message",
			run: idle(func(c *commander, _ string) tea.Cmd { return c.back.undo() }),
		},
		{Name: "rewind", Doc: "return to an earlier message", run: idle(func(c *commander, _ string) tea.Cmd { return c.back.pick() })},
		{Name: "fork", Doc: "continue in a copy of this session", run: idle(func(c *commander, _ string) tea.Cmd { return c.sessions.fork() })},
		{Name: "export", Args: "[file]", Doc: "export the session to a new markdown file", calm: true, run: work(facts.export)},
		{Name: "copy", Doc: "copy the last answer to the clipboard", calm: true, run: (*commander).copyReply},
		{Name: "tools", here: "its tools are those of the server", Doc: "list the tools", calm: true, run: work(facts.tools)},
		{Name: "jobs", Args: "[kill ID]", Doc: "list background jobs, or kill one", calm: true, run: (*commander).jobs},
		{
			Name: "subagents", Args: "[id]", Doc: "list the subagents of this session, and show the work of one", calm: true,
			run: func(c *commander, id string) tea.Cmd { return c.sessions.subagents(id) },
		},
		{
			Name: "team", here: "its team is on the server; see its page", Args: "[name] [message]",
			Doc: "show the team and its tasks, and speak to a member", calm: true,
			run: func(c *commander, args string) tea.Cmd { return c.sessions.team(args) },
		},
		{
			Name: "output-style", here: "it is for sessions on this machine", Args: "[name]",
			Doc:  "choose how the model answers in new sessions, here and in your settings",
			calm: true, run: (*commander).outputStyle,
		},
		{Name: "theme", Args: "[dark|light|auto]", Doc: "set the colours, here and in your settings", calm: true, run: (*commander).theme},
		{
			Name: "vim", Args: "[on|off]", Doc: "switch vim's keys in the prompt, here and in your settings",
			calm: true, run: (*commander).vim,
		},
		{Name: "config", Doc: "show the model, the mode and where the settings are", calm: true, run: show(facts.config)},
		{Name: "quit", Doc: "quit", calm: true, run: func(c *commander, _ string) tea.Cmd { return c.quit() }},
		{Name: "exit", Doc: "quit", calm: true, run: func(c *commander, _ string) tea.Cmd { return c.quit() }},
	}
}

// catalog is the available commands.
type catalog []Command

// find finds a command.
func (c catalog) find(name string) (Command, bool) {
	i := slices.IndexFunc(c, func(c Command) bool { return c.Name == name })
	if i < 0 {
		return Command{}, false
	}
	return c[i], true
}

// matching returns the commands that a typed word may mean, the best match first. If no name contains the word,
// these are the commands whose description does, or whose names have its letters.
func (c catalog) matching(typed string) []choice {
	const kinds = 5
	var ranks [kinds][]choice
	for _, c := range c {
		if rank := c.rank(strings.ToLower(typed)); rank < kinds {
			ranks[rank] = append(ranks[rank], choice{"/" + c.Name, strings.TrimSpace(c.Args + "  " + c.Doc)})
		}
	}
	if typed != "" { // of names with this beginning, the shortest is nearest
		slices.SortStableFunc(ranks[1], func(a, b choice) int { return cmp.Compare(len(a.text), len(b.text)) })
	}
	if named := slices.Concat(ranks[:3]...); len(named) > 0 {
		return named
	}
	return slices.Concat(ranks[3:]...)
}

// rank returns how near a command is to the typed word; 0 is nearest.
func (c Command) rank(typed string) int {
	name, doc := strings.ToLower(c.Name), strings.ToLower(c.Doc)
	_, some := match(name, typed)
	switch {
	case name == typed:
		return 0
	case strings.HasPrefix(name, typed):
		return 1
	case strings.Contains(name, typed):
		return 2
	case len(typed) > 2 && strings.Contains(doc, typed):
		return 3
	case some && len(typed) > 1:
		return 4
	}
	return 5
}

// nearest says that there is no command of this name, and which one may be meant.
func (c catalog) nearest(name string) string {
	var names []string
	for _, c := range c {
		names = append(names, c.Name)
	}
	return "unknown command /" + words.OneLine(words.Hidden(name), 30) + cmp.Or(words.DidYouMean(name, names), "; /help lists the commands")
}

// commander runs slash commands.
type commander struct {
	tui      *TUI
	keys     keymap
	talk     *talk
	over     *overlay
	hints    *hints
	history  *history
	sessions *sessions
	back     *rewinder
	loops    *repeater
	quit     func() tea.Cmd
}

// all returns our commands and those from outside.
func (c *commander) all() catalog {
	all := append(Commands(), c.talk.backend.commands()...)
	rest := slices.Clone(c.tui.Commands)
	if c.tui.More != nil {
		rest = append(rest, c.tui.More()...)
	}
	for _, r := range rest {
		if !slices.ContainsFunc(all, func(o Command) bool { return o.Name == r.Name }) {
			all = append(all, r)
		}
	}
	for i := range all {
		if all[i].run == nil {
			all[i].here = "it is about this machine"
		}
	}
	return all
}

// offered returns the commands that work for the present sessions.
func (c *commander) offered() catalog {
	return slices.DeleteFunc(c.all(), func(what Command) bool { return what.here != "" && c.tui.at() != "" })
}

// do runs a command.
func (c *commander) do(what Command, args string) tea.Cmd {
	c.history.add("/" + strings.TrimSpace(what.Name+" "+args))
	switch {
	case what.here != "" && c.tui.at() != "":
		c.talk.note("/" + words.OneLine(what.Name, 30) + " is not for sessions of a server: " + what.here)
		return nil
	case what.run != nil:
		return what.run(c, args)
	case what.Prompt != nil:
		return c.talk.work(func(ctx context.Context) (string, error) { return what.Prompt(ctx, args) }, c.say)
	case what.Begin != nil:
		var st inspan.Status // before there is a session, the status that it would have
		if s := c.talk.runner.session(); s != nil {
			st = s.Status()
		}
		st.Mode, st.Route = c.talk.mode(), cmp.Or(c.talk.coming, c.talk.route())
		return c.talk.work(func(ctx context.Context) (string, error) { return what.Begin(ctx, st, args) }, c.showText)
	case what.Print != nil:
		return c.talk.work(func(ctx context.Context) (string, error) { return what.Print(ctx, args) }, c.showText)
	}
	return nil
}

// showText shows our own text.
func (c *commander) showText(text string) tea.Cmd {
	c.talk.printText(text)
	return nil
}

// show makes a command from a function that returns text at once.
func show(text func(facts) string) func(*commander, string) tea.Cmd {
	return func(c *commander, _ string) tea.Cmd { return c.showText(strings.TrimRight(text(c.facts()), "\n")) }
}

// work makes a command that finds out text. The function that prepare returns runs in the background and must
// not access the screen.
func work(prepare func(f facts, args string) func(context.Context) (string, error)) func(*commander, string) tea.Cmd {
	return func(c *commander, args string) tea.Cmd {
		do := prepare(c.facts(), args)
		return c.talk.work(func(ctx context.Context) (string, error) {
			text, err := do(ctx)
			return strings.TrimRight(text, "\n"), err
		}, c.showText)
	}
}

// idle restricts a command to an idle session.
func idle(run func(*commander, string) tea.Cmd) func(*commander, string) tea.Cmd {
	return func(c *commander, args string) tea.Cmd {
		t := c.talk
		if t.running && t.view.Idle() || t.closing { // the run is over, except for formalities
			t.deferred = append(t.deferred, func() tea.Cmd { return run(c, args) })
			return nil
		}
		if t.running || t.opening {
			c.hints.say("not possible during a run; Esc interrupts it")
			return nil
		}
		return run(c, args)
	}
}

// help shows the help until the person closes it.
func (c *commander) help(string) tea.Cmd {
	c.over.openText(c.facts().help())
	return nil
}

// rename gives the session another title, even during a run.
func (c *commander) rename(title string) tea.Cmd {
	title = words.OneLine(title, 200)
	switch {
	case title == "":
		c.hints.say("write the title too: /rename fix the parser")
	case c.talk.runner.id() == "":
		c.hints.say("the session begins with your first message; rename it after that")
	default:
		c.talk.sendToDriver(event.Titled{Title: title}, "")
		c.talk.note("the session is called " + title)
	}
	return nil
}

// say sends a message now, or after the run.
func (c *commander) say(text string) tea.Cmd {
	said := event.Say(text)
	if c.talk.running {
		c.talk.send(said, text)
		return nil
	}
	c.history.add(text)
	return c.talk.start(said)
}

func (c *commander) mode(args string) tea.Cmd {
	if args == "" {
		var items []choice
		for _, mode := range tool.Modes() {
			items = append(items, choice{string(mode), mode.Doc()})
		}
		c.over.pick("mode", items, func(i int) tea.Cmd { return c.mode(items[i].text) }).markCurrent(string(c.talk.mode()))
		return nil
	}
	mode := tool.Mode(args)
	if err := mode.Check(); err != nil {
		c.talk.fail(err)
		return nil
	}
	if mode == tool.ModeYolo {
		c.over.confirm("mode yolo: nothing asks any more, not even deleting files or using the network", nil,
			func() tea.Cmd { return c.talk.switchTo(mode) }, c.talk.unchanged)
		return nil
	}
	return c.talk.switchTo(mode)
}

// plan switches to mode plan, for the task if there is one. During a run, both wait for its end, so that the
// task never begins in the old mode.
func (c *commander) plan(task string) tea.Cmd {
	if task == "" {
		return c.talk.switchTo(tool.ModePlan)
	}
	if t := c.talk; t.running && !t.isWorking() || t.opening || t.runner.session() == nil {
		return tea.Batch(t.switchTo(tool.ModePlan), c.say(task))
	}
	c.history.add(task)
	c.talk.opts.Mode = tool.ModePlan
	return c.talk.start(append(slices.Clone(c.talk.decided), event.Switched{Mode: tool.ModePlan}, event.Say(task))...)
}

// startNew starts a new session, in fullscreen with an empty screen. The terminal's scrollback belongs to the
// person, so it stays, like the old session.
func (c *commander) startNew(string) tea.Cmd {
	c.back.screen.clearTranscript()
	return c.talk.startOver()
}

// effort sets the reasoning effort, from the next request on.
func (c *commander) effort(args string) tea.Cmd {
	efforts := llm.Efforts()
	if args == "" {
		var items []choice
		for _, e := range efforts {
			items = append(items, choice{text: e})
		}
		c.over.pick("effort", items, func(i int) tea.Cmd { return c.effort(efforts[i]) }).markCurrent(c.talk.effort())
		return nil
	}
	if !slices.Contains(efforts, args) {
		c.talk.fail(fmt.Errorf("unknown effort %q; use one of %s", words.OneLine(words.Hidden(args), 30), strings.Join(efforts, ", ")))
		return nil
	}
	if c.talk.runner.session() == nil {
		c.talk.held = append(c.talk.held, event.Switched{Effort: args})
		c.talk.note("the next session thinks with effort " + args)
		return nil
	}
	return c.talk.start(event.Switched{Effort: args})
}

// reasoning prints the thoughts before the model's last reply that had any.
func (c *commander) reasoning(string) tea.Cmd {
	if c.talk.view.thought == "" {
		c.hints.say("the model has shown no reasoning yet")
		return nil
	}
	c.talk.view.add(&block{kind: thoughtBlock, text: c.talk.view.thought})
	return nil
}

func (c *commander) goOn(string) tea.Cmd {
	switch t := c.talk; {
	case t.running && t.view.Idle(): // the run is over, except for formalities
		t.deferred = append(t.deferred, func() tea.Cmd { return c.goOn("") })
		return nil
	case t.running || t.runner.session() == nil:
		c.hints.say("there is no run to continue")
		return nil
	case t.cutOff():
		return t.continueCutOff()
	case t.view.Run.Busy, len(t.view.Queued()) > 0:
		return t.start()
	case t.view.Run.Stopped == nil:
		c.hints.say("there is no run to continue")
		return nil
	case t.view.Run.Stopped.Reason == event.ReasonDone:
		c.hints.say("the run is done; type a new task")
		return nil
	}
	return c.talk.start(event.Said{})
}

func (c *commander) compact(focus string) tea.Cmd {
	switch {
	case c.talk.runner.session() == nil:
		c.hints.say("there is nothing to compact yet")
	case c.talk.running:
		c.hints.say("inspan compacts the conversation before the next request")
		c.talk.send(event.Compact{Focus: focus}, "")
	default:
		return c.talk.start(event.Compact{Focus: focus})
	}
	return nil
}

// diff prints the changes of the session: those by file tools file by file, and which other files were changed
// by commands.
func (c *commander) diff(string) tea.Cmd {
	t, v := c.talk, c.talk.view
	shown := map[string]bool{}
	for _, change := range v.changes.All {
		v.add(&block{kind: diffBlock, text: change.Diff, detail: change.Path})
		if path, err := filepath.Rel(t.root(), change.Path); err == nil {
			shown[filepath.ToSlash(path)] = true
		}
	}
	a, id, root, ctx := t.tui.here(), t.runner.id(), t.root(), t.ctx
	switch {
	case id == "" || a == nil:
		if len(v.changes.All) == 0 {
			c.hints.say("no file tool has changed a file, or all changes were undone")
		}
		return nil
	case t.running:
		c.hints.say("what commands have changed is listed when the run is over")
		return nil
	}
	return func() tea.Msg {
		files, err := a.Rewind.Changed(ctx, id, root)
		return later(func() tea.Cmd {
			var b strings.Builder
			for _, f := range files {
				if !shown[f.Path] {
					fmt.Fprintf(&b, "\n  %s\t%s", words.OneLine(f.Path, 200), f.What)
				}
			}
			switch {
			case err != nil:
				c.talk.note("what commands have changed is not known: " + err.Error())
			case b.Len() > 0:
				return c.showText("Changed by commands; /undo knows these files too:" + b.String())
			case len(shown) == 0:
				c.hints.say("nothing has changed a file, or all changes were undone")
			}
			return nil
		})
	}
}

func (c *commander) copyReply(string) tea.Cmd {
	if c.talk.view.Last == "" {
		c.hints.say("there is no answer yet")
		return nil
	}
	c.hints.say("copied, if the terminal supports it")
	return tea.SetClipboard(c.talk.view.Last)
}
