package tools_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

func TestReadFile(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	many := &strings.Builder{}
	for i := range 5310 {
		fmt.Fprintf(many, "line %d\n", i+1)
	}
	s.put("many", many.String())
	s.put("long", strings.Repeat("é", 3000)+"\nend")
	s.put("wide", strings.Repeat(strings.Repeat("x", 999)+"\n", 500))
	s.put("empty", "")
	s.put("bom", "\xef\xbb\xbfa\r\nb\r\n")
	s.put("le", "\xff\xfea\x00\n\x00\xac\x20")
	s.put("be", "\xfe\xff\x00a\x20\xac")
	s.put("latin", "caf\xe9\n")
	s.put("binary", "\x7fELF\x00\x01\x02")
	s.put("dir/readme.md", "x")

	text := s.run("read_file", args{"path": "many"})
	says(t, text, "     1\tline 1\n", "  2000\tline 2000\n[lines 1-2000 of 5310; read on with offset 2001]")
	text = s.run("read_file", args{"path": "many", "offset": 5309})
	if want := "  5309\tline 5309\n  5310\tline 5310\n[lines 5309-5310 of 5310, up to the end]"; text != want {
		t.Errorf("got %q", text)
	}
	s.fails("read_file", args{"path": "many", "offset": 5311}, "behind the end", "5,310 lines")
	text = s.run("read_file", args{"path": "long"})
	says(t, text, "é… [4000 more bytes]\n     2\tend")
	text = s.run("read_file", args{"path": "wide"})
	says(t, text, "[lines 1-101 of 500; read on with offset 102]")
	for name, want := range map[string]string{
		"empty": "[the file is empty]",
		"bom":   "     1\ta\n     2\tb\n[encoding UTF-8 with byte order mark, CRLF line ends; edits keep that]",
		"le":    "     1\ta\n     2\t€\n[encoding UTF-16 LE; edits keep that]",
		"be":    "     1\ta€\n[encoding UTF-16 BE; edits keep that]",
		"latin": "     1\tcafé\n[encoding Latin-1; edits keep that]",
	} {
		if got := s.run("read_file", args{"path": name}); strings.ReplaceAll(got, "\n\n", "\n") != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	s.fails("read_file", args{"path": "binary"}, "binary file of 7 B", "7f 45 4c 46")
	s.put("paper", "%PDF-1.7\n\x00\x01")
	s.fails("read_file", args{"path": "paper"}, "is a PDF", "pdftotext -layout FILE -")
	s.fails("read_file", args{"path": "dir"}, "is a directory", "list_files")
	s.fails("read_file", args{"path": "dir/redme.md"}, "does not exist", "did you mean dir/readme.md?")
	s.fails("read_file", args{"path": "dri/readme.md"}, "does not exist", `the workspace has nothing named "dri"`, "did you mean dir?")
	s.fails("read_file", args{"path": "blob:sha256-00"}, "no blob sha256-00")
}

// TestReadHuge checks that a file too big for memory is read and searched, and not edited.
func TestReadHuge(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	line := strings.Repeat("x", 1023) + "\n"
	s.put("huge", strings.Repeat(line, 70<<10)+"the needle\n")
	says(t, s.run("read_file", args{"path": "huge", "offset": 70 << 10}), "x\n 71681\tthe needle\n[lines 71680-71681 of 71681, up to the end]")
	says(t, s.run("search_files", args{"path": "huge", "pattern": "needle", "context": 1}), "71681: the needle")
	s.fails("edit_file", args{"path": "huge", "old": "the needle", "new": "x"}, "larger than 64.0 MiB")
}

func TestReadImage(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	png, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	if err != nil {
		t.Fatal(err)
	}
	s.put("dot.png", string(png))
	s.put("big.gif", "GIF89a"+strings.Repeat("x", 6<<20))
	r, err := s.try(t.Context(), "read_file", args{"path": "dot.png"})
	if err != nil {
		t.Fatal(err)
	}
	want := tool.Result{
		Parts: llm.Parts{llm.Text{Text: "dot.png: image/png, 70 B"}, llm.Image{MediaType: "image/png", Data: png}},
		Files: []tool.File{{Path: s.path("dot.png"), Digest: tool.Digest(png)}},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
	s.fails("read_file", args{"path": "big.gif"}, "larger than 5.0 MiB")
}

func TestWriteFile(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	r, err := s.try(t.Context(), "write_file", args{"path": "a/b/c.txt", "content": "1\n2\n"})
	if err != nil {
		t.Fatal(err)
	}
	want := []tool.File{{
		Path: s.path("a/b/c.txt"), Digest: tool.Digest([]byte("1\n2\n")), Written: true,
		Diff: "--- /dev/null\n+++ a/b/c.txt\n@@ -0,0 +1,2 @@\n+1\n+2\n",
	}}
	if diff := cmp.Diff(want, r.Files); diff != "" {
		t.Error(diff)
	}
	says(t, s.run("write_file", args{"path": "a/b/c.txt", "content": "1\n3\n"}), "replaced a/b/c.txt: 4 B, 2 lines")
	s.put("unread", "precious\nlines\n")
	said := s.run("write_file", args{"path": "unread", "content": "x"})
	says(t, said, "replaced unread: 1 B", "This session had not read it. It held 15 B", ":\nprecious\nlines\n")
	s.run("write_file", args{"path": "unread", "content": "y"}) // which it knows now
	blob := regexp.MustCompile(`blob ([\w-]+)\)`).FindStringSubmatch(said)
	s.run("write_file", args{"path": "unread", "blob": blob[1]})
	s.has("unread", "precious\nlines\n")
	s.put("long", strings.Repeat("a line\n", 10_000))
	if said := s.run("write_file", args{"path": "long", "content": "x"}); len(said) > 5000 || !strings.Contains(said, " left out …\n") {
		t.Errorf("%d bytes: %.200s", len(said), said)
	}
	s.run("read_file", args{"path": "unread"})
	s.put("unread", "changed meanwhile")
	s.fails("write_file", args{"path": "unread", "content": "x"}, "has changed since it was read")
	s.has("unread", "changed meanwhile")
	s.fails("write_file", args{"path": "x"}, "either content or blob")
	s.fails("write_file", args{"path": "x", "content": "y", "blob": "z"}, "either content or blob")
	s.fails("write_file", args{"path": "a/b", "content": "y"}, "is a directory")
	says(t, s.run("write_file", args{"path": "empty", "content": ""}), "created empty: 0 B")
}

func TestWriteKeeps(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.put("dos", "a\r\nb\r\n")
	s.put("wide", "\xff\xfea\x00")
	s.put("bom", "\xef\xbb\xbfa")
	s.put("latin", "\xe9")
	s.put("run.sh", "#!/bin/sh\n")
	if err := os.Chmod(s.path("run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dos", "wide", "bom", "latin", "run.sh"} {
		s.run("read_file", args{"path": name})
	}
	says(t, s.run("write_file", args{"path": "dos", "content": "1\n2\n3\n"}), "CRLF", "kept")
	s.has("dos", "1\r\n2\r\n3\r\n")
	says(t, s.run("write_file", args{"path": "wide", "content": "é"}), "UTF-16 LE")
	s.has("wide", "\xff\xfe\xe9\x00")
	s.run("write_file", args{"path": "bom", "content": "b"})
	s.has("bom", "\xef\xbb\xbfb")
	s.fails("write_file", args{"path": "latin", "content": "€"}, "Latin-1, which has no")
	s.has("latin", "\xe9")
	s.run("write_file", args{"path": "run.sh", "content": "#!/bin/sh\ntrue\n"})
	if info, err := os.Stat(s.path("run.sh")); err != nil || info.Mode() != 0o755 {
		t.Errorf("mode became %v, %v", info.Mode(), err)
	}
}

func TestEditFile(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	const text = "func a() {\n\treturn 1\n}\n\nfunc b() {\n\treturn 1\n}\n"
	s.put("f.go", text)
	one := func(old, with string) args {
		return args{"path": "f.go", "edits": []any{args{"old_string": old, "new_string": with}}}
	}
	s.fails("edit_file", one("return 1", "return 2"), "matches 2 times")
	s.fails("edit_file", args{"path": "f.go", "edits": []any{args{"old_string": "return 1", "new_string": "2", "replace_all": true}}},
		"read it before")
	s.run("edit_file", one("func b()", "func c()")) // what matches once can be meant once only
	s.has("f.go", strings.Replace(text, "func b()", "func c()", 1))
	says(t, s.run("write_file", args{"path": "f.go", "content": "x"}), "had not read it")
	s.put("f.go", text)
	s.run("read_file", args{"path": "f.go"})
	s.fails("edit_file", one("return 1", "return 2"), "matches 2 times, at lines 2, 6", "replace_all", "nothing was written")
	s.fails("edit_file", one("", "x"), "old_string is empty")
	s.fails("edit_file", one("func", "func"), "are the same")
	s.fails("edit_file", one("func a() {\n    return 1\n}", "x"),
		"differ in indentation only:\n     1\tfunc a() {\n     2\t\treturn 1\n     3\t}")
	s.fails("edit_file", one("func a() { \n", "x"), "differ in space at line ends only:\n     1\tfunc a() {")
	s.fails("edit_file", one("func  b () {", "x"), "differ in white space only:\n     5\tfunc b() {")
	s.fails("edit_file", one("func bb() {\n\treturn 1", "x"), "similar, but not the same:\n     5\tfunc b() {\n     6\t\treturn 1")
	s.fails("edit_file", one("nothing like it at all", "x"), "nor anything like it")
	s.fails("edit_file", one("     1\tfunc a() {\n     2\t\treturn 1", "x"), "leave them out")
	s.fails("edit_file", args{"path": "f.go", "edits": []any{
		args{"old_string": "func a", "new_string": "func c"},
		args{"old_string": "func a", "new_string": "func d"},
	}}, "edit 2 of 2", "not found", "nothing was written")
	s.fails("edit_file", args{"path": "f.go", "edits": []any{
		args{"old_string": "func a", "new_string": "func c"},
		args{"old_string": "func c", "new_string": "func a"},
	}}, "change nothing")
	s.has("f.go", text)

	r, err := s.try(t.Context(), "edit_file", args{"path": "f.go", "edits": []any{
		args{"old_string": "func a() {\n\treturn 1", "new_string": "func c() {\n\treturn 3"},
		args{"old_string": "func c", "new_string": "func d"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.has("f.go", "func d() {\n\treturn 3\n}\n\nfunc b() {\n\treturn 1\n}\n")
	diff := "--- f.go\n+++ f.go\n@@ -1,5 +1,5 @@\n-func a() {\n-\treturn 1\n+func d() {\n+\treturn 3\n }\n \n func b() {\n"
	if got := r.Parts.Text(); got != "f.go: 2 replacements\n"+diff || r.Files[0].Diff != diff {
		t.Errorf("got %q, %+v", got, r.Files)
	}
	s.put("f.go", "changed")
	s.run("edit_file", one("changed", "x"))
	s.fails("write_file", args{"path": "f.go", "content": "y"}, "has changed since it was read")
	s.fails("edit_file", args{"path": "g.go", "edits": []any{args{"old_string": "a", "new_string": "b"}}},
		"does not exist", "did you mean f.go?")
}

func TestEditKeeps(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ before, old, with, after string }{
		"crlf":          {"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc\r\n"},
		"mixed":         {"a\r\nb\nc\r\nd\r\n", "b", "x", "a\r\nx\nc\r\nd\r\n"},
		"mostly lf":     {"a\nb\nc\r\n", "a", "x\ny", "x\ny\nb\nc\r\n"},
		"crlf in call":  {"a\nb\n", "a\r\nb", "x\r\ny", "x\ny\n"},
		"bom":           {"\xef\xbb\xbfa\n", "a", "b", "\xef\xbb\xbfb\n"},
		"utf-16":        {"\xff\xfea\x00\r\x00\n\x00", "a\n", "é\n", "\xff\xfe\xe9\x00\r\x00\n\x00"},
		"latin-1":       {"\xe9\xe8\n", "é", "à", "\xe0\xe8\n"},
		"no last line":  {"a\nb", "b", "c", "a\nc"},
		"end of line":   {"a\r\n", "a", "b", "b\r\n"},
		"only line end": {"a\r\nb\r\n", "a\nb", "ab", "ab\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t)
			s.put("f", tt.before)
			s.run("read_file", args{"path": "f"})
			s.run("edit_file", args{"path": "f", "edits": []any{args{"old_string": tt.old, "new_string": tt.with}}})
			s.has("f", tt.after)
		})
	}
}

// TestMissesShowTheLine checks that a miss shows the intended line: with typographic characters, or as a part of a long
// line that differs a little.
func TestMissesShowTheLine(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.put("f", "say(\"it's so\") // a - b\nfirst one\nresult = compute_the_total(items, currency=\"EUR\", rounding=\"half-even\") or "+
		"fallback_value\n")
	s.run("read_file", args{"path": "f"})
	for old, want := range map[string]string{
		"say(\u201cit\u2019s so  \u201d) // a \u2013 b": "differ in quotes, dashes and space only:\n     1\tsay(",
		"compute_total(items, currency":                 "similar, but not the same:\n     3\tresult = compute_the_total",
	} {
		s.fails("edit_file", args{"path": "f", "edits": []any{args{"old_string": old, "new_string": "x"}}}, want)
	}
}

func TestPreview(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.put("f", "a\n")
	s.run("read_file", args{"path": "f"})
	s.put("dos", "a\r\nb\n")
	s.run("read_file", args{"path": "dos"})
	const diff = "--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n"
	for _, call := range []struct {
		tool string
		args args
		want string
	}{
		{"edit_file", args{"path": "f", "edits": []any{args{"old_string": "a", "new_string": "b"}}}, diff},
		{"write_file", args{"path": "f", "content": "b\n"}, diff},
		{"write_file", args{"path": "f", "content": "a\n"}, "f stays as it is"},
		{"write_file", args{"path": "g", "content": ""}, "g (new, empty)"},
		{"write_file", args{"path": "dos", "content": "a\nb\n"}, "dos: only line ends change"},
	} {
		tl, c := s.call(call.tool, call.args)
		if got, err := tl.Preview(t.Context(), c); got != call.want || err != nil {
			t.Errorf("%s %v: %q, %v, want %q", call.tool, call.args, got, err, call.want)
		}
	}
	s.has("f", "a\n")
}

func TestDeleteFile(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.put("dir/f", "precious")
	if err := os.Symlink("dir/f", s.path("link")); err != nil {
		t.Fatal(err)
	}
	s.fails("delete_file", args{"path": "dir"}, "with 1 file in it")
	s.fails("delete_file", args{"path": "."}, "is or holds the workspace")
	s.fails("delete_file", args{"path": "/"}, "is or holds the workspace")
	s.fails("delete_file", args{"path": "dir/.."}, "is or holds the workspace")
	s.fails("delete_file", args{"path": "link"}, "is a symbolic link to dir/f")
	s.fails("delete_file", args{"path": "dir/g"}, "does not exist")
	s.has("dir/f", "precious")
	text := s.run("delete_file", args{"path": "dir/f"})
	if _, err := os.Stat(s.path("dir/f")); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	_, blob, _ := strings.Cut(text, "and blob ")
	says(t, s.run("read_file", args{"path": "blob:" + blob}), "precious")
	s.run("write_file", args{"path": "dir/f", "blob": blob})
	s.has("dir/f", "precious")
	s.run("delete_file", args{"path": "dir/f"})
	says(t, s.run("delete_file", args{"path": "dir/"}), "deleted the empty directory dir")
	s.put("g", "x")
	s.env.Blobs = nil
	s.fails("delete_file", args{"path": "g"}, "no blob store")
	s.has("g", "x")
}
