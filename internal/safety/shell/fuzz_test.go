package shell

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"mvdan.cc/sh/v3/syntax"
)

// FuzzExplain checks properties of every text: it ends, the result is the same twice, its parts agree with the whole,
// and more text never weakens it.
func FuzzExplain(f *testing.F) {
	for _, e := range examples(f) {
		f.Add(e.command)
	}
	f.Fuzz(func(t *testing.T, command string) {
		p := Explain(command, repo())
		if diff := cmp.Diff(p, Explain(command, repo())); diff != "" {
			t.Fatalf("it changes its mind: %s", diff)
		}
		consistent(t, p)
		if more := Explain(command+"\nrm -rf /", repo()); more.Class == Read && !quotedAway(command) {
			t.Errorf("a line with rm -rf / after %q is read", command)
		}
		if more := Explain(command+"; rm -rf /", repo()); more.Class == Read && !quotedAway(command) {
			t.Errorf("rm -rf / after %q is read", command)
		}
	})
}

// quotedAway reports whether text after the command would not be a command: it
// ends in a comment, in a here-document or with a backslash.
func quotedAway(command string) bool {
	return strings.ContainsAny(command, "#\\") || strings.Contains(command, "<<")
}

func consistent(t *testing.T, p Plan) {
	t.Helper()
	class := Read
	for _, s := range p.Segments {
		class = higher(class, s.Class)
		for _, e := range s.Effects {
			if !slices.Contains(p.Effects, e) {
				t.Errorf("effect %+v of %q is not in the plan", e, s.Text)
			}
			if e.Kind != "read" && s.Class == Read {
				t.Errorf("%q is read and has %+v", s.Text, e)
			}
		}
		if len(s.Prefix) > 0 && len(s.Argv) > 0 && !slices.Equal(s.Prefix, s.Argv[:len(s.Prefix)]) {
			t.Errorf("prefix %q is not one of %q", s.Prefix, s.Argv)
		}
	}
	if class != p.Class {
		t.Errorf("the plan is %s, its segments are %s", p.Class, class)
	}
}

// TestSpelling checks that how words are quoted does not matter, and that harmless company neither hides nor adds
// anything.
func TestSpelling(t *testing.T) {
	for _, e := range examples(t) {
		for name, spelled := range spellings(e.command) {
			if got := Explain(spelled, repo()).Class; got != e.class {
				t.Errorf("%s: spelled as %q with %s it is %s", e, spelled, name, got)
			}
		}
	}
}

func spellings(command string) map[string]string {
	out := map[string]string{}
	file, err := syntax.NewParser().Parse(strings.NewReader(command), "")
	if err != nil || len(file.Stmts) == 0 {
		return nil
	}
	out["an empty line"] = "\n" + command
	if !quotedAway(command) {
		out["a block"] = "{ " + command + "\n}"
		out["a subshell"] = "( " + command + "\n)"
		out["a comment"] = command + " # rm -r x"
		out["company"] = "true; " + command
	}
	out["single quotes"] = requote(command, file, func(s string) string { return "'" + s + "'" })
	out["double quotes"] = requote(command, file, func(s string) string { return `"` + s + `"` })
	out["empty quotes"] = requote(command, file, func(s string) string { return s + `""` })
	out["backslashes"] = requote(command, file, func(s string) string { return `\` + s })
	out["a continuation"] = requote(command, file, func(s string) string { return s[:1] + "\\\n" + s[1:] })
	return out
}

// requote changes how the plain words of simple commands are written.
func requote(command string, file *syntax.File, quote func(string) string) string {
	var words []*syntax.Word
	syntax.Walk(file, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok {
			words = append(words, c.Args...)
		}
		_, inner := n.(*syntax.CmdSubst)
		return !inner
	})
	slices.SortFunc(words, func(a, b *syntax.Word) int { return int(b.Pos().Offset()) - int(a.Pos().Offset()) })
	for _, w := range words {
		lit := w.Lit()
		if lit == "" || strings.ContainsAny(lit, "\\*?[~{}\n") || int(w.End().Offset()) > len(command) ||
			command[w.Pos().Offset():w.End().Offset()] != lit {
			continue
		}
		command = command[:w.Pos().Offset()] + quote(lit) + command[w.End().Offset():]
	}
	return command
}
