package shell

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// weight orders classes by what they may do.
func weight(c Class) int { return slices.Index([]Class{Read, Workspace, Full}, c) }

// wraps are ways in which a command line can stand in a larger one that runs it.
func wraps() map[string]func(string) string {
	return map[string]func(string) string{
		"braces":          func(s string) string { return "{ " + s + "\n}" },
		"subshell":        func(s string) string { return "(" + s + "\n)" },
		"if":              func(s string) string { return "if true; then\n" + s + "\nfi" },
		"condition":       func(s string) string { return "if " + s + "\nthen true; fi" },
		"else":            func(s string) string { return "if true; then true; else\n" + s + "\nfi" },
		"for":             func(s string) string { return "for i in 1 2; do\n" + s + "\ndone" },
		"while":           func(s string) string { return "while " + s + "\ndo true; done" },
		"case":            func(s string) string { return "case x in y) true;; *)\n" + s + "\n;; esac" },
		"background":      func(s string) string { return "{ " + s + "\n} & wait" },
		"negated":         func(s string) string { return "! { " + s + "\n}" },
		"and":             func(s string) string { return "true && {\n" + s + "\n}" },
		"or":              func(s string) string { return "false || {\n" + s + "\n}" },
		"piped from":      func(s string) string { return "{ " + s + "\n} | cat" },
		"piped to":        func(s string) string { return "echo x | {\n" + s + "\n}" },
		"before":          func(s string) string { return s + "\necho done" },
		"behind":          func(s string) string { return "echo begin\n" + s },
		"substituted":     func(s string) string { return "echo \"$(" + s + "\n)\"" },
		"assigned":        func(s string) string { return "x=$(" + s + "\n)" },
		"in a test":       func(s string) string { return "[ -n \"$(" + s + "\n)\" ]" },
		"in a default":    func(s string) string { return "echo \"${x:-$(" + s + "\n)}\"" },
		"in arithmetic":   func(s string) string { return "echo $((1 + $(" + s + "\n)))" },
		"from a process":  func(s string) string { return "cat <(" + s + "\n)" },
		"in a here text":  func(s string) string { return "cat <<< \"$(" + s + "\n)\"" },
		"bash -c":         func(s string) string { return "bash -c " + text.ShellQuote(s) },
		"sh -c":           func(s string) string { return "sh -c " + text.ShellQuote(s) },
		"bash -c twice":   func(s string) string { return "bash -c " + text.ShellQuote("bash -c "+text.ShellQuote(s)) },
		"under timeout":   func(s string) string { return "timeout 9 bash -c " + text.ShellQuote(s) },
		"with a variable": func(s string) string { return "LC_ALL=C bash -c " + text.ShellQuote(s) },
		"a function":      func(s string) string { return "f() {\n" + s + "\n}\nf" },
		"trapped":         func(s string) string { return "trap " + text.ShellQuote(s) + " EXIT" },
		"evaluated":       func(s string) string { return "eval " + text.ShellQuote(s) },
	}
}

// standsAlone reports whether a command line means the same inside of a larger one.
func standsAlone(command string) bool {
	_, err := syntax.NewParser().Parse(strings.NewReader(command), "")
	return err == nil && !strings.HasSuffix(command, `\`) && !strings.Contains(command, "\x00")
}

// TestComposed checks that no command of the corpus is taken for less inside of another.
func TestComposed(t *testing.T) {
	tried := 0
	for _, e := range examples(t) {
		if e.class == Read || !standsAlone(e.command) {
			continue
		}
		for how, wrap := range wraps() {
			tried++
			if got := Explain(wrap(e.command), repo()).Class; weight(got) < weight(e.class) {
				t.Errorf("false allow: %s, %s: got %s", how, e, got)
			}
		}
	}
	t.Logf("%d command lines", tried)
	if tried < 15_000 {
		t.Errorf("only %d command lines were tried", tried)
	}
}

// TestPairs checks that the stronger of two commands decides the class, and that the effects of both are reported.
func TestPairs(t *testing.T) {
	all := examples(t)
	for i, e := range all {
		other := all[(i*7+3)%len(all)]
		if !standsAlone(e.command) || strings.Contains(e.command, "<<") {
			continue
		}
		first, second, both := Explain(e.command, repo()), Explain(other.command, repo()), Explain(e.command+"\n"+other.command, repo())
		if weight(both.Class) < max(weight(first.Class), weight(second.Class)) {
			t.Errorf("%s\n%s\ntogether: %s", e, other, both.Class)
		}
		if both.Class == Full {
			continue // it may do anything, whatever else is told
		}
		for _, effect := range first.Effects {
			if !slices.ContainsFunc(both.Effects, func(b tool.Effect) bool { return b.Kind == effect.Kind && b.Path == effect.Path }) {
				t.Errorf("%s\n%s\ntogether: no %s %s", e, other, effect.Kind, effect.Path)
			}
		}
	}
}

// TestExplainIsPure checks that a plan depends on nothing but the command line and the place.
func TestExplainIsPure(t *testing.T) {
	for _, e := range examples(t) {
		a, b := Explain(e.command, repo()), Explain(e.command, repo())
		if fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", b) {
			t.Errorf("%s:\n%+v\n%+v", e, a, b)
		}
	}
}

// TestNowhere checks that without a workspace nothing is proven to write, and that no more is proven than with one.
func TestNowhere(t *testing.T) {
	for _, e := range examples(t) {
		for _, at := range []Place{{}, {Root: "/srv/repo"}, {Cwd: "/srv/repo"}, {Root: "/srv/other", Cwd: "/srv/repo", Home: "/home/me"}} {
			got := Explain(e.command, at)
			if at.Root == "" && got.Class == Workspace || weight(got.Class) < weight(e.class) && e.class == Full {
				t.Errorf("at %+v: %s: %s", at, e, got.Class)
			}
		}
	}
}
