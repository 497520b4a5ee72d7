package permission

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/safety/foreign"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/tool"
)

// claudeSaid is a rule of Claude Code in a workspace, with its translation.
type claudeSaid struct {
	foreign.Translated
	file string
}

func (c claudeSaid) String() string {
	return fmt.Sprintf("%s: %s %s", c.file, c.Action, text.Line(text.Short(c.Text, 200)))
}

// claudes returns the Claude Code rules of a workspace. Problems name unreadable files.
func claudes(root string) (list []claudeSaid, problems []string) {
	for _, f := range config.Claudes(root) {
		if f.Err != nil {
			problems = append(problems, f.File+": its permissions have no effect: "+text.Line(text.Short(f.Err.Error(), 300)))
		}
		for _, t := range f.Rules {
			for _, rule := range t.Rules {
				if _, err := policy.ParseRule(t.Action, rule, ""); err != nil {
					t.Rules, t.Why = nil, err.Error()
					break
				}
			}
			list = append(list, claudeSaid{t, f.File})
		}
	}
	return list, problems
}

// claudeRules returns Claude Code's ask and deny rules of a workspace. They also apply here, because they can only
// restrict. Allow rules don't.
func claudeRules(root string) (out []inspan.Rule) {
	list, _ := claudes(root)
	for _, c := range list {
		if c.Action == tool.Allow {
			continue
		}
		for _, rule := range c.Rules {
			out = append(out, inspan.Rule{Action: c.Action, Text: rule, Original: c.Text, Scope: c.file, Reason: config.Claude{File: c.file}.Says(c.Text)})
		}
	}
	return out
}

// Barred returns an error if a mode may not be used in a workspace.
func (s *Set) Barred(root string, mode tool.Mode) error {
	said := config.ClaudeLimit(config.Claudes(root), func(l foreign.Limit) bool { return mode != "" && l.Mode == mode })
	if said == "" {
		return nil
	}
	return config.Error{Err: fmt.Errorf("mode %s is not allowed in this folder: %s", mode, said)}
}

// barring returns judges that deny everything in modes that may not be used in a workspace.
func (s *Set) barring(root string) (list []tool.Judge) {
	for _, mode := range tool.Modes() {
		if err := s.Barred(root, mode); err != nil {
			list = append(list, tool.JudgeFunc(func(_ context.Context, c *tool.Call, _ []tool.Effect) (tool.Verdict, error) {
				if c.Mode != mode {
					return tool.Verdict{}, nil
				}
				return tool.Verdict{Action: tool.Deny, By: "the folder", Reason: err.Error()}, nil
			}))
		}
	}
	return list
}

// Unheeded lists the rules and limits of a workspace's Claude Code settings that restrict something and have no
// effect here, and the settings above it in its repository that do, because they hold only in their own folder.
// Allow rules are not listed.
func (s *Set) Unheeded(root string) []string {
	list, out := claudes(root)
	for _, above := range keep.ProjectFolders(root)[1:] {
		for _, f := range config.Claudes(above) {
			restricts := slices.ContainsFunc(f.Rules, func(t foreign.Translated) bool { return t.Action != tool.Allow })
			if f.Err != nil || restricts || len(f.Limits) > 0 {
				out = append(out, fmt.Sprintf("%s has no effect here: its rules hold for sessions that start in %s", filepath.Join(above, f.File), above))
			}
		}
		file := filepath.Join(above, config.ProjectFile)
		if _, err := os.Stat(file); err == nil {
			out = append(out, fmt.Sprintf("%s has no effect here: it holds for sessions that start in %s", file, above))
		}
	}
	for _, c := range list {
		if c.Action != tool.Allow && c.Why != "" {
			out = append(out, fmt.Sprintf("%s has no effect here: %s", c, text.Line(text.Short(c.Why, 200))))
		}
	}
	for _, f := range config.Claudes(root) {
		for _, l := range f.Limits {
			if l.How == "" {
				out = append(out, fmt.Sprintf("%s: %s has no effect here: inspan has no such setting", f.File, text.Line(text.Short(l.Text, 200))))
			}
		}
	}
	return out
}

// unread returns the ask and deny rules of a workspace's Claude Code settings that can't be read, and the kinds
// of effects each may cover; none: any. Rules for tools that inspan does not have are ignored.
func unread(root string) (said []string, about [][]tool.EffectKind) {
	list, said := claudes(root)
	about = make([][]tool.EffectKind, len(said))
	for _, c := range list {
		if c.Action == tool.Allow || c.Why == "" || c.Why == foreign.NoSuchTool {
			continue
		}
		said = append(said, fmt.Sprintf("%s can't be read: %s", c, text.Line(text.Short(c.Why, 200))))
		var kinds []tool.EffectKind
		switch name, _, _ := strings.Cut(c.Text, "("); name {
		case "Bash":
			kinds = []tool.EffectKind{tool.Execute}
		case "Read", "Grep", "Glob", "LS":
			kinds = []tool.EffectKind{tool.Read, tool.Execute}
		case "Edit", "Write", "MultiEdit", "NotebookEdit":
			kinds = []tool.EffectKind{tool.Write, tool.Execute}
		}
		about = append(about, kinds)
	}
	return said, about
}

// Unread returns an error if a workspace's Claude Code settings have unreadable ask or deny rules. It is
// unknown what they would stop.
func (s *Set) Unread(root string) error {
	said, _ := unread(root)
	if len(said) == 0 {
		return nil
	}
	return config.Error{Err: errors.New(strings.Join(said, "; ") + "; correct it: rules that can't be read stop unattended work")}
}

// asking returns judges that ask about every call that an unreadable rule may cover.
func asking(root string) (list []tool.Judge) {
	said, about := unread(root)
	for i, kinds := range about {
		list = append(list, tool.JudgeFunc(func(_ context.Context, _ *tool.Call, effects []tool.Effect) (tool.Verdict, error) {
			if !slices.ContainsFunc(effects, func(e tool.Effect) bool { return len(kinds) == 0 || slices.Contains(kinds, e.Kind) }) {
				return tool.Verdict{}, nil
			}
			return tool.Verdict{Action: tool.Ask, By: "the folder", Reason: said[i] + "; until you correct it, calls that it may concern ask"}, nil
		}))
	}
	return list
}

// Heeded explains the effect of a workspace's Claude Code settings here, one rule or limit per line, including
// those without effect.
func (s *Set) Heeded(root string) (out []string) {
	list, _ := claudes(root)
	for _, c := range list {
		switch {
		case c.Action == tool.Allow:
			out = append(out, c.String()+" has no effect: a folder can't allow anything; 'inspan config set --add allow' does for all folders")
		case c.Why == "":
			for _, rule := range c.Rules {
				said := c.String() + " holds here as " + text.Line(text.Short(rule, 200))
				if c.Wider != "" {
					said += ", which is wider: " + c.Wider
				}
				out = append(out, said)
			}
		}
	}
	for _, f := range config.Claudes(root) {
		for _, l := range f.Limits {
			if l.How != "" {
				out = append(out, fmt.Sprintf("%s: %s holds here: %s", f.File, text.Line(text.Short(l.Text, 200)), l.How))
			}
		}
	}
	return append(out, s.Unheeded(root)...)
}
