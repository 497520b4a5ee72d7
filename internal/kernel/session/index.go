package session

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/inspan/inspan/event"
)

const (
	pointEvery = 64 << 10 // bytes between places where reading can start
	saveEvery  = 1 << 20  // bytes a log grows before its index is written again

	indexFormat = 3 // 1 knew of no claims, 2 of no pins
)

// marks are places in a log that can be found without reading everything before them. They are derived from it,
// and each is verified against it when used.
type marks struct {
	Points    []cursor `json:"points,omitempty"`    // about every pointEvery bytes
	Compacted []cursor `json:"compacted,omitempty"` // before each event with a snapshot
	Said      *cursor  `json:"said,omitempty"`      // before the first Said
	Titled    *cursor  `json:"titled,omitempty"`    // before the last Titled
	Pinned    *cursor  `json:"pinned,omitempty"`    // before the last Pinned
	Moved     *cursor  `json:"moved,omitempty"`     // before the last Moved
	Stopped   *cursor  `json:"stopped,omitempty"`   // before the last Stopped, unless a later run has begun
	Claimed   *cursor  `json:"claimed,omitempty"`   // before the last Claimed
}

// single returns the places of single events. Nil means there is none.
func (m *marks) single() []*cursor { return []*cursor{m.Said, m.Titled, m.Pinned, m.Moved, m.Stopped} }

// note records an event of this kind whose line starts at c.
func (m *marks) note(kind string, c cursor) {
	last := cursor{}
	if n := len(m.Points); n > 0 {
		last = m.Points[n-1]
	}
	if c.Off-last.Off >= pointEvery {
		m.Points = append(m.Points, c)
	}
	switch kind {
	case event.Compacted{}.Kind(), event.Rewound{}.Kind():
		m.Compacted = append(m.Compacted, c)
	case event.Said{}.Kind():
		if m.Said == nil {
			m.Said = &c
		}
	case event.Titled{}.Kind():
		m.Titled = &c
	case event.Pinned{}.Kind():
		m.Pinned = &c
	case event.Moved{}.Kind():
		m.Moved = &c
	case event.Stopped{}.Kind():
		m.Stopped = &c
	case event.Asked{}.Kind():
		m.Stopped = nil
	case event.Claimed{}.Kind():
		m.Claimed = &c
	}
}

// before returns the last place where reading can begin to get all events above after.
func (m *marks) before(after uint64) cursor {
	var best cursor
	for _, list := range [][]cursor{m.Points, m.Compacted} {
		n, _ := slices.BinarySearchFunc(list, after+1, func(c cursor, seq uint64) int {
			if c.Seq < seq {
				return -1
			}
			return 1
		})
		if n > 0 && list[n-1].Seq > best.Seq {
			best = list[n-1]
		}
	}
	return best
}

// index is the content of the sidecar file: one line, checksummed like the
// first line of a log.
type index struct {
	Format int    `json:"format"` // indexFormat
	Last   cursor `json:"last"`   // before the last line that the marks cover
	Marks  marks  `json:"marks"`
}

// load sets the tail from the index, and reports whether it could. The line after that place verifies it, when the
// caller advances.
func (l *Log) load() bool {
	x, ok := l.readIndex()
	size, err := l.f.Size()
	if ok && l.store.Sync == SyncPower { // else it may have outlived its log
		l.promised = max(l.promised, x.Last.Off)
	}
	if !ok || err != nil || !x.fits(size) {
		return false
	}
	l.tail, l.marks, l.saved = x.Last, x.Marks, x.Last.Off
	return true
}

// fits reports whether all places are in order and within a log of this size.
func (x *index) fits(size int64) bool {
	byOffset := func(a, b cursor) int { return cmp.Compare(a.Off, b.Off) }
	bySeq := func(a, b cursor) int { return cmp.Compare(a.Seq, b.Seq) }
	for _, list := range [][]cursor{x.Marks.Points, x.Marks.Compacted, {x.Last}} {
		if !slices.IsSortedFunc(list, byOffset) || !slices.IsSortedFunc(list, bySeq) ||
			len(list) > 0 && (list[0].Off < 0 || list[len(list)-1].Off >= size) {
			return false
		}
	}
	return true
}

func (l *Log) readIndex() (x index, ok bool) {
	data, err := l.store.readFile(filepath.Join(l.dir, indexName), maxLine)
	return x, err == nil && unseal(data, &x) && x.Format == indexFormat
}

// seal encodes a value as one line, checksummed like the first of a log.
func seal(value any) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	line := appendCRC([]byte(crcHead), chain(0, data[1:]))
	return append(append(line, crcTail...), data[1:]...), nil
}

// unseal decodes the output of seal, and reports whether it is valid. It writes into data.
func unseal(data []byte, value any) bool {
	stated, rest, ok := splitLine(data)
	if !ok || chain(0, rest) != stated {
		return false
	}
	data[headLen-1] = '{'
	return json.Unmarshal(data[headLen-1:], value) == nil
}

// saveIndexNow writes the index if that is useful; done says that this process has no further use for the log.
// Failure costs only time: the next reader reads more. The caller holds the append lock and l.mu.
func (l *Log) saveIndexNow(done bool) {
	grown := l.tail.Off - l.saved
	if l.broken != nil || grown < pointEvery || !done && grown < saveEvery {
		return
	}
	if l.store.Sync == SyncPower && !l.sync.has(l.tail.Off) {
		return // it would promise data that a power loss may take
	}
	line, err := seal(index{Format: indexFormat, Last: l.last, Marks: l.marks})
	if err != nil {
		return
	}
	defer l.changed()
	d, path := l.store.fs(), filepath.Join(l.dir, indexName)
	f, err := d.Open(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return
	}
	if errors.Join(writeAll(f, line), f.Close()) == nil && d.Rename(path+".tmp", path) == nil {
		l.saved = l.tail.Off
	}
}

// dropIndex makes the next reader read the whole log, if this log may change anything: it drives the session.
// The caller holds l.mu.
func (l *Log) dropIndex() {
	if l.lease != nil {
		_ = l.store.fs().Remove(filepath.Join(l.dir, indexName))
	}
	l.saved = 0
}
