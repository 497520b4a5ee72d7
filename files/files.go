// Package files is a world for agents that need files and no machine: a tree in memory, empty or laid over files
// that are never changed, and the file tools of the coding agent.
//
//	m := files.New(os.DirFS("docs")) // nil: no files at first
//	agent := inspan.Agent{Model: model, Env: m.Env(), Tools: files.Tools(), Mode: tool.ModeEdit}
//	...
//	for _, c := range m.Changes() { // what the agent would have done to docs
//		fmt.Println(c.Path, len(c.Data))
//	}
//
// Nothing is executed and no server is reached. For commands, checkpoints and a sandbox use package coding.
//
// # Compatibility
//
// Later versions may add tools to [Tools]. Name the tools that you want if that matters.
package files

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/tools"
	"github.com/inspan/inspan/tool"
)

// Root is the path of the workspace in a [Memory].
const Root = "/files"

// Tools returns the tools that read, search and change files: read_file, write_file, edit_file, delete_file,
// list_files, find_files and search_files. They work in any [tool.Env] and need no processes.
func Tools() []tool.Tool { return tools.Files() }

// Memory is a tree of files in memory below [Root]. It implements [tool.Files]. A folder exists as long as a file
// in it does. Safe for concurrent use.
type Memory struct {
	base fs.FS

	mu    sync.Mutex
	files map[string]file     // by path below Root
	gone  map[string]struct{} // paths below Root at which base counts as empty
}

type file struct {
	data []byte // never modified
	mode fs.FileMode
	time time.Time
}

// New returns a tree that has the files of base at first, read when they are needed. Changes stay in memory. Nil
// stands for no files. Symbolic links are up to base: to keep them inside of a folder, use the FS of an [os.Root].
func New(base fs.FS) *Memory {
	return &Memory{base: base, files: map[string]file{}, gone: map[string]struct{}{}}
}

// Env returns the tree as an environment for tools, without processes and network.
func (m *Memory) Env() tool.Env { return tool.Env{Root: Root, Files: m} }

