package recall

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

// The file begins with a page that says what it is, and holds two slots. A commit appends,
// and then writes the slot that does not tell of the commit before it. So what a slot tells
// of stays as it is, and who reads needs no lock. All that is read has a checksum, so that
// what a power failure left out is met as damage.
const (
	magic    = "inspan recall 2\n" // the last digit is the version of format and tokens: another one is made anew
	pageSize = 4096                // bytes before the first append
	slotAt   = 512                 // where the first slot is, and how far it is to the second
	slotSize = 5 * 8
	sumSize  = 4
	newFile  = ".new" // what follows the path of a file that is being made
)

// ref is where something is in the file: its bytes, with their checksum behind them.
type ref struct {
	off  uint64
	size int
}

func (r ref) end() uint64 { return r.off + uint64(r.size) }

// damage is an error that tells where it was met.
func damage(at uint64) error { return fmt.Errorf("%w (at byte %d)", ErrDamaged, at) }

func sum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// fetch reads what a ref tells of.
func fetch(f io.ReaderAt, r ref) ([]byte, error) {
	if r.size < sumSize || r.size > 1<<30 {
		return nil, damage(r.off)
	}
	data := make([]byte, r.size)
	if _, err := f.ReadAt(data, int64(r.off)); errors.Is(err, io.EOF) {
		return nil, damage(r.off)
	} else if err != nil {
		return nil, err
	}
	return checked(data, r.off)
}

// checked takes the checksum off.
func checked(data []byte, at uint64) ([]byte, error) {
	n := len(data) - sumSize
	if n < 0 || sum(data[:n]) != binary.LittleEndian.Uint32(data[n:]) {
		return nil, damage(at)
	}
	return data[:n], nil
}

// appender writes at the end of a file.
type appender struct {
	w   *bufio.Writer
	off uint64
}

func newAppender(f *os.File, off uint64) *appender {
	return &appender{bufio.NewWriterSize(io.NewOffsetWriter(f, int64(off)), 64<<10), off}
}

// put appends data and their checksum. An error is kept until the end.
func (a *appender) put(data []byte) ref {
	r := ref{a.off, len(data) + sumSize}
	_, _ = a.w.Write(data)
	_, _ = a.w.Write(binary.LittleEndian.AppendUint32(nil, sum(data)))
	a.off = r.end()
	return r
}

// slot is a commit.
type slot struct {
	file  uint64 // which file it is: one that takes its place has another number
	count uint64 // of commits
	state ref
}

func (s slot) at() int64 { return int64(slotAt * (1 + s.count%2)) }

func (s slot) encode() []byte {
	b := make([]byte, 0, slotSize)
	for _, n := range []uint64{s.file, s.count, s.state.off, uint64(s.state.size)} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return binary.LittleEndian.AppendUint64(b, uint64(sum(b)))
}

func decodeSlot(b []byte) (s slot, ok bool) {
	n := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	s = slot{n(0), n(1), ref{n(2), int(n(3))}}
	return s, n(4) == uint64(sum(b[:4*8])) && s.count > 0
}

// newest reads the slot of the last commit.
func newest(f io.ReaderAt) (slot, error) {
	page := make([]byte, pageSize)
	if _, err := f.ReadAt(page, 0); err != nil && !errors.Is(err, io.EOF) {
		return slot{}, err
	}
	if string(page[:len(magic)]) != magic {
		return slot{}, damage(0)
	}
	var best slot
	for i := range 2 {
		if s, ok := decodeSlot(page[slotAt*(1+i):][:slotSize]); ok && s.count > best.count {
			best = s
		}
	}
	if best.count == 0 {
		return slot{}, damage(slotAt)
	}
	return best, nil
}

// commit ends a change: what st tells of is what the file holds from now on.
func (a *appender) commit(f *os.File, st *state) error {
	st.slot.count++
	st.slot.state = a.put(st.encode())
	err := a.w.Flush()
	if err == nil {
		_, err = f.WriteAt(st.slot.encode(), st.slot.at())
	}
	return err
}

// replace makes a file that takes the place of the one there is. Fill appends to it.
func (x *Index) replace(ctx context.Context, fill func(a *appender) (*state, error)) error {
	f, err := os.OpenFile(x.Path+newFile, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	page := make([]byte, pageSize)
	copy(page, magic)
	_, err = f.Write(page)
	var st *state
	a := newAppender(f, pageSize)
	if err == nil {
		st, err = fill(a)
	}
	if err == nil {
		st.slot = slot{file: fileNumber()}
		err = a.commit(f, st)
	}
	if err = cmp.Or(err, f.Close()); err == nil {
		err = x.install(ctx)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// install puts the new file in the place of the other. Windows does not do that while
// somebody reads it.
func (x *Index) install(ctx context.Context) error {
	for late := time.Now().Add(busyTime); ; {
		err := os.Rename(x.Path+newFile, x.Path)
		if err == nil || runtime.GOOS != "windows" || time.Now().After(late) || keep.Sleep(ctx, pollEvery) != nil {
			return err
		}
	}
}

func fileNumber() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return binary.LittleEndian.Uint64(b[:])
}

// decoder reads numbers and texts. Of what is not there it gives nothing, and is bad then.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) uint() uint64 {
	if len(d.b) > 0 && d.b[0] < 0x80 { // most are small
		v := d.b[0]
		d.b = d.b[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.b, d.bad = nil, true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.b, d.bad = nil, true
		return 0
	}
	d.b = d.b[n:]
	return v
}

// count reads how many follow, each of which takes a byte at least.
func (d *decoder) count() int {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.b, d.bad = nil, true
		return 0
	}
	return int(n)
}

func (d *decoder) bytes() []byte {
	n := d.count()
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

func appendText[T string | []byte](b []byte, text T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}
