package tools_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/tool"
)

// newLines is a session whose editor goes by line numbers.
func newLines(t testing.TB) *session {
	t.Helper()
	s := newSession(t)
	for _, tl := range tools.Core(s.shell, "lines") {
		s.tools[tl.Name] = tl
	}
	return s
}

func TestCore(t *testing.T) {
	for edit, want := range map[string][]string{
		"": {"write_file", "edit_file"}, "replace": {"write_file", "edit_file"}, "lines": {"write_file", "edit_lines"}, "write": {"write_file"},
	} {
		var writers []string
		for _, tl := range tools.Core(&tools.Shell{}, edit) {
			if strings.HasPrefix(tl.Name, "write") || strings.HasPrefix(tl.Name, "edit") {
				writers = append(writers, tl.Name)
			}
			for _, other := range []string{"edit_file", "edit_lines"} {
				if strings.Contains(tl.Doc, other) && !slices.Contains(want, other) {
					t.Errorf("edit %q: %s speaks of %s", edit, tl.Name, other)
				}
			}
		}
		if !slices.Equal(writers, want) {
			t.Errorf("edit %q: %q, want %q", edit, writers, want)
		}
	}
}

func TestEditLinesSchema(t *testing.T) {
	s := newLines(t)
	tl := s.tools["edit_lines"]
	order := []string{"path", "first_line", "expect", "text", "last_line", "insert"}
	if got := fields(t, tl.Schema); len(got) != len(order) || !inOrder(string(tl.Schema), order) {
		t.Errorf("fields %s, want %q", tl.Schema, order)
	}
	for _, missing := range order[:4] {
		a := args{"path": "f", "first_line": 1, "expect": "", "text": ""}
		delete(a, missing)
		raw, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tl.Check(raw); err == nil || !strings.Contains(err.Error(), missing+": missing") {
			t.Errorf("without %s: %v", missing, err)
		}
	}
	if _, err := tl.Check(json.RawMessage(`{"file_path":"f","first_line":"2","expect":"x","text":"y","insert":"true"}`)); err != nil {
		t.Errorf("as a model writes it: %v", err)
	}
	s.put("f", "x\n")
	want := []tool.Effect{{Kind: tool.Write, Path: s.path("f")}}
	if got := s.effects("edit_lines", args{"path": "f", "first_line": 1, "expect": "", "text": ""}); !slices.Equal(got, want) {
		t.Errorf("effects %+v", got)
	}
}

