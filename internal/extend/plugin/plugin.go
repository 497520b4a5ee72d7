// Package plugin installs plugins: folders that bring skills, slash commands, kinds
// of agents, hooks, tools and MCP servers together. The layout is that of Claude
// Code.
//
//	.claude-plugin/plugin.json   or .inspan-plugin/plugin.json, or plugin.json: name, version, description,
//	                             and paths or, of hooks and servers, the content itself, beside the usual places:
//	commands/*.md                slash commands
//	agents/*.md                  kinds of agents
//	skills/*/SKILL.md            skills
//	hooks/hooks.json             hooks of Claude Code
//	tools/                       programs that are tools (ours alone)
//	.mcp.json                    MCP servers
//
// Installing copies a plugin and pins it by a digest over all its files. A copy
// that has changed is not used. Nothing of a plugin is used before a person has
// enabled it, and nothing of it runs during installation or inspection.
package plugin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
)

// Plugin is an installed plugin, for reading only. Its texts are one line each, without hidden characters.
type Plugin struct {
	Name, Version, Description string
	Author, Homepage, License  string
	// Source is its origin: the absolute path of a folder, or the address of a git repository with "#REF" or
	// "#REF:FOLDER" after it.
	Source string
	Commit string // of a git source
	Digest string // SHA-256 over paths, executable bits and contents of its files, in hexadecimal
	Dir    string // of the copy, absolute
	// Enabled says that a person has enabled it, and that it is unchanged since.
	Enabled bool
	// Broken says that its copy is missing or has changed. It has no parts.
	Broken   bool
	Problems []string // for people

	manifest manifest
	leaves   []leaf
}

// Store stores plugins in a folder. Several processes may use one folder at once, and several goroutines one
// Store.
//
// The index, plugins.json, is replaced as a whole or not at all. An invalid one is an error that says so, and
// stays as it is.
type Store struct {
	// Dir is the absolute path of a folder that no tool can change. It is made when
	// first needed.
	Dir string
	// Git runs git with arguments in a folder and returns its output. The error has git's own message. It must not
	// ask for passwords. Nil means there are no git sources.
	Git func(ctx context.Context, dir string, args ...string) (string, error)
}

// staged is a plugin that was copied and is not installed yet.
type staged struct {
	Plugin
	temp string // holds all of it
}

func (s staged) discard() { os.RemoveAll(s.temp) }

// Install copies a plugin into the store: a folder, or the content of a git repository at "https://host/path",
// "ssh://...", "user@host:path" or "/path", with "#REF" after it for a branch, a tag or a commit and "#REF:FOLDER"
// or "#:FOLDER" for a folder in it. A path needs the # to count as a repository. The plugin is not enabled.
//
// An installed plugin from the same source with the same content stays as it is.
func (s *Store) Install(ctx context.Context, from string) (Plugin, error) {
	src, err := parseSource(from)
	if err != nil {
		return Plugin{}, err
	}
	got, err := s.stage(ctx, src)
	if err != nil {
		return Plugin{}, fmt.Errorf("install %s: %w", src.text, err)
	}
	defer got.discard()
	err = s.change(ctx, func(list []record) ([]record, error) {
		if i := find(list, got.Name); i >= 0 {
			return list, got.meets(list[i], s)
		}
		list = append(list, record{Name: got.Name, Source: got.Source, Commit: got.Commit, Digest: got.Digest})
		return list, s.settle(&got)
	})
	if err != nil {
		return Plugin{}, fmt.Errorf("install %s: %w", src.text, err)
	}
	return got.Plugin, nil
}

// meets decides what to do if an installed plugin has the same name.
func (s *staged) meets(r record, store *Store) error {
	there := store.open(r)
	switch {
	case r.Source != s.Source:
		return fmt.Errorf("a plugin %s from %s is already installed; remove it first", r.Name, r.Source)
	case r.Digest != s.Digest:
		return fmt.Errorf("%s is installed with other content: 'inspan plugin update %[1]s' installs this one", r.Name)
	case there.Broken:
		if err := store.settle(s); err != nil {
			return err
		}
		there = store.open(r)
	}
	s.Plugin = there
	return nil
}

// Enable makes sessions use a plugin from now on. Digest is that of the content that the person approved; other
// content is an error.
func (s *Store) Enable(ctx context.Context, name, digest string) error {
	return s.edit(ctx, name, func(r *record) error {
		p := s.open(*r)
		switch {
		case p.Broken:
			return fmt.Errorf("%s can't be enabled: %s", name, strings.Join(p.Problems, "; "))
		case r.Digest != digest:
			return fmt.Errorf("%s has changed since you looked at it; look at it again", name)
		}
		r.Enabled = true
		return nil
	})
}

