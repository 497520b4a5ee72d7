package snapshot

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"sync"

	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// smallSent is the maximum size of a pack that is kept even if most of it is waste.
const smallSent = 64 << 10

// A pack in a blob begins with the mark and random bytes, so that all packs have different names.
const (
	nonceSize = 16
	headSize  = len(stateMark) + nonceSize
)

// Send writes the state of the workspace to blobs: a pack with the objects that packs of an earlier state lack,
// and a manifest. Before names the earlier state, or is empty. Packs of it that are mostly waste, or small and
// many, are replaced by new ones. If nothing has changed, nothing is written, and the state is the earlier one. The error
// ErrFull means that the workspace exceeds the quota; then Bytes is a lower bound of its size, and blobs that
// were written are removed.
func (s *Store) Send(ctx context.Context, blobs tool.Blobs, before string) (Sent, error) {
	unlock, err := s.change(ctx)
	if err != nil {
		return Sent{}, fmt.Errorf("send the workspace: %w", err)
	}
	defer unlock()
	if err = os.Mkdir(s.path(sentName), 0o700); errors.Is(err, fs.ErrExist) {
		err = nil
	}
	var sent Sent
	if err == nil {
		sent, err = s.send(ctx, blobs, before)
	}
	if err != nil {
		return Sent{Bytes: sent.Bytes}, fmt.Errorf("send the workspace: %w", err)
	}
	return sent, nil
}

func (s *Store) send(ctx context.Context, blobs tool.Blobs, before string) (Sent, error) {
	m, tree := &manifest{}, digest{}
	if before != "" {
		var err error
		if m, tree, err = s.sentManifest(ctx, blobs, before); err != nil {
			return Sent{}, err
		}
	}
	to := &sender{s: s, ctx: ctx, blobs: blobs, at: map[digest]place{}, fresh: map[digest]bool{}, live: map[digest]bool{}}
	to.use(m)
	cache := s.loadCache()
	w, root, err := s.scan(ctx, to, cache)
	if err == nil && w.bytes.Load() > s.quota() {
		err = ErrFull
	}
	if err != nil {
		to.takeBack()
		if errors.Is(err, ErrFull) {
			return Sent{Bytes: max(w.bytes.Load(), s.quota()+1)}, err
		}
		return Sent{}, err
	}
	if before != "" && root.sum == tree && root.perm == m.Perm && !to.missing {
		to.drop()
		s.saveCache(cache)
		return m.sent(before), nil
	}
	next := &manifest{
		Tree: root.sum.String(), Perm: root.perm, Files: int(w.files.Load()), Bytes: w.bytes.Load(), Left: int(w.left.Load()),
	}
	sent, err := to.commit(next)
	if err != nil {
		to.takeBack()
		return Sent{}, err
	}
	s.saveCache(cache)
	if before != "" {
		sent.Gone = append(m.without(next), before)
	}
	return sent, s.forget(sent.Manifest, next)
}

// without returns the packs of m that next lacks.
func (m *manifest) without(next *manifest) (gone []string) {
	has := map[string]bool{}
	for _, p := range next.Packs {
		has[p.Blob] = true
	}
	for _, p := range m.Packs {
		if !has[p.Blob] {
			gone = append(gone, p.Blob)
		}
	}
	return gone
}

// sender is the sink that writes packs to blobs. A big object has its own pack.
type sender struct {
	s     *Store
	ctx   context.Context
	blobs tool.Blobs
	packs []sentPack // packs in use; places refer to them by index

	missing bool // a pack could not be used, because its index is missing here

	mu    sync.Mutex
	at    map[digest]place
	fresh map[digest]bool // in pack, or in a pack of its own
	live  map[digest]bool
	pack  *pack
	bigs  []indexed // each alone in a pack, listed in bigAt
	bigAt []sentPack
	put   int64 // bytes of packs

	naming sync.Mutex
	names  []string // of the blobs that were written
}

// use reuses the suitable packs of an earlier state.
func (w *sender) use(m *manifest) {
	total, several := int64(0), 0
	for _, p := range m.Packs {
		if !p.One {
			total += p.Size
			several++
		}
	}
	for _, p := range m.Packs {
		if p.Live < p.Size/2 && p.Size > smallSent || !p.One && several > mostPacks && p.Size < total/8 {
			continue
		}
		index, err := w.s.remembered(p.Blob)
		if err != nil {
			w.missing = true // its objects are sent again
			continue
		}
		n := int32(len(w.packs))
		w.packs = append(w.packs, p)
		for _, x := range index {
			if _, known := w.at[x.sum]; !known {
				w.at[x.sum] = place{n, x.size, 0}
			}
		}
	}
}

// known reports whether an object is in a pack, and marks it as needed.
func (w *sender) known(d digest, _ int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.have(d)
}

