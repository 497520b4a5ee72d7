package tools

import (
	"context"
	_ "embed"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

//go:embed find_files.md
var findFilesDoc string

// maxFound is how many paths one call shows.
const maxFound = 200

type findArgs struct {
	Pattern string `json:"pattern" jsonschema:"glob"`
	Path    string `json:"path,omitempty" jsonschema:"directory"`
}

func findFiles() tool.Tool {
	t := tool.New("find_files", findFilesDoc, runFind)
	t.Effects = pathEffect(tool.Read, func(in findArgs) string { return in.start() })
	return t
}

// start is the directory to search. An absolute pattern names its own.
func (in findArgs) start() string {
	if in.Path == "" && filepath.IsAbs(in.Pattern) {
		base, _ := doublestar.SplitPattern(filepath.ToSlash(in.Pattern))
		return base
	}
	return in.Path
}

// glob is the pattern relative to start.
func (in findArgs) glob() string {
	if in.Path == "" && filepath.IsAbs(in.Pattern) {
		_, pattern := doublestar.SplitPattern(filepath.ToSlash(in.Pattern))
		return "./" + pattern // it has a directory, so it is not a bare name
	}
	return in.Pattern
}

func runFind(ctx context.Context, c *tool.Call, in findArgs) (tool.Result, error) {
	matches, err := Matcher(in.glob())
	if err != nil {
		return tool.Result{}, err
	}
	path, err := Resolve(ctx, c, in.start())
	if err != nil {
		return tool.Result{}, err
	}
	t, top, err := openTree(ctx, c, path)
	if err != nil {
		return tool.Result{}, err
	}
	var all []foundFile
	looked := 0
	unread, err := t.walk(ctx, top, func(file string, e fs.DirEntry) error {
		looked++
		if rel, err := filepath.Rel(path, file); err == nil && matches(filepath.ToSlash(rel)) {
			all = append(all, foundFile{Shown(c, file), modified(e)})
		}
		return nil
	})
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Text(foundText(all, looked, unread)), nil
}

type foundFile struct {
	name string
	when time.Time
}

func modified(e fs.DirEntry) time.Time {
	info, err := e.Info()
	if err != nil {
		return time.Time{} // it has just been removed
	}
	return info.ModTime()
}

func foundText(all []foundFile, looked, unread int) string {
	slices.SortStableFunc(all, func(a, b foundFile) int { return b.when.Compare(a.when) })
	var b strings.Builder
	for _, f := range all[:min(len(all), maxFound)] {
		b.WriteString(f.name + "\n")
	}
	switch {
	case len(all) == 0:
		fmt.Fprintf(&b, "[none of %s matches; ignored files are not searched]\n", text.Count(looked, "file"))
	case len(all) > maxFound:
		fmt.Fprintf(&b, "[the newest %d of %d; narrow the pattern or the path to see others]\n", maxFound, len(all))
	}
	if unread > 0 {
		fmt.Fprintf(&b, "[%d directories could not be read]\n", unread)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Matcher compiles a glob over slash-separated relative paths. One without a slash matches names in any folder.
func Matcher(pattern string) (func(rel string) bool, error) {
	pattern = filepath.ToSlash(pattern)
	if pattern == "" || !doublestar.ValidatePattern(pattern) {
		return nil, fmt.Errorf("%q is not a valid glob; escape special characters with a backslash", pattern)
	}
	if !strings.Contains(pattern, "/") {
		pattern = "**/" + pattern
	}
	pattern = strings.TrimPrefix(pattern, "./")
	return func(rel string) bool { return doublestar.MatchUnvalidated(pattern, rel) }, nil
}
