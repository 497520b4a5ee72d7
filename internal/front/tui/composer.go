package tui

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/llm"
)

// composer is where the person writes: the prompt, its completions, the history, and pasted text.
type composer struct {
	talk     *talk // the conversation that it writes to
	screen   *screen
	over     *overlay
	hints    *hints
	clock    func() time.Time
	commands func() catalog

	prompt      editor
	vim         *vim // nil if the prompt has one mode
	history     history
	earlier     map[string]messageHistory // messages of earlier sessions, as far as they were read
	queued      []editor                  // texts that were sent for after the run, the oldest first
	offer       offer                     // completions
	files       fileList
	typed       time.Time // when the person last wrote
	ignoreUntil time.Time // Enter sends nothing before this time, see interrupted
}

// busy reports whether the person is in the middle of writing.
func (c *composer) busy(now time.Time) bool {
	return !c.prompt.empty() && now.Sub(c.typed) < pausing
}

// touched records that the person is writing.
func (c *composer) touched() {
	c.history.saveDraft()
	c.typed = c.clock()
}

// interrupted lets the person finish the text that a question has interrupted. Enter sends nothing for a
// moment.
func (c *composer) interrupted(now time.Time) {
	c.touched()
	c.ignoreUntil = now.Add(seeing)
}

// edit handles a key that moves in the prompt or changes it.
func (c *composer) edit(k tea.KeyPressMsg, action string, width int) tea.Cmd {
	switch action {
	case "up", "down":
		if c.offer.move(action) {
			return nil
		}
		c.recall(action, width)
	default:
		if !c.prompt.key(k, action, width) {
			return nil
		}
		c.touched()
	}
	return c.offerCompletions()
}

