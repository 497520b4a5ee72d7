package gitfiles

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestGitFiles compares the list of files that a box may leave in a git directory with the list of possible files, and
// that one with the installed git: each file that git knows is on the list, so someone has checked whether it can name
// a program.
func TestGitFiles(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/gitfiles.txt")
	if err != nil {
		t.Fatal(err)
	}
	list, known := Allowed(), map[string]bool{}
	for line := range strings.Lines(string(data)) {
		verdict, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if verdict == "#" {
			continue
		}
		name, why, told := strings.Cut(rest, ": ")
		known[name] = true
		below := name
		if slices.Contains([]string{"info/packs", "info/commit-graph", "info/commit-graphs", "info/alternates", "info/http-alternates"}, name) {
			if below = "objects/" + name; strings.HasSuffix(name, "graphs") {
				below += "/x"
			}
		}
		kind, kept := Find(list, below)
		switch {
		case kept != (verdict != "closed"):
			t.Errorf("%s is %s, and kept: %t", name, verdict, kept)
		case verdict == "checked" && (kind.Check == nil || kind.Check([]byte("exec = ./evil $(evil)\n"), nil) == nil):
			t.Errorf("%s is not checked", name)
		case verdict != "kept" && (!told || why == ""):
			t.Errorf("%s names what? Say it, and where that stands", name)
		}
	}
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Skip("NO GIT HERE")
	}
	program, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "git"))
	if err != nil {
		t.Skip("NO GIT HERE: ", err)
	}
	names := regexp.MustCompile(`\x00(?:(?:rebase-(?:merge|apply)|sequencer|info)/[A-Za-z0-9._-]+|BISECT_[A-Z_]+|MERGE_[A-Z_]+|NOTES_MERGE_[A-Z_]+|`+
		`[A-Z_]+_(?:EDITMSG|MSG|HEAD))\x00`).FindAllString(strings.ReplaceAll(string(program), "\x00", "\x00\x00"), -1)
	if len(names) < 50 {
		t.Fatalf("only %d files of git were found: it is built in another way", len(names))
	}
	for _, name := range names {
		if name = strings.Trim(name, "\x00"); !known[name] {
			t.Errorf("git knows the file %s: see what it can name, and put it on the list", name)
		}
	}
}
