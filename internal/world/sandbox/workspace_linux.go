package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/internal/world/sandbox/processes"
	"github.com/inspan/inspan/internal/world/sandbox/protocol"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
	"github.com/inspan/inspan/tool"
)

// mostMounts bounds how many places in a workspace can be held closed.
const mostMounts = 2000

// workspace puts the walls of a workspace box on paper.
func (b *boxes) workspace(k *kept, found []spot) error {
	if b.flat.Load() || k.command.Box.Mixed && !b.overlays() {
		k.command.Box.Git, k.command.Box.Mixed = false, false // a copy or nothing
	}
	o, box := &k.order, k.command.Box
	cache, vars, err := b.caches(box)
	if err != nil {
		return err
	}
	o.Env, o.Cache, o.GoCache = processes.SetVars(o.Env, vars...), cache, b.goLayer(cache, o.Env)
	k.cold = o.GoCache == "" && cache != "" && empty(filepath.Join(cache, walls.GoBuilds))
	if o.Write = b.tops(); box.Throwaway {
		o.Write = o.Write[:1]
	}
	for _, path := range b.beyond(mountable(o.Level, box.Write)) {
		at := b.o.Map.Of(path)
		if at.Guard != places.Secret && at.Guard != places.Frozen || at.Named && slices.Contains(k.command.Pass.Write, path) {
			o.Write = append(o.Write, path)
		}
	}
	o.Write = append(o.Write, b.gitWritable(box)...)
	o.Copies = b.gitCopies(box, found)
	closed := b.closedPlaces(box, found)
	if len(o.Copies) > 0 {
		// Git removes the way from a worktree in the workspace to its repository.
		links := b.newWorktrees(box)
		found = slices.DeleteFunc(found, func(s spot) bool { return links[s.Path] })
		closed = b.closedInCopies(o, b.closedPlaces(box, found))
	}
	for _, s := range closed {
		if st, ok := paths.StampOf(s.Path); ok {
			o.View.Frozen = append(o.View.Frozen, s.Path)
			o.View.Before = append(o.View.Before, st.Identity(s.Path))
		}
	}
	for _, path := range k.command.Pass.Read {
		if tool.Inside(b.root, path) && !slices.Contains(k.command.Pass.Write, path) && b.o.Map.Of(path).Named {
			o.View.Frozen = append(o.View.Frozen, path) // it was judged to be read
		}
	}
	o.View.Pinned = b.pins(box, found)
	for _, c := range o.Copies {
		o.View.Pinned = b.above(o.View.Pinned, c.Path)
	}
	if len(o.View.Frozen)+len(o.View.Pinned) > mostMounts {
		return fmt.Errorf("%w: the workspace holds too many sensitive places", tool.ErrNoBox)
	}
	o.Proxy, o.Map, o.Box = len(box.Hosts) > 0, b.o.Map, box
	if os.Geteuid() == 0 && b.engine == nil {
		o.View.Passwd, o.View.Group = accounts("/etc/passwd", "inspan:x:%d:%d::"+home()+":/bin/sh\n"), accounts("/etc/group", "inspan:x:%[2]d:\n")
	}
	return nil
}

// boxUser is the number that root has in a workspace box. With their own,
// programs would believe that they may do what they can't.
const boxUser = 1000

func home() string {
	if h := os.Getenv("HOME"); h != "" {
		return h
	}
	return "/"
}

// accounts returns the list of users or groups with the one of the box added.
func accounts(path, format string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	var out strings.Builder
	for line := range strings.Lines(string(data)) {
		fields := strings.Split(line, ":")
		if len(fields) > 2 && fields[2] == fmt.Sprint(boxUser) {
			continue
		}
		out.WriteString(line)
	}
	fmt.Fprintf(&out, format, boxUser, boxUser)
	return out.String()
}

// closedPlaces lists what in the workspace can't be changed.
func (b *boxes) closedPlaces(box tool.Box, found []spot) []spot {
	git := filepath.Join(b.root, ".git")
	var out []spot
	for _, s := range found {
		if s.Guard != places.Frozen && s.Guard != places.Guarded && !s.Blind || s.Guard == places.Guarded && paths.InsideAny(box.Write, s.Path) {
			continue
		}
		if info, err := os.Lstat(s.Path); box.Git && !b.overlays() && s.Path == git && err == nil && info.IsDir() {
			out = append(out, gitInsides(git)...)
			continue
		}
		out = append(out, s)
		if s.Bare {
			for _, inner := range gitInsides(filepath.Dir(s.Path)) {
				inner.Via = s.Path
				out = append(out, inner)
			}
		}
	}
	out = append(out, b.gitNamed(git)...)
	outside, _ := b.gitOutside(box)
	out = append(out, outside...)
	for _, dir := range gitElsewhere(b.root) {
		if tool.Inside(b.root, dir) {
			out = append(out, spot{Path: dir, Guard: places.Frozen})
		}
	}
	return out
}

