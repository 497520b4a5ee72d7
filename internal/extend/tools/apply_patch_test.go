package tools_test

import (
	"strings"
	"testing"
)

// TestPatches checks the effect of a patch on a file: which of several equal places it means, and that spaces may
// differ.
func TestPatches(t *testing.T) {
	t.Parallel()
	const twice = "def a():\n    x = 1\n    return x\n\n\ndef b():\n    x = 1\n    return x\n"
	for name, c := range map[string]struct{ before, hunks, after string }{
		"one line":          {"one\ntwo\nthree\n", "@@\n one\n-two\n+2\n three\n", "one\n2\nthree\n"},
		"no mark at all":    {"one\ntwo\n", "-two\n+2\n", "one\n2\n"},
		"behind its anchor": {twice, "@@ def b():\n-    x = 1\n+    x = 2\n", strings.Replace(twice, "def b():\n    x = 1", "def b():\n    x = 2", 1)},
		"behind the hunk before it": {
			twice, "@@\n-    x = 1\n+    x = 2\n@@\n-    x = 1\n+    x = 3\n",
			strings.Replace(strings.Replace(twice, "x = 1", "x = 2", 1), "x = 1", "x = 3", 1),
		},
		"two anchors":              {"class A\n  f\n    x\nclass B\n  f\n    x\n", "@@ class B\n@@   f\n-    x\n+    y\n", "class A\n  f\n    x\nclass B\n  f\n    y\n"},
		"a part of its anchor":     {"class A:\n  x\nclass B:\n  x\n", "@@ class B\n-  x\n+  y\n", "class A:\n  x\nclass B:\n  y\n"},
		"no anchor, one place":     {"a\nb\n", "@@ def x():\n-b\n+c\n", "a\nc\n"},
		"the last of two":          {"end\nx\nend\n", "@@\n-end\n+END\n*** End of File\n", "end\nx\nEND\n"},
		"behind an end of file":    {"a\nb\nc\n", "@@\n-c\n+C\n*** End of File\n@@\n-a\n+A\n", "A\nb\nC\n"},
		"no newline at the end":    {"a\nb", "@@\n a\n-b\n\\ No newline at end of file\n+c\n", "a\nc"},
		"inserted behind one":      {twice, "@@ def b():\n+    # here\n", strings.Replace(twice, "def b():\n", "def b():\n    # here\n", 1)},
		"added at the end":         {"one\n", "@@\n+two\n*** End of File\n", "one\ntwo\n"},
		"numbers of lines":         {"one\ntwo\n", "@@ -7,2 +7,2 @@ func x\n one\n-two\n+2\n", "one\n2\n"},
		"spaces at ends":           {"one  \ntwo\t\nthree\n", "@@\n one\n-two\n+2\n three\n", "one  \n2\nthree\n"},
		"another indentation":      {"if x:\n\ty = 1\n\tz = 2\n", "@@\n if x:\n     y = 1\n-    z = 2\n+\tz = 3\n", "if x:\n\ty = 1\n\tz = 3\n"},
		"an empty line without":    {"a\n\nb\n", "@@\n a\n\n-b\n+c\n", "a\n\nc\n"},
		"DOS line ends":            {"a\r\nb\r\nc\r\n", "@@\n a\n-b\n+B\n c\n", "a\r\nB\r\nc\r\n"},
		"a deletion":               {"a\nb\nc\n", "@@\n a\n-b\n c\n", "a\nc\n"},
		"a line that goes":         {"a\nb\nc\n", "@@\n-b\n", "a\nc\n"},
		"the only line":            {"a\n", "@@\n-a\n", ""},
		"at the beginning and end": {"a\nb\nc\n", "@@\n-a\n+A\n@@\n-c\n+C\n", "A\nb\nC\n"},
	} {
		s := newSession(t)
		s.put("f", c.before)
		s.run("apply_patch", args{"input": "*** Begin Patch\n*** Update File: f\n" + c.hunks + "*** End Patch\n"})
		if t.Failed() {
			t.Fatal(name)
		}
		s.has("f", c.after)
	}
}

// TestPatchesThatDontFit checks that nothing is written if a part of a patch has no unique place, and that a part never
// matches inside a line.
func TestPatchesThatDontFit(t *testing.T) {
	t.Parallel()
	const two = "class A:\n    def f(self):\n        return 1\nclass B:\n    def f(self):\n        return 1\n"
	for name, c := range map[string]struct{ before, patch, want string }{
		"nowhere":               {"one\n", "@@\n-won\n+1\n", "part 1 of 1 of the patch of f: old_string was not found"},
		"part of a line":        {"x = 10\n", "@@\n-x = 1\n+x = 2\n", "not found"},
		"after one that does":   {"a\nb\n", "@@\n-a\n+A\n@@\n-zzz\n+B\n", "part 2 of 2"},
		"no anchor, two places": {two, "@@ class C\n     def f(self):\n-        return 1\n+        return 2\n", "more than once"},
		"no anchor at all":      {two, "@@ def q():\n+    new\n", `there is no line "def q():"`},
		"another file":          {"a\n", "@@\n-a\n+A\n*** Update File: g\n@@\n-zzz\n+y\n*** Delete File: g\n", "the patch of g"},
		"a move onto a file":    {"a\n", "*** Move to: g\n@@\n-a\n+A\n", "g exists already, so f was not moved"},
	} {
		s := newSession(t)
		s.put("f", c.before)
		s.put("g", "kept\n")
		s.fails("apply_patch", args{"input": "*** Begin Patch\n*** Update File: f\n" + c.patch + "*** End Patch\n"}, c.want)
		s.has("f", c.before)
		s.has("g", "kept\n")
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// TestBlocks checks the effect of blocks of text to search for and to replace: they are whole lines.
func TestBlocks(t *testing.T) {
	t.Parallel()
	block := func(old, with string) string {
		return "<<<<<<< SEARCH\n" + old + "=======\n" + with + ">>>>>>> REPLACE\n"
	}
	s := newSession(t)
	s.put("f", "aa\nmax = 10\nb\n")
	s.fails("replace_in_file", args{"path": "f", "diff": block("max = 1\n", "max = 5\n")}, "not found")
	s.run("replace_in_file", args{"path": "f", "diff": block("max = 10\n", "max = 5\n") + "\n" + block("b\n", "")})
	s.has("f", "aa\nmax = 5\n")
	s.fails("replace_in_file", args{"path": "f", "diff": block("aa\n", "A\n") + "<<<<<<< SEARCH\nmax"}, "block 2 has no end")
	s.has("f", "aa\nmax = 5\n")
	s.put("empty", "")
	s.run("str_replace_editor", args{"command": "insert", "path": "empty", "insert_line": 0, "new_str": "x\n"})
	s.has("empty", "x\n")
	s.put("dos", "a\r\nb\r\n")
	s.run("str_replace_editor", args{"command": "insert", "path": "dos", "insert_line": 1, "new_str": "x\n"})
	s.has("dos", "a\r\nx\r\nb\r\n")
}
