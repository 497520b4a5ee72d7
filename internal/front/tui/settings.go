package tui

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/equipment"
	"github.com/inspan/inspan/internal/view/words"
)

// preferences are the person's preferences for the front end.
type preferences struct {
	theme      string // light or dark; empty means the terminal's
	statusLine string // a command; empty means our own line
	vim        bool
	reader     bool // a screen reader reads the terminal
}

// preferences returns the preferences from the settings.
func (t *TUI) preferences() preferences {
	if t.App == nil {
		return preferences{}
	}
	set := t.App.Config.TUI
	return preferences{theme: themeOf(set.Theme), statusLine: set.StatusLine, vim: set.Vim, reader: set.ScreenReader}
}

// themeOf returns the theme for a setting.
func themeOf(set string) string {
	if set == "auto" {
		return ""
	}
	return set
}

// light reports whether the background is light, as far as known before asking the terminal: by the settings,
// or by COLORFGBG, which some terminals set to "15;0" for white on black.
func (h preferences) light() bool {
	if h.theme != "" {
		return h.theme == "light"
	}
	fields := strings.Split(os.Getenv("COLORFGBG"), ";")
	back, err := strconv.Atoi(fields[len(fields)-1])
	return err == nil && (back == 7 || back >= 9 && back <= 15)
}

// theme sets the colours, here and in the settings.
func (c *commander) theme(args string) tea.Cmd {
	s := c.back.screen
	return c.setPreference("theme", args, s.habits.named(), []string{"dark", "light", "auto"}, func(to string) string {
		s.setTheme(themeOf(to))
		s.reflow(c.talk.view)
		return to
	}, tea.RequestBackgroundColor)
}

// vim switches the prompt's vim modes on or off, here and in the settings.
func (c *commander) vim(args string) tea.Cmd {
	on, now := c.back.composer, "off"
	if on.vim != nil {
		now = "on"
	}
	return c.setPreference("vim", args, now, []string{"on", "off"}, func(to string) string {
		if on.vim = nil; to == "on" {
			on.vim = &vim{}
		}
		return strconv.FormatBool(to == "on")
	}, nil)
}

// outputStyle chooses how the model answers in sessions that begin from now on, here and in the settings.
func (c *commander) outputStyle(name string) tea.Cmd {
	a := c.tui.App
	if a == nil {
		c.hints.say("output styles are in the settings, which are not used here")
		return nil
	}
	if name == "" {
		styles := a.Extensions.Styles(c.talk.warn)
		var items []choice
		for _, s := range styles {
			items = append(items, choice{s.Name, s.Description})
		}
		now := cmp.Or(c.talk.opts.Style, a.Config.Style, equipment.DefaultStyle)
		c.over.pick("output style", items, func(i int) tea.Cmd { return c.outputStyle(styles[i].Name) }).markCurrent(now)
		return nil
	}
	if _, err := a.Extensions.Style(name, c.talk.warn); err != nil {
		c.talk.fail(err)
		return nil
	}
	c.talk.opts.Style = name
	c.talk.note("sessions that begin from now on answer in style " + name + "; /new begins one")
	set := func(context.Context) (string, error) { return app.Set(a.Installation, "output_style", name) }
	return c.talk.work(set, c.talk.noteResult)
}

// setPreference sets a preference to one of some values, or lets the person choose. Apply applies it, and returns its
// form in the settings.
func (c *commander) setPreference(name, to, now string, values []string, apply func(to string) string, then tea.Cmd) tea.Cmd {
	switch {
	case to == "":
		var items []choice
		for _, v := range values {
			items = append(items, choice{text: v})
		}
		c.over.pick(name, items, func(i int) tea.Cmd { return c.setPreference(name, values[i], now, values, apply, then) }).markCurrent(now)
		return nil
	case !slices.Contains(values, to):
		c.talk.fail(fmt.Errorf("unknown %s %q; use one of %s", name, words.OneLine(words.Hidden(to), 30), strings.Join(values, ", ")))
		return nil
	}
	set, a := apply(to), c.tui.App
	if a == nil {
		c.talk.note(name + " " + to + " holds until you quit; keep it with: inspan config set tui." + name + " " + set)
		return then
	}
	return tea.Batch(then, c.talk.work(func(context.Context) (string, error) {
		told, err := app.Set(a.Installation, "tui."+name, set)
		if err != nil {
			err = fmt.Errorf("%s %s applies to this session, but could not be saved: %w", name, to, err)
		}
		return told, err
	}, c.talk.noteResult))
}

// named returns the theme as written in the settings.
func (h preferences) named() string { return cmp.Or(h.theme, "auto") }