// TestEditLines is a table of edits, each on a file of its own.
func TestEditLines(t *testing.T) {
	const abc = "a\nb\nc\n"
	for name, tt := range map[string]struct {
		before string
		args   args
		after  string
		says   string
	}{
		"one line": {
			abc,
			args{"first_line": 2, "expect": "b", "text": "B"},
			"a\nB\nc\n",
			"1 line replaced by 1\n     1\ta\n     2\tB\n     3\tc",
		},
		"ended text": {abc, args{"first_line": 2, "expect": "b", "text": "B\n"}, "a\nB\nc\n", "replaced by 1"},
		"several lines": {
			abc,
			args{"first_line": 1, "last_line": 2, "expect": "a", "text": "x\ny\nz"},
			"x\ny\nz\nc\n",
			"2 lines replaced by 3; the numbers of all lines below changed by +1\n     1\tx",
		},
		"all": {
			abc,
			args{"first_line": 1, "last_line": 3, "expect": "a\nb\nc\n", "text": "x"},
			"x\n",
			"3 lines replaced by 1; the numbers of all lines below changed by -2\n     1\tx",
		},
		"delete": {
			abc,
			args{"first_line": 2, "last_line": 3, "expect": "b", "text": ""},
			"a\n",
			"2 lines deleted; the numbers of all lines below changed by -2\n     1\ta",
		},
		"delete all": {abc, args{"first_line": 1, "last_line": 3, "expect": "a", "text": ""}, "", "3 lines deleted"},
		"empty line": {abc, args{"first_line": 2, "expect": "b", "text": "\n"}, "a\n\nc\n", "1 line replaced by 1"},
		"insert": {
			abc,
			args{"first_line": 1, "expect": "a", "text": "x\ny", "insert": true},
			"a\nx\ny\nb\nc\n",
			"2 lines inserted; the numbers of all lines below changed by +2\n     1\ta\n     2\tx\n     3\ty\n     4\tb",
		},
		"insert, last too": {
			abc,
			args{"first_line": 1, "last_line": 1, "expect": "a", "text": "x", "insert": true},
			"a\nx\nb\nc\n", "1 line inserted",
		},
		"insert first": {abc, args{"first_line": 0, "expect": "", "text": "x", "insert": true}, "x\na\nb\nc\n", "1 line inserted"},
		"insert last":  {abc, args{"first_line": 3, "expect": "c", "text": "x", "insert": true}, "a\nb\nc\nx\n", "1 line inserted"},
		"into nothing": {
			"",
			args{"first_line": 0, "expect": "", "text": "x", "insert": true},
			"x\n",
			"1 line inserted; the numbers of all lines below changed by +1\n     1\tx",
		},
		"open, replace": {"a\nb", args{"first_line": 2, "expect": "b", "text": "x\n"}, "a\nx", "replaced"},
		"open, insert":  {"a\nb", args{"first_line": 2, "expect": "b", "text": "x\n", "insert": true}, "a\nb\nx", "inserted"},
		"open, delete":  {"a\nb", args{"first_line": 2, "expect": "b", "text": ""}, "a\n", "deleted"},
		"open, before":  {"a\nb", args{"first_line": 1, "expect": "a", "text": "x"}, "x\nb", "replaced"},
		"crlf": {
			"a\r\nb\r\nc\r\n",
			args{"first_line": 2, "expect": "b", "text": "x\ny"},
			"a\r\nx\r\ny\r\nc\r\n", "     2\tx\n     3\ty",
		},
		"crlf, open":      {"a\r\nb", args{"first_line": 2, "expect": "b", "text": "x", "insert": true}, "a\r\nb\r\nx", "inserted"},
		"crlf in call":    {abc, args{"first_line": 2, "expect": "b\r\n", "text": "x\r\ny\r\n"}, "a\nx\ny\nc\n", "replaced by 2"},
		"mixed":           {"a\r\nb\nc\r\nd\r\n", args{"first_line": 2, "expect": "b", "text": "x"}, "a\r\nx\r\nc\r\nd\r\n", "replaced"},
		"bom":             {"\xef\xbb\xbfa\nb\n", args{"first_line": 1, "expect": "a", "text": "x"}, "\xef\xbb\xbfx\nb\n", "replaced"},
		"utf-16":          {"\xff\xfea\x00\n\x00", args{"first_line": 1, "expect": "a", "text": "é"}, "\xff\xfe\xe9\x00\n\x00", "replaced"},
		"space":           {"\tif  x {\n", args{"first_line": 1, "expect": "if x {", "text": "\tif y {"}, "\tif y {\n", "replaced"},
		"numbered expect": {abc, args{"first_line": 2, "expect": "     2\tb", "text": "x"}, "a\nx\nc\n", "replaced"},
		"numbered file":   {"1\tone\n2\ttwo\n", args{"first_line": 2, "expect": "2\ttwo", "text": "2\tdos"}, "1\tone\n2\tdos\n", "replaced"},
		"empty expect":    {"a\n\nc\n", args{"first_line": 2, "expect": "", "text": "b"}, abc, "replaced"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLines(t)
			s.put("f", tt.before)
			s.run("read_file", args{"path": "f"})
			tt.args["path"] = "f"
			says(t, s.run("edit_lines", tt.args), "f: ", tt.says)
			s.has("f", tt.after)
		})
	}
}

