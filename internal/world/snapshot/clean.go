package snapshot

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/inspan/inspan/internal/base/keep"
)

const (
	smallPack = 1 << 20 // bytes below which packs are combined
	manyPacks = 64      // when there are more small packs than this
)

// Clean removes the oldest checkpoints, except those in keep, until a quarter of the quota is free. It also
// removes content that no checkpoint needs. It returns the number of bytes freed.
func (s *Store) Clean(ctx context.Context, keep ...string) (freed int64, err error) {
	if _, err := os.Stat(s.path(formatName)); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	unlock, err := s.change(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	if err := s.idle(); err != nil {
		return 0, err
	}
	before, err := size(s.Dir)
	if err != nil {
		return 0, err
	}
	if err := s.clean(ctx, keep); err != nil {
		return 0, err
	}
	after, err := size(s.Dir)
	return before - after, err
}

func (s *Store) clean(ctx context.Context, keep []string) error {
	v, err := s.load()
	if err != nil {
		return err
	}
	defer v.close()
	m := &marker{s: s, v: v, ctx: ctx, live: map[digest]bool{}}
	drop, err := m.choose(keep)
	if err != nil {
		return err
	}
	if err := s.remove(drop); err != nil {
		return err
	}
	if err := m.repack(); err != nil {
		return err
	}
	return m.dropObjects()
}

// marker marks the objects that checkpoints need.
type marker struct {
	s    *Store
	v    *vault
	ctx  context.Context
	live map[digest]bool
	size int64 // of the live objects
}

// choose marks the objects of the checkpoints that fit, and returns the other checkpoints.
func (m *marker) choose(keep []string) (drop []string, err error) {
	records, _, err := m.s.records()
	if err != nil {
		return nil, err
	}
	slices.Reverse(records) // newest first
	kept := func(r *record) bool { return slices.Contains(keep, r.ID) }
	for _, r := range records {
		if kept(r) {
			if err := m.mark(r); err != nil {
				return nil, err
			}
		}
	}
	full := false
	for _, r := range records {
		if kept(r) {
			continue
		}
		if !full {
			if err := m.mark(r); err != nil {
				return nil, err
			}
			full = m.size > m.room()
		}
		if full {
			drop = append(drop, r.ID)
		}
	}
	if full {
		return drop, m.anew(records, drop)
	}
	return drop, nil
}

// room returns the number of bytes that may remain.
func (m *marker) room() int64 { return m.s.quota() / 4 * 3 }

// anew marks again, without the dropped checkpoints.
func (m *marker) anew(records []*record, drop []string) error {
	clear(m.live)
	m.size = 0
	for _, r := range records {
		if !slices.Contains(drop, r.ID) {
			if err := m.mark(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// mark marks all objects that a checkpoint needs. Damaged or missing ones can't be marked.
func (m *marker) mark(r *record) error {
	root, err := r.root()
	if err != nil {
		return nil //nolint:nilerr // a damaged checkpoint needs nothing
	}
	m.size += 512
	return m.markTree(root.sum)
}

func (m *marker) markTree(d digest) error {
	if m.live[d] {
		return nil
	}
	if err := m.ctx.Err(); err != nil {
		return err
	}
	m.need(d, 0)
	data, err := m.v.treeData(d)
	if errors.Is(err, errDamaged) || errors.Is(err, errAbsent) {
		return nil
	}
	if err != nil {
		return err
	}
	t, _ := parseTree(data)
	if t == nil {
		return nil
	}
	for _, e := range t.entries {
		if e.kind == isDir {
			if err := m.markTree(e.sum); err != nil {
				return err
			}
		} else if e.kind == isFile && !m.live[e.sum] {
			m.need(e.sum, e.size)
		}
	}
	return nil
}

func (m *marker) need(d digest, size int64) {
	m.live[d] = true
	if p, ok := m.v.at[d]; ok {
		size = int64(p.size) + indexedSize
	}
	m.size += size
}

// repack writes the needed objects of packs that are mostly waste, or small and many, to a new pack, and
// deletes the old ones. An unreadable pack is deleted: its objects can't be found.
func (m *marker) repack() error {
	used := make([]int64, len(m.v.packs))
	for d, p := range m.v.at {
		if m.live[d] {
			used[p.pack] += int64(p.size) + indexedSize
		}
	}
	old, err := m.wasteful(used)
	if err != nil {
		return err
	}
	if err := m.rewrite(old, used); err != nil {
		return err
	}
	m.v.close()
	for n := range old {
		m.s.step("remove pack")
		if err := os.Remove(m.v.packs[n]); err != nil {
			return err
		}
	}
	for _, name := range m.v.bad {
		m.s.step("remove pack")
		if err := os.Remove(m.s.path(packsName, name)); err != nil {
			return err
		}
	}
	return keep.Sync(m.s.path(packsName))
}

// wasteful returns the packs to be rewritten.
func (m *marker) wasteful(used []int64) (map[int32]bool, error) {
	total, err := size(m.s.Dir)
	if err != nil {
		return nil, err
	}
	waste := int64(2) // the fraction of a pack that may be waste: one half
	if total > m.room() {
		waste = 16
	}
	old := map[int32]bool{}
	var small []int32
	for n, path := range m.v.packs {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		switch {
		case used[n]+trailerSize < info.Size()-info.Size()/waste:
			old[int32(n)] = true
		case info.Size() < smallPack:
			small = append(small, int32(n))
		}
	}
	if len(small) > manyPacks {
		for _, n := range small {
			old[n] = true
		}
	}
	return old, nil
}

// rewrite copies needed objects out of packs. Damaged ones are dropped.
func (m *marker) rewrite(old map[int32]bool, used []int64) error {
	var total int64
	for n := range old {
		total += used[n]
	}
	if total == 0 {
		return nil
	}
	id, _, err := m.s.newID()
	if err != nil {
		return err
	}
	to, err := m.s.newPack()
	if err != nil {
		return err
	}
	for _, d := range m.order(old) {
		data, err := m.v.small(m.v.at[d], d)
		if errors.Is(err, errDamaged) {
			continue
		}
		if err == nil {
			err = to.put(d, data)
		}
		if err == nil {
			err = m.ctx.Err()
		}
		if err != nil {
			to.drop()
			return err
		}
	}
	return to.commit(id)
}

// order lists the needed objects of packs in reading order.
func (m *marker) order(packs map[int32]bool) []digest {
	var out []digest
	for d, p := range m.v.at {
		if packs[p.pack] && m.live[d] {
			out = append(out, d)
		}
	}
	slices.SortStableFunc(out, func(a, b digest) int {
		x, y := m.v.at[a], m.v.at[b]
		return cmp.Or(cmp.Compare(x.pack, y.pack), cmp.Compare(x.off, y.off))
	})
	return out
}

// dropObjects deletes unneeded big objects.
func (m *marker) dropObjects() error {
	dirs, err := os.ReadDir(m.s.path(objectsName))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		names, err := os.ReadDir(m.s.path(objectsName, dir.Name()))
		if err != nil {
			return err
		}
		for _, e := range names {
			if d, ok := parseDigest(e.Name()); ok && m.live[d] {
				continue
			}
			m.s.step("remove object")
			if err := os.Remove(filepath.Join(m.s.path(objectsName, dir.Name()), e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
