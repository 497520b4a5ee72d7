package recall

import (
	"io"
	"slices"
	"sort"
)

// set is documents. It is walked from the newest backwards: at returns the newest one that
// is not above most, or 0 if there is none. Most never grows from call to call.
type set interface {
	at(most uint32) (id uint32, err error)
}

// list is the documents of a segment that hold a word.
type list struct {
	f     io.ReaderAt
	ids   []uint32 // of the part that was read last, without those that were walked past
	parts []part   // before it
}

type part struct {
	first uint32
	ref
}

// list reads where the documents of a word are.
func (e entry) list(f io.ReaderAt) (*list, error) {
	l, d := &list{f: f}, decoder{b: e.data}
	if e.docs <= inline {
		l.ids = sums(&d, nil, e.seg.first)
		if d.bad || len(l.ids) != e.docs {
			return nil, damage(e.seg.off)
		}
		return l, nil
	}
	start := e.seg.off + d.uint()
	data, err := fetch(f, ref{start + d.uint(), int(d.uint())})
	if err != nil {
		return nil, err
	}
	first := e.seg.first
	for d = (decoder{b: data}); len(d.b) > 0; {
		first += uint32(d.uint())
		p := part{first, ref{start, int(d.uint())}}
		l.parts = append(l.parts, p)
		start = p.end()
	}
	if d.bad {
		return nil, damage(e.seg.off)
	}
	return l, nil
}

// sums is deltas the other way round.
func sums(d *decoder, out []uint32, last uint32) []uint32 {
	for len(d.b) > 0 {
		last += uint32(d.uint())
		out = append(out, last)
	}
	return out
}

// read appends the ids of a part.
func (l *list) read(p part, out []uint32) ([]uint32, error) {
	data, err := fetch(l.f, p.ref)
	if err != nil {
		return nil, err
	}
	d := decoder{b: data}
	out = sums(&d, append(out, p.first), p.first)
	if d.bad {
		return nil, damage(p.off)
	}
	return out, nil
}

func (l *list) at(most uint32) (uint32, error) {
	for {
		n := len(l.ids)
		if n > 0 && l.ids[n-1] > most {
			at, found := slices.BinarySearch(l.ids, most)
			if n = at; found {
				n++
			}
			l.ids = l.ids[:n]
		}
		if n > 0 {
			return l.ids[n-1], nil
		}
		if n = sort.Search(len(l.parts), func(i int) bool { return l.parts[i].first > most }); n == 0 {
			return 0, nil
		}
		var err error
		if l.ids, err = l.read(l.parts[n-1], l.ids[:0]); err != nil {
			return 0, err
		}
		l.parts = l.parts[:n-1]
	}
}

// all appends all documents of a word, in order.
func (e entry) all(f io.ReaderAt, out []uint32) ([]uint32, error) {
	l, err := e.list(f)
	if err != nil {
		return nil, err
	}
	out = append(out, l.ids...)
	for _, p := range l.parts {
		if out, err = l.read(p, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// holders is the documents that hold a word, over all segments.
type holders struct {
	f    io.ReaderAt
	rest []entry // of segments that were not walked yet, the oldest first
	list *list   // of the one that is walked
}

func (h *holders) at(most uint32) (uint32, error) {
	for {
		if h.list != nil {
			if id, err := h.list.at(most); err != nil || id > 0 {
				return id, err
			}
		}
		n := len(h.rest)
		if n == 0 {
			return 0, nil
		}
		e := h.rest[n-1]
		h.rest, h.list = h.rest[:n-1], nil
		if most >= e.seg.first {
			var err error
			if h.list, err = e.list(h.f); err != nil {
				return 0, err
			}
		}
	}
}

// every is the documents that are in all of several sets.
type every []set

func (s every) at(most uint32) (uint32, error) {
	for i := 0; i < len(s) && most > 0; {
		id, err := s[i].at(most)
		switch {
		case err != nil:
			return 0, err
		case id < most && i > 0:
			i = 0 // those before have to agree
		default:
			i++
		}
		most = id
	}
	return most, nil
}

// some is the documents that are in one of several sets at least.
type some []*held

// held is a set with the document it was found to hold last.
type held struct {
	set
	id    uint32
	known bool
}

func (s some) at(most uint32) (best uint32, err error) {
	for _, h := range s {
		if !h.known || h.id > most {
			if h.id, err = h.at(most); err != nil {
				return 0, err
			}
			h.known = true
		}
		best = max(best, h.id)
	}
	return best, nil
}

// either is some of sets, or the only one.
func either(sets []set) set {
	if len(sets) == 1 {
		return sets[0]
	}
	var out some
	for _, s := range sets {
		out = append(out, &held{set: s})
	}
	return out
}

// without is the documents of one set that are not in another.
type without struct{ these, those set }

func (s without) at(most uint32) (uint32, error) {
	for {
		id, err := s.these.at(most)
		if err != nil || id == 0 {
			return 0, err
		}
		not, err := s.those.at(id)
		if err != nil || not != id {
			return id, err
		}
		most = id - 1
	}
}
