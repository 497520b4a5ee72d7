package skill_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/inspan/inspan/internal/extend/skill"
)

// put writes files below a folder, and makes them old, so that they count as settled.
func put(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
}

func link(t testing.TB, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Skip("no links here: ", err)
	}
}

// library has one folder with the files given.
func library(t testing.TB, files map[string]string) (l *skill.Library, dir string) {
	t.Helper()
	dir = t.TempDir()
	put(t, dir, files)
	return &skill.Library{Folders: []skill.Folder{{Path: dir, Source: "project"}}}, dir
}

func named(skills []skill.Skill) (names []string) {
	for _, s := range skills {
		names = append(names, s.Name)
	}
	return names
}

// holds fails unless got has exactly one text for each of the parts wanted.
func holds(t *testing.T, what string, got, want []string) {
	t.Helper()
	ok := len(got) == len(want)
	for i := range want {
		ok = ok && strings.Contains(got[i], want[i])
	}
	if !ok {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

const simple = "---\nname: %s\ndescription: Does %[1]s.\n---\nText of %[1]s.\n"

func TestList(t *testing.T) {
	l, dir := library(t, map[string]string{
		"whole/SKILL.md": "\ufeff---\r\nname: whole\r\ndescription: Does it all. Use when asked.\r\nlicense: MIT\r\n" +
			"compatibility: Needs git\r\nmetadata:\r\n  author: someone\r\n  version: 1.0\r\nallowed-tools: Bash(git diff:*) Read\r\n---\r\n" +
			"Text\r\n",
		"claude/SKILL.md": "---\ndescription: Deploys.\nwhen_to_use: Only at night.\nargument-hint: [stage] [region]\n" +
			"disable-model-invocation: true\nuser-invocable: false\nallowed-tools: Bash(git add *), Read\n---\nText",
		"bare/SKILL.md": "\n# Tidy up\n\nAll of it.",
		"broken/SKILL.md": "---\nname: broken\ndescription: Use when: asked\nmetadata: none\nallowed-tools: [Read, {a: b}]\ncompatibility:\n" +
			"---\nText",
		"Odd Name/SKILL.md": "---\nname: odd\ndescription: [a]\n---\n",
		"nothing/readme.md": "x", "deep/er/SKILL.md": "---\nname: er\n---\nx", ".hidden/SKILL.md": "---\nname: hidden\n---\nx", "file.md": "x",
		"lower/skill.md": "---\nname: lower\ndescription: Lower.\n---\nText",
	})
	got, warnings := l.List()
	want := []skill.Skill{
		{Name: "Odd Name", Description: "[a]", Problems: []string{
			"description is not a text",
			`its name is "odd", but its folder is "Odd Name"`, "it has no description",
		}},
		{Name: "bare", Description: "Tidy up", Problems: []string{"it has no front matter", "it has no name", "it has no description"}},
		{Name: "broken", Description: "Use when: asked", Tools: []string{"Read", "map[a:b]"}, Problems: []string{
			"the front matter is not YAML: yaml: line 2: mapping values are not allowed in this context",
			"its compatibility has 0 characters, not 1 to 500",
			"its metadata is not a list of keys and texts", "its allowed-tools are not a text or a list of texts",
		}},
		{
			Name: "claude", Description: "Deploys. Only at night.", Hint: "[stage] [region]", Manual: true, Hidden: true,
			Tools: []string{"Bash(git add *)", "Read"},
			Problems: []string{
				"the front matter is not YAML: yaml: line 2: did not find expected key", "it has no name",
			},
		},
		{Name: "lower", Description: "Lower.", Problems: []string{"its file is called skill.md, not SKILL.md"}},
		{
			Name: "whole", Description: "Does it all. Use when asked.", License: "MIT", Compatibility: "Needs git",
			Metadata: map[string]string{"author": "someone", "version": "1.0"}, Tools: []string{"Bash(git diff:*)", "Read"},
		},
	}
	for i := range want {
		want[i].Source, want[i].Dir = "project", filepath.Join(dir, want[i].Name)
	}
	for i, s := range got { // each has a digest, and no two are equal
		if s.Sum == "" || slices.ContainsFunc(got[:i], func(o skill.Skill) bool { return o.Sum == s.Sum }) {
			t.Errorf("%s has the digest %q", s.Name, s.Sum)
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(skill.Skill{}, "Sum")); diff != "" || warnings != nil {
		t.Errorf("%q\n%s", warnings, diff)
	}
}

func TestZeroLibraryIsEmpty(t *testing.T) {
	var l skill.Library
	if skills, warnings := l.List(); skills != nil || warnings != nil {
		t.Error(skills, warnings)
	}
	if _, _, err := l.Invoke("x", ""); err == nil || !strings.Contains(err.Error(), "there are none") {
		t.Error(err)
	}
	l.Folders = []skill.Folder{{}, {Path: filepath.Join(t.TempDir(), "none")}}
	if skills, warnings := l.List(); skills != nil || warnings != nil {
		t.Error(skills, warnings)
	}
}

func TestFirstFolderWins(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	put(t, a, map[string]string{
		"review/SKILL.md": "---\nname: review\ndescription: first\n---\nx",
		"plan/SKILL.md":   fmt.Sprintf(simple, "plan"),
	})
	put(t, b, map[string]string{
		"Review/SKILL.md": "---\nname: Review\ndescription: second\n---\nx",
		"other/SKILL.md":  fmt.Sprintf(simple, "other"),
	})
	link(t, filepath.Join(b, "other"), filepath.Join(a, "other"))
	l := &skill.Library{Builtin: true, Folders: []skill.Folder{
		{Path: a, Source: "project"},
		{Path: b, Source: "user"},
		{Path: a + "/.", Source: "again"},
	}}
	skills, warnings := l.List()
	holds(t, "warnings", warnings, []string{filepath.Join(b, "Review") + " is hidden by that in " + filepath.Join(a, "review")})
	at := map[string]string{}
	for _, s := range skills {
		at[s.Name] = s.Source + " " + s.Dir
	}
	if at["review"] != "project "+filepath.Join(a, "review") || at["other"] != "user "+filepath.Join(b, "other") || at["plan"] != "project "+
		filepath.Join(a, "plan") || at["debug"] != "built in " || len(at) != 9 {
		t.Errorf("%q", at)
	}
}

// TestHotReload checks that every change is seen, however small, and that unchanged files are not read again.
func TestHotReload(t *testing.T) {
	l, dir := library(t, map[string]string{"a/SKILL.md": fmt.Sprintf(simple, "a")})
	told := func(want string) {
		t.Helper()
		skills, warnings := l.List()
		got := ""
		for _, s := range skills {
			got += s.Name + ": " + s.Description + "\n"
		}
		if got != want || warnings != nil {
			t.Errorf("%q, %q, want %q", got, warnings, want)
		}
	}
	told("a: Does a.\n")
	path := filepath.Join(dir, "a", "SKILL.md")
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	rewrite := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, before.ModTime(), before.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	rewrite("---\nname: a\ndescription: Did a.\n---\nText of a.\n..")
	told("a: Did a.\n") // another size
	rewrite("---\nname: a\ndescription: Was a.\n---\nText of a.\n..")
	told("a: Did a.\n") // size and time are those of before, so it was not read again
	later := before.ModTime().Add(time.Minute)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	told("a: Was a.\n") // another time
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	rewrite("---\nname: a\ndescription: Saw a.\n---\nText of a.\n..")
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	told("a: Saw a.\n") // another file of the same size and time
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	told("")
	rewrite("---\nname: a\ndescription: Has a.\n---\nText of a.\n..")
	told("a: Has a.\n") // it is back
	now := time.Now()
	for _, d := range []string{"One", "Two", "Six"} {
		if err := os.WriteFile(path, []byte("---\nname: a\ndescription: "+d+" a.\n---\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now, now); err != nil {
			t.Fatal(err)
		}
		told("a: " + d + " a.\n") // changed just now, with the same size and time
	}
	put(t, dir, map[string]string{"b/SKILL.md": fmt.Sprintf(simple, "b")})
	told("a: Six a.\nb: Does b.\n")
	if err := os.RemoveAll(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	told("b: Does b.\n")
}

func TestInvoke(t *testing.T) {
	l, dir := library(t, map[string]string{
		"review/SKILL.md": "---\nname: review\ndescription: x\n---\n\n" +
			"Review $1 with ${SKILL_DIR}/scripts/a.sh and ${CLAUDE_SKILL_DIR}: $ARGUMENTS\n",
		"review/scripts/a.sh":      "echo\n",
		"review/references/b c.md": "two\n", "review/.git/config": "x", "review/LICENSE": "x",
		"plain/SKILL.md": "just text\u202e, \x1b[31mred\n",
	})
	text, s, err := l.Invoke("review", `"a b" $1 ${SKILL_DIR}`)
	at := filepath.Join(dir, "review")
	want := "Skill review (project), in the folder " + at + "; paths in its text start there.\n" +
		"Its files, which the tool skill shows by the argument file:\n- LICENSE (1 byte)\n- references/b c.md (4 bytes)\n" +
		"- scripts/a.sh (5 bytes)\n\n" +
		"Review a b with " + at + "/scripts/a.sh and " + at + `: "a b" $1 ${SKILL_DIR}`
	if diff := cmp.Diff(want, text); diff != "" || err != nil || s.Name != "review" || s.Dir != at {
		t.Errorf("%v %+v\n%s", err, s, diff)
	}
	for _, name := range []string{"plain", "/plain", " Plain "} {
		text, _, err = l.Invoke(name, "now")
		if want := "Skill plain (project), in the folder " + filepath.Join(dir, "plain") +
			"; paths in its text start there.\n\njust text, [31mred\n\nnow"; text != want || err != nil {
			t.Errorf("%q: %q, %v", name, text, err)
		}
	}
	for name, want := range map[string]string{
		"revew": "did you mean review?", "view": "did you mean review?", "xyzzy": "there are plain, review", "..": "there is no skill",
		"": "there is no skill", "review/scripts": "there is no skill", ".": "there is no skill",
	} {
		if _, _, err := l.Invoke(name, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

// TestInvokeReadsAnew checks that the text is that of now, and that a skill that has gone is gone.
func TestInvokeReadsAnew(t *testing.T) {
	l, dir := library(t, map[string]string{"a/SKILL.md": fmt.Sprintf(simple, "a")})
	if _, _, err := l.Invoke("a", ""); err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{"a/SKILL.md": "---\nname: a\n---\nnew text"})
	if text, _, err := l.Invoke("a", ""); err != nil || !strings.HasSuffix(text, "\n\nnew text") {
		t.Error(text, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.Invoke("a", ""); err == nil {
		t.Error("it is still there")
	}
}

func TestFile(t *testing.T) {
	outside := t.TempDir()
	put(t, outside, map[string]string{"secret": "secret", "dir/secret": "secret"})
	l, dir := library(t, map[string]string{
		"a/SKILL.md": fmt.Sprintf(simple, "a"), "a/references/x.md": "x of a", "a/bin": "\x00\x01", "b/SKILL.md": fmt.Sprintf(simple, "b"),
		"b/y.md": "y of b",
		"a/big":  strings.Repeat("x", skill.MaxSize+1), "a/full": strings.Repeat("x", skill.MaxSize),
	})
	a := filepath.Join(dir, "a")
	link(t, filepath.Join(outside, "secret"), filepath.Join(a, "out"))
	link(t, filepath.Join(outside, "dir"), filepath.Join(a, "outdir"))
	link(t, "../b/y.md", filepath.Join(a, "sideways"))
	link(t, "references/x.md", filepath.Join(a, "in"))
	link(t, "SKILL.md", filepath.Join(a, "itself"))
	for _, tc := range []struct{ path, want, err string }{
		{"references/x.md", "x of a", ""},
		{"./references/../references/x.md", "x of a", ""},
		{filepath.Join(a, "references", "x.md"), "x of a", ""},
		{"bin", "\x00\x01", ""},
		{"in", "x of a", ""},
		{"full", strings.Repeat("x", skill.MaxSize), ""},
		{"out", "", "can't be read"},
		{"outdir/secret", "", "can't be read"},
		{"sideways", "", "can't be read"},
		{"big", "", "262,145 bytes, more than 262,144"},
		{"references", "", "is a folder"},
		{".", "", "is a folder"},
		{"x.md", "", "did you mean references/x.md?"},
		{"reference/y.md", "", "did you mean references/x.md"},
		{"zzzzzzzzzzzzzz", "", "it has big, bin, full, references/x.md"},
		{"../b/y.md", "", "is not in the folder"},
		{"references/../../b/y.md", "", "is not in the folder"},
		{"/etc/hostname", "", "is not in the folder"},
		{filepath.Join(outside, "secret"), "", "is not in the folder"},
		{"", "", "no file is given"},
		{" ", "", "no file is given"},
		{"SKILL.md", "", "when it is invoked"},
		{"references/../SKILL.md", "", "when it is invoked"},
		{"itself", "", "when it is invoked"},
		{"x\x00y", "", "can't be read"},
	} {
		got, err := l.File("a", tc.path)
		if string(got) != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%q: %.40q, %v, want %q", tc.path, got, err, tc.err)
		}
	}
	if _, err := l.File("c", "x"); err == nil || !strings.Contains(err.Error(), `no skill "c"`) {
		t.Error(err)
	}
}

// TestLinksWithin checks that links are followed as far as the repository reaches, to folders, to single skills and to
// their files, and no further.
func TestLinksWithin(t *testing.T) {
	t.Parallel()
	outside, root := t.TempDir(), t.TempDir()
	put(t, outside, map[string]string{"x/SKILL.md": fmt.Sprintf(simple, "x"), "x.md": fmt.Sprintf(simple, "y")})
	put(t, root, map[string]string{
		"shared/ship/SKILL.md": fmt.Sprintf(simple, "ship"), "shared/ship/more.md": "more of ship", "docs/brew.md": fmt.Sprintf(simple, "brew"),
		".keys": "KEY=1", "pkg/.agents/skills/own/SKILL.md": fmt.Sprintf(simple, "own"), "pkg/.agents/skills/brew/x": "x",
		"pkg/.agents/skills/far/x": "x", "pkg/.agents/skills/keys/x": "x",
	})
	skills := filepath.Join(root, "pkg", ".agents", "skills")
	link(t, "../../../shared/ship", filepath.Join(skills, "ship"))
	link(t, "../../../../docs/brew.md", filepath.Join(skills, "brew", "SKILL.md"))
	link(t, "../../../../shared/ship/more.md", filepath.Join(skills, "own", "more.md"))
	link(t, "../../../../.keys", filepath.Join(skills, "keys", "SKILL.md"))
	link(t, filepath.Join(outside, "x"), filepath.Join(skills, "x"))
	link(t, filepath.Join(outside, "x.md"), filepath.Join(skills, "far", "SKILL.md"))
	put(t, root, map[string]string{"pkg/.claude/x": ""})
	link(t, "../.agents/skills", filepath.Join(root, "pkg", ".claude", "skills"))
	for _, folder := range []string{".agents", ".claude"} {
		l := &skill.Library{Folders: []skill.Folder{{Path: filepath.Join(root, "pkg", folder, "skills"), Source: skill.FromProject, Within: root}}}
		list, warnings := l.List()
		if got := named(list); !slices.Equal(got, []string{"brew", "own", "ship"}) {
			t.Errorf("%s: %q", folder, got)
		}
		holds(t, "warnings", warnings, []string{
			"far is ignored: its SKILL.md is a link that leads out of its repository", "a link to a file that is not markdown",
			"x is ignored: it is a link that leads out of its repository",
		})
		for name, file := range map[string]string{"ship": "more.md", "own": "more.md"} {
			if data, err := l.File(name, file); err != nil || string(data) != "more of ship" {
				t.Errorf("%s of %s: %q, %v", file, name, data, err)
			}
		}
		if text, _, err := l.Invoke("brew", ""); err != nil || !strings.Contains(text, "Text of brew.") {
			t.Errorf("%q, %v", text, err)
		}
	}
	put(t, root, map[string]string{"other/x": ""})
	link(t, outside, filepath.Join(root, "other", "skills"))
	l := &skill.Library{Folders: []skill.Folder{{Path: filepath.Join(root, "other", "skills"), Source: skill.FromProject, Within: root}}}
	if list, warnings := l.List(); len(list) > 0 || len(warnings) != 1 {
		t.Errorf("a folder outside: %v, %q", list, warnings)
	}
}

// TestLinks checks that links are followed inside of a folder, and never out of it.
func TestLinks(t *testing.T) {
	outside := t.TempDir()
	put(t, outside, map[string]string{"x/SKILL.md": fmt.Sprintf(simple, "x"), "x/secret": "secret", "SKILL.md": "---\nname: x\n---\nsecret"})
	l, dir := library(t, map[string]string{"real/SKILL.md": fmt.Sprintf(simple, "real"), "file/x": "x", "empty/x": "x"})
	link(t, filepath.Join(outside, "x"), filepath.Join(dir, "x"))
	link(t, "nowhere", filepath.Join(dir, "gone"))
	link(t, "real", filepath.Join(dir, "alias"))
	link(t, "empty", filepath.Join(dir, "none"))
	link(t, filepath.Join(outside, "SKILL.md"), filepath.Join(dir, "file", "SKILL.md"))
	link(t, "loop", filepath.Join(dir, "loop"))
	skills, warnings := l.List()
	if got := named(skills); !slices.Equal(got, []string{"alias", "real"}) {
		t.Errorf("%q", got)
	}
	out := " is ignored: it is a link that leads out of its folder, or nowhere"
	holds(t, "warnings", warnings, []string{"its SKILL.md is a link that leads out", "gone" + out, "loop" + out, "x" + out})
	if _, err := l.File("x", "secret"); err == nil {
		t.Error("a skill behind a link out of the folder was read")
	}
	text, _, err := l.Invoke("alias", "")
	if err != nil || !strings.Contains(text, "Text of real.") {
		t.Errorf("a link inside: %q, %v", text, err)
	}
}

func TestBadFiles(t *testing.T) {
	l, dir := library(t, map[string]string{
		"good/SKILL.md": fmt.Sprintf(simple, "good"),
		"big/SKILL.md":  "---\nname: big\n---\n" + strings.Repeat("x", skill.MaxSize),
		"open/SKILL.md": "---\nname: open\ntext",
		"longest/SKILL.md": "---\nname: longest\ndescription: >\n  " + strings.Repeat("word ", 2000) +
			"\nmetadata:\n  at: end\n---\ntext",
		"bytes/SKILL.md": "---\nname: bytes\ndescription: a\xff\xfe\u202eb\u200b \x1b[31mred\x1b[0m\U000e0041\u0007 c\n" +
			"license: \"\\e]0;x\\a\\u2028y\"\n---\n\xff",
		"bomb/SKILL.md":                        "---\na: &a [x,x]\nb: &b [*a,*a]\ndescription: *b\n---\ntext",
		"empty/SKILL.md":                       "",
		"zzz":                                  "no folder",
		"new\nline/SKILL.md":                   fmt.Sprintf(simple, "x"),
		"\u202eevil/SKILL.md":                  fmt.Sprintf(simple, "x"),
		strings.Repeat("n", 101) + "/SKILL.md": fmt.Sprintf(simple, "x"),
	})
	if err := os.MkdirAll(filepath.Join(dir, "folder", "SKILL.md"), 0o755); err != nil {
		t.Fatal(err)
	}
	skills, warnings := l.List()
	if got := named(skills); !slices.Equal(got, []string{"bomb", "bytes", "empty", "good", "longest"}) {
		t.Fatalf("%q", got)
	}
	holds(t, "warnings", warnings, []string{
		"SKILL.md has 262,162 bytes, more than 262,144", "SKILL.md is a folder", "new line is not a usable skill",
		"n is not a usable skill: its name is too long", "open is not a usable skill: its front matter has no end",
		`\u202eevil is not a usable skill`,
	})
	if d := skills[0].Description; d != "*b" {
		t.Errorf("with anchors: %q", d)
	}
	if s := skills[1]; s.Description != "a\ufffdb red c" && s.Description != "a\ufffd\ufffdb red c" ||
		strings.ContainsAny(s.License, "\x1b\x07\u2028") {
		t.Errorf("bytes: %+v", s)
	}
	if d := skills[4].Description; len([]rune(d)) != 1024 || !strings.HasSuffix(d, "…") || skills[4].Metadata["at"] != "end" {
		t.Errorf("long description: %d %.40q %v", len(d), d, skills[4].Metadata)
	}
	for _, w := range warnings {
		if strings.Contains(w, "\n") {
			t.Errorf("warning of several lines: %q", w)
		}
	}
}

func TestManySkills(t *testing.T) {
	dir := t.TempDir()
	for i := range skill.MaxSkills + 5 {
		at := filepath.Join(dir, fmt.Sprintf("s%04d", i))
		if err := os.Mkdir(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, "SKILL.md"), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l := &skill.Library{Folders: []skill.Folder{{Path: dir, Source: "user"}}}
	skills, warnings := l.List()
	if len(skills) != skill.MaxSkills || skills[0].Name != "s0000" {
		t.Errorf("%d skills", len(skills))
	}
	holds(t, "warnings", warnings, []string{"has more than 1000 skills"})
}

func TestManyFolders(t *testing.T) {
	dir := t.TempDir()
	for i := range 10_100 {
		if err := os.Mkdir(filepath.Join(dir, fmt.Sprintf("s%05d", i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l := &skill.Library{Folders: []skill.Folder{{Path: dir, Source: "user"}}}
	start := time.Now()
	skills, warnings := l.List()
	holds(t, "warnings", warnings, []string{"has more than 10000 entries"})
	if took := time.Since(start); len(skills) > 0 || took > 30*time.Second {
		t.Errorf("%d after %v", len(skills), took)
	}
}

// TestManyFiles checks that the list of a skill's files stays short.
func TestManyFiles(t *testing.T) {
	files := map[string]string{"a/SKILL.md": fmt.Sprintf(simple, "a"), "a/1/2/3/4/5.md": "deep", "a/1/2/3/4.md": "not so deep"}
	for i := range 300 {
		files[fmt.Sprintf("a/references/f%03d.md", i)] = "x"
	}
	l, _ := library(t, files)
	text, _, err := l.Invoke("a", "")
	if err != nil || strings.Count(text, "\n- ") != 101 || !strings.Contains(text, "- and more\n") ||
		!strings.Contains(text, "3/4.md") || strings.Contains(text, "/5.md") {
		t.Errorf("%v %s", err, text)
	}
}

func TestConcurrentUse(t *testing.T) {
	l, dir := library(t, map[string]string{"a/SKILL.md": fmt.Sprintf(simple, "a"), "a/x.md": "x"})
	l.Builtin = true
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 20 {
				l.List()
				if _, _, err := l.Invoke("plan", ""); err != nil {
					t.Error(err)
				}
				_, _ = l.File("a", "x.md")
				_, _ = l.Cost("a")
				if i == 0 {
					_ = os.WriteFile(filepath.Join(dir, "a", "SKILL.md"), []byte("---\nname: a\n---\nx"), 0o644)
				}
			}
		})
	}
	wg.Wait()
}

func TestBuiltin(t *testing.T) {
	l := &skill.Library{Builtin: true}
	skills, warnings := l.List()
	want := []string{"commit", "debug", "init", "plan", "review", "simplify", "skill-creator", "test"}
	if got := named(skills); !slices.Equal(got, want) || warnings != nil {
		t.Fatalf("%q, %q", got, warnings)
	}
	if got := skill.Index(skills, 0); got != "" {
		t.Errorf("the model is told of %q", got)
	}
	for _, s := range skills {
		if problems := skill.Validate(filepath.Join("builtin", s.Name)); problems != nil || s.Problems != nil {
			t.Errorf("%s: %q, %q", s.Name, problems, s.Problems)
		}
		if s.Dir != "" || s.Source != "built in" || s.Manual || s.Hidden || !strings.Contains(s.Description, "Use ") {
			t.Errorf("%+v", s)
		}
		text, _, err := l.Invoke(s.Name, "the argument")
		if lines := strings.Count(text, "\n"); err != nil || lines < 30 || lines > 85 ||
			!strings.HasPrefix(text, "Skill "+s.Name+" (built in).\n\n# ") || !strings.HasSuffix(text, "\n\nthe argument") {
			t.Errorf("%s: %v, %d lines", s.Name, err, lines)
		}
		if _, err := l.File(s.Name, "SKILL.md"); err == nil || !strings.Contains(err.Error(), "when it is invoked") {
			t.Error(err)
		}
		if _, err := l.File(s.Name, "x.md"); err == nil || !strings.Contains(err.Error(), "has no file x.md") {
			t.Error(err)
		}
	}
	if n := len(skill.Index(skills, 0)); n > 2200 {
		t.Errorf("they take %d bytes of each prompt", n)
	}
}

// FuzzSkill checks that no SKILL.md breaks the list of skills for the prompt.
func FuzzSkill(f *testing.F) {
	f.Add([]byte("---\nname: a\ndescription: x\u202e\nmetadata: {a: b}\n---\n$1"))
	f.Add([]byte("# x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, dir := library(t, map[string]string{"a/SKILL.md": string(data)})
		skills, warnings := l.List()
		if len(skills)+len(warnings) != 1 {
			t.Fatalf("%d skills, %q", len(skills), warnings)
		}
		skill.Validate(filepath.Join(dir, "a"))
		if len(skills) == 0 {
			return
		}
		index := skill.Index(skills, 0)
		if n := strings.Count(index, "\n"); n > 1 || n == 0 && !skills[0].Manual ||
			strings.ContainsFunc(strings.TrimSuffix(index, "\n"), func(r rune) bool { return r < ' ' || r == 0x202e || r == 0x2028 }) {
			t.Errorf("%q", index)
		}
		if _, _, err := l.Invoke("a", "x"); err != nil {
			t.Error(err)
		}
	})
}

// TestForeignKeys checks that the keys of Claude Code which inspan uses are valid, and that a key without an effect is
// named.
func TestForeignKeys(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deploy")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	matter := "name: deploy\ndescription: Deploys.\nargument-hint: \"[stage]\"\nuser-invocable: true\ndisable-model-invocation: true\n"
	for more, want := range map[string]string{
		"":                "",
		"colour: green\n": "inspan does not know the key colour",
	} {
		if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("---\n"+matter+more+"---\nDo it.\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(skill.Validate(dir), "; "); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q: %q, want %q", more, got, want)
		}
	}
}

// TestAhead checks that a look that began before it was asked for counts once.
func TestAhead(t *testing.T) {
	l, dir := library(t, map[string]string{"a/SKILL.md": fmt.Sprintf(simple, "a")})
	l.Prefetch()()
	put(t, dir, map[string]string{"b/SKILL.md": fmt.Sprintf(simple, "b")})
	for _, want := range [][]string{{"a"}, {"a", "b"}} {
		if skills, warnings := l.List(); !slices.Equal(named(skills), want) || warnings != nil {
			t.Errorf("%q, %q, want %q", named(skills), warnings, want)
		}
	}
}
