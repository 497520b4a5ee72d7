package tools_test

import (
	"strings"
	"testing"
)

// TestPatches holds what a patch makes of a file: which of several equal places it means, and that it need not have
// all spaces right.
func TestPatches(t *testing.T) {
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
	s := newSession(t)
	s.put("f", "one\n")
	s.fails("apply_patch", args{"input": "*** Begin Patch\n*** Update File: f\n@@\n-won\n+1\n*** End Patch\n"}, "not found")
}
