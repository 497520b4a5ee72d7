package gitfiles

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// errPath says that git would write outside of the workspace or into its own folder.
var errPath = errors.New("lists a path that no working tree has")

// CheckIndex checks that an index is in git's format and lists only paths of a working tree. Git checks a path when it
// adds it, and trusts those that it reads: git restore would write .git/hooks/x or ../x.
func CheckIndex(data, _ []byte) error {
	err := errForm
	for _, size := range []int{20, 32} { // the ids of SHA-1 and of SHA-256; git reads only one of them
		names, ok := indexPaths(data, size)
		switch {
		case !ok:
		case slices.ContainsFunc(names, func(name string) bool { return !treePath(name) }):
			return errPath
		default:
			err = nil
		}
	}
	return err
}

// treePath reports whether a path can be in a working tree, as verify_path of git's read-cache.c decides for the
// file systems of all machines.
func treePath(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
		for piece := range strings.SplitSeq(part, `\`) {
			piece, _, _ = strings.Cut(piece, ":")
			switch strings.ToLower(strings.TrimRight(visible(piece), " .")) {
			case ".git", "git~1":
				return false
			}
		}
	}
	return true
}

// visible removes the characters that some file systems ignore in names.
func visible(name string) string {
	return strings.Map(func(r rune) rune {
		if text.Ignored.Has(r) {
			return -1
		}
		return r
	}, name)
}

// indexReader reads an index of version 2, 3 or 4; see gitformat-index(5).
type indexReader struct {
	data []byte
	size int // of an id
	at   int
	ok   bool
}

// indexPaths lists the paths of an index. Entries of a split index may have none. Ok is false if git would not read
// the index this way.
func indexPaths(data []byte, size int) (names []string, ok bool) {
	if len(data) < 12+size || string(data[:4]) != "DIRC" {
		return nil, false
	}
	version, count := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 || int64(count) > int64(len(data)) {
		return nil, false
	}
	r := &indexReader{data: data[:len(data)-size], size: size, at: 12, ok: true}
	starts := make([]int, 0, count)
	unnamed, previous := false, ""
	for range count {
		starts = append(starts, r.at)
		mode, name := r.entry(version == 4, previous)
		if !r.ok {
			return nil, false
		}
		previous = name
		if unnamed = unnamed || name == ""; name == "" {
			continue
		}
		if mode&0o170000 == 0o040000 { // a folder of a sparse index
			if name, r.ok = strings.CutSuffix(name, "/"); !r.ok {
				return nil, false
			}
		}
		names = append(names, name)
	}
	split, ok := r.extensions(starts)
	return names, ok && (split || !unnamed)
}

// take returns the next bytes.
func (r *indexReader) take(n int) []byte {
	if !r.ok || n < 0 || n > len(r.data)-r.at {
		r.ok = false
		return make([]byte, max(0, min(n, 64)))
	}
	r.at += n
	return r.data[r.at-n : r.at]
}

// entry reads an entry. In version 4, its name continues a beginning of the previous one.
func (r *indexReader) entry(compressed bool, previous string) (mode uint32, name string) {
	begin := r.at
	stat := r.take(40)
	r.take(r.size)
	flags := binary.BigEndian.Uint16(r.take(2))
	if flags&0x4000 != 0 {
		r.take(2)
	}
	if compressed {
		strip := r.variable()
		if strip > len(previous) {
			r.ok = false
			return 0, ""
		}
		name = previous[:len(previous)-strip]
	}
	n := bytes.IndexByte(r.data[r.at:], 0)
	if n < 0 {
		r.ok = false
		return 0, ""
	}
	name += string(r.take(n))
	if length := int(flags & 0xfff); length != min(len(name), 0xfff) {
		r.ok = false // git goes by the length
		return 0, ""
	}
	if compressed {
		r.take(1)
	} else {
		r.take((r.at-begin+8)&^7 - (r.at - begin))
	}
	return binary.BigEndian.Uint32(stat[24:]), name
}

// variable reads a number as varint.c of git encodes it.
func (r *indexReader) variable() int {
	b := r.take(1)[0]
	value := int(b & 0x7f)
	for b&0x80 != 0 && r.ok && value < 1<<24 {
		b = r.take(1)[0]
		value = (value+1)<<7 | int(b&0x7f)
	}
	return value
}

// extensions reads the extensions after the entries, and reports whether the index is a part of a split one. The
// tables by which threads of git find entries must lead to these entries.
func (r *indexReader) extensions(starts []int) (split, ok bool) {
	begin := r.at
	end := len(r.data) - (12 + r.size) // where git looks for an EOIE
	if end >= 12 && string(r.data[end:end+4]) == "EOIE" && int(binary.BigEndian.Uint32(r.data[end+8:])) != begin {
		return false, false
	}
	for r.at < len(r.data) && r.ok {
		name := string(r.take(4))
		body := r.take(int(binary.BigEndian.Uint32(r.take(4))))
		switch name {
		case "link":
			split = true
		case "IEOT":
			if !leadsTo(body, starts) {
				return false, false
			}
		}
	}
	return split, r.ok
}

// leadsTo reports whether a table of blocks of entries leads to the entries in order.
func leadsTo(table []byte, starts []int) bool {
	if len(table) < 4 || len(table)%8 != 4 {
		return false
	}
	first := 0
	for table = table[4:]; len(table) > 0; table = table[8:] {
		if first >= len(starts) || int(binary.BigEndian.Uint32(table)) != starts[first] {
			return false
		}
		first += int(binary.BigEndian.Uint32(table[4:]))
	}
	return first == len(starts)
}
