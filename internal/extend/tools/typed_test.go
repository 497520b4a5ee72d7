package tools_test

import (
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

// TestTyped checks that files and texts are found as a model types them, that an edit keeps the file's own spelling
// around the change, and that nothing is guessed.
func TestTyped(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	nfd := norm.NFD.String("Abschätzung.txt")
	for name, text := range map[string]string{
		"Shot at 1.02\u202fPM.txt": "one", "it\u2019s.txt": "two", nfd: "three", "dir\u00a0x/a.txt": "four",
		"\u2764.txt": "heart", "\u2b50\ufe0f.txt": "star", "wide x.txt": "wide",
		"two a.txt": "plain", "two\u00a0a.txt": "odd", "b\u00a0c\u202fd": "five", "b\u202fc\u00a0d": "six",
		"\u2764\ufe0f.txt": "heart", "\u2b50.txt": "star", "wide\u3000x.txt": "wide",
	} {
		s.put(name, text)
	}
	for path, want := range map[string]string{
		"Shot at 1.02 PM.txt": "one", "it's.txt": "two", "Abschätzung.txt": "three", nfd: "three", "dir x/a.txt": "four",
		"two a.txt": "plain", "two\u00a0a.txt": "odd",
	} {
		says(t, s.run("read_file", args{"path": path}), want)
	}
	s.fails("read_file", args{"path": "b c d"}, "does not exist")
	s.run("write_file", args{"path": "new name.txt", "content": "x"})
	s.has("new name.txt", "x")

	for _, tt := range []struct{ file, old, with, want string }{
		{"say \u201chello\u201d to \u2018it\u2019", `say "hello" to`, `say "hello" or`, "say \u201chello\u201d or \u2018it\u2019"},
		{"a\u00a0b = 1", "a b = 1", "a b = 2", "a\u00a0b = 2"},
		{norm.NFD.String("für é"), "für é", "für è", norm.NFD.String("für ") + "è"},
		{norm.NFD.String("née") + " x", "née x", "née y", norm.NFD.String("née") + " y"},
		{"a \u2013 b\u2026 c", "a - b... c", "a - b... d", "a \u2013 b\u2026 d"},
		{"wait\u2026 ok", "wait.. ok", "wait.. no", ""}, // a part of a character
		{"x\u200by\ufe0f z", "xy z", "xy w", "x\u200by\ufe0f w"},
		{"say x", "\u200b", "y", ""},
		{"x\u00a0y\r\nz\r\n", "x y\nz", "x y\nw", "x\u00a0y\r\nw\r\n"},
		{"\u201ca\u201d \u201ca\u201d", `"a"`, `"b"`, ""}, // which of them is not said
		{"\u201ca\u201d", `"c"`, `"b"`, ""},
	} {
		s.run("write_file", args{"path": "e", "content": tt.file})
		edit := args{"path": "e", "edits": []any{map[string]any{"old_string": tt.old, "new_string": tt.with}}}
		if tt.want == "" {
			s.fails("edit_file", edit, "not found")
			continue
		}
		s.run("edit_file", edit)
		s.has("e", tt.want)
	}
	s.run("write_file", args{"path": "e", "content": strings.Repeat("\u201ca\u201d ", 3)})
	s.run("edit_file", args{"path": "e", "edits": []any{map[string]any{"old_string": `"a"`, "new_string": `"b"`, "replace_all": true}}})
	s.has("e", strings.Repeat("\u201cb\u201d ", 3))
}
