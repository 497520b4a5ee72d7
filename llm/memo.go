package llm

import "sync"

// A Memo keeps what was encoded of a conversation for its next request, as most of it is sent
// again each time. It holds a part of what the last two requests had, 8 MiB at most. The zero
// value is empty, and a nil one keeps nothing. Safe for concurrent use.
type Memo struct {
	mu       sync.Mutex
	requests int // so far
	used     int // entries of the request at hand
	grown    int // bytes that those are longer than their texts
	size     int // bytes of all entries
	entries  map[memoKey]*memoEntry
}

// memoKey is a text, and what is made of it: the same text may be encoded in several ways.
type memoKey struct {
	form Form
	text string
}

type memoEntry struct {
	encoded []byte
	last    int // request that had it
}

// Form is a way to encode a text, which a Memo tells apart.
type Form byte

// Forms.
const (
	FormString Form = iota // a JSON string
	FormJSON               // JSON without what is not needed
	FormBase64             // base64
)

const (
	leastKept = 256     // bytes of a text that a Memo keeps: less is soon encoded
	mostKept  = 8 << 20 // bytes that it keeps: more than the largest windows take
)

// Begin tells of a new request, and returns by how many bytes what is kept of the last one is
// longer than its texts. What the last two did not have is forgotten, once it is most of what
// is kept.
func (m *Memo) Begin() (grown int) {
	if m == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.entries) > 2*m.used || m.size > mostKept/2 {
		for key, e := range m.entries {
			if e.last < m.requests {
				delete(m.entries, key)
				m.size -= len(e.encoded)
			}
		}
	}
	grown = m.grown
	m.requests++
	m.used, m.grown = 0, 0
	return grown
}

// AppendEncoded appends what encode makes of a text, which must be a function of the text alone, to
// dst: as it was made for an earlier request, if it was.
func AppendEncoded[T ~string | ~[]byte](m *Memo, dst []byte, form Form, text T, encode func(dst []byte, text T) []byte) []byte {
	if m == nil || len(text) < leastKept {
		return encode(dst, text)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[memoKey{form, string(text)}]
	if e == nil && m.size+len(text) > mostKept {
		return encode(dst, text)
	}
	if e == nil {
		if m.entries == nil {
			m.entries = map[memoKey]*memoEntry{}
		}
		e = &memoEntry{encoded: encode(nil, text)}
		m.entries[memoKey{form, string(text)}] = e
		m.size += len(e.encoded)
	}
	if e.last != m.requests {
		e.last = m.requests
		m.used++
		m.grown += len(e.encoded) - len(text)
	}
	return append(dst, e.encoded...)
}
