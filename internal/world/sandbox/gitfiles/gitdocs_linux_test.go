package gitfiles

import (
	"bytes"
	"compress/gzip"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/safety/shell"
)

var documentation = flag.String("documentation", "", "folder Documentation of git's sources; empty: the manual pages that are installed")

// TestGitDocumentation walks git's documentation: each file of a git directory, each hook and each setting that it
// describes with words about programs must be on our lists, so someone has checked whether it can name a program.
func TestGitDocumentation(t *testing.T) {
	t.Parallel()
	pages := gitPages(t)
	list, verdicts := Allowed(), gitVerdicts(t, "gitfiles.txt")

	files := regexp.MustCompile("(?:\\$GIT_DIR|\\$GIT_COMMON_DIR|(?:^|[\\s`'\"(])\\.git)/([A-Za-z0-9._/<>*-]+)")
	found := map[string]string{}
	for page, text := range pages {
		for _, m := range files.FindAllStringSubmatch(text, -1) {
			found[m[1]] = page
		}
	}
	layout := entries(pages["gitrepository-layout"])
	for _, e := range layout {
		found[e.name] = "gitrepository-layout"
	}
	if len(layout) < 25 || len(found) < 50 {
		t.Fatalf("only %d files were found, %d of them in gitrepository-layout: the documentation has another form", len(found), len(layout))
	}
	for name, page := range found {
		if name = reviewedName(name); !reviewed(name, verdicts, list) {
			t.Errorf("%s names %s in a git directory: see whether it can name a program, and put it on the list", page, name)
		}
	}

	hooks := regexp.MustCompile(`(?m)^\.SS "?([a-z0-9-]+)"?$|^([a-z][a-z0-9-]+)\n~+$`).FindAllStringSubmatch(pages["githooks"], -1)
	if len(hooks) < 20 {
		t.Fatalf("only %d hooks were found: the documentation has another form", len(hooks))
	}
	for _, m := range hooks {
		if _, kept := Find(list, "hooks/"+m[1]+m[2]); kept {
			t.Errorf("the hook %s is kept", m[1]+m[2])
		}
	}

	keys, settings := gitVerdicts(t, "gitkeys.txt"), 0
	isKey := regexp.MustCompile(`^[a-zA-Z][\w-]*\.[\w.<>*-]*[\w>*]$`)
	for _, page := range pages {
		for _, e := range entries(page) {
			if !isKey.MatchString(e.name) {
				continue
			}
			settings++
			if _, known := keys[e.name]; !known && aboutPrograms(e.text) {
				t.Errorf("the setting %s may name a program: see whether it does, and put it on the list of keys", e.name)
			}
		}
	}
	if settings < 400 {
		t.Fatalf("only %d settings were found: the documentation has another form", settings)
	}
}

// TestGitKeys checks that a setting which names a program makes a repository no inert one, and that the file that it
// names is guarded.
func TestGitKeys(t *testing.T) {
	t.Parallel()
	keys := gitVerdicts(t, "gitkeys.txt")
	for key, verdict := range keys {
		if verdict != "program" && verdict != "closed" && verdict != "data" {
			t.Errorf("%s is %q", key, verdict)
		}
		if verdict == "data" {
			continue
		}
		section, name, _ := strings.Cut(strings.NewReplacer("*", "x", "<", "", ">", "").Replace(key), ".")
		if i := strings.LastIndexByte(name, '.'); i >= 0 {
			section, name = section+` "`+name[:i]+`"`, name[i+1:]
		}
		value := map[string]string{"alias": "!./evil", "submodule": "!./evil"}[strings.Fields(section)[0]]
		if value == "" {
			value = "./evil"
		}
		file := "[" + section + "]\n\t" + name + " = " + value + "\n"
		if shell.GitInert(file) == nil {
			t.Errorf("%s is called harmless", key)
		}
		if verdict == "program" && len(shell.GitNames(file)) != 1 {
			t.Errorf("%s names a program, which is not guarded", key)
		}
	}
	if len(keys) < 150 {
		t.Errorf("only %d keys", len(keys))
	}
}

// aboutPrograms reports whether a text has words about programs.
func aboutPrograms(text string) bool {
	return regexp.MustCompile(`(?i)\b(?:commands?|programs?|scripts?|execut\w+|shell|invoked?|binary|helper|hooks?|ran|run by|editor|pager|browser|viewer)\b`).
		MatchString(text)
}