// Disable makes new sessions not use a plugin any more.
func (s *Store) Disable(ctx context.Context, name string) error {
	return s.edit(ctx, name, func(r *record) error {
		r.Enabled = false
		return nil
	})
}

// Remove removes a plugin and its copies.
func (s *Store) Remove(ctx context.Context, name string) error {
	return s.change(ctx, func(list []record) ([]record, error) {
		i := find(list, name)
		if i < 0 {
			return nil, missing(list, name)
		}
		if err := os.RemoveAll(filepath.Join(s.Dir, name)); err != nil {
			return nil, fmt.Errorf("remove %s: %w", name, err)
		}
		return slices.Delete(list, i, i+1), nil
	})
}

// Update fetches a plugin from its source again. If anything that could run has changed, it is disabled; the
// previous copy is kept until the next update, for sessions that use it.
func (s *Store) Update(ctx context.Context, name string) (was, now Plugin, err error) {
	if was, err = s.Get(name); err != nil {
		return was, now, err
	}
	src, err := parseSource(was.Source)
	if err == nil && src.text != was.Source {
		err = fmt.Errorf("its source %s has changed", was.Source)
	}
	var got staged
	if err == nil {
		got, err = s.stage(ctx, src)
	}
	if err != nil {
		return was, now, fmt.Errorf("update %s: %w", name, err)
	}
	defer got.discard()
	if got.Name != name {
		return was, now, fmt.Errorf("update %s: its name is now %s: remove it, then install %[2]s", name, got.Name)
	}
	same := !was.Broken && was.reach() == got.reach()
	err = s.edit(ctx, name, func(r *record) error {
		if r.Digest != was.Digest || r.Source != was.Source {
			return fmt.Errorf("update %s: another process has changed it meanwhile; try again", name)
		}
		if err := s.settle(&got); err != nil {
			return err
		}
		r.Digest, r.Commit, r.Enabled = got.Digest, got.Commit, r.Enabled && same
		got.Enabled = r.Enabled
		s.prune(name, was.Digest, got.Digest)
		return nil
	})
	return was, got.Plugin, err
}

