package consent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
)

// Bounds of Find. Items beyond them can't be trusted.
const (
	maxContent = 1 << 20   // bytes of one file
	maxEntries = 1000      // files and folders of all items together
	maxDepth   = 20        // nested folders below an item
	maxParsed  = 128 << 10 // bytes of a file that is parsed to show the programs it runs
	maxNamed   = 4000      // words of command lines that could name files of the workspace
)

// Find lists the content in the workspace root that could start a program or change inspan's behaviour, trusted
// or not, ordered by path:
//
//   - in .inspan: a config.toml that does more than tighten rules, all of hooks as one item, each entry of tools, agents, workflows and plugins, each skill that has more than markdown, and everything else that is not markdown
//   - .mcp.json, .claude/settings.json, .claude/settings.local.json, and each entry of .claude/skills that has more than markdown
//   - in .inspan/memory: MEMORY.md and each topic that has any text, an item each, since their text goes into prompts; files being written there are left out
//   - files of the workspace that command lines in these name, such as the script of a hook. Files that it runs or loads are not followed
//
// Markdown that is executable, or starts like a script, does not count as such.
//
// Find runs nothing, connects to nothing and follows no link out of the root. Content that can't be read, leads
// out or exceeds the bounds (a file of 1 MiB, 1,000 entries in all) is an item without a digest. An error means
// that the root itself can't be read.
func Find(root string) ([]Item, error) {
	if root == "" {
		return nil, errors.New("list programs that could run: no root is named")
	}
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("list programs that could run: %w", err)
	}
	defer func() { _ = r.Close() }()
	f := &finder{root: r, names: rootNames(root), left: maxEntries}
	f.inspan()
	f.file(".mcp.json", Server)
	if f.folder(".claude") {
		f.file(".claude/settings.json", Settings)
		f.file(".claude/settings.local.json", Settings)
		f.each(".claude/skills", Skill)
	}
	f.named()
	slices.SortStableFunc(f.items, byPath)
	return f.items, nil
}

// rootNames returns the absolute paths that lead to a root.
func rootNames(root string) (names []string) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil && real != abs {
		names = append(names, real)
	}
	return append(names, abs)
}

// finder collects items.
type finder struct {
	root  *os.Root
	names []string // absolute paths of the root
	left  int      // remaining number of entries
	items []Item
	words []word
}

// word is part of a command line that could name a file of the workspace.
type word struct{ text, dir, kind, by string }

// inspan examines inspan's own folder. Everything not known to be harmless is an item.
func (f *finder) inspan() {
	const top = ".inspan"
	if !f.folder(top) {
		return
	}
	entries, err := f.list(top)
	if err != nil {
		f.doubtful(top+"/", Settings, err)
		return
	}
	for _, e := range entries {
		at := path.Join(top, e.Name())
		switch name := strings.ToLower(e.Name()); {
		case text.Holds(e.Name(), text.Unclear):
			f.entry(at, Settings)
		case name == "hooks" && e.IsDir():
			f.entry(at, Hook)
		case name == "tools" && e.IsDir():
			f.each(at, Tool)
		case name == "agents" && e.IsDir():
			f.each(at, Agent)
		case name == "workflows" && e.IsDir():
			f.each(at, Workflow)
		case name == "plugins" && e.IsDir():
			f.each(at, Plugin)
		case name == "skills" && e.IsDir():
			f.each(at, Skill)
		case name == "memory" && e.IsDir():
			f.memory(at)
		case name == "mcp.json":
			f.entry(at, Server)
		default:
			f.entry(at, Settings)
		}
	}
}

// memory examines the team's memory. Each file is an item, so that a change of one topic does not affect the
// others.
func (f *finder) memory(dir string) {
	entries, err := f.list(dir)
	if err != nil {
		f.doubtful(dir+"/", Settings, err)
	}
	for _, e := range entries {
		name, file := e.Name(), e.Type().IsRegular()
		at := path.Join(dir, name)
		switch {
		case file && (name == ".lock" || strings.Contains(name, ".md.new-")):
			// locked by a writer, and not read
		case name == "topics" && e.IsDir():
			f.memory(at)
		case file && (name == "MEMORY.md" || path.Base(dir) == "topics" && path.Ext(name) == ".md"):
			f.entry(at, Memory)
		default:
			f.entry(at, Settings)
		}
	}
}

