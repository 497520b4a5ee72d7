package tui

import (
	"context"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Command is what the person asks for with a slash. One of Prompt and Print is
// set.
type Command struct {
	Name string // without the slash
	Args string // what it takes: "<name>" must be there, "[name]" may; empty: nothing
	Doc  string // what it does, in one line
	// Prompt returns what is said to the model.
	Prompt func(ctx context.Context, args string) (string, error)
	// Print returns text for the person. It may take its time.
	Print func(ctx context.Context, args string) (string, error)

	// The session stays as it is, so that it may be run while a question is open.
	// What only prints may too.
	calm bool
	run  func(m *model, args string) tea.Cmd
}

// Commands lists the slash commands that are always there.
func Commands() []Command {
	return []Command{
		{Name: "help", Doc: "show the commands and the keys", calm: true, run: show(facts.help)},
		{Name: "new", Doc: "begin a new session", run: idle((*model).newSession)},
		{Name: "resume", Args: "[id]", Doc: "go on with an earlier session", run: idle((*model).resumeCommand)},
		{Name: "sessions", Doc: "list the sessions of this folder", calm: true, run: work(facts.sessions)},
		{Name: "continue", Doc: "let a run that stopped go on", run: (*model).goOn},
		{Name: "model", Args: "[provider/model]", Doc: "work with another model", run: idle((*model).modelCommand)},
		{Name: "mode", Args: "[mode]", Doc: "how much runs unasked: plan, ask, edit, auto or yolo", run: (*model).modeCommand},
		{Name: "plan", Doc: "only read, and make a plan", run: func(m *model, _ string) tea.Cmd { return m.switchTo("plan") }},
		{Name: "permissions", Doc: "list the rules that hold here", calm: true, run: work(facts.permissions)},
		{Name: "context", Doc: "show what the model is asked next, and what takes the room", calm: true, run: work(facts.context)},
		{Name: "compact", Args: "[what matters]", Doc: "make the conversation shorter; the log keeps all of it", run: (*model).compact},
		{Name: "cost", Doc: "show what the session has cost, by model", calm: true, run: work(facts.cost)},
		{Name: "todo", Doc: "show the list of things to do", calm: true, run: show(facts.todo)},
		{Name: "diff", Doc: "show what this session has changed in files", calm: true, run: (*model).diff},
		{Name: "undo", Doc: "put the files back to before what was said last", run: idle((*model).undo)},
		{Name: "rewind", Doc: "go back to before something was said", run: idle(func(m *model, _ string) tea.Cmd { return m.pickPoint() })},
		{Name: "fork", Doc: "go on in a copy of this session", run: idle((*model).fork)},
		{Name: "export", Args: "[file]", Doc: "write the session to a markdown file", calm: true, run: work(facts.export)},
		{Name: "copy", Doc: "copy the last answer to the clipboard", calm: true, run: (*model).copy},
		{Name: "tools", Doc: "list the tools", calm: true, run: work(facts.tools)},
		{Name: "jobs", Args: "[kill ID]", Doc: "list what goes on in the background, or end one of it", calm: true, run: (*model).jobsCommand},
		{Name: "config", Doc: "show where the settings are", calm: true, run: show(facts.config)},
		{Name: "quit", Doc: "leave", calm: true, run: func(m *model, _ string) tea.Cmd { return m.quit() }},
	}
}

// catalog is the commands that there are.
type catalog []Command

// named finds a command.
func (c catalog) named(name string) (Command, bool) {
	i := slices.IndexFunc(c, func(c Command) bool { return c.Name == name })
	if i < 0 {
		return Command{}, false
	}
	return c[i], true
}

// like are the commands that begin so; the others follow that hold it.
func (c catalog) like(start string) []choice {
	var first, rest []choice
	for _, c := range c {
		item := choice{"/" + c.Name, strings.TrimSpace(c.Args + "  " + c.Doc)}
		switch {
		case c.Name == start:
			first = append([]choice{item}, first...)
		case strings.HasPrefix(c.Name, start):
			first = append(first, item)
		case start != "" && strings.Contains(c.Name, start):
			rest = append(rest, item)
		}
	}
	return append(first, rest...)
}

// nearest tells of a name that there is none, and which there is.
func (c catalog) nearest(name string) string {
	var names []string
	for _, c := range c {
		names = append(names, c.Name)
	}
	return "there is no /" + words.OneLine(name, 30) + didYouMean(tool.Nearest(name, names)) + "; /help lists all"
}

// commands are ours with those that came from outside.
func (m *model) commands() catalog {
	all := slices.Clone(m.Commands)
	rest := Commands()
	if m.More != nil {
		rest = append(rest, m.More()...)
	}
	for _, c := range rest {
		if !slices.ContainsFunc(all, func(o Command) bool { return o.Name == c.Name }) {
			all = append(all, c)
		}
	}
	return all
}

// do does what a command says.
func (m *model) do(c Command, args string) tea.Cmd {
	m.history.add("/" + strings.TrimSpace(c.Name+" "+args))
	switch {
	case c.run != nil:
		return c.run(m, args)
	case c.Prompt != nil:
		return m.work(func(ctx context.Context) (string, error) { return c.Prompt(ctx, args) }, func(m *model, text string) tea.Cmd {
			return m.sayNow(text)
		})
	case c.Print != nil:
		return m.work(func(ctx context.Context) (string, error) { return c.Print(ctx, args) }, (*model).printed)
	}
	return nil
}

// printed shows text of ours.
func (m *model) printed(text string) tea.Cmd {
	m.view.add(&block{kind: plainBlock, text: text})
	return nil
}

// work does something that takes time, and then the rest with what came of it.
func (m *model) work(do func(context.Context) (string, error), then func(*model, string) tea.Cmd) tea.Cmd {
	ctx := m.ctx
	return func() tea.Msg {
		text, err := do(ctx)
		return later(func(m *model) tea.Cmd {
			if err != nil {
				m.fail(err)
				return nil
			}
			return then(m, text)
		})
	}
}

// show makes a command of what prints text at once.
func show(text func(facts) string) func(*model, string) tea.Cmd {
	return func(m *model, _ string) tea.Cmd { return m.printed(strings.TrimRight(text(m.facts()), "\n")) }
}

// work makes a command of what finds out text. The function it returns runs
// beside everything else and must not touch the model.
func work(prepare func(f facts, args string) func(context.Context) (string, error)) func(*model, string) tea.Cmd {
	return func(m *model, args string) tea.Cmd {
		do := prepare(m.facts(), args)
		return m.work(func(ctx context.Context) (string, error) {
			text, err := do(ctx)
			return strings.TrimRight(text, "\n"), err
		}, (*model).printed)
	}
}

// idle makes a command one that is for a session at rest only.
func idle(run func(*model, string) tea.Cmd) func(*model, string) tea.Cmd {
	return func(m *model, args string) tea.Cmd {
		if m.running && m.view.Idle() { // it is over but for the formalities
			m.then = append(m.then, func(m *model) tea.Cmd { return run(m, args) })
			return nil
		}
		if m.running || m.opening {
			m.hint = "that has to wait until the run is over; esc interrupts it"
			return nil
		}
		return run(m, args)
	}
}

// sayNow says something now, or after the run.
func (m *model) sayNow(text string) tea.Cmd {
	if m.running {
		m.seat.post(m.next(event.Said{Parts: llm.Say(text)}, false, text))
		return nil
	}
	return m.say(llm.Say(text))
}

func (m *model) modeCommand(args string) tea.Cmd {
	if m.App == nil {
		m.hint = "there are no settings to take modes from"
		return nil
	}
	if args == "" {
		var items []choice
		for _, mode := range m.App.Permission.Modes() {
			items = append(items, choice{mode.Name, mode.Doc})
		}
		m.over = &picker{title: "mode", items: items, take: func(m *model, i int) tea.Cmd { return m.modeCommand(items[i].text) }}
		return nil
	}
	mode, err := m.App.Permission.Mode(args)
	if err != nil {
		m.fail(err)
		return nil
	}
	if mode.Warn != "" {
		m.over = &confirm{title: "mode " + mode.Name + ": " + mode.Warn, yes: func(m *model) tea.Cmd { return m.switchTo(mode.Name) }}
		return nil
	}
	return m.switchTo(mode.Name)
}

func (m *model) goOn(string) tea.Cmd {
	switch {
	case m.running || m.seat.session() == nil:
		m.hint = "there is no run that could go on"
		return nil
	case m.cutOff():
		return m.goOnHere()
	case m.view.Run.Busy:
		return m.start()
	}
	return m.start(event.Said{})
}

func (m *model) compact(focus string) tea.Cmd {
	switch {
	case m.seat.session() == nil:
		m.hint = "there is nothing to compact yet"
	case m.running:
		m.hint = "the conversation is compacted before the model is asked again"
		m.seat.post(m.next(event.Compact{Focus: focus}, false, ""))
	default:
		return m.start(event.Compact{Focus: focus})
	}
	return nil
}

// diff prints the changes of the session, file by file.
func (m *model) diff(string) tea.Cmd {
	if len(m.view.changes) == 0 {
		m.hint = "no call has changed a file"
	}
	for _, c := range m.view.changes {
		m.view.add(&block{kind: diffBlock, text: c.diff, detail: c.path})
	}
	return nil
}

func (m *model) copy(string) tea.Cmd {
	if m.view.Last == "" {
		m.hint = "there is no answer yet"
		return nil
	}
	m.hint = "copied, if the terminal takes it"
	return tea.SetClipboard(m.view.Last)
}
