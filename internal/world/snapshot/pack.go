package snapshot

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

const (
	packMagic   = "inspanP1"
	indexedSize = 32 + 8 + 4
	trailerSize = 8 + 32 + 8
)

// indexed is an entry of a pack's index.
type indexed struct {
	sum  digest
	off  int64
	size uint32
}

// pack is a pack that is being written.
type pack struct {
	s     *Store
	f     *os.File
	w     *bufio.Writer
	off   int64
	index []indexed
}

func (s *Store) newPack() (*pack, error) {
	f, err := s.temp("pack")
	if err != nil {
		return nil, err
	}
	return &pack{s: s, f: f, w: bufio.NewWriterSize(f, 1<<20)}, nil
}

func (p *pack) put(d digest, data []byte) error {
	p.s.step("write object")
	if _, err := p.w.Write(data); err != nil {
		return err
	}
	p.noted(d, int64(len(data)))
	return nil
}

// noted adds an object to the index that was appended to the pack.
func (p *pack) noted(d digest, size int64) {
	p.index = append(p.index, indexed{d, p.off, uint32(size)})
	p.off += size
}

// size returns the final size of the pack.
func (p *pack) size() int64 { return p.off + int64(len(p.index))*indexedSize + trailerSize }

// end writes the index.
func (p *pack) end() error {
	_, err := p.w.Write(encodeIndex(p.index))
	return errors.Join(err, p.w.Flush())
}

// commit ends the pack and renames it to its name.
func (p *pack) commit(id string) error {
	return p.s.commit(p.f, p.end(), p.s.path(packsName, id+".pack"))
}

// drop discards the pack.
func (p *pack) drop() { _ = errors.Join(p.f.Close(), os.Remove(p.f.Name())) }

func encodeIndex(index []indexed) []byte {
	slices.SortFunc(index, func(a, b indexed) int {
		return bytes.Compare(a.sum[:], b.sum[:])
	})
	b := make([]byte, 0, len(index)*indexedSize+trailerSize)
	for _, x := range index {
		b = append(b, x.sum[:]...)
		b = binary.LittleEndian.AppendUint64(b, uint64(x.off))
		b = binary.LittleEndian.AppendUint32(b, x.size)
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(len(index)))
	sum := sha256.Sum256(b)
	return append(append(b, sum[:]...), packMagic...)
}

// readIndex reads the index of a pack; the error is errDamaged if it has changed since it was written.
func readIndex(path string) ([]indexed, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return parseIndex(f, info.Size())
}

func parseIndex(r io.ReaderAt, size int64) ([]indexed, error) {
	trailer := make([]byte, trailerSize)
	if size < trailerSize {
		return nil, errDamaged
	}
	if _, err := r.ReadAt(trailer, size-trailerSize); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read a pack: %w", err)
	}
	count := binary.LittleEndian.Uint64(trailer)
	if string(trailer[40:]) != packMagic || count > uint64(size-trailerSize)/indexedSize {
		return nil, errDamaged
	}
	start := size - trailerSize - int64(count)*indexedSize
	b := make([]byte, size-40-start)
	if _, err := r.ReadAt(b, start); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read a pack: %w", err)
	}
	if sha256.Sum256(b) != digest(trailer[8:40]) {
		return nil, errDamaged
	}
	b = b[:len(b)-8]
	index := make([]indexed, 0, len(b)/indexedSize)
	for ; len(b) > 0; b = b[indexedSize:] {
		x := indexed{digest(b[:32]), int64(binary.LittleEndian.Uint64(b[32:])), binary.LittleEndian.Uint32(b[40:])}
		if x.off < 0 || x.off > start-int64(x.size) {
			return nil, errDamaged
		}
		index = append(index, x)
	}
	return index, nil
}
