package role

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/keep"
	"github.com/inspan/inspan/internal/text"
)

// FromProject is the source of roles that came with the workspace.
const FromProject = "project"

const (
	builtIn    = "built in"
	maxEntries = 10_000 // of one folder that are looked at
)

//go:embed builtin/*.md
var builtins embed.FS

// Folder is a place where roles lie as markdown files.
type Folder struct {
	Path   string // need not exist; if empty there is none
	Source string // for people: "project", "user", "plugin NAME"
}

// Find reads the roles of folders by name, and those that are built in. Of several
// with one name, that of the first folder counts; upper and lower case are the
// same. Links and folders in the folders are left out. The warnings say what can't
// be used.
func Find(folders []Folder) (roles []Role, warnings []string) {
	s := search{taken: map[string]taken{}}
	for _, f := range folders {
		if f.Path != "" {
			s.look(f)
		}
	}
	for _, r := range Builtin() {
		if _, is := s.taken[strings.ToLower(r.Name)]; !is {
			s.roles = append(s.roles, r)
		}
	}
	slices.SortFunc(s.roles, func(a, b Role) int { return cmp.Compare(a.Name, b.Name) })
	return s.roles, s.warnings
}

// Builtin returns the roles that are built in, by name: explore, plan, reviewer
// and worker.
func Builtin() (roles []Role) {
	entries, err := builtins.ReadDir("builtin")
	if err != nil {
		panic(err) // they are part of the program
	}
	for _, e := range entries {
		data, err := builtins.ReadFile("builtin/" + e.Name())
		if err != nil {
			panic(err)
		}
		r, err := Parse(e.Name(), builtIn, data)
		if err != nil {
			panic(err)
		}
		roles = append(roles, r)
	}
	return roles
}

// taken is the file that has a name.
type taken struct {
	path string
	info fs.FileInfo
}

// search is one look through folders.
type search struct {
	taken    map[string]taken
	roles    []Role
	warnings []string
}

func (s *search) warn(format string, args ...any) {
	s.warnings = append(s.warnings, text.Line(fmt.Sprintf(format, args...)))
}

// look reads the roles of one folder.
func (s *search) look(f Folder) {
	root, err := keep.OpenFolder(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var files []string
	var more bool
	if err == nil {
		defer func() { _ = root.Close() }()
		files, more, err = markdown(root)
	}
	if err != nil {
		s.warn("kinds of agents in %s can't be looked at: %v", f.Path, keep.Bare(err))
		return
	}
	if more {
		s.warn("%s has more than %d files of agents; the rest are left out", f.Path, MaxRoles)
	}
	for _, name := range files {
		at := filepath.Join(f.Path, name)
		data, info, err := read(root, name)
		var r Role
		if err == nil {
			r, err = Parse(name, f.Source, data)
		}
		if err != nil {
			s.warn("%s is no kind of agent that can be used: %v", at, keep.Bare(err))
			continue
		}
		key := strings.ToLower(r.Name)
		if first, is := s.taken[key]; is {
			if !os.SameFile(first.info, info) {
				s.warn("the agent %s in %s is hidden by that in %s", r.Name, at, first.path)
			}
			continue
		}
		s.taken[key] = taken{at, info}
		s.roles = append(s.roles, r)
	}
}

// markdown returns the names of the markdown files of a folder, in order, and
// whether there are more than are read.
func markdown(root *os.Root) (names []string, more bool, err error) {
	f, err := keep.OpenFile(root, ".")
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	entries, err := f.ReadDir(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".md") && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	more = len(names) > MaxRoles || len(entries) == maxEntries
	return names[:min(len(names), MaxRoles)], more, nil
}

// read reads one file.
func read(root *os.Root, name string) ([]byte, fs.FileInfo, error) {
	f, err := keep.OpenFile(root, name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errors.New("it is no file")
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	return data, info, err
}
