package keep

import (
	"encoding/binary"
	"hash/crc32"
	"time"
)

// Sidecar is the content of a cache file: a sequence of numbers and texts, read back in the same order. The
// first text names the format. Damaged, cut or differently formatted content can't be opened, so its reader
// regenerates it.
//
// The zero value is empty, for writing; a reader gets one from [OpenSidecar].
type Sidecar struct {
	data []byte
	text string // data as a string, to read texts without copies
	at   int
	bad  bool
}

// NewSidecar begins a Sidecar in a format.
func NewSidecar(format string) *Sidecar {
	s := new(Sidecar)
	s.PutText(format)
	return s
}

// OpenSidecar opens a result of [Sidecar.Bytes], if it is complete and in the format.
func OpenSidecar(data []byte, format string) (*Sidecar, bool) {
	end := len(data) - crc32.Size
	if end < 0 || binary.LittleEndian.Uint32(data[end:]) != sidecarSum(data[:end]) {
		return nil, false
	}
	s := &Sidecar{data: data[:end], text: string(data[:end])}
	return s, s.Text() == format && s.Good()
}

// Bytes returns the written content with a checksum.
func (s *Sidecar) Bytes() []byte { return binary.LittleEndian.AppendUint32(s.data, sidecarSum(s.data)) }

func sidecarSum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// PutInt writes a number.
func (s *Sidecar) PutInt(n int64) { s.data = binary.AppendVarint(s.data, n) }

// PutText writes a text.
func (s *Sidecar) PutText(text string) {
	s.PutInt(int64(len(text)))
	s.data = append(s.data, text...)
}

// PutTime writes a time, with nanoseconds.
func (s *Sidecar) PutTime(t time.Time) {
	s.PutInt(t.Unix())
	s.PutInt(int64(t.Nanosecond()))
}

// Int returns the next number; 0 if there is none.
func (s *Sidecar) Int() int64 {
	n, size := binary.Varint(s.data[s.at:])
	if size <= 0 {
		s.bad, s.at = true, len(s.data)
		return 0
	}
	s.at += size
	return n
}

// Text returns the next text; empty if there is none.
func (s *Sidecar) Text() string {
	n := s.Int()
	if n < 0 || n > int64(len(s.data)-s.at) {
		s.bad, s.at = true, len(s.data)
		return ""
	}
	from := s.at
	s.at += int(n)
	return s.text[from:s.at]
}

// Time returns the next time, in UTC.
func (s *Sidecar) Time() time.Time { return time.Unix(s.Int(), s.Int()).UTC() }

// Good reports whether all reads succeeded.
func (s *Sidecar) Good() bool { return !s.bad }

// More reports whether any content is left to read.
func (s *Sidecar) More() bool { return s.at < len(s.data) }
