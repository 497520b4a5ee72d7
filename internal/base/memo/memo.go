// Package memo keeps encoded texts, so that a conversation that is sent again is not encoded again.
package memo

import (
	"sync"
)

// A Memo keeps the encoded parts of a conversation for its next request, since most of it is sent again each time.
// It keeps the texts of the last two requests, up to 8 MiB. The zero value is empty, and a nil Memo keeps nothing.
// It is safe for concurrent use.
type Memo struct {
	mu       sync.Mutex
	requests int // so far
	used     int // entries of the present request
	grown    int // by how many bytes they are longer than their texts
	size     int // bytes of all entries
	entries  map[memoKey]*memoEntry
}

// memoKey is a text and its encoding: the same text may be encoded in several ways.
type memoKey struct {
	form Form
	text string
}

type memoEntry struct {
	encoded []byte
	last    int // number of the last request that used it
}

// Form is a way to encode a text.
type Form byte

// Forms.
const (
	String Form = iota // a JSON string
	JSON               // JSON without insignificant bytes
	Base64             // base64
)

const (
	leastKept = 256     // bytes of the shortest text that a Memo keeps; shorter ones are encoded quickly
	mostKept  = 8 << 20 // bytes that a Memo keeps, more than the largest windows hold
)

// Begin starts a new request, and returns by how many bytes the kept encodings of the last one are longer than
// their texts. Entries that the last two requests did not use are dropped when they are the greater part.
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

// Append appends the encoding of text to dst. It takes it from the memo, or calls encode, which must be
// a function of the text alone.
func Append[T ~string | ~[]byte](m *Memo, dst []byte, form Form, text T, encode func(dst []byte, text T) []byte) []byte {
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
