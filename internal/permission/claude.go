package permission

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/config"
	"github.com/inspan/inspan/internal/foreign"
	"github.com/inspan/inspan/internal/hook"
	"github.com/inspan/inspan/internal/policy"
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/tool"
)

// claudeFiles are the settings files of Claude Code in a workspace.
func claudeFiles() []string { return []string{".claude/settings.json", ".claude/settings.local.json"} }

// claudeSaid is a rule of Claude Code in a workspace, and what becomes of it.
type claudeSaid struct {
	hook.Translated
	file string
}

// claudes reads the permissions that Claude Code has in a workspace. Problems name files that can't
// be read.
func claudes(root string) (list []claudeSaid, problems []string) {
	for _, file := range claudeFiles() {
		data, err := config.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var p hook.Permissions
		if err == nil {
			p, err = hook.ReadPermissions(data, file)
		}
		if err != nil {
			problems = append(problems, file+": its permissions have no effect: "+text.Line(text.Short(err.Error(), 300)))
			continue
		}
		for _, t := range p.Rules {
			for _, rule := range t.Rules {
				if _, err := policy.ParseRule(t.Action, rule, ""); err != nil {
					t.Rules, t.Why = nil, err.Error()
					break
				}
			}
			list = append(list, claudeSaid{t, file})
		}
	}
	return list, problems
}

// claudeRules are the rules by which Claude Code asks or denies in a workspace. They hold here too,
// as they only make things stricter. Those that allow don't.
func claudeRules(root string) (out []inspan.Rule) {
	list, _ := claudes(root)
	for _, c := range list {
		if c.Action == tool.Allow {
			continue
		}
		for _, rule := range c.Rules {
			out = append(out, inspan.Rule{Action: c.Action, Text: rule, Written: c.Text, Scope: c.file, Reason: c.file + " says " + text.Line(text.Short(c.Text, 200))})
		}
	}
	return out
}

// Unheeded says what asks or denies in a workspace, by Claude Code's settings, and has no effect here.
func (s *Set) Unheeded(root string) []string {
	list, out := claudes(root)
	for _, c := range list {
		if c.Action != tool.Allow && c.Why != "" {
			out = append(out, fmt.Sprintf("%s: %s %s has no effect here: %s", c.file, c.Action, text.Line(text.Short(c.Text, 200)), text.Line(text.Short(c.Why, 200))))
		}
	}
	return out
}

// Unread returns an error if Claude Code's settings in a workspace have rules that ask or deny and can't
// be read, so that nobody knows what they would stop. A rule for a tool that inspan does not have stops
// nothing.
func (s *Set) Unread(root string) error {
	list, out := claudes(root)
	for _, c := range list {
		if c.Action != tool.Allow && c.Why != "" && c.Why != foreign.NoSuchTool {
			out = append(out, fmt.Sprintf("%s: %s %s can't be read: %s", c.file, c.Action, text.Line(text.Short(c.Text, 200)),
				text.Line(text.Short(c.Why, 200))))
		}
	}
	if len(out) == 0 {
		return nil
	}
	return config.Error{Err: errors.New(strings.Join(out, "; ") + "; correct it: rules that can't be read stop unattended work")}
}

// Heeded says what Claude Code's settings in a workspace mean here, one rule a line, with what has no
// effect.
func (s *Set) Heeded(root string) (out []string) {
	list, _ := claudes(root)
	for _, c := range list {
		said := fmt.Sprintf("%s: %s %s", c.file, c.Action, text.Line(text.Short(c.Text, 200)))
		switch {
		case c.Action == tool.Allow:
			out = append(out, said+" has no effect: a folder can't allow anything; 'inspan config set --add allow' does for all folders")
		case c.Why == "":
			for _, rule := range c.Rules {
				out = append(out, said+" holds here as "+text.Line(text.Short(rule, 200)))
			}
		}
	}
	return append(out, s.Unheeded(root)...)
}
