package recall

import (
	"encoding/binary"
	"io"
	"iter"
	"slices"
	"sort"
	"sync"
)

// A segment holds the words of documents that follow one another, and where these are.
// It is never changed: several are merged into one, which is written anew.
//
// The words are sorted and stand in blocks, each as what it shares with the one before. A
// word of few documents has their ids beside it, one of many where they are: in parts,
// with a list of the parts behind them, so that a search from the newest backwards reads
// no more than it needs. Behind the words are tables of where the documents are, and a
// list of the blocks.
type segment struct {
	first, count uint32 // of its documents
	off, size    uint64
	table        uint64
	index        ref

	mu     sync.Mutex
	blocks []block // once they were needed
}

// block is where words are, from first on.
type block struct {
	first string
	ref
}

const (
	blockSize = 4 << 10 // bytes of words
	inline    = 32      // ids that stand beside their word
	partSize  = 256     // ids
	tableSize = 128     // documents of a table
	tableItem = 12      // bytes
)

func (s *segment) encode(b []byte) []byte {
	for _, n := range []uint64{uint64(s.first), uint64(s.count), s.off, s.size, s.table, s.index.off, uint64(s.index.size)} {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

func decodeSegment(d *decoder) *segment {
	return &segment{
		first: uint32(d.uint()), count: uint32(d.uint()), off: d.uint(), size: d.uint(), table: d.uint(),
		index: ref{d.uint(), int(d.uint())},
	}
}

// segmentWriter writes a segment, its words in order.
type segmentWriter struct {
	a     *appender
	seg   *segment
	block []byte
	first []byte // word of the block
	last  []byte
	index []byte
}

func newSegment(a *appender, first uint32) *segmentWriter {
	return &segmentWriter{a: a, seg: &segment{first: first, off: a.off}}
}

// add adds a word, and the documents that hold it, in order.
func (w *segmentWriter) add(word []byte, ids []uint32) {
	if len(w.block) == 0 {
		w.first = append(w.first[:0], word...)
		w.last = w.last[:0]
	}
	shared := 0
	for shared < min(len(word), len(w.last)) && word[shared] == w.last[shared] {
		shared++
	}
	w.last = append(w.last[:0], word...)
	w.block = appendText(binary.AppendUvarint(w.block, uint64(shared)), word[shared:])
	w.block = binary.AppendUvarint(w.block, uint64(len(ids)))
	if len(ids) <= inline {
		w.block = appendText(w.block, deltas(nil, w.seg.first, ids))
	} else {
		w.block = appendText(w.block, w.parts(ids))
	}
	if len(w.block) >= blockSize {
		w.flush()
	}
}

func deltas(b []byte, last uint32, ids []uint32) []byte {
	for _, id := range ids {
		b = binary.AppendUvarint(b, uint64(id-last))
		last = id
	}
	return b
}

// parts writes many ids, and returns where they are.
func (w *segmentWriter) parts(ids []uint32) []byte {
	start, last := w.a.off, w.seg.first
	var list []byte
	for part := range slices.Chunk(ids, partSize) {
		r := w.a.put(deltas(nil, part[0], part[1:]))
		list = binary.AppendUvarint(binary.AppendUvarint(list, uint64(part[0]-last)), uint64(r.size))
		last = part[0]
	}
	r := w.a.put(list)
	where := binary.AppendUvarint(nil, start-w.seg.off)
	return binary.AppendUvarint(binary.AppendUvarint(where, r.off-start), uint64(r.size))
}

func (w *segmentWriter) flush() {
	if len(w.block) == 0 {
		return
	}
	r := w.a.put(w.block)
	w.index = appendText(w.index, w.first)
	w.index = binary.AppendUvarint(binary.AppendUvarint(w.index, r.off-w.seg.off), uint64(r.size))
	w.block = w.block[:0]
}

// end ends the segment. The documents are at refs.
func (w *segmentWriter) end(refs []ref) *segment {
	w.flush()
	w.seg.table, w.seg.count = w.a.off, uint32(len(refs))
	for table := range slices.Chunk(refs, tableSize) {
		var b []byte
		for _, r := range table {
			b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(b, r.off), uint32(r.size))
		}
		w.a.put(b)
	}
	w.seg.index = w.a.put(w.index)
	w.seg.size = w.a.off - w.seg.off
	return w.seg
}

// tableOf reads the table in which the document i of the segment is, and tells which is the
// first in it.
func (s *segment) tableOf(f io.ReaderAt, i int) (table []byte, first int, err error) {
	first = i / tableSize * tableSize
	n := min(int(s.count)-first, tableSize)
	table, err = fetch(f, ref{s.table + uint64(i/tableSize*(tableSize*tableItem+sumSize)), n*tableItem + sumSize})
	return table, first, err
}

// item is where the document i of a table is.
func item(table []byte, i int) ref {
	b := table[i*tableItem:]
	return ref{binary.LittleEndian.Uint64(b), int(binary.LittleEndian.Uint32(b[8:]))}
}

// allRefs adds where all documents of a segment are.
func (s *segment) allRefs(f io.ReaderAt, out []ref) ([]ref, error) {
	for i := 0; i < int(s.count); i += tableSize {
		table, _, err := s.tableOf(f, i)
		if err != nil {
			return nil, err
		}
		for n := range len(table) / tableItem {
			out = append(out, item(table, n))
		}
	}
	return out, nil
}

// load reads the list of the blocks, once.
func (s *segment) load(f io.ReaderAt) ([]block, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blocks != nil {
		return s.blocks, nil
	}
	data, err := fetch(f, s.index)
	if err != nil {
		return nil, err
	}
	blocks, d := []block{}, decoder{b: data}
	for len(d.b) > 0 {
		first := string(d.bytes())
		blocks = append(blocks, block{first, ref{s.off + d.uint(), int(d.uint())}})
	}
	if d.bad {
		return nil, damage(s.index.off)
	}
	s.blocks = blocks
	return blocks, nil
}

// entry is a word of a segment.
type entry struct {
	seg  *segment
	word []byte // valid until the next one is read
	docs int
	data []byte
}

// reader reads the words of a segment, in order.
type reader struct {
	f      io.ReaderAt
	blocks []block // that follow
	rest   decoder // of the block
	entry
}

// from begins to read at the block in which a word is, if it is in the segment.
func (s *segment) from(f io.ReaderAt, word string) (*reader, error) {
	blocks, err := s.load(f)
	n := sort.Search(len(blocks), func(i int) bool { return blocks[i].first > word })
	return &reader{f: f, blocks: blocks[max(n-1, 0):], entry: entry{seg: s}}, err
}

// next goes on to the next word. It reports whether there is one.
func (r *reader) next() (bool, error) {
	if len(r.rest.b) == 0 {
		if len(r.blocks) == 0 {
			return false, nil
		}
		data, err := fetch(r.f, r.blocks[0].ref)
		if err != nil {
			return false, err
		}
		r.blocks, r.rest, r.word = r.blocks[1:], decoder{b: data}, nil
	}
	shared := r.rest.uint()
	if shared > uint64(len(r.word)) {
		return false, damage(r.seg.off)
	}
	r.word = append(r.word[:shared], r.rest.bytes()...)
	r.docs, r.data = int(r.rest.uint()), r.rest.bytes()
	if r.rest.bad {
		return false, damage(r.seg.off)
	}
	return true, nil
}

// entries gives a word and those that follow it. An error ends them.
func (s *segment) entries(f io.ReaderAt, word string) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		r, err := s.from(f, word)
		for more := err == nil; more; {
			if more, err = r.next(); more && string(r.word) >= word && !yield(r.entry, nil) {
				return
			}
		}
		if err != nil {
			yield(entry{}, err)
		}
	}
}

// find looks a word up.
func (s *segment) find(f io.ReaderAt, word string) (entry, bool, error) {
	for e, err := range s.entries(f, word) {
		return e, err == nil && string(e.word) == word, err
	}
	return entry{}, false, nil
}