// Changes returns the changes that turn the files of base into those of the tree, by path. Made in this order, they
// have that effect. Do not modify their data.
func (m *Memory) Changes() []tool.Change {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []tool.Change
	for _, name := range slices.Sorted(maps.Keys(m.gone)) {
		if _, err := fs.Stat(m.base, name); err == nil {
			list = append(list, tool.Change{Path: path.Join(Root, name), Remove: true})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		f := m.files[name]
		list = append(list, tool.Change{Path: path.Join(Root, name), Data: f.data, Mode: f.mode})
	}
	return list
}

// Resolve implements [tool.Files].
func (m *Memory) Resolve(_ context.Context, name string) (string, error) {
	if !path.IsAbs(name) || strings.ContainsRune(name, 0) {
		return "", &fs.PathError{Op: "resolve", Path: name, Err: fs.ErrInvalid}
	}
	return path.Clean(name), nil
}

// below returns a path below Root, "." for Root itself.
func (m *Memory) below(ctx context.Context, op, name string) (string, error) {
	clean, err := m.Resolve(ctx, name)
	if err = errors.Join(ctx.Err(), err); err != nil {
		return "", &fs.PathError{Op: op, Path: name, Err: err}
	}
	if !text.Inside(Root, clean) {
		return "", &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return cmp.Or(strings.TrimPrefix(strings.TrimPrefix(clean, Root), "/"), "."), nil
}

// Open implements [tool.Files].
func (m *Memory) Open(ctx context.Context, name string) (fs.File, error) {
	rel, err := m.below(ctx, "open", name)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if f, ok := m.files[rel]; ok {
		return &opened{Reader: bytes.NewReader(f.data), info: f.info(rel)}, nil
	}
	entries, dir := m.entries(rel)
	if dir {
		return &opened{Reader: bytes.NewReader(nil), info: info{name: path.Base(rel), mode: fs.ModeDir | 0o755}, entries: entries}, nil
	}
	if !m.hidden(rel) {
		return m.base.Open(rel)
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// hidden reports whether base says nothing about a path.
func (m *Memory) hidden(rel string) bool {
	if m.base == nil {
		return true
	}
	for at := rel; ; at = path.Dir(at) {
		if _, gone := m.gone[at]; gone {
			return true
		}
		if at == "." {
			return false
		}
	}
}

// entries lists a folder, by name. Dir is false if there is no folder.
func (m *Memory) entries(rel string) (list []fs.DirEntry, dir bool) {
	found := map[string]fs.DirEntry{}
	if !m.hidden(rel) {
		if stat, err := fs.Stat(m.base, rel); err == nil && stat.IsDir() {
			dir = true
			in, _ := fs.ReadDir(m.base, rel) // what can't be listed counts as empty
			for _, e := range in {
				if _, gone := m.gone[path.Join(rel, e.Name())]; !gone {
					found[e.Name()] = e
				}
			}
		}
	}
	for name, f := range m.files {
		below, ok := strings.CutPrefix(name, strings.TrimPrefix(rel+"/", "./"))
		if !ok {
			continue
		}
		dir = true
		if first, _, deep := strings.Cut(below, "/"); deep {
			found[first] = fs.FileInfoToDirEntry(info{name: first, mode: fs.ModeDir | 0o755})
		} else {
			found[first] = fs.FileInfoToDirEntry(f.info(first))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		list = append(list, found[name])
	}
	return list, dir || rel == "."
}

// read returns a file. The error is fs.ErrNotExist if there is none, and another for a folder.
func (m *Memory) read(rel string) (file, error) {
	if f, ok := m.files[rel]; ok {
		return f, nil
	}
	if _, dir := m.entries(rel); dir {
		return file{}, syscall.EISDIR
	}
	if m.hidden(rel) {
		return file{}, fs.ErrNotExist
	}
	stat, err := fs.Stat(m.base, rel)
	if err != nil {
		return file{}, err
	}
	if !stat.Mode().IsRegular() {
		return file{}, fmt.Errorf("it is no regular file: %w", fs.ErrInvalid)
	}
	data, err := fs.ReadFile(m.base, rel)
	return file{data, stat.Mode().Perm(), stat.ModTime()}, err
}

// Change implements [tool.Files].
func (m *Memory) Change(ctx context.Context, c tool.Change) error {
	rel, err := m.below(ctx, "change", c.Path)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.change(rel, c); err != nil {
		return &fs.PathError{Op: "change", Path: c.Path, Err: err}
	}
	return nil
}

func (m *Memory) change(rel string, c tool.Change) error {
	if rel == "." {
		return fs.ErrPermission
	}
	for dir := path.Dir(rel); dir != "."; dir = path.Dir(dir) {
		if _, err := m.read(dir); err == nil {
			return syscall.ENOTDIR
		}
	}
	was, err := m.read(rel)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case c.IfDigest == tool.NoFile && !missing, c.IfDigest != "" && c.IfDigest != tool.NoFile && (err != nil || tool.Digest(was.data) != c.IfDigest):
		return tool.ErrChanged
	case c.Remove && missing:
		return fs.ErrNotExist
	case c.Remove:
		maps.DeleteFunc(m.files, func(name string, _ file) bool { return name == rel || strings.HasPrefix(name, rel+"/") })
		if m.base != nil {
			m.gone[rel] = struct{}{}
		}
		return nil
	case err != nil && !missing:
		return err
	}
	next := file{slices.Clone(c.Data), was.mode, time.Now()}
	if missing {
		if next.mode = c.Mode.Perm(); next.mode == 0 {
			next.mode = 0o644
		}
	}
	if c.Exec != nil {
		if next.mode &^= 0o111; *c.Exec {
			next.mode |= next.mode >> 2 & 0o111
		}
	}
	m.files[rel] = next
	return nil
}

func (f file) info(rel string) info {
	return info{path.Base(rel), int64(len(f.data)), f.mode, f.time}
}

// info implements [fs.FileInfo].
type info struct {
	name string
	size int64
	mode fs.FileMode
	time time.Time
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return i.time }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }

// opened is a file or folder as it was when it was opened.
type opened struct {
	*bytes.Reader
	info    info
	entries []fs.DirEntry // that have not been read yet
}

func (o *opened) Stat() (fs.FileInfo, error) { return o.info, nil }
func (o *opened) Close() error               { return nil }

func (o *opened) Read(p []byte) (int, error) {
	if o.info.IsDir() {
		return 0, &fs.PathError{Op: "read", Path: o.info.name, Err: syscall.EISDIR}
	}
	return o.Reader.Read(p)
}

// ReadDir implements [fs.ReadDirFile].
func (o *opened) ReadDir(n int) ([]fs.DirEntry, error) {
	switch {
	case !o.info.IsDir():
		return nil, &fs.PathError{Op: "readdir", Path: o.info.name, Err: syscall.ENOTDIR}
	case n > 0 && len(o.entries) == 0:
		return nil, io.EOF
	case n <= 0 || n > len(o.entries):
		n = len(o.entries)
	}
	list := o.entries[:n]
	o.entries = o.entries[n:]
	return list, nil
}
