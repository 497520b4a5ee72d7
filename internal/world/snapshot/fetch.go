package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/tool"
)

// Suffixes of a workspace that is being created, and of the one that it replaces.
const (
	newSuffix = ".inspan-new"
	oldSuffix = ".inspan-old"
)

// mostEntries bounds the files, folders and links of a workspace.
const mostEntries = 10_000_000

// Fetch recreates the workspace from a state in blobs, and replaces the existing one. All content is checked
// against its digest: blobs are not trusted more than a disk. Nothing changes until the new workspace is
// complete. After an interruption it is repeated from the start.
func (s *Store) Fetch(ctx context.Context, blobs tool.Blobs, name string) (Sent, error) {
	unlock, err := s.change(ctx)
	if err != nil {
		return Sent{}, fmt.Errorf("fetch the workspace: %w", err)
	}
	defer unlock()
	sent, err := s.fetch(ctx, blobs, name)
	if err != nil {
		err = errors.Join(fmt.Errorf("fetch the workspace: %w", err), removeAll(s.Root+newSuffix))
	}
	return sent, err
}

func (s *Store) fetch(ctx context.Context, blobs tool.Blobs, name string) (sent Sent, err error) {
	if err := os.Mkdir(s.path(sentName), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return sent, err
	}
	m, root, err := s.sentManifest(ctx, blobs, name)
	if err != nil {
		return sent, err
	}
	v := &vault{s: s, at: map[digest]place{}, open: map[int32]*os.File{}, trees: map[digest]*tree{}}
	defer v.close()
	for _, p := range m.Packs {
		if err := s.download(ctx, blobs, p, v); err != nil {
			return sent, err
		}
	}
	if err := errors.Join(removeAll(s.Root+newSuffix), os.MkdirAll(filepath.Dir(s.Root), 0o700)); err != nil {
		return sent, err
	}
	f := &fetcher{s: s, ctx: ctx, v: v}
	if err := f.workspace(entry{kind: isDir, perm: m.Perm, sum: root}); err != nil {
		return sent, err
	}
	v.close()
	if err := os.RemoveAll(s.path(cacheName)); err != nil { // it describes the replaced files
		return sent, err
	}
	if err := s.swap(); err != nil {
		return sent, err
	}
	sent = m.sent(name)
	sent.Left = f.left
	s.step("empty temporary folder")
	return sent, errors.Join(os.RemoveAll(s.path(tmpName)), s.forget(name, m))
}

// download downloads a pack.
func (s *Store) download(ctx context.Context, blobs tool.Blobs, p sentPack, v *vault) error {
	r, err := blobs.Get(ctx, p.Blob)
	if err != nil {
		return err
	}
	defer r.Close()
	f, err := s.temp("pack")
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := io.Copy(f, io.LimitReader(keep.Reading(ctx, r), p.Size+1))
	if err == nil && n != p.Size {
		err = errDamaged
	}
	var index []indexed
	if err == nil {
		index, err = parseIndex(f, n)
	}
	if err == nil {
		err = s.remember(p.Blob, index)
	}
	if err != nil {
		return fmt.Errorf("pack %s: %w", p.Blob, err)
	}
	v.add(f.Name(), index)
	return nil
}

// swap replaces the workspace with the new one.
func (s *Store) swap() error {
	if err := removeAll(s.Root + oldSuffix); err != nil {
		return err
	}
	s.step("rename old workspace")
	if err := os.Rename(s.Root, s.Root+oldSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.step("rename new workspace")
	if err := os.Rename(s.Root+newSuffix, s.Root); err != nil {
		return err
	}
	s.step("remove old workspace")
	return errors.Join(removeAll(s.Root+oldSuffix), keep.Sync(filepath.Dir(s.Root)))
}

// Drop removes the workspace and its store from this machine, with leftovers of an interrupted Fetch.
func (s *Store) Drop() error {
	return errors.Join(removeAll(s.Root), removeAll(s.Root+newSuffix), removeAll(s.Root+oldSuffix), os.RemoveAll(s.Dir))
}

// removeAll removes a folder with its content, even if folders in it are not writable.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	open(root)
	return errors.Join(root.Close(), os.RemoveAll(dir))
}

// open makes a folder and all its subfolders writable.
func open(root *os.Root) {
	_ = root.Chmod(".", ownerAll)
	names, _ := readNames(root)
	for _, name := range names {
		info, err := root.Lstat(name)
		if err != nil || !info.IsDir() {
			continue
		}
		_ = root.Chmod(name, ownerAll)
		if sub, err := enter(root, name, info); err == nil {
			open(sub)
			_ = sub.Close()
		}
	}
}

// fetcher creates a workspace.
type fetcher struct {
	s       *Store
	ctx     context.Context
	v       *vault
	entries int
	bytes   int64
	left    int
}

func (f *fetcher) workspace(e entry) error {
	f.s.step("make workspace")
	if err := os.Mkdir(f.s.Root+newSuffix, ownerAll); err != nil {
		return err
	}
	root, err := os.OpenRoot(f.s.Root + newSuffix)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if err := f.folder(root, e, 0); err != nil {
		return err
	}
	return root.Chmod(".", fs.FileMode(e.perm|ownerAll))
}

// folder fills an open, empty folder.
func (f *fetcher) folder(dir *os.Root, e entry, depth int) error {
	if err := f.ctx.Err(); err != nil {
		return err
	}
	t, err := f.v.tree(e.sum)
	if err != nil {
		return err
	}
	if f.entries += len(t.entries); f.entries > mostEntries || depth > maxDepth {
		return fmt.Errorf("%w: the workspace has too many files", ErrFull)
	}
	for _, e := range t.entries {
		switch e.kind {
		case isFile:
			err = f.file(dir, e)
		case isDir:
			err = f.below(dir, e, depth)
		case isLink:
			f.s.step("symlink")
			err = dir.Symlink(e.target, e.name)
		default:
			f.left++
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *fetcher) below(dir *os.Root, e entry, depth int) error {
	f.s.step("mkdir")
	if err := dir.Mkdir(e.name, ownerAll); err != nil {
		return err
	}
	sub, err := dir.OpenRoot(e.name)
	if err != nil {
		return err
	}
	err = f.folder(sub, e, depth+1)
	if err == nil {
		err = sub.Chmod(".", fs.FileMode(e.perm))
	}
	return errors.Join(err, sub.Close())
}

func (f *fetcher) file(dir *os.Root, e entry) error {
	if f.bytes += e.size; f.bytes > f.s.quota() {
		return fmt.Errorf("%w: the workspace has more than %d bytes", ErrFull, f.s.quota())
	}
	if p, ok := f.v.at[e.sum]; ok && int64(p.size) != e.size {
		return errDamaged
	}
	f.s.step("write file")
	to, err := dir.OpenFile(e.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = f.v.writeTo(to, e.sum)
	if err == nil {
		err = to.Chmod(fs.FileMode(e.perm))
	}
	if err = errors.Join(err, to.Close()); err == nil && e.mtime != 0 {
		err = dir.Chtimes(e.name, time.Time{}, time.Unix(0, e.mtime))
	}
	return err
}