func TestEditLinesRefuses(t *testing.T) {
	s := newLines(t)
	const text = "func a() {\n\treturn 1\n}\n\nfunc b() {\n\treturn 2\n}\n"
	s.put("f.go", text)
	edit := func(first int, expect, text string, more ...any) args {
		a := args{"path": "f.go", "first_line": first, "expect": expect, "text": text}
		for i := 0; i < len(more); i += 2 {
			a[more[i].(string)] = more[i+1]
		}
		return a
	}
	s.fails("edit_lines", edit(1, "func a() {", "x"), "read it first")
	s.run("read_file", args{"path": "f.go"})
	s.fails("edit_lines", edit(3, "return 2", "x"), "nothing was written to f.go: line 3 is not what expect says", "     1\tfunc a() {\n",
		"     7\t}", "the expected text is in line 6")
	s.fails("edit_lines", edit(2, "}", "x"), "in line 3")
	s.fails("edit_lines", edit(4, "func bb() {", "x"), "similar, but not the same:\n     5\tfunc b() {", "read the file again")
	s.fails("edit_lines", edit(2, "", "x"), "line 2 is not what expect says", "read the file again")
	s.fails("edit_lines", edit(6, "return 2\n}\n}", "x"), "line 6 is not what expect says")
	s.fails("edit_lines", edit(8, "", "x"), "line 8 is after the end; there are 7 lines")
	s.fails("edit_lines", edit(7, "}", "x", "last_line", 9), "line 9 is after the end")
	s.fails("edit_lines", edit(0, "", "x"), "lines count from 1", "set insert and first_line 0")
	s.fails("edit_lines", edit(-1, "", "x", "insert", true), "lines count from 1")
	s.fails("edit_lines", edit(5, "func b() {", "x", "last_line", 4), "last_line 4 is before first_line 5")
	s.fails("edit_lines", edit(1, "func a() {", "x", "last_line", 2, "insert", true), "leave out last_line")
	s.fails("edit_lines", edit(1, "func a() {", "", "insert", true), "no text to insert")
	s.fails("edit_lines", edit(1, "func a() {", "     1\tfunc c() {\n     2\t\treturn 3"), "leave them out")
	s.fails("edit_lines", edit(1, "func a() {", "func a() {\n"), "the same as the old ones", "nothing was written")
	s.has("f.go", text)

	s.put("f.go", "changed\n")
	s.fails("edit_lines", edit(1, "changed", "x"), "has changed since it was read")
	s.fails("edit_lines", args{"path": "h", "first_line": 1, "expect": "", "text": "x"}, "does not exist")
	s.put("l1", "\xe9\n")
	s.run("read_file", args{"path": "l1"})
	s.fails("edit_lines", args{"path": "l1", "first_line": 1, "expect": "é", "text": "世"}, "is Latin-1")
}

// TestEditLinesMoves checks that numbers that an edit before has changed are found out, and that those it shows are
// right.
func TestEditLinesMoves(t *testing.T) {
	s := newLines(t)
	s.put("f", "a\nb\nc\nd\n")
	s.run("read_file", args{"path": "f"})
	text := s.run("edit_lines", args{"path": "f", "first_line": 1, "expect": "a", "text": "a1\na2\na3"})
	says(t, text, "changed by +2", "     4\tb")
	c := args{"path": "f", "first_line": 3, "expect": "c", "text": "C"}
	s.fails("edit_lines", c, "line 3 is not what expect says",
		"Edits change the numbers of the lines below them: the expected text is in line 5")
	c["first_line"] = 5
	s.run("edit_lines", c)
	s.has("f", "a1\na2\na3\nb\nC\nd\n")
}

// TestEditLinesLong checks that a long edit is shown in part, with its diff in full for people.
func TestEditLinesLong(t *testing.T) {
	s := newLines(t)
	s.put("f", "a\nb\n")
	s.run("read_file", args{"path": "f"})
	a := args{"path": "f", "first_line": 1, "expect": "a", "text": strings.Repeat("line\n", 100)}
	tl, c := s.call("edit_lines", a)
	preview, err := tl.Preview(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.try(t.Context(), "edit_lines", a)
	if err != nil {
		t.Fatal(err)
	}
	text := r.Parts.Text()
	says(t, text, "1 line replaced by 100", "     1\tline\n", "…\n    92\tline", "   101\tb")
	if n := strings.Count(text, "\n"); n > 25 {
		t.Errorf("%d lines are shown", n)
	}
	if f := r.Files[0]; f.Diff != preview || strings.Count(f.Diff, "\n+line") != 100 || !f.Written {
		t.Errorf("preview %q, file %+v", preview, f)
	}
}

// TestEditLinesMode checks that permissions stay.
func TestEditLinesMode(t *testing.T) {
	s := newLines(t)
	s.put("f", "a\n")
	if err := os.Chmod(s.path("f"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.run("read_file", args{"path": "f"})
	s.run("edit_lines", args{"path": "f", "first_line": 1, "expect": "a", "text": "b"})
	if info, err := os.Stat(s.path("f")); err != nil || info.Mode() != 0o755 {
		t.Errorf("mode became %v, %v", info.Mode(), err)
	}
}
