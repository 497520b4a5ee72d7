package worktree

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/shell"
)

// Named lists the files in a workspace that git runs or reads as settings according to the settings of the
// person or the repository. A tool that changes them could make the person's git run anything.
func Named(root string) []string {
	if root == "" {
		return nil
	}
	n := naming{root: root, top: root}
	if r, _ := open(root); r.top != "" { // whatever its settings are
		n.top = r.top
		for _, path := range []string{filepath.Join(r.common, "config"), filepath.Join(r.common, "config.worktree"), filepath.Join(r.dir, "config.worktree")} {
			n.read(path)
		}
	}
	settings := keep.AtHome(".config")
	if dir := keep.Moved()[".config"]; dir != "" {
		settings = dir
	}
	for _, path := range []string{filepath.Join(settings, "git", "config"), keep.AtHome(".gitconfig"), "/etc/gitconfig"} {
		n.read(path)
	}
	slices.Sort(n.found)
	return slices.Compact(n.found)
}

// naming collects these files.
type naming struct {
	root, top string
	files     []string // settings files that were read
	found     []string
}

const mostSettings = 64 // files

func (n *naming) read(path string) {
	if path == "" || slices.Contains(n.files, path) || len(n.files) == mostSettings {
		return
	}
	n.files = append(n.files, path)
	f, _, err := keep.OpenPlain(path, os.O_RDONLY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	data, _ := io.ReadAll(io.LimitReader(f, 1<<20))
	for _, s := range shell.GitNames(string(data)) {
		switch {
		case s.Key == "core.hookspath":
			n.add(n.top, s.Value, true)
		case s.IsPath():
			n.read(n.add(filepath.Dir(path), s.Value, true))
		default:
			for word := range strings.FieldsSeq(strings.TrimPrefix(s.Value, "!")) {
				n.add(n.top, strings.Trim(word, `"'\`), false)
			}
		}
	}
}

// add adds the file that a word names in the workspace. A word without a slash counts only if the file exists,
// or if the setting is a path.
func (n *naming) add(from, word string, file bool) string {
	at := word
	switch {
	case strings.HasPrefix(word, "~/"):
		at = keep.AtHome(word[2:])
	case !filepath.IsAbs(word):
		at = filepath.Join(from, word)
	}
	if !file && !strings.Contains(word, "/") {
		if _, err := os.Lstat(at); err != nil {
			return ""
		}
	}
	if real := keep.Real(at); real != n.root && text.Inside(n.root, real) && !strings.Contains(real+"/", "/.git/") {
		n.found = append(n.found, real)
	}
	return at
}
