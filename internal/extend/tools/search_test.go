package tools_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// forest makes a small repository.
func forest(t *testing.T) *session {
	s := newSession(t)
	for name, data := range map[string]string{
		".git/config":           "needle",
		".git/info/exclude":     "excluded\n",
		".gitignore":            "*.log\n/build/\n!keep.log\n",
		".hidden":               "needle",
		"a.txt":                 "one\nneedle two\nthree\n",
		"excluded":              "needle",
		"x.log":                 "needle",
		"keep.log":              "needle kept",
		"build/out.txt":         "needle",
		"build/more/y.txt":      "needle",
		"sub/.gitignore":        "local\n",
		"sub/local":             "needle",
		"sub/deep/b.go":         "package b\n\nfunc Needle() {}\n",
		"sub/deep/c.go":         "package c\r\nvar needle = 1\r\n",
		"sub/data.bin":          "needle\x00",
		"node_modules/m/m.js":   "needle",
		"node_modules/.gitkeep": "",
	} {
		s.put(name, data)
	}
	if err := os.Symlink("a.txt", s.path("link")); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestListFiles(t *testing.T) {
	s := forest(t)
	want := s.env.Root + `/
  .gitignore  24 B
  .hidden  6 B
  a.txt  21 B
  keep.log  11 B
  link  symbolic link
  node_modules/
    .gitkeep  0 B
    m/  …
  sub/
    .gitignore  6 B
    data.bin  7 B
    deep/  …`
	if got := s.run("list_files", args{"depth": 2}); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := s.run("list_files", args{"path": "build"}); !strings.Contains(got, "out.txt") {
		t.Errorf("an ignored directory that was asked for shows %s", got)
	}
	for i := range 700 {
		s.put(fmt.Sprintf("many/%03d", i), "")
		s.put(fmt.Sprintf("zoo/%03d/x", i), "")
	}
	got := s.run("list_files", args{})
	says(t, got, "[500 more not shown; list this directory by itself", "deep/\n")
	if n := strings.Count(got, "\n"); n > 800 {
		t.Errorf("%d lines", n)
	}
	s.fails("list_files", args{"path": "sbu"}, "did you mean sub?")
	s.fails("list_files", args{"path": "a.txt"}, "not a directory")
}

func TestFindFiles(t *testing.T) {
	s := forest(t)
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(s.path("sub/deep/c.go"), old, old); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args args
		want string
	}{
		{args{"pattern": "*.go"}, "sub/deep/b.go\nsub/deep/c.go"},
		{args{"pattern": "sub/**/*.go"}, "sub/deep/b.go\nsub/deep/c.go"},
		{args{"pattern": "sub/*.go"}, "[none of 11 files matches; ignored files are not searched]"},
		{args{"pattern": "*.{go,txt}", "path": "sub"}, "sub/deep/b.go\nsub/deep/c.go"},
		{args{"pattern": "*.log"}, "keep.log"},
		{args{"pattern": "local"}, "[none of 11 files matches; ignored files are not searched]"},
		{args{"pattern": "y.txt", "path": "build"}, "build/more/y.txt"},
		{args{"pattern": s.env.Root + "/sub/deep/b*"}, "sub/deep/b.go"},
		{args{"pattern": ".hid*"}, ".hidden"},
	} {
		if got := s.run("find_files", tt.args); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.args, got, tt.want)
		}
	}
	for i := range 250 {
		s.put(fmt.Sprintf("many/%03d.x", i), "")
	}
	says(t, s.run("find_files", args{"pattern": "*.x"}), "[the newest 200 of 250;")
	s.fails("find_files", args{"pattern": "[a"}, "not a valid glob")
}

func TestSearchFiles(t *testing.T) {
	s := forest(t)
	for _, tt := range []struct {
		args args
		want string
	}{
		{
			args{"pattern": "needle"},
			".hidden\n1: needle\n\na.txt\n2: needle two\n\nkeep.log\n1: needle kept\n\nnode_modules/m/m.js\n1: needle\n\nsub/deep/c.go\n" +
				"2: var needle = 1\n[1 binary file skipped]",
		},
		{
			args{"pattern": "NEEDLE", "ignore_case": true, "path": "sub/deep"},
			"sub/deep/b.go\n3: func Needle() {}\n\nsub/deep/c.go\n2: var needle = 1",
		},
		{args{"pattern": `= \d$`, "glob": "*.go"}, "sub/deep/c.go\n2: var needle = 1"},
		{args{"pattern": "needle", "path": "a.txt", "context": 1}, "a.txt\n1- one\n2: needle two\n3- three"},
		{args{"pattern": "needle", "path": "build/more"}, "build/more/y.txt\n1: needle"},
		{args{"pattern": "nowhere"}, "[no match in 9 files; ignored files are not searched; 1 binary file skipped]"},
		{
			args{"pattern": "needle", "max": 2},
			".hidden\n1: needle\n\na.txt\n2: needle two\n[stopped after 2 matching lines; narrow the pattern, path or glob; 1 binary file skipped]",
		},
	} {
		if got := s.run("search_files", tt.args); got != tt.want {
			t.Errorf("%v:\ngot  %q\nwant %q", tt.args, got, tt.want)
		}
	}
	s.put("many", strings.Repeat("needle\n", 300))
	says(t, s.run("search_files", args{"pattern": "needle", "path": "many"}), "200: needle\n[stopped after 200 matching lines;")
	s.put("long", strings.Repeat("x", 5000)+"needle"+strings.Repeat("y", 5000))
	if got := s.run("search_files", args{"pattern": "needle", "path": "long"}); len(got) > 400 || !strings.Contains(got, "xneedley") {
		t.Errorf("a long line gives %q", got)
	}
	s.put("ctx", "1\n2\n3 m\n4\n5 m\n6\n7\n8\n9\n10 m\n")
	if got := s.run("search_files", args{
		"pattern": "m", "path": "ctx",
		"context": 1,
	}); got != "ctx\n2- 2\n3: 3 m\n4- 4\n5: 5 m\n6- 6\n--\n9- 9\n10: 10 m" {
		t.Errorf("got %q", got)
	}
	s.put("wide", "\xff\xfen\x00e\x00e\x00d\x00l\x00e\x00")
	says(t, s.run("search_files", args{"pattern": "needle", "path": "wide"}), "1: needle")
	s.put("latin", "caf\xe9\n")
	says(t, s.run("search_files", args{"pattern": "^café$", "path": "latin"}), "1: café")
	s.fails("search_files", args{"pattern": "(a"}, "RE2 syntax")
	s.fails("search_files", args{"pattern": "a(?=b)"}, "no look-around")
	s.fails("search_files", args{"pattern": "a\nb"}, "one line")
	s.fails("search_files", args{"pattern": "x", "glob": "[a"}, "not a valid glob")
	s.fails("search_files", args{"pattern": "x", "path": "nope"}, "does not exist")
}