// List returns the plugins by name. One whose copy differs from the installed content is broken, and not enabled.
func (s *Store) List(ctx context.Context) ([]Plugin, error) {
	list, err := s.load()
	if err != nil {
		return nil, err
	}
	var out []Plugin
	for _, r := range list {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out = append(out, s.open(r))
	}
	slices.SortStableFunc(out, func(a, b Plugin) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Get returns one plugin. The error suggests a similar name.
func (s *Store) Get(name string) (Plugin, error) {
	list, err := s.load()
	if err != nil {
		return Plugin{}, err
	}
	i := find(list, name)
	if i < 0 {
		return Plugin{}, missing(list, name)
	}
	return s.open(list[i]), nil
}

func find(list []record, name string) int {
	return slices.IndexFunc(list, func(r record) bool { return r.Name == name })
}

func missing(list []record, name string) error {
	var names []string
	for _, r := range list {
		names = append(names, r.Name)
	}
	if near := text.Nearest(name, names); near != "" {
		return fmt.Errorf("no plugin %q; did you mean %s?", name, near)
	}
	return fmt.Errorf("no plugin %q; 'inspan plugin list' lists the installed ones", name)
}

// edit changes the record of one plugin.
func (s *Store) edit(ctx context.Context, name string, do func(*record) error) error {
	return s.change(ctx, func(list []record) ([]record, error) {
		i := find(list, name)
		if i < 0 {
			return nil, missing(list, name)
		}
		return list, do(&list[i])
	})
}

// open reads an installed plugin, and checks its digest.
func (s *Store) open(r record) Plugin {
	p := Plugin{Name: r.Name, Source: r.Source, Commit: r.Commit, Digest: r.Digest, Dir: filepath.Join(s.Dir, r.Name, r.Digest)}
	err := p.read(true)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = errors.New("its copy is missing")
	case err != nil:
		err = fmt.Errorf("its copy %w", err)
	case digestOf(p.leaves) != r.Digest:
		err = errors.New("its files have changed since the installation")
	case p.Name != r.Name:
		err = fmt.Errorf("it calls itself %s", p.Name)
	}
	if err != nil {
		return Plugin{
			Name: r.Name, Source: r.Source, Commit: r.Commit, Digest: r.Digest, Dir: p.Dir, Broken: true,
			Problems: []string{err.Error() + ": remove the plugin and install it again"},
		}
	}
	p.Enabled = r.Enabled
	return p
}

// Check checks the digest of the copy again: an error says that it has changed since it was installed. Callers
// use it right before they run a part of a plugin.
func (p Plugin) Check() error {
	if now := (&Store{Dir: filepath.Dir(filepath.Dir(p.Dir))}).open(record{Name: p.Name, Digest: p.Digest}); p.Broken || now.Broken {
		return fmt.Errorf("the plugin %s has changed since its installation", p.Name)
	}
	return nil
}

// read reads the files and the manifest in the folder of a plugin. Its name must be set if it has no manifest.
func (p *Plugin) read(pinned bool) error {
	root, err := keep.OpenFolder(p.Dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if p.leaves, err = scan(root, nil, pinned); err != nil {
		return err
	}
	return p.describe(root)
}

// describe sets the fields from the manifest.
func (p *Plugin) describe(root *os.Root) error {
	m, err := readManifest(root, p.Name)
	if err != nil {
		return err
	}
	p.manifest, p.Name, p.Version, p.Description = m, m.name, m.version, m.description
	p.Author, p.Homepage, p.License = m.author, m.homepage, m.license
	p.Problems = slices.Clone(m.notes)
	for _, l := range p.leaves {
		if l.stub {
			p.Problems = append(p.Problems, l.path+" is a pointer to a file in git LFS, which inspan does not fetch")
		}
		if l.path == ".gitmodules" {
			p.Problems = append(p.Problems, "it has submodules, which are left out")
		}
	}
	return nil
}

// stage copies a source into a new folder below the store.
func (s *Store) stage(ctx context.Context, src source) (got staged, err error) {
	if err := s.createDir(); err != nil {
		return got, err
	}
	got.temp = filepath.Join(s.Dir, tempMark+rand.Text())
	if err := os.Mkdir(got.temp, 0o700); err != nil {
		return got, err
	}
	defer func() {
		if err != nil {
			got.discard()
		}
	}()
	from := src.folder
	if from == "" {
		from = filepath.Join(got.temp, "git")
		if err := os.Mkdir(from, 0o700); err != nil {
			return got, err
		}
		if got.Commit, err = s.checkout(ctx, src, from); err != nil {
			return got, err
		}
	}
	top, err := keep.OpenFolder(from)
	if err != nil {
		return got, err
	}
	defer func() { _ = top.Close() }()
	if src.sub != "" {
		sub, err := top.OpenRoot(filepath.FromSlash(src.sub))
		if err != nil {
			return got, fmt.Errorf("its folder %s: %w", src.sub, keep.Bare(err))
		}
		defer func() { _ = sub.Close() }()
		top = sub
	}
	if err := market(top, src); err != nil {
		return got, err
	}
	got.Name, got.Source, got.Dir = src.name(), src.text, filepath.Join(got.temp, "copy")
	return got, got.copyFrom(ctx, top)
}

// copyFrom copies a folder and reads the copy.
func (s *staged) copyFrom(ctx context.Context, from *os.Root) error {
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		return err
	}
	into, err := os.OpenRoot(s.Dir)
	if err != nil {
		return err
	}
	defer func() { _ = into.Close() }()
	copied, err := scan(from, into, false)
	if err != nil {
		return fmt.Errorf("it %w", err)
	}
	if err := unchanged(from, into, digestOf(copied)); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.leaves, s.Digest = copied, digestOf(copied)
	if err := s.describe(into); err != nil {
		return err
	}
	_, err = s.parts(s.Dir)
	return err
}

// unchanged checks that a folder is still as it was copied, and that the copy is as it was read.
func unchanged(from, into *os.Root, digest string) error {
	now, err := scan(from, nil, false)
	if err != nil || digestOf(now) != digest {
		return errors.New("it changed while it was copied: try again")
	}
	if now, err = scan(into, nil, true); err != nil || digestOf(now) != digest {
		return errors.New("its copy differs from the source; is the disk full, or damaged?")
	}
	return nil
}

// settle moves the copy to its place. An existing folder with the same digest stays, if its content matches.
func (s *Store) settle(got *staged) error {
	r := record{Name: got.Name, Source: got.Source, Commit: got.Commit, Digest: got.Digest}
	at := filepath.Join(s.Dir, got.Name, got.Digest)
	if s.open(r).Broken {
		if err := os.RemoveAll(at); err != nil {
			return fmt.Errorf("make room for %s: %w", got.Name, err)
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return err
		}
		if err := os.Rename(got.Dir, at); err != nil {
			return fmt.Errorf("put %s in its place: %w", got.Name, err)
		}
	}
	got.Dir = at
	return nil
}

// prune removes copies of a plugin except those with the given digests.
func (s *Store) prune(name string, keep ...string) {
	dir := filepath.Join(s.Dir, name)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !slices.Contains(keep, e.Name()) {
			os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}