// folder reports whether the named folder exists. A link in its place is an item that can't be trusted.
func (f *finder) folder(name string) bool {
	info, err := f.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false
	case err != nil:
		f.doubtful(name, Settings, err)
		return false
	case info.Mode()&fs.ModeSymlink != 0:
		f.doubtful(name, Settings, errors.New("it is a link to a folder; only a folder of its own is looked into"))
		return false
	}
	return info.IsDir()
}

// file adds the item of a file, if it exists.
func (f *finder) file(name, kind string) {
	if _, err := f.root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return
	}
	f.left--
	f.entry(name, kind)
}

// each adds an item for each entry of a folder, if it exists.
func (f *finder) each(dir, kind string) {
	if !f.folder(dir) {
		return
	}
	entries, err := f.list(dir)
	if err != nil {
		f.doubtful(dir+"/", kind, err)
	}
	for _, e := range entries {
		f.entry(path.Join(dir, e.Name()), kind)
	}
}

// list returns the sorted entries of a folder, none if there are too many.
func (f *finder) list(dir string) ([]fs.DirEntry, error) {
	file, err := keep.OpenFile(f.root, dir)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	most := max(f.left, 0)
	entries, err := file.ReadDir(most + 1)
	if len(entries) > most {
		f.left = 0
		return nil, errTooMany
	}
	if err != nil && len(entries) == 0 && !errors.Is(err, io.EOF) {
		return nil, keep.Bare(err)
	}
	f.left -= len(entries)
	slices.SortStableFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// doubtful adds an item that can't be trusted.
func (f *finder) doubtful(at, kind string, why error) {
	f.items = append(f.items, Item{
		Path: text.Quoted(at), Kind: kind,
		Runs: []string{"can't be trusted: " + text.Quoted(keep.Bare(why).Error())},
	})
}

// entry adds the item of a file, or of a folder with all its content, unless it is known to be harmless.
func (f *finder) entry(at, kind string) {
	t := tree{finder: f, kind: kind, sum: keep.Digest{Top: at}}
	t.add(at, 0)
	if !t.risky && len(t.flaws) == 0 {
		return // it needs no item
	}
	it := Item{Path: text.Quoted(at), Digest: t.digest(), Runs: t.runs, Kind: kind}
	if t.folder {
		it.Path += "/"
	}
	f.items = append(f.items, it.with(t.flaws))
	for i := range t.words {
		t.words[i].by, t.words[i].kind = it.Path, kind
	}
	f.words = append(f.words, t.words...)
}

// named adds the files of the workspace that command lines name, unless they are part of an item already.
func (f *finder) named() {
	for _, w := range f.words {
		for _, at := range w.places(f.names) {
			if info, err := f.root.Stat(at); f.covered(at) || err == nil && info.IsDir() {
				continue
			}
			if _, err := f.root.Lstat(at); err != nil {
				continue
			}
			f.left--
			t := tree{finder: f, kind: w.kind, sum: keep.Digest{Top: at}}
			t.add(at, 0)
			it := Item{Path: text.Quoted(at), Digest: t.digest(), Kind: w.kind, Runs: []string{"is named in " + w.by}}
			f.items = append(f.items, it.with(t.flaws))
		}
	}
}

// with adds the reasons why an item can't be trusted.
func (it Item) with(flaws []string) Item {
	for _, flaw := range flaws {
		it.Runs = append(it.Runs, "can't be trusted: "+flaw)
	}
	return it
}

// covered reports whether a path is in an item. An item that is only prompt text doesn't cover files named in
// command lines.
func (f *finder) covered(at string) bool {
	shown := text.Quoted(at)
	return slices.ContainsFunc(f.items, func(it Item) bool {
		return it.Kind != Memory && (shown == it.Path || strings.HasSuffix(it.Path, "/") && strings.HasPrefix(at, it.Path))
	})
}