// pins lists the folders that must not be renamed, since something closed in
// them would go away with them: the repository if its insides are open, and
// those above nested ones.
func (b *boxes) pins(box tool.Box, found []spot) []string {
	_, out := b.gitOutside(box)
	git := filepath.Join(b.root, ".git")
	if info, err := os.Lstat(git); box.Git && !b.overlays() && err == nil && info.IsDir() {
		out = append(out, git)
		for _, s := range gitInsides(git) {
			out = b.above(out, s.Path)
		}
	}
	for _, s := range append(b.gitNamed(git), found...) {
		// What is secret by its place would not be in another one.
		if s.Guard == places.Frozen || s.Guard == places.Guarded && s.Via != "" || s.Guard == places.Secret && !s.Named {
			out = b.above(out, s.Path)
		}
	}
	return out
}

// above adds the folders between the workspace, or a folder beside it, and a path.
func (b *boxes) above(list []string, path string) []string {
	tops := b.tops()
	for dir := filepath.Dir(path); !slices.Contains(tops, dir) && paths.InsideAny(tops, dir); dir = filepath.Dir(dir) {
		if !slices.Contains(list, dir) {
			list = append(list, dir)
		}
	}
	return list
}

// closedInCopies lists what a box can't change of closed places if it has copies of git
// directories.
func (b *boxes) closedInCopies(o *protocol.Order, closed []spot) []spot {
	out := slices.DeleteFunc(closed, func(s spot) bool { return o.Copied(s.Path) })
	for _, c := range o.Copies {
		out = append(out, gitSettled(c.Path)...)
		if st, ok := paths.StampOf(c.Path); ok {
			o.View.Before = append(o.View.Before, st.Identity(c.Path))
		}
	}
	return out
}

// gitAround returns the git directories of the repository that git finds from a folder: of the work
// tree, and what it shares with others. A repository above the workspace counts if it belongs to whom
// the workspace belongs to, as for git.
func gitAround(root string) []string {
	first, err := paths.StampAt(root)
	if err != nil {
		return nil
	}
	home, _ := os.UserHomeDir()
	for top := root; ; top = filepath.Dir(top) {
		st, err := paths.StampAt(top)
		if err != nil || st.Dev != first.Dev || top == "/" || top != root && (!st.Own || home != "" && tool.Inside(top, home)) {
			return nil
		}
		git := filepath.Join(top, ".git")
		switch st, err := paths.StampAt(git); {
		case err != nil:
		case st.Dir:
			if _, err := os.Lstat(filepath.Join(git, "HEAD")); err == nil {
				return []string{git}
			}
		default:
			return gitLinked(top)
		}
	}
}

// gitElsewhere returns the git directories of a workspace that a link leads to or that lie
// above it.
func gitElsewhere(root string) []string {
	return slices.DeleteFunc(gitAround(root), func(dir string) bool { return dir == filepath.Join(root, ".git") })
}

// gitLinked returns the folders that a workspace's .git file leads to: of
// the worktree and of the repository it belongs to, or of a submodule. Anybody can write such a
// file, so it counts only if what is there names this workspace.
func gitLinked(root string) []string {
	data, err := os.ReadFile(filepath.Join(root, ".git"))
	dir, isLink := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir:")
	if err != nil || !isLink {
		return nil
	}
	if dir = strings.TrimSpace(dir); !filepath.IsAbs(dir) {
		dir = filepath.Join(root, dir)
	}
	dir, err = filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}
	if len(moduleOf(dir, root)) > 0 {
		return []string{dir}
	}
	back, err := os.ReadFile(filepath.Join(dir, "gitdir"))
	if err != nil || strings.TrimSpace(string(back)) != filepath.Join(root, ".git") {
		return nil
	}
	out := []string{dir}
	common, err := os.ReadFile(filepath.Join(dir, "commondir"))
	if err != nil {
		return out
	}
	path := strings.TrimSpace(string(common))
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	// The worktree lies in the repository that it belongs to.
	if path, err = filepath.EvalSymlinks(path); err == nil && tool.Inside(filepath.Join(path, "worktrees"), dir) {
		out = append(out, path)
	}
	return out
}

// moduleOf returns the git directory of a submodule if its settings say that its work tree is a
// folder.
func moduleOf(dir, root string) string {
	if !strings.Contains(dir, "/modules/") {
		return ""
	}
	for line := range strings.Lines(paths.ReadSmall(filepath.Join(dir, "config"))) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if strings.TrimSpace(key) != "worktree" {
			continue
		}
		if real, err := filepath.EvalSymlinks(filepath.Join(dir, strings.TrimSpace(value))); err == nil && real == root {
			return dir
		}
	}
	return ""
}