// continued turns a backslash before Enter into a new line, and reports whether there was one.
func (c *composer) continued() bool {
	n := c.prompt.at
	if n == 0 || c.prompt.atoms[n-1].shown != `\` || c.prompt.atoms[n-1].isLarge() {
		return false
	}
	c.prompt.cut(n-1, n)
	c.prompt.insert(atom{shown: "\n"})
	return true
}

// take empties the prompt, and returns its content.
func (c *composer) take() llm.Parts {
	parts := c.prompt.parts()
	c.empty()
	return parts
}

// putBack puts a queued text before the written one, with its pictures and pastes.
func (c *composer) putBack(said string) {
	back := editor{atoms: atomsOf(said)}
	same := func(e editor) bool { return transcript.Spoken(e.parts()) == said }
	if i := slices.IndexFunc(c.queued, same); i >= 0 {
		back = c.queued[i]
		c.queued = slices.Delete(c.queued, i, i+1)
	}
	back.at, back.goal = len(back.atoms), -1
	if !c.prompt.empty() {
		back.insert(atom{shown: "\n"})
		back.insert(c.prompt.atoms...)
	}
	c.prompt = back
	c.touched()
}

func (c *composer) empty() {
	c.prompt, c.offer = editor{}, offer{}
	c.vim.begin()
	c.history.saveDraft()
}

// giveBack puts the last message into the prompt, if that is empty.
func (c *composer) giveBack() {
	if n := len(c.history.lines); n > 0 && c.prompt.empty() {
		c.prompt.set(c.history.lines[n-1])
	}
}

// fact returns the text that a line with a leading # would add to the memory; empty if it is an ordinary message.
func (c *composer) fact() string {
	fact, marked := strings.CutPrefix(c.prompt.text(), "# ")
	_, can := c.commands().find("memory")
	if !marked || !can || strings.Contains(fact, "\n") || slices.ContainsFunc(c.prompt.atoms, atom.isLarge) {
		return ""
	}
	return strings.TrimSpace(fact)
}

// remember lets the person choose what to do with a line that begins with #. Until then it stays in the prompt.
func (c *composer) remember(add, say func() tea.Cmd) tea.Cmd {
	c.over.pick("a line that begins with #", []choice{
		{"remember it", "as /memory add does"},
		{"send it", "to the model, as a message"},
	}, func(i int) tea.Cmd {
		if i == 1 {
			return c.talk.refreshDriver(say)
		}
		return add()
	})
	return nil
}

// lines shows the prompt and its completions.
func (c *composer) lines(l look, rows int) (out []string, x, y int) {
	offers := c.offer.lines(l, min(offered, rows-1))
	out, x, y = promptLines(l, &c.prompt, min(mostPrompt, max(1, rows-len(offers))), c.talk.placeholder())
	return append(out, offers...), x, y
}

// recall moves in the prompt and, at its edges, through the history.
func (c *composer) recall(action string, width int) {
	h := &c.history
	by := 1
	if action == "down" {
		if c.prompt.down(width) {
			return
		}
		by = -1
	} else if c.prompt.up(width) {
		return
	}
	to := h.at + by
	if to < 0 || to > len(h.lines) {
		return
	}
	if h.at == 0 {
		h.draft = c.prompt
	}
	if h.at = to; to == 0 {
		c.prompt = h.draft
		return
	}
	c.prompt.set(h.lines[len(h.lines)-to])
}

// Longer pastes are shown by their size.
const (
	pasteLines = 8
	pasteBytes = 2000
)

// paste takes pasted or dropped text. The path of a picture becomes the picture.
func (c *composer) paste(text string) tea.Cmd {
	c.history.saveDraft()
	if paths := imagePaths(text); paths != nil {
		return func() tea.Msg { return c.attach(paths, text) }
	}
	c.insert(text)
	return c.offerCompletions()
}

// insert takes pasted text; long text is shown by its size.
func (c *composer) insert(s string) {
	if n := strings.Count(strings.TrimRight(s, "\n"), "\n") + 1; n > pasteLines {
		c.prompt.insert(atom{shown: "[pasted " + text.Count(n, "line") + "]", whole: s})
	} else if len(s) > pasteBytes {
		c.prompt.insert(atom{shown: "[pasted " + text.Count(len(s), "byte") + "]", whole: s})
	} else {
		c.prompt.insert(atomsOf(s)...)
	}
}

// minimumTime is a program that occupies the terminal for a minimum time. If a program ended before Bubble Tea's
// old painter has noticed its own end, that painter would stop the clock of the new one, and with it all
// painting (v2.1.1, startRenderer).
type minimumTime struct{ tea.ExecCommand }

const minimumStay = 100 * time.Millisecond

// SetStdout implements [tea.ExecCommand]. The program gets the terminal itself, not a pipe to our output.
func (u minimumTime) SetStdout(w io.Writer) {
	if t, ok := w.(terminal); ok {
		w = t.File
	}
	u.ExecCommand.SetStdout(w)
}

// Run implements [tea.ExecCommand].
func (u minimumTime) Run() error {
	least := time.NewTimer(minimumStay)
	defer least.Stop()
	err := u.ExecCommand.Run()
	<-least.C
	return err
}

// inEditor opens the written text in the person's editor.
func (c *composer) inEditor() tea.Cmd {
	edit := c.talk.tui.Edit
	if edit == nil {
		c.hints.say("set $EDITOR to write in an editor")
		return nil
	}
	// The text goes into a new file, which the editor changes.
	f, err := os.CreateTemp("", "inspan-*.md")
	if err == nil {
		_, err = f.WriteString(c.prompt.parts().Text())
		err = cmp.Or(err, f.Close())
	}
	if err != nil {
		c.talk.fail(err)
		return nil
	}
	path := f.Name()
	c.screen.leave()
	return tea.Exec(minimumTime{edit(path)}, func(failed error) tea.Msg {
		defer os.Remove(path)
		text, err := keep.Read(path)
		return later(func() tea.Cmd {
			c.screen.back()
			if failed != nil || err != nil {
				c.talk.warn(fmt.Sprint("the editor failed: ", cmp.Or(failed, err)))
				return nil
			}
			images := slices.DeleteFunc(c.prompt.atoms, func(a atom) bool { return a.image.Data == nil })
			c.prompt.set(strings.TrimRight(string(text), "\n"))
			c.prompt.insert(images...)
			return nil
		})
	})
}

// history holds earlier messages, to send them again.
type history struct {
	lines []string
	at    int // from the end; 0 is the text being written
	draft editor
}

func (h *history) add(text string) {
	if n := len(h.lines); text != "" && (n == 0 || h.lines[n-1] != text) {
		h.lines = append(h.lines, text)
	}
	h.saveDraft()
}

// saveDraft records that a new text is being written.
func (h *history) saveDraft() { h.at = 0 }
