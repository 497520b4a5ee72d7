package tui

import (
	"cmp"
	"fmt"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

// activity shows the work in progress, in lines.
type activity struct {
	look    look
	view    *view
	now     time.Time
	running bool   // a run is working, not just waiting for an answer
	trouble string // problem in reaching the server that drives it
}

func (a activity) pause() []string {
	w := a.view.Now.Wait
	if w == nil || !a.running {
		return nil
	}
	if a.look.reader { // a screen reader would read a countdown again and again
		return []string{"  " + w.What + " at " + w.Until.Local().Format(time.TimeOnly)}
	}
	return []string{a.look.paint(yellow, "  "+w.What+" in "+words.Left(w.Until.Sub(a.now)))}
}

// calls returns lines for the running calls, and for the call that the model is writing.
func (a activity) calls() []string {
	l := a.look
	var out []string
	for _, c := range a.view.Now.Running {
		took := a.passed(c.Started)
		narrow := l
		narrow.width -= len(took)
		out = append(out, callLine(narrow, c.Call)+l.paint(dim, took))
		if line := lastLine(c.Latest); line != "" && !l.reader {
			out = append(out, l.paint(dim, "    "+words.OneLine(ansi.Strip(line), l.width-4)))
		}
	}
	for _, c := range a.view.Now.Children {
		if s := c.Spawned; s.Background {
			took := a.passed(c.Since)
			out = append(out, l.paint(dim, words.OneLine("◦ "+cmp.Or(s.Name, words.Agent(s.Agent, s.Child))+" in the background: "+s.Task, l.width-len(took))+took))
		}
	}
	if more := len(out) - mostCalls; more > 1 {
		out = append(out[:mostCalls], l.paint(dim, fmt.Sprintf("  … +%s", text.Count(more, "line"))))
	}
	if len(a.view.Now.Running) == 0 && a.running {
		out = append(out, l.paint(dim, a.doing()))
	}
	return out
}

// passed returns how long something has taken; empty for a screen reader, which would read it each second.
func (a activity) passed(since time.Time) string {
	if a.look.reader {
		return ""
	}
	return " " + clock(a.now.Sub(since))
}

// doing names the current activity of the session.
func (a activity) doing() string {
	if a.look.reader {
		return "working; Esc interrupts"
	}
	since := clock(a.now.Sub(a.view.Run.Began))
	switch v := a.view.Now; {
	case a.trouble != "":
		return words.OneLine("∙ "+a.trouble+"; your text waits", a.look.width)
	case v.Draft.Name != "":
		return words.OneLine(fmt.Sprintf("∙ writing %s, %s · %s", v.Draft.Name, text.Count(v.Draft.Bytes, "byte"), since), a.look.width)
	case v.Thinking != "":
		return words.OneLine("∙ "+since+" thinking: "+lastLine(v.Thinking), a.look.width)
	case v.Wait != nil:
		return words.OneLine("∙ waiting · "+since, a.look.width)
	}
	return words.OneLine("∙ working · "+since+" · Esc interrupts", a.look.width)
}

// todo returns lines for the to-do list. If there is not enough room, finished items at the top are left out.
func (a activity) todo() []string {
	if !a.view.Run.Busy {
		return nil
	}
	list := a.view.Todo
	for len(list) > mostTodo && list[0].State == tool.TodoDone {
		list = list[1:]
	}
	var out []string
	for _, t := range list[:min(len(list), mostTodo)] {
		mark, sgr := "☐ ", ""
		switch t.State {
		case tool.TodoDone:
			mark, sgr = "☑ ", dim
		case tool.TodoDoing:
			mark, sgr = "▣ ", bold
		}
		line := "  " + mark + words.OneLine(t.Text, a.look.width-4)
		if sgr != "" {
			line = a.look.paint(sgr, line)
		}
		out = append(out, line)
	}
	if more := len(list) - mostTodo; more > 0 {
		out = append(out, a.look.paint(dim, fmt.Sprintf("  … and %d more", more)))
	}
	return out
}
