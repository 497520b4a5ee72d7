package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// TestVim checks the effect of keys on a text in vim's normal mode. The cursor is before the bar.
func TestVim(t *testing.T) {
	for keys, want := range map[string]string{
		"":          "say this,\nand th|at",
		"0":         "say this,\n|and that",
		"$":         "say this,\nand tha|t",
		"hh":        "say this,\nand |that",
		"0l":        "say this,\na|nd that",
		"0hh":       "say this,\n|and that",
		"0w":        "say this,\nand |that",
		"kw":        "say this|,\nand that",
		"kww":       "say this,\n|and that",
		"b":         "say this,\nand |that",
		"bb":        "say this,\n|and that",
		"bbb":       "say this|,\nand that",
		"bbbbbbb":   "|say this,\nand that",
		"0e":        "say this,\nan|d that",
		"0ee":       "say this,\nand tha|t",
		"k":         "say th|is,\nand that",
		"kj":        "say this,\nand th|at",
		"0x":        "say this,\n|nd that",
		"0xp":       "say this,\nn|ad that",
		"0xP":       "say this,\n|and that",
		"dd":        "|say this,",
		"kdd":       "|and that",
		"kddp":      "and that\n|say this,",
		"kddP":      "|say this,\nand that",
		"yyp":       "say this,\nand that\n|and that",
		"bD":        "say this,\nand |",
		"bCyou\x1b": "say this,\nand yo|u",
		"0dw":       "say this,\n|that",
		"0de":       "say this,\n| that",
		"db":        "say this,\nand |at",
		"d0":        "say this,\n|at",
		"bd$":       "say this,\nand |",
		"0cwor\x1b": "say this,\no|r that",
		"ccno\x1b":  "say this,\nn|o",
		"iX\x1b":    "say this,\nand th|Xat",
		"aX\x1b":    "say this,\nand tha|Xt",
		"IX\x1b":    "say this,\n|Xand that",
		"AX\x1b":    "say this,\nand that|X",
		"oX\x1b":    "say this,\nand that\n|X",
		"kOX\x1b":   "|X\nsay this,\nand that",
		"0rA":       "say this,\n|And that",
		"0xxuu":     "say this,\n|and that",
		"dduu":      "say this,\nand th|at",
		"iX\x1bu":   "say this,\nand th|at",
		"ccno\x1bu": "say this,\nand th|at",
		"d\x1bx":    "say this,\nand th|t",
		"dz":        "say this,\nand th|at",
		"q":         "say this,\nand th|at",
		"0\x7f":     "say this,\n|and that",
		"l\x7f":     "say this,\nand th|at",
	} {
		v, e := &vim{}, &editor{}
		e.set("say this,\nand that")
		e.at = len("say this,\nand tha")
		for _, r := range "\x1b" + keys {
			k, action := tea.KeyPressMsg{Code: r, Text: string(r)}, ""
			switch r {
			case '\x1b':
				k, action = tea.KeyPressMsg{Code: tea.KeyEscape}, "escape"
			case '\x7f':
				k, action = tea.KeyPressMsg{Code: tea.KeyBackspace}, "backspace"
			}
			if !v.key(k, action, e, 40) {
				e.key(k, action, 40)
			}
		}
		if got := textOf(e.atoms[:e.at]) + "|" + textOf(e.atoms[e.at:]); got != want {
			t.Errorf("%q: %q, want %q", keys, got, want)
		}
	}
}

// TestVimInThePrompt checks that Esc leaves the insert mode first, that the status line names the mode, and that a
// message is sent from both.
func TestVimInThePrompt(t *testing.T) {
	m := still(t, 80, 24, look{noColor: true}, nil)
	m.composer.vim = &vim{}
	press := func(keys string) {
		for _, r := range keys {
			k := tea.KeyPressMsg{Code: r, Text: string(r)}
			if r == '\x1b' {
				k = tea.KeyPressMsg{Code: tea.KeyEscape}
			}
			m.key(k)
		}
	}
	press("hello")
	if got := m.View().Content; !strings.Contains(got, "› hello\nINSERT · ask") {
		t.Error(got)
	}
	press("\x1bhx")
	if got := m.View().Content; !strings.Contains(got, "› helo\nNORMAL · ask") {
		t.Error(got)
	}
	press("dd")
	if got := m.composer.prompt.text(); got != "" {
		t.Errorf("%q is left", got)
	}
	m.composer.empty()
	press("jj")
	if got := m.composer.prompt.text(); got != "jj" {
		t.Errorf("a new message begins with %q", got)
	}
}
