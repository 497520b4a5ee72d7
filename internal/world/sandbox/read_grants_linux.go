package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/internal/world/sandbox/sensitive"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
	"github.com/inspan/inspan/tool"
)

// shared lists folders below the root, in addition to those at its top, that may belong to the system; the map
// decides.
func shared() []string {
	return []string{"/nix/store", "/var/lib/dpkg", "/var/lib/apt", "/run/current-system", "/run/wrappers"}
}

// readable lists what a box may read in addition to the workspace.
func (b *boxes) readable(box tool.Box) []string {
	level := b.o.level(box)
	if b.engine != nil {
		level = tool.BoxWorkspace // sockets are available, and the machine's system services are not visible
	} else {
		b.base.Do(func() { b.system = b.shared() })
	}
	return slices.Concat(b.system, b.o.Shown, sensitive.GitDirsElsewhere(b.Root),
		b.outsideWorkspace(sensitive.Mountable(level, box.Read)), b.outsideWorkspace(sensitive.Mountable(level, box.Write)))
}

// outsideWorkspace removes paths that are open with the workspace and its further folders: with a mount of
// their own they could be neither removed nor renamed.
func (b *boxes) outsideWorkspace(list []string) []string {
	tops := b.Folders()
	return slices.DeleteFunc(slices.Clone(list), func(path string) bool {
		return paths.InsideAny(tops, path) && b.o.Map.Of(path).Guard == places.Plain
	})
}

// shared lists system files, and packages and programs of the user. It is computed once, because it is slow and
// seldom changes.
func (b *boxes) shared() []string {
	var out []string
	add := func(path string) {
		if real, err := filepath.EvalSymlinks(path); err == nil && !slices.Contains(out, real) {
			out = append(out, real)
		}
	}
	m := b.o.Map
	system := func(path string) {
		if m.Of(path).Zone == places.System {
			add(path)
		}
	}
	entries, _ := os.ReadDir("/")
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink == 0 && e.Name() != "dev" {
			system("/" + e.Name())
		}
	}
	for _, path := range shared() {
		system(path)
	}
	if m.Home != "" {
		for _, name := range places.Caches() {
			system(filepath.Join(m.Home, name))
		}
		// Git refuses to work if it can't read its settings.
		for _, name := range []string{".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes"} {
			add(filepath.Join(m.Home, name))
		}
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) && filepath.Base(dir) == "bin" && m.Of(dir).Zone == places.Elsewhere {
			for _, name := range []string{"bin", "lib", "lib64", "libexec"} {
				add(filepath.Join(filepath.Dir(dir), name))
			}
		}
	}
	return out
}

// grants lists what a box may read, without the secrets.
func (b *boxes) grants(c tool.Command, found []sensitive.Place) ([]walls.Grant, error) {
	paths := append(b.Folders(), b.readable(c.Box)...)
	holes, err := b.holes(c, found)
	if err != nil {
		return nil, err
	}
	var out []walls.Grant
	for _, path := range paths {
		g := walls.Grant{Path: path}
		closed := false
		for _, hole := range holes {
			switch {
			case text.Inside(hole, path):
				closed = closed || !b.opens(hole, path)
			case text.Inside(path, hole):
				g.Holes = append(g.Holes, hole)
			}
		}
		if !closed && !slices.ContainsFunc(out, func(o walls.Grant) bool { return o.Path == path }) {
			out = append(out, g)
		}
	}
	return out, nil
}

// opens reports whether a path is open although it is in a hole. The repository of an agent's copy may be where
// others work: in a folder of a workspace of the same session.
func (b *boxes) opens(hole, path string) bool {
	return b.o.Map.Opens(hole, path) || slices.Contains(b.o.Map.Apart, hole) && slices.Contains(sensitive.GitDirsElsewhere(b.Root), path)
}

// plainGrants opens paths without holes.
func plainGrants(paths []string) []walls.Grant {
	var out []walls.Grant
	for _, path := range paths {
		out = append(out, walls.Grant{Path: path})
	}
	return out
}

// holes lists every existing secret in a readable place.
func (b *boxes) holes(c tool.Command, found []sensitive.Place) ([]string, error) {
	box := c.Box
	var out []string
	add := func(path string) {
		if !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	for _, s := range found {
		if s.Guard == places.Secret {
			add(s.Path)
		}
	}
	for _, path := range b.knownSecrets() {
		add(path)
	}
	for _, path := range slices.Concat(sensitive.Mountable(b.o.level(box), slices.Concat(box.Read, box.Write)), b.o.Shown) {
		if text.Inside(b.Root, path) {
			continue
		}
		if at := b.o.Map.Of(path); at.Guard == places.Secret {
			if !at.Named || !passed(c.Pass, path) {
				add(path)
			}
			continue
		}
		more, err := b.Scanner(path).Scan()
		if err != nil {
			return nil, err
		}
		for _, s := range more {
			if s.Guard == places.Secret && (!s.Named || !passed(c.Pass, s.Path)) {
				add(s.Path)
			}
		}
	}
	for _, path := range b.privateInEtc() {
		add(path)
	}
	return out, nil
}

// privateInEtc lists the files below /etc that others may not read. Only root could read them in a box, so for
// other users it is empty. It is computed once.
func (b *boxes) privateInEtc() []string {
	if os.Geteuid() != 0 {
		return nil
	}
	b.etc.Do(func() {
		_ = filepath.WalkDir("/etc", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.Type()&fs.ModeSymlink != 0 {
				return nil //nolint:nilerr // an unreadable file needs no hole
			}
			info, err := d.Info()
			if err != nil || info.Mode().Perm()&0o004 != 0 {
				return nil //nolint:nilerr // the same
			}
			b.closed = append(b.closed, path)
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		})
	})
	return b.closed
}
