package recall

import (
	"bytes"
	"context"
	"maps"
	"slices"
)

// How segments are merged, and when the file is written anew.
const (
	fanIn    = 4       // segments of about one size that become one
	mayWaste = 4 << 20 // bytes of the file that nothing tells of, before it matters
)

// source gives words in order, and the documents that hold them.
type source interface {
	next() (bool, error)
	term() []byte
	ids(out []uint32) ([]uint32, error)
}

func (r *reader) term() []byte                       { return r.word }
func (r *reader) ids(out []uint32) ([]uint32, error) { return r.all(r.f, out) }
func (m *fresh) term() []byte                        { return m.word }
func (m *fresh) ids(out []uint32) ([]uint32, error)  { return append(out, m.words[m.list[0]]...), nil }

// fresh is the source of documents that are in no segment yet.
type fresh struct {
	words map[string][]uint32
	list  []string // the word that is next, and those that follow
	word  []byte
	begun bool
}

func newFresh(words map[string][]uint32) *fresh {
	return &fresh{words: words, list: slices.Sorted(maps.Keys(words))}
}

func (m *fresh) next() (bool, error) {
	if m.begun {
		m.list = m.list[1:]
	}
	m.begun = true
	if len(m.list) == 0 {
		return false, nil
	}
	m.word = append(m.word[:0], m.list[0]...)
	return true, nil
}

// merge writes the words of sources, which hold documents that follow one another. The
// documents get new numbers if there are any: 0 leaves one out.
func merge(ctx context.Context, w *segmentWriter, sources []source, numbers []uint32) error {
	sources, err := advance(sources, sources)
	var ids []uint32
	for n := 0; err == nil && len(sources) > 0; n++ {
		if n%1000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		first := lowest(sources)
		ids = ids[:0]
		for _, s := range first {
			if ids, err = s.ids(ids); err != nil {
				return err
			}
		}
		if ids = renumber(ids, numbers); len(ids) > 0 {
			w.add(first[0].term(), ids)
		}
		sources, err = advance(sources, first)
	}
	return err
}

// advance goes on to the next word of some sources, and leaves out those that have ended.
func advance(sources, some []source) ([]source, error) {
	ended := map[source]bool{}
	for _, s := range some {
		more, err := s.next()
		if err != nil {
			return nil, err
		}
		if !more {
			ended[s] = true
		}
	}
	if len(ended) > 0 {
		sources = slices.DeleteFunc(slices.Clone(sources), func(s source) bool { return ended[s] })
	}
	return sources, nil
}

// lowest lists the sources whose word comes first, in their order.
func lowest(sources []source) (out []source) {
	for _, s := range sources {
		order := -1
		if len(out) > 0 {
			order = bytes.Compare(s.term(), out[0].term())
		}
		if order < 0 {
			out = out[:0]
		}
		if order <= 0 {
			out = append(out, s)
		}
	}
	return out
}

func renumber(ids, numbers []uint32) []uint32 {
	if numbers == nil {
		return ids
	}
	out := ids[:0]
	for _, id := range ids {
		if int(id) < len(numbers) && numbers[id] > 0 {
			out = append(out, numbers[id])
		}
	}
	return out
}

// segment writes the words of new documents, merged with the last segments if there are
// many of their size. So each word is written once for each size.
func (w *writer) segment(first uint32, refs []ref, words map[string][]uint32) error {
	old := w.st.segments[len(w.st.segments)-w.st.merging(uint32(len(refs))):]
	var sources []source
	var all []ref
	for _, seg := range old {
		r, err := seg.from(w.f, "")
		if err != nil {
			return err
		}
		if all, err = seg.allRefs(w.f, all); err != nil {
			return err
		}
		sources, first = append(sources, r), min(first, seg.first)
	}
	to := newSegment(w.a, first)
	if err := merge(w.ctx, to, append(sources, newFresh(words)), nil); err != nil {
		return err
	}
	w.st.segments = append(w.st.segments[:len(w.st.segments)-len(old)], to.end(append(all, refs...)))
	return nil
}

// merging tells how many of the last segments become one with so many new documents.
func (st *state) merging(docs uint32) (take int) {
	for {
		run, more := 0, uint32(0)
		for i := len(st.segments) - 1 - take; i >= 0 && level(st.segments[i].count) <= level(docs); i-- {
			run++
			more += st.segments[i].count
		}
		if run < fanIn-1 {
			return take
		}
		take, docs = take+run, docs+more
	}
}

// level is the size of a segment, as a power of fanIn.
func level(docs uint32) (n int) {
	for ; docs >= fanIn; docs /= fanIn {
		n++
	}
	return n
}

// tidy writes the file anew if more of it is waste than not.
func (w *writer) tidy() error {
	if wasted, used := w.st.wasted(); wasted < max(mayWaste, used) {
		return nil
	}
	return w.rewrite(nil)
}

// rewrite writes the file anew, without the sessions that are gone.
func (w *writer) rewrite(gone map[uint32]bool) error {
	return w.x.replace(w.ctx, func(a *appender) (*state, error) {
		to := newState()
		refs, numbers, err := w.copy(a, to, gone)
		if err != nil {
			return nil, err
		}
		var sources []source
		for _, seg := range w.st.segments {
			r, err := seg.from(w.f, "")
			if err != nil {
				return nil, err
			}
			sources = append(sources, r)
		}
		seg := newSegment(a, 1)
		if err := merge(w.ctx, seg, sources, numbers); err != nil {
			return nil, err
		}
		if len(refs) > 0 {
			to.segments = []*segment{seg.end(refs)}
		}
		return to, w.close() // so that another file can take its place
	})
}

// copy copies the documents that stay. It returns where they are now, and their numbers by
// those they had.
func (w *writer) copy(a *appender, to *state, gone map[uint32]bool) (refs []ref, numbers []uint32, err error) {
	numbers = make([]uint32, w.st.docs+1)
	used := map[uint32]bool{}
	for id, m := range w.st.marks {
		if !gone[id] {
			to.marks[id], used[id] = m, true
		}
	}
	v := view{state: w.st, f: w.f}
	for id := uint32(1); id <= w.st.docs; id++ {
		if id%1000 == 0 && w.ctx.Err() != nil {
			return nil, nil, w.ctx.Err()
		}
		d, err := v.row(id)
		if err != nil {
			return nil, nil, err
		}
		if gone[d.session] {
			continue
		}
		used[d.session], used[d.root] = true, true
		to.docs++
		numbers[id] = to.docs
		refs = append(refs, a.put(d.encode(nil)))
		to.count(refs[len(refs)-1], d)
	}
	to.names = slices.Clone(w.st.names)
	for i := range to.names {
		if !used[uint32(i+1)] {
			to.names[i] = ""
		}
	}
	return refs, numbers, nil
}
