package snapshot

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
)

// maxOpen bounds the packs that are open at once.
const maxOpen = 32

// place is the position of a small object.
type place struct {
	pack int32 // index in vault.packs
	size uint32
	off  int64
}

// vault finds and reads objects. It is not safe for concurrent use, except has while no other method runs.
type vault struct {
	s     *Store
	packs []string // paths
	at    map[digest]place
	bad   []string // packs with an unreadable index
	open  map[int32]*os.File
	trees map[digest]*tree
	fresh map[digest][]byte // trees that are in no store; see dry
	made  map[digest][]byte // merged texts that are not in the store yet
}

// errAbsent says that the object isn't in the store.
var errAbsent = errors.New("its content is not in the store")

// errDamaged says that the object has changed since it was written.
var errDamaged = errors.New("its content is not what was written")

// load opens the objects of the store. The caller holds a lock.
func (s *Store) load() (*vault, error) {
	v := &vault{s: s, at: map[digest]place{}, open: map[int32]*os.File{}, trees: map[digest]*tree{}}
	names, err := os.ReadDir(s.path(packsName))
	if err != nil {
		return nil, err
	}
	for _, e := range names {
		path := s.path(packsName, e.Name())
		index, err := readIndex(path)
		switch {
		case errors.Is(err, errDamaged):
			v.bad = append(v.bad, e.Name())
		case err != nil:
			return nil, err
		default:
			v.add(path, index)
		}
	}
	return v, nil
}

func (v *vault) add(path string, index []indexed) {
	pack := int32(len(v.packs))
	v.packs = append(v.packs, path)
	if len(v.at) == 0 {
		v.at = make(map[digest]place, len(index)+len(index)/8)
	}
	for _, x := range index {
		if _, known := v.at[x.sum]; !known {
			v.at[x.sum] = place{pack, x.size, x.off}
		}
	}
}

func (v *vault) close() {
	for _, f := range v.open {
		_ = f.Close()
	}
	clear(v.open)
}

// object returns the path of a big object.
func (s *Store) object(d digest) string {
	name := d.String()
	return s.path(objectsName, name[:2], name)
}

// has reports whether the object seems to exist.
func (v *vault) has(d digest, size int64) bool {
	if _, ok := v.at[d]; ok {
		return true
	}
	if size < bigObject {
		return false
	}
	info, err := os.Lstat(v.s.object(d))
	return err == nil && info.Size() == size
}

// lost reports whether an object is missing completely, as opposed to damaged.
func (v *vault) lost(d digest) bool {
	if v.made[d] != nil {
		return false
	}
	if _, ok := v.at[d]; ok || len(v.bad) > 0 {
		return false
	}
	_, err := os.Lstat(v.s.object(d))
	return errors.Is(err, fs.ErrNotExist)
}

func (v *vault) pack(n int32) (*os.File, error) {
	if f := v.open[n]; f != nil {
		return f, nil
	}
	if len(v.open) >= maxOpen {
		v.close()
	}
	f, err := os.Open(v.packs[n])
	if err == nil {
		v.open[n] = f
	}
	return f, err
}

// small reads an object in a pack.
func (v *vault) small(p place, d digest) ([]byte, error) {
	f, err := v.pack(p.pack)
	if err != nil {
		return nil, err
	}
	data := make([]byte, p.size)
	if _, err := f.ReadAt(data, p.off); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if sha256.Sum256(data) != d {
		return nil, errDamaged
	}
	return data, nil
}

// absent returns the error about an object that can't be found.
func (v *vault) absent() error {
	if len(v.bad) > 0 {
		return fmt.Errorf("%w: %s can't be read", errDamaged, strings.Join(v.bad, ", "))
	}
	return errAbsent
}

// writeTo writes the content of a file to w. If it fails, w received invalid content.
func (v *vault) writeTo(w io.Writer, d digest) error {
	if data, ok := v.made[d]; ok {
		_, err := w.Write(data)
		return err
	}
	if p, ok := v.at[d]; ok {
		return v.packed(w, p, d)
	}
	f, err := os.Open(v.s.object(d))
	if errors.Is(err, fs.ErrNotExist) {
		return v.absent()
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if to, ok := w.(*os.File); ok && clone(to, f) {
		return verify(to, d)
	}
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, h), f); err != nil {
		return err
	}
	return settle(h, d)
}

// packed writes an object in a pack.
func (v *vault) packed(w io.Writer, p place, d digest) error {
	if p.size < bigObject {
		data, err := v.small(p, d)
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	}
	f, err := v.pack(p.pack)
	if err != nil {
		return err
	}
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, h), io.NewSectionReader(f, p.off, int64(p.size))); err != nil {
		return err
	}
	return settle(h, d)
}

// verify checks the digest of a file from its start.
func verify(f *os.File, d digest) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	return settle(h, d)
}

func settle(h hash.Hash, d digest) error {
	if digest(h.Sum(nil)) != d {
		return errDamaged
	}
	return nil
}

// tree reads the tree of a folder.
func (v *vault) tree(d digest) (*tree, error) {
	if t := v.trees[d]; t != nil {
		return t, nil
	}
	data, err := v.treeData(d)
	if err != nil {
		return nil, err
	}
	t, ok := parseTree(data)
	if !ok {
		return nil, errDamaged
	}
	v.trees[d] = t
	return t, nil
}

func (v *vault) treeData(d digest) ([]byte, error) {
	if data, ok := v.fresh[d]; ok {
		return data, nil
	}
	if p, ok := v.at[d]; ok {
		return v.small(p, d)
	}
	data, err := keep.Read(v.s.object(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, v.absent()
	}
	if err == nil && sha256.Sum256(data) != d {
		err = errDamaged
	}
	return data, err
}

// size returns the total size of all files below a folder.
func size(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				total += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return total, err
}
