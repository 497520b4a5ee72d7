package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/words"
)

// repeater repeats a prompt in the open session, each time a while after the end of the previous run, no matter who
// began it.
type repeater struct {
	talk *talk
	on   *repeat // nil if nothing repeats
}

// repeat is the text that a repeater repeats.
type repeat struct {
	typed   string        // the prompt, or the slash command that makes it
	every   time.Duration // from the end of a run to the next
	prompt  func(context.Context) (string, error)
	session string         // the session; empty if it is not open yet
	at      time.Time      // time of the next run; zero during a run
	said    bool           // the run in progress is one of its runs
	making  bool           // the prompt of the next run is being made
	last    *event.Stopped // how the previous run ended
	failed  int            // failed runs in a row
}

const (
	loopEvery  = 10 * time.Minute
	loopLeast  = 10 * time.Second
	loopFailed = 3           // failed runs in a row that end a loop
	loopOver   = "LOOP DONE" // the line by which a model ends a loop
)

// loop runs /loop.
func (c *commander) loop(args string) tea.Cmd {
	r := c.loops
	switch args {
	case "":
		if r.on == nil {
			return c.showText("nothing loops; begin with: /loop [INTERVAL] PROMPT, such as /loop 5m check the build")
		}
		return c.showText(r.line() + ", every " + clock(r.on.every) + " after a run has ended: " + words.OneLine(r.on.typed, 200))
	case "off":
		if r.on == nil {
			c.hints.say("nothing loops")
			return nil
		}
		r.end("")
		return nil
	}
	every, prompt, err := interval(args)
	if err != nil {
		c.talk.fail(err)
		return nil
	}
	of, err := c.prompts(prompt)
	if err != nil {
		c.talk.fail(err)
		return nil
	}
	r.on = &repeat{typed: prompt, every: every, prompt: of, session: c.talk.runner.id(), at: c.talk.tui.clock()}
	c.talk.note("repeats every " + clock(every) + " after a run has ended: " + words.OneLine(prompt, 200) + "; /loop off or Esc ends it")
	return nil
}

// interval parses the arguments of /loop.
func interval(args string) (every time.Duration, prompt string, err error) {
	first, rest, _ := strings.Cut(args, " ")
	every, bad := time.ParseDuration(first)
	switch {
	case bad != nil:
		return loopEvery, args, nil //nolint:nilerr // the first word belongs to the prompt
	case every < loopLeast:
		return 0, "", fmt.Errorf("/loop: %s is too short; use at least %s", words.OneLine(first, 30), loopLeast)
	case strings.TrimSpace(rest) == "":
		return 0, "", fmt.Errorf("/loop: say what to repeat, such as: /loop %s check the build", first)
	}
	return every, strings.TrimSpace(rest), nil
}

// prompts returns the function that makes the prompt of each run: the typed text, or the result of a slash
// command.
func (c *commander) prompts(typed string) (func(context.Context) (string, error), error) {
	name, args, slash := words.Slash(typed)
	if !slash {
		return func(context.Context) (string, error) { return typed, nil }, nil
	}
	all := c.offered()
	what, ok := all.find(name)
	switch {
	case !ok:
		return nil, fmt.Errorf("/loop: %s", all.nearest(name))
	case what.Prompt == nil:
		return nil, fmt.Errorf("/loop: /%s is not a prompt for the model; only prompts repeat", what.Name)
	}
	return func(ctx context.Context) (string, error) { return what.Prompt(ctx, args) }, nil
}

// line says when the prompt comes next; empty if nothing repeats. It does not change with time.
func (r *repeater) line() string {
	switch {
	case r.on == nil:
		return ""
	case r.on.at.IsZero():
		return "loop after this run"
	}
	return "loop at " + r.on.at.Format(time.TimeOnly)
}

// isPending reports whether the time must be checked.
func (r *repeater) isPending() bool { return r.on != nil && !r.on.at.IsZero() }

// end ends the loop, for a reason.
func (r *repeater) end(why string) {
	r.on = nil
	r.talk.note(strings.TrimSuffix("the loop has ended: "+why, ": "))
}

// refresh begins the next run when it is time.
func (r *repeater) refresh() tea.Cmd {
	l, t := r.on, r.talk
	if l == nil || l.making || t.opening || t.closing {
		return nil
	}
	id := t.runner.id()
	if l.session != "" && l.session != id {
		r.end("its session is closed")
		return nil
	}
	l.session = id
	if r.busy() {
		l.at = time.Time{}
		return nil
	}
	now := t.tui.clock()
	if l.at.IsZero() { // a run is over
		if why := l.onRunOver(t.view.Run.Stopped, t.view.Last); why != "" {
			r.end(why)
			return nil
		}
		l.at = now.Add(l.every)
	}
	if now.Before(l.at) {
		return nil
	}
	return r.say(l)
}

// busy reports whether a run is in progress, or a question is open.
func (r *repeater) busy() bool {
	t := r.talk
	return t.running || t.drivenElsewhere() || !t.view.Idle() || t.view.countUndecided(nil) > 0 || slices.ContainsFunc(t.held, isSaid)
}

// onRunOver records how a run has ended. It returns the reason why the loop ends with it; empty if it continues.
func (l *repeat) onRunOver(stopped *event.Stopped, last string) (why string) {
	said := l.said
	l.said = false
	ended := stopped != nil && stopped != l.last
	l.last = stopped
	switch {
	case ended && slices.Contains([]event.Reason{
		event.ReasonMaxTurns, event.ReasonBudget, event.ReasonMaxTokens, event.ReasonMaxTime, event.ReasonRate,
	}, stopped.Reason):
		return "a limit has stopped the run: " + strings.ReplaceAll(string(stopped.Reason), "_", " ")
	case !said:
		return ""
	case ended && stopped.Reason == event.ReasonDone && slices.ContainsFunc(strings.Split(last, "\n"), func(line string) bool { return strings.TrimSpace(line) == loopOver }):
		return "the model says that it is done"
	case ended && (stopped.Reason == event.ReasonDone || stopped.Reason == event.ReasonCancelled):
		l.failed = 0
		return ""
	}
	if l.failed++; l.failed == loopFailed {
		return fmt.Sprintf("%d runs in a row have failed", l.failed)
	}
	return ""
}

// say makes the prompt and begins a run with it, unless another has begun meanwhile.
func (r *repeater) say(l *repeat) tea.Cmd {
	l.making = true
	ctx, t := r.talk.ctx, r.talk
	return func() tea.Msg {
		text, err := l.prompt(ctx)
		return later(func() tea.Cmd {
			if r.on != l {
				return nil
			}
			if err != nil {
				r.end(err.Error())
				return nil
			}
			text += fmt.Sprintf("\n\n[This prompt repeats every %s. To end that, answer with a line that is only: %s]", clock(l.every), loopOver)
			return t.withFiles(text, func(files []event.Body) tea.Cmd {
				if l.making = false; r.on != l || r.busy() {
					return nil
				}
				l.said, l.at, l.last = true, time.Time{}, t.view.Run.Stopped
				return t.start(append([]event.Body{event.Say(text)}, files...)...)
			})
		})
	}
}