// reviewedName replaces what stands for a name in documentation.
func reviewedName(name string) string {
	name = strings.NewReplacer("<SHA-1>", "0123", "<hash>", "0123", "<obj-sha1>", "0123", "pack-*", "pack-"+strings.Repeat("0", 40)).Replace(name)
	name = regexp.MustCompile(`<[^<>]*>|\*`).ReplaceAllString(name, "x")
	return strings.Trim(strings.TrimRight(name, ".,<>-"), "/")
}

// reviewed reports whether a file, or the folder that it is in, is on the list.
func reviewed(name string, verdicts map[string]string, list []Kind) bool {
	if _, rest, is := strings.Cut(name, "worktrees/"); is {
		_, name, _ = strings.Cut(rest, "/") // of one worktree
	}
	if strings.HasPrefix(name, "objects/info/") && verdicts[strings.TrimPrefix(name, "objects/")] != "" {
		return true
	}
	for at := name; at != "."; at = filepath.Dir(at) {
		if verdicts[at] != "" || slices.Contains([]string{"hooks", "modules", "branches", "remotes", "refs", "logs"}, at) {
			return true
		}
	}
	if _, kept := Find(list, name); kept || name == "" || name == "x" {
		return true
	}
	folder := regexp.MustCompile(`^(?:worktrees|info|sequencer|lost-found|rebase-(?:apply|merge)|objects(?:/(?:info|pack|[0-9a-f]{2}|\[0-9a-f\]\[0-9a-f\]))?)$`)
	return folder.MatchString(name) || regexp.MustCompile(`^objects/(?:pack/|[0-9a-f]{2}/)`).MatchString(name)
}

// gitVerdicts returns a list of this package's test data.
func gitVerdicts(t *testing.T, file string) map[string]string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(data)) {
		verdict, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name, _, _ := strings.Cut(rest, ": "); verdict != "#" {
			out[name] = verdict
		}
	}
	return out
}

// gitPages returns the pages of git's documentation by their names.
func gitPages(t *testing.T) map[string]string {
	t.Helper()
	patterns := []string{filepath.Join(*documentation, "*.adoc"), filepath.Join(*documentation, "config", "*.adoc")}
	if *documentation == "" {
		out, err := exec.Command("git", "--man-path").Output()
		if err != nil {
			t.Skip("NO GIT HERE: ", err)
		}
		patterns = []string{filepath.Join(strings.TrimSpace(string(out)), "man[157]", "git*")}
	}
	pages := map[string]string{}
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err == nil && strings.HasSuffix(name, ".gz") {
				var r io.Reader
				if r, err = gzip.NewReader(bytes.NewReader(data)); err == nil {
					data, err = io.ReadAll(r)
				}
			}
			if err != nil {
				t.Fatal(name, err)
			}
			page, _, _ := strings.Cut(filepath.Base(name), ".")
			pages[page] += plainText(string(data))
		}
	}
	if pages["gitrepository-layout"] == "" {
		t.Skipf("NOT CHECKED AGAINST GIT'S DOCUMENTATION: no manual pages in %s; install them (git-man), or name git's folder with -documentation", patterns)
	}
	return pages
}

// plainText removes the marks of troff and of AsciiDoc.
func plainText(text string) string {
	text = regexp.MustCompile(`\\f[BIRP]|\\f\(..`).ReplaceAllString(text, "")
	return strings.NewReplacer(`\&`, "", `\-`, "-", `\(aq`, "'", `\e`, `\`, "`", "").Replace(text)
}

// entry is a term that a page explains.
type entry struct{ name, text string }

// entries returns the terms that a page explains in lists.
func entries(page string) (out []entry) {
	starts := regexp.MustCompile(`(?m)^\.PP\n(.+(?:\n.+)*?)\n\.RS 4$|^([A-Za-z][^\n]*)::$`).FindAllStringSubmatchIndex(page, -1)
	for i, m := range starts {
		end := len(page)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		for _, group := range [][2]int{{m[2], m[3]}, {m[4], m[5]}} {
			if group[0] < 0 {
				continue
			}
			for name := range strings.FieldsFuncSeq(page[group[0]:group[1]], func(r rune) bool { return strings.ContainsRune(",\n ", r) }) {
				out = append(out, entry{name, page[m[1]:end]})
			}
		}
	}
	return out
}
