package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"

	"github.com/inspan/inspan/internal/base/keep"
)

// Take takes a checkpoint of the current workspace. Unreadable files are left out and counted. After
// ErrFull or ErrUnfinished the store is as before.
func (s *Store) Take(ctx context.Context) (Checkpoint, error) {
	unlock, err := s.change(ctx)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("take a checkpoint: %w", err)
	}
	defer unlock()
	if err := s.idle(); err != nil {
		return Checkpoint{}, err
	}
	r, err := s.take(ctx, true)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("take a checkpoint: %w", err)
	}
	return r.Checkpoint, nil
}

// take takes a checkpoint. The caller holds the lock.
func (s *Store) take(ctx context.Context, limited bool) (*record, error) {
	v, err := s.load()
	if err != nil {
		return nil, err
	}
	defer v.close()
	room := int64(math.MaxInt64)
	if limited {
		used, err := size(s.Dir)
		if err != nil {
			return nil, err
		}
		room = s.quota() - used
	}
	to := &writer{s: s, v: v, room: room, fresh: map[digest]bool{}}
	cache := s.loadCache()
	w, root, err := s.scan(ctx, to, cache)
	if err != nil {
		return nil, errors.Join(err, to.drop())
	}
	r := &record{Tree: root.sum.String(), Perm: root.perm}
	r.Files, r.Bytes, r.Left = int(w.files.Load()), w.bytes.Load(), int(w.left.Load())
	if err := to.commit(r); err != nil {
		return nil, err
	}
	s.saveCache(cache)
	return r, nil
}

// writer is the sink that adds to the store. Its objects can be found once their checkpoint is committed.
type writer struct {
	s     *Store
	v     *vault
	mu    sync.Mutex
	fresh map[digest]bool // in pack
	pack  *pack
	bigs  []digest // new big objects
	big   int64    // bytes in bigs
	room  int64    // bytes that may be added
}

func (w *writer) known(d digest, size int64) bool { return w.v.has(d, size) }

func (w *writer) tree(data []byte) (digest, error) { return w.small(data) }

func (w *writer) small(data []byte) (digest, error) {
	d := digest(sha256.Sum256(data))
	if w.v.has(d, int64(len(data))) {
		return d, nil
	}
	if len(data) > math.MaxUint32 {
		return d, errors.New("a folder has too many entries")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fresh[d] {
		return d, nil
	}
	if w.pack == nil {
		p, err := w.s.newPack()
		if err != nil {
			return d, err
		}
		w.pack = p
	}
	if err := w.pack.put(d, data); err != nil {
		return d, err
	}
	w.fresh[d] = true
	return d, w.fits()
}

// fits checks the quota. The caller holds w.mu.
func (w *writer) fits() error {
	total := w.big
	if w.pack != nil {
		total += w.pack.size()
	}
	if total > w.room {
		return fmt.Errorf("%w: the workspace needs at least %d more bytes, and the quota is %d", ErrFull, total, w.s.quota())
	}
	return nil
}

func (w *writer) large(r *os.File, limit int64) (d digest, size int64, err error) {
	f, err := w.s.temp("object")
	if err != nil {
		return d, 0, err
	}
	kept := false
	defer func() {
		if !kept {
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}()
	d, size, err = w.fill(f, r, limit)
	if err != nil || size > limit || w.v.has(d, size) {
		return d, size, err
	}
	if size < bigObject { // the file shrank meanwhile
		data, err := os.ReadFile(f.Name())
		if err == nil {
			d, err = w.small(data)
		}
		return d, size, err
	}
	kept = true
	return d, size, w.keep(f, d, size)
}

// fill copies r to the file f of the store, and returns the digest of the copy.
func (w *writer) fill(f, r *os.File, limit int64) (d digest, size int64, err error) {
	w.s.step("write object")
	h := sha256.New()
	if clone(f, r) {
		size, err = io.Copy(h, f)
		return digest(h.Sum(nil)), size, err
	}
	in := &source{r: r}
	size, err = io.Copy(io.MultiWriter(f, h), io.LimitReader(in, limit+1))
	if in.err != nil {
		err = errUnreadable
	}
	return digest(h.Sum(nil)), size, err
}

// source records that a read failed, as opposed to a write.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// keep turns a written file into an object, unless another goroutine already has.
func (w *writer) keep(f *os.File, d digest, size int64) error {
	path := w.s.object(d)
	w.s.step("make object folder")
	err := os.Mkdir(filepath.Dir(path), 0o700)
	if err == nil {
		err = keep.Sync(w.s.path(objectsName))
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fresh[d] {
		return errors.Join(f.Close(), os.Remove(f.Name()))
	}
	w.fresh[d] = true
	w.bigs = append(w.bigs, d)
	w.big += size
	if err := w.fits(); err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return w.s.commit(f, nil, path)
}

// drop discards all that was written.
func (w *writer) drop() error {
	if w.pack != nil {
		w.pack.drop()
	}
	var err error
	for _, d := range w.bigs {
		if rm := os.Remove(w.s.object(d)); !errors.Is(rm, fs.ErrNotExist) {
			err = errors.Join(err, rm)
		}
	}
	return err
}

// commit writes the pack and then the record, which makes it a checkpoint.
func (w *writer) commit(r *record) error {
	id, now, err := w.s.newID()
	if err != nil {
		return errors.Join(err, w.drop())
	}
	r.ID, r.Time, r.New = id, now, w.big
	if w.pack != nil {
		r.New += w.pack.size()
		if err := w.pack.commit(id); err != nil {
			return errors.Join(err, w.drop())
		}
	}
	data, err := r.encode()
	if err != nil {
		return err
	}
	return w.s.writeFile(w.s.path(recordsName, id), data)
}

// dry is a sink that keeps only trees, in memory.
type dry struct {
	mu    sync.Mutex
	trees map[digest][]byte
}

func (*dry) known(digest, int64) bool { return true }

func (k *dry) tree(data []byte) (digest, error) {
	d := digest(sha256.Sum256(data))
	k.mu.Lock()
	defer k.mu.Unlock()
	k.trees[d] = data
	return d, nil
}

func (*dry) small(data []byte) (digest, error) { return sha256.Sum256(data), nil }

func (*dry) large(r *os.File, limit int64) (digest, int64, error) {
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(r, limit+1))
	if err != nil {
		err = errUnreadable
	}
	return digest(h.Sum(nil)), n, err
}
