package snapshot

import (
	"bytes"
	"crypto/sha256"
	"os"
	"slices"

	"github.com/aymanbagabas/go-udiff"
)

// mostMerged is the largest text that is merged, in bytes.
const mostMerged = 4 << 20

// leg is what one span has made of a path.
type leg struct{ before, after entry }

// undone is what a path becomes when the legs are taken out of it again, from the last to
// the first. Where somebody else has changed a text between or after them, what they have
// changed stays; where that can't be, why says so.
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

// without takes one leg out of a text that has other changes too.
func (p *plan) without(path string, e entry, l leg) (to entry, why string, err error) {
	var texts [3]string
	for i, side := range []entry{e, l.after, l.before} {
		if side.kind != isFile || side.size > mostMerged {
			return e, whySince, nil
		}
		data, err := p.content(path, side)
		if err != nil {
			return e, whySince, p.ctx.Err() // what can't be read can't be merged
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

// content reads a file of the store, or of the workspace as it is now.
func (p *plan) content(path string, e entry) ([]byte, error) {
	v := p.cur.v
	var b bytes.Buffer
	if !v.lost(e.sum) {
		err := v.copy(&b, e.sum)
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

// merge brings what theirs has changed of base into ours, by lines. It reports false where
// both have changed the same place.
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
