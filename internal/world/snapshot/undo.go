package snapshot

import (
	"bytes"
	"crypto/sha256"
	"os"
	"slices"

	"github.com/aymanbagabas/go-udiff"
)

// mostMerged bounds the texts that are merged, in bytes.
const mostMerged = 4 << 20

// leg is the change of a path in one span.
type leg struct{ before, after entry }

// undone returns the state of a path without the legs, undone from the last to the first. Changes that others
// made to a text between or after them are preserved; if that is impossible, why is the reason.
func (p *plan) undone(path string, from entry, legs []leg) (to entry, why string, err error) {
	to = from
	for _, l := range slices.Backward(legs) {
		if to.same(l.after) {
			to = l.before
			continue
		}
		if to, why, err = p.without(path, to, l); err != nil || why == whySince {
			return to, why, err
		}
	}
	return to, why, nil
}

// without undoes one leg in a text that has other changes too.
func (p *plan) without(path string, e entry, l leg) (to entry, why string, err error) {
	var texts [3]string
	for i, side := range []entry{e, l.after, l.before} {
		if side.kind != isFile || side.size > mostMerged {
			return e, whySince, nil
		}
		data, err := p.content(path, side)
		if err != nil {
			return e, whySince, p.ctx.Err() // unreadable content can't be merged
		}
		if bytes.IndexByte(data, 0) >= 0 {
			return e, whySince, nil
		}
		texts[i] = string(data)
	}
	merged, ok := merge(texts[0], texts[1], texts[2])
	if !ok {
		return e, whySince, nil
	}
	to = entry{name: e.name, kind: isFile, perm: e.perm, size: int64(len(merged)), sum: sha256.Sum256([]byte(merged))}
	if e.perm == l.after.perm {
		to.perm = l.before.perm
	}
	if p.cur.v.made == nil {
		p.cur.v.made = map[digest][]byte{}
	}
	p.cur.v.made[to.sum] = []byte(merged)
	return to, Merged, nil
}

// content reads a file of the store, or of the current workspace.
func (p *plan) content(path string, e entry) ([]byte, error) {
	v := p.cur.v
	var b bytes.Buffer
	if !v.lost(e.sum) {
		err := v.writeTo(&b, e.sum)
		return b.Bytes(), err
	}
	root, err := os.OpenRoot(p.s.Root)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	data, err := root.ReadFile(path)
	if err == nil && sha256.Sum256(data) != e.sum {
		err = errAbsent
	}
	return data, err
}

// merge applies the changes from base to theirs to ours, by lines. It returns false if both changed the same
// place.
func merge(ours, base, theirs string) (string, bool) {
	mine, other := udiff.Lines(base, ours), udiff.Lines(base, theirs)
	for _, a := range mine {
		for _, b := range other {
			if a != b && (a.Start == b.Start && a.End == b.End || a.Start < b.End && b.Start < a.End) {
				return "", false
			}
		}
	}
	edits, ok := udiff.Merge(mine, other)
	if !ok {
		return "", false
	}
	out, err := udiff.Apply(base, edits)
	return out, err == nil
}
