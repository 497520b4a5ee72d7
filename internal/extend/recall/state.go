package recall

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"
)

// state is what a commit tells of: all but the documents and their words.
type state struct {
	slot     slot
	names    []string // of sessions and roots; their ids begin at 1, and one that is not in use any more is empty
	ids      map[string]uint32
	marks    map[uint32]Mark
	spans    []span // by block of documents
	docs     uint32 // id of the newest
	texts    uint64 // bytes of the documents
	segments []*segment
}

// span is the time in which documents lie, in milliseconds.
type span struct{ since, until int64 }

func (s span) with(at int64) span { return span{min(s.since, at), max(s.until, at)} }

// blockBits is how many documents share a span of time: 1<<blockBits.
const blockBits = 11

func newState() *state { return &state{ids: map[string]uint32{}, marks: map[uint32]Mark{}} }

func (st *state) encode() []byte {
	b := binary.AppendUvarint(nil, uint64(len(st.names)))
	for _, name := range st.names {
		b = appendText(b, name)
	}
	b = binary.AppendUvarint(b, uint64(len(st.marks)))
	for id, m := range st.marks {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(id)), m.Seq)
		b = binary.AppendVarint(b, m.Size)
	}
	b = binary.AppendUvarint(b, uint64(len(st.spans)))
	for _, s := range st.spans {
		b = binary.AppendVarint(binary.AppendVarint(b, s.since), s.until)
	}
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(st.docs)), st.texts)
	b = binary.AppendUvarint(b, uint64(len(st.segments)))
	for _, s := range st.segments {
		b = s.encode(b)
	}
	return b
}

// decodeState reads a state. Segments that were known before are taken from there.
func decodeState(s slot, data []byte, known map[uint64]*segment) (*state, error) {
	d, st := &decoder{b: data}, newState()
	st.slot = s
	for range d.count() {
		st.names = append(st.names, string(d.bytes()))
		st.ids[st.names[len(st.names)-1]] = uint32(len(st.names))
	}
	for range d.count() {
		id := uint32(d.uint())
		st.marks[id] = Mark{d.uint(), d.int()}
	}
	for range d.count() {
		st.spans = append(st.spans, span{d.int(), d.int()})
	}
	st.docs, st.texts = uint32(d.uint()), d.uint()
	for range d.count() {
		seg := decodeSegment(d)
		if had := known[seg.off]; had != nil {
			seg = had
		}
		st.segments = append(st.segments, seg)
	}
	if d.bad || len(d.b) > 0 {
		return nil, damage(s.state.off)
	}
	return st, nil
}

// id numbers a name.
func (st *state) id(name string) uint32 {
	if id, ok := st.ids[name]; ok {
		return id
	}
	st.names = append(st.names, name)
	st.ids[name] = uint32(len(st.names))
	return st.ids[name]
}

// name is what an id stands for.
func (st *state) name(id uint32) (string, error) {
	if id == 0 || int(id) > len(st.names) {
		return "", damage(st.slot.state.off)
	}
	return st.names[id-1], nil
}

// widen keeps the spans, so that a search within some time needs not look at documents of
// other times.
func (st *state) widen(id uint32, at int64) {
	block := int(id >> blockBits)
	if block == len(st.spans) {
		st.spans = append(st.spans, span{at, at})
	}
	st.spans[block] = st.spans[block].with(at)
}

// wasted is how much of the file nothing tells of any more.
func (st *state) wasted() (wasted, used uint64) {
	used = st.texts + uint64(st.slot.state.size)
	for _, s := range st.segments {
		used += s.size
	}
	return st.slot.state.end() - pageSize - used, used
}

// view is the file as it was when it was opened, whatever is written to it.
type view struct {
	*state
	f *os.File

	table []byte // that was read last
	first uint32 // document in it
}

// view opens the file for reading. One that is not there is an empty one.
func (x *Index) view() (*view, error) {
	if x.closed.Load() {
		return nil, fs.ErrClosed
	}
	f, err := os.Open(x.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return &view{state: newState()}, nil
	}
	if err != nil {
		return nil, err
	}
	v := &view{f: f}
	if v.state, err = x.load(f, false); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return v, nil
}

// load reads the state of a file. It is the one that was read last, if that is the same,
// unless it is to be changed.
func (x *Index) load(f *os.File, change bool) (*state, error) {
	s, err := newest(f)
	if err != nil {
		return nil, err
	}
	last := x.last.Load()
	if !change && last != nil && last.slot == s {
		return last, nil
	}
	data, err := fetch(f, s.state)
	if err != nil {
		return nil, err
	}
	known := map[uint64]*segment{}
	if last != nil && last.slot.file == s.file {
		for _, seg := range last.segments {
			known[seg.off] = seg
		}
	}
	st, err := decodeState(s, data, known)
	if err == nil && !change {
		x.last.Store(st)
	}
	return st, err
}

// close ends the reading.
func (v *view) close() {
	if v.f != nil {
		_ = v.f.Close() // it was only read
	}
}

// row is a document as it is stored.
type row struct {
	id, session, root uint32
	seq               uint64
	time              time.Time
	kind              int
	untrusted         bool
	text              string
}

func (d row) encode(b []byte) []byte {
	b = binary.AppendUvarint(binary.AppendUvarint(binary.AppendUvarint(b, uint64(d.session)), uint64(d.root)), d.seq)
	b = append(binary.AppendVarint(b, d.time.UnixMilli()), byte(d.kind), 0)
	if d.untrusted {
		b[len(b)-1] = 1
	}
	return append(b, d.text...)
}

func decodeRow(data []byte) (row, bool) {
	d := &decoder{b: data}
	r := row{session: uint32(d.uint()), root: uint32(d.uint()), seq: d.uint()}
	r.time = time.UnixMilli(d.int()).UTC()
	if len(d.b) < 2 || int(d.b[0]) >= len(kinds()) {
		return r, false
	}
	r.kind, r.untrusted, r.text = int(d.b[0]), d.b[1] == 1, string(d.b[2:])
	return r, !d.bad
}

// row reads a document.
func (v *view) row(id uint32) (row, error) {
	n, found := slices.BinarySearchFunc(v.segments, id, func(s *segment, id uint32) int {
		switch {
		case id < s.first:
			return 1
		case id >= s.first+s.count:
			return -1
		}
		return 0
	})
	if !found {
		return row{}, damage(v.slot.state.off)
	}
	if id < v.first || id >= v.first+uint32(len(v.table)/tableItem) {
		seg := v.segments[n]
		table, first, err := seg.tableOf(v.f, int(id-seg.first))
		if err != nil {
			return row{}, err
		}
		v.table, v.first = table, seg.first+uint32(first)
	}
	r := item(v.table, int(id-v.first))
	data, err := fetch(v.f, r)
	if err != nil {
		return row{}, err
	}
	d, ok := decodeRow(data)
	if !ok {
		return row{}, damage(r.off)
	}
	d.id = id
	return d, nil
}
