package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"sort"
	"strings"
)

// digest is the SHA-256 of an object, and its name.
type digest [sha256.Size]byte

func (d digest) String() string { return hex.EncodeToString(d[:]) }

func parseDigest(s string) (d digest, ok bool) {
	b, err := hex.DecodeString(s)
	return digest(append(b, d[:]...)[:len(d)]), err == nil && len(b) == len(d)
}

// Kinds of entries. They are bytes of the format.
const (
	nothing    byte = 0
	isFile     byte = 'f'
	isDated    byte = 'F' // a file with its time; only in the format, elsewhere isFile
	isDir      byte = 'd'
	isLink     byte = 'l'
	isLarge    byte = 'L' // a file whose content is too large
	isSealed   byte = 'u' // an unreadable file
	isShut     byte = 'D' // an unreadable folder
	isUnknown  byte = '?' // below a shut folder; never stored
	treeMark   byte = 'T'
	treePart   byte = 1 // the folder has unlisted content
	permission      = 0o777
)

// entry is the file, folder or link at a path. Fields that its kind does not use are zero.
type entry struct {
	name   string // within its folder; in lists of changes the whole path
	kind   byte
	perm   uint16
	size   int64  // isFile, isLarge, isSealed
	mtime  int64  // isLarge, isSealed, and isFile if times are kept: ns since 1970
	sum    digest // isFile: content; isDir: tree
	target string // isLink
}

// class is the kind, regardless of whether the content is kept.
func (e entry) class() byte {
	switch e.kind {
	case isLarge, isSealed:
		return isFile
	case isShut:
		return isDir
	}
	return e.kind
}

// held reports whether the store can restore the entry.
func (e entry) held() bool {
	return e.kind == isFile || e.kind == isDir || e.kind == isLink || e.kind == nothing
}

// same reports whether two entries are equal, ignoring the content of folders. Unknown entries equal nothing.
func (e entry) same(o entry) bool {
	return e.perm == o.perm && e.sameContent(o)
}

func (e entry) sameContent(o entry) bool {
	switch {
	case e.kind == isUnknown || o.kind == isUnknown:
		return false
	case e.class() == isDir:
		return o.class() == isDir
	case e.kind != o.kind:
		return false
	}
	return e.size == o.size && e.mtime == o.mtime && e.sum == o.sum && e.target == o.target
}

// mode returns type and permission bits.
func (e entry) mode() fs.FileMode {
	switch e.class() {
	case isDir:
		return fs.ModeDir | fs.FileMode(e.perm)
	case isLink:
		return fs.ModeSymlink | fs.FileMode(e.perm)
	}
	return fs.FileMode(e.perm)
}

// tree is the content of one folder.
type tree struct {
	part    bool // has unlisted content
	entries []entry
}

// find returns the named entry, or one of kind nothing.
func (t *tree) find(name string) entry {
	i := sort.Search(len(t.entries), func(i int) bool { return t.entries[i].name >= name })
	if i < len(t.entries) && t.entries[i].name == name {
		return t.entries[i]
	}
	return entry{name: name}
}

func (e *encoder) entry(v entry) {
	dated := v.kind == isFile && v.mtime != 0
	if dated {
		e.byte(isDated)
	} else {
		e.byte(v.kind)
	}
	e.num(int64(v.perm))
	e.str(v.name)
	switch v.kind {
	case isFile:
		e.num(v.size)
		e.digest(v.sum)
		if dated {
			e.num(v.mtime)
		}
	case isDir:
		e.digest(v.sum)
	case isLink:
		e.str(v.target)
	case isLarge, isSealed:
		e.num(v.size)
		e.num(v.mtime)
	}
}

func (d *decoder) entry() entry {
	v := entry{kind: d.byte()}
	perm := d.num()
	v.perm, v.name = uint16(perm&permission), d.str()
	switch v.kind {
	case isFile:
		v.size, v.sum = d.num(), d.digest()
	case isDated:
		v.kind, v.size, v.sum, v.mtime = isFile, d.num(), d.digest(), d.num()
		if v.mtime == 0 {
			d.fail()
		}
	case isDir:
		v.sum = d.digest()
	case isLink:
		v.target = d.str()
	case isLarge, isSealed:
		v.size, v.mtime = d.num(), d.num()
	case isShut, isUnknown, nothing:
	default:
		d.fail()
	}
	if perm&^permission != 0 || v.size < 0 {
		d.fail()
	}
	return v
}

func (t *tree) encode() []byte {
	e := encoder{b: make([]byte, 0, 2+64*len(t.entries))}
	e.byte(treeMark)
	if t.part {
		e.byte(treePart)
	} else {
		e.byte(0)
	}
	for _, v := range t.entries {
		e.entry(v)
	}
	return e.b
}

// parseTree parses a tree; ok is false for an invalid one.
func parseTree(data []byte) (t *tree, ok bool) {
	d := decoder{b: data}
	mark, part := d.byte(), d.byte()
	t = &tree{part: part == treePart}
	last := ""
	for len(d.b) > 0 {
		v := d.entry()
		if !goodName(v.name) || v.name <= last || v.kind == nothing || v.kind == isUnknown {
			return nil, false
		}
		last = v.name
		t.entries = append(t.entries, v)
	}
	return t, !d.bad && mark == treeMark && part <= treePart
}

// goodName reports whether this is a single name, not a path.
func goodName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}

// join and split process slash paths; "" is the workspace.
func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

func split(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path
	}
	return path[:i], path[i+1:]
}
