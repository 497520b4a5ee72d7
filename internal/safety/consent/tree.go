package consent

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
)

var (
	errTooMany = fmt.Errorf("there are more than %d files and folders to look at", maxEntries)
	errTooBig  = fmt.Errorf("it is longer than %d bytes", maxContent)
	errPlain   = errors.New("it is neither a file, nor a folder, nor a link to a file of the workspace")
)

// tree reads the content of one item.
type tree struct {
	*finder
	kind   string
	folder bool // the item is a folder
	risky  bool // it contains more than is known to be harmless
	sum    keep.Digest
	runs   []string
	flaws  []string // reasons why it can't be trusted
	words  []word
}

// digest returns the digest of the whole item, empty if it is not completely known.
func (t *tree) digest() string {
	if len(t.flaws) > 0 {
		return ""
	}
	if !t.folder {
		return t.sum.Single()
	}
	return t.sum.Folder()
}

func (t *tree) flaw(at string, err error) {
	t.flaws = append(t.flaws, text.Quoted(at)+": "+text.Quoted(keep.Bare(err).Error()))
}

// add reads the content of a path: a file, a link or a folder.
func (t *tree) add(at string, depth int) {
	info, err := t.root.Lstat(at)
	switch {
	case err != nil:
		t.flaw(at, err)
	case depth == 0 && text.Holds(at, text.Unclear):
		t.flaw(at, errors.New("its path can't be shown as it is"))
	case info.IsDir():
		t.addFolder(at, depth)
	case info.Mode().IsRegular():
		t.addFile(at, info, t.sum.File(at))
	case info.Mode()&fs.ModeSymlink != 0:
		t.addLink(at, info)
	default:
		t.flaw(at, errPlain)
	}
}

func (t *tree) addFolder(at string, depth int) {
	t.folder = t.folder || depth == 0
	if depth == maxDepth {
		t.flaw(at, fmt.Errorf("more than %d folders in one another", maxDepth))
		return
	}
	entries, err := t.list(at)
	if err != nil {
		t.flaw(at, err)
		return
	}
	for _, e := range entries {
		t.add(path.Join(at, e.Name()), depth+1)
	}
}

// addLink reads a link to a file of the workspace. The root rejects links that lead out.
func (t *tree) addLink(at string, info fs.FileInfo) {
	target, err := t.root.Readlink(at)
	if err != nil {
		t.flaw(at, err)
		return
	}
	followed, err := t.root.Stat(at)
	if err != nil {
		t.flaw(at, fmt.Errorf("a link to %s: %w", text.Quoted(target), keep.Bare(err)))
		return
	}
	if !followed.Mode().IsRegular() {
		t.flaw(at, errPlain)
		return
	}
	t.risky = true
	t.addFile(at, info, t.sum.Link(at, target))
}

func (t *tree) addFile(at string, info fs.FileInfo, into *keep.Leaf) {
	if t.left < 0 {
		t.flaw(at, errTooMany)
		return
	}
	data, err := t.read(at)
	if err != nil {
		t.risky = true
		t.flaw(at, err)
		return
	}
	_, _ = into.Write(data)
	_ = into.Close() // can't fail
	t.judge(at, info, data)
}

// judge determines what a file would run, and whether it could run anything.
func (t *tree) judge(at string, info fs.FileInfo, data []byte) {
	name := strings.ToLower(path.Base(at))
	script := strings.HasPrefix(string(data), "#!") || info.Mode().IsRegular() && info.Mode()&0o111 != 0
	switch {
	case t.kind == Memory: // text for agents; an empty file has none
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimSpace(line); line != "" {
				t.runs, t.risky = append(t.runs, "tells agents: "+text.Quoted(line)), true
			}
		}
		return
	case t.kind != Hook && t.kind != Tool && t.kind != Agent && t.kind != Plugin && !script &&
		(path.Ext(name) == ".md" || name == ".gitignore"):
		return
	case strings.EqualFold(at, ".inspan/config.toml") && onlyTightens(data):
		return
	}
	t.risky = true
	switch ext := path.Ext(name); {
	case ext == ".json" || ext == ".jsonc" || ext == ".toml":
		found := takeApart(ext, data)
		for _, line := range found.lines {
			if t.folder {
				line = text.Quoted(at) + ": " + line
			}
			t.runs = append(t.runs, line)
		}
		if len(t.finder.words)+len(t.words)+len(found.words) > maxNamed {
			t.flaw(at, fmt.Errorf("there are more than %d words in command lines", maxNamed))
			return
		}
		t.words = append(t.words, found.words...)
	case t.kind == Workflow && (ext == ".yaml" || ext == ".js"):
		for line := range strings.Lines(string(data)) { // all of it: commands and prompts
			t.runs = append(t.runs, text.Quoted(strings.TrimRight(line, "\r\n")))
		}
	case script || program(name) || (t.kind == Hook || t.kind == Tool || t.kind == Workflow) && ext != ".md":
		t.runs = append(t.runs, text.Quoted(at))
	}
}

// read returns the content of a file, following links inside the root. It never blocks on a pipe.
func (f *finder) read(at string) ([]byte, error) {
	data, err := keep.ReadFile(f.root, at, maxContent)
	switch {
	case errors.Is(err, keep.ErrNoFile):
		return nil, errPlain
	case errors.Is(err, keep.ErrTooBig):
		return nil, errTooBig
	}
	return data, err
}
