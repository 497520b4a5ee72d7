package console

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/view/words"
)

// Skills prints the skills of a library.
func Skills(out, complain io.Writer, l *skill.Library) error {
	list, warnings := l.List()
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, s := range list {
		who := s.Source
		switch {
		case s.Manual:
			who += ", only by you"
		case s.Hidden:
			who += ", only by the model"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, who, words.OneLine(s.Description, 70))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, s := range list {
		if len(s.Problems) > 0 {
			fmt.Fprintf(complain, "%s: %s\n", s.Name, text.Visible(strings.Join(s.Problems, "; ")))
		}
	}
	for _, str := range warnings {
		fmt.Fprintln(complain, text.Visible(str))
	}
	return nil
}

// SkillCosts prints the tokens of each level of skills; without names, of all.
func SkillCosts(out io.Writer, l *skill.Library, names []string) error {
	if len(names) == 0 {
		list, _ := l.List()
		for _, s := range list {
			names = append(names, s.Name)
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SKILL\tIN THE PROMPT\tINSTRUCTIONS\tFILES")
	var sum skill.Levels
	for _, name := range names {
		cost, err := l.Cost(name)
		if err != nil {
			return err
		}
		sum.Index.Tokens += cost.Index.Tokens
		sum.Text.Tokens += cost.Text.Tokens
		sum.Files.Tokens += cost.Files.Tokens
		sum.Count += cost.Count
		skillCost(w, name, cost)
	}
	skillCost(w, "all", sum)
	return w.Flush()
}

func skillCost(w io.Writer, name string, c skill.Levels) {
	fmt.Fprintf(w, "%s\t%s\t%s\t%s in %s\n", name, text.Thousands(c.Index.Tokens), text.Thousands(c.Text.Tokens),
		text.Thousands(c.Files.Tokens), text.Count(c.Count, "file"))
}

// Roles prints kinds of agents.
func Roles(out, complain io.Writer, list []skill.Role) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KIND\tMODEL\tMODE\tFROM\tFOR")
	for _, r := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.Name, orSame(r.Model), orSame(string(r.Mode)), r.Source, words.OneLine(r.Description, 60))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, r := range list {
		if len(r.Problems) > 0 {
			fmt.Fprintf(complain, "%s: %s\n", r.Name, text.Visible(strings.Join(r.Problems, "; ")))
		}
	}
	return nil
}

func orSame(text string) string {
	if text == "" || text == "inherit" {
		return "inherited"
	}
	return text
}

// Valid prints what agentskills.io has against the skills of folders; an error: something.
func Valid(out io.Writer, dirs []string) error {
	bad := 0
	for _, dir := range dirs {
		problems := skill.Validate(dir)
		if len(problems) == 0 {
			fmt.Fprintf(out, "%s: valid\n", dir)
			continue
		}
		bad++
		for _, p := range problems {
			fmt.Fprintf(out, "%s: %s\n", dir, text.Visible(p))
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d are not valid", bad, len(dirs))
	}
	return nil
}

// Skill prints a skill as the model gets it.
func Skill(out io.Writer, l *skill.Library, name, arguments string) error {
	s, _, err := l.Invoke(name, arguments)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, text.VisibleLines(s))
	return err
}