func (w *sender) have(d digest) bool {
	if _, ok := w.at[d]; !ok && !w.fresh[d] {
		return false
	}
	w.live[d] = true
	return true
}

func (w *sender) tree(data []byte) (digest, error) { return w.small(data) }

func (w *sender) small(data []byte) (digest, error) {
	d := digest(sha256.Sum256(data))
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.have(d) {
		return d, nil
	}
	if len(data) > math.MaxUint32 {
		return d, errors.New("a folder has too many entries")
	}
	if w.pack == nil {
		p, err := w.newPack()
		if err != nil {
			return d, err
		}
		w.pack = p
	}
	if err := w.pack.put(d, data); err != nil {
		return d, err
	}
	w.fresh[d], w.live[d] = true, true
	return d, w.fits(w.pack.off)
}

// fits checks the quota. The caller holds w.mu.
func (w *sender) fits(more int64) error {
	if w.put+more > 2*w.s.quota() {
		return ErrFull
	}
	return nil
}

func (w *sender) newPack() (*pack, error) {
	p, err := w.s.newPack()
	if err != nil {
		return nil, err
	}
	head := append([]byte(stateMark), make([]byte, nonceSize)...)
	_, _ = rand.Read(head[len(stateMark):]) // never fails
	if _, err := p.w.Write(head); err != nil {
		p.drop()
		return nil, err
	}
	p.off = int64(headSize)
	return p, nil
}

func (w *sender) large(r *os.File, limit int64) (d digest, size int64, err error) {
	p, err := w.newPack()
	if err != nil {
		return d, 0, err
	}
	defer p.drop()
	w.s.step("write object")
	h, in := sha256.New(), &source{r: r}
	limit = min(limit, math.MaxUint32)
	size, err = io.Copy(io.MultiWriter(p.w, h), io.LimitReader(in, limit+1))
	if in.err != nil {
		err = errUnreadable
	}
	if d = digest(h.Sum(nil)); err != nil || size > limit || w.known(d, size) {
		return d, size, err
	}
	p.noted(d, size)
	w.mu.Lock()
	err = w.fits(p.size())
	w.mu.Unlock()
	if err != nil {
		return d, size, err
	}
	blob, err := w.store(p)
	if err != nil {
		return d, size, err
	}
	blob.One = true
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put += blob.Size
	w.fresh[d], w.live[d] = true, true
	w.bigs, w.bigAt = append(w.bigs, p.index[0]), append(w.bigAt, blob)
	return d, size, nil
}

// store writes a pack to a blob, and stores its index.
func (w *sender) store(p *pack) (sentPack, error) {
	size := p.size()
	err := p.end()
	if err == nil {
		_, err = p.f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return sentPack{}, err
	}
	w.s.step("put blob")
	name, err := w.blobs.Put(w.ctx, p.f)
	if err != nil {
		return sentPack{}, &BlobError{err}
	}
	w.naming.Lock()
	w.names = append(w.names, name)
	w.naming.Unlock()
	live := size - int64(headSize) - trailerSize
	return sentPack{Blob: name, Size: size, Live: live}, w.s.remember(name, p.index)
}

// BlobError says that blobs can't be written or read now.
type BlobError struct{ Err error }

func (e *BlobError) Error() string { return e.Err.Error() }

func (e *BlobError) Unwrap() error { return e.Err }

// takeBack removes the blobs of an incomplete state, if possible.
func (w *sender) takeBack() {
	w.drop()
	from, can := w.blobs.(store.BlobRemover)
	for _, name := range w.names {
		if can {
			_ = from.Remove(context.WithoutCancel(w.ctx), name)
		}
	}
}

func (w *sender) drop() {
	if w.pack != nil {
		w.pack.drop()
	}
}

// commit writes the new pack, and the manifest.
func (w *sender) commit(m *manifest) (Sent, error) {
	live := make([]int64, len(w.packs))
	for d := range w.live {
		if p, ok := w.at[d]; ok {
			live[p.pack] += int64(p.size) + indexedSize
		}
	}
	for n, p := range w.packs {
		if p.Live = min(live[n], p.Size); p.Live > 0 {
			m.Packs = append(m.Packs, p)
		}
	}
	m.Packs = append(m.Packs, w.bigAt...)
	defer w.drop()
	if w.pack != nil {
		p, err := w.store(w.pack)
		if err != nil {
			return Sent{}, err
		}
		w.put += p.Size
		m.Packs = append(m.Packs, p)
	}
	slices.SortStableFunc(m.Packs, func(a, b sentPack) int { return cmp.Compare(b.Size, a.Size) })
	name, size, err := w.s.sendManifest(w.ctx, w.blobs, m)
	if err != nil {
		return Sent{}, err
	}
	sent := m.sent(name)
	sent.New = w.put + int64(size)
	return sent, nil
}
