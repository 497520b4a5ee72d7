package snapshot

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"sort"
	"sync"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

const (
	cacheHead = "inspan-cache-1\n"
	// settled is the minimum age of a file's last change at the time of hashing for its digest to be cached.
	// Within one tick of the file system's clock a second change would be invisible.
	settled = 2 * time.Second
)

// stampSize is the length of a stamp in the file.
const stampSize = 4 * 8

// old reports whether any change after that time would have changed the stamp.
func old(s keep.Stamp, hashed time.Time) bool {
	last := cmp.Or(s.Ctime, s.Mtime)
	return last < hashed.Add(-settled).UnixNano()
}

// cached is a file with its digest.
type cached struct {
	name  string
	stamp keep.Stamp
	sum   digest
}

// statCache holds the stamps and digests of files, by folder. Its file contains a head, the SHA-256 of the
// rest, and for each folder its path and its files, each with its length before it.
type statCache struct {
	mu      sync.Mutex // guards fresh and same
	folders map[string][]byte
	fresh   map[string][]byte
	same    int // folders in fresh that equal those in folders
}

// loadCache reads the cache; a damaged one counts as missing.
func (s *Store) loadCache() *statCache {
	c := &statCache{folders: map[string][]byte{}, fresh: map[string][]byte{}}
	data, err := keep.Read(s.path(cacheName))
	if err == nil {
		if folders, ok := parseCache(data); ok {
			c.folders = folders
		}
	}
	return c
}

func parseCache(data []byte) (folders map[string][]byte, ok bool) {
	const head = len(cacheHead)
	if len(data) < head+sha256.Size || string(data[:head]) != cacheHead {
		return nil, false
	}
	rest := data[head+sha256.Size:]
	if sum := sha256.Sum256(rest); !bytes.Equal(sum[:], data[head:head+sha256.Size]) {
		return nil, false
	}
	d := decoder{b: rest}
	folders = map[string][]byte{}
	for len(d.b) > 0 {
		path := d.str()
		folders[path] = d.raw(d.num())
	}
	return folders, !d.bad
}

// folder returns the cached files of a folder, by name.
func (c *statCache) folder(path string) []cached {
	d := decoder{b: c.folders[path]}
	if len(d.b) == 0 {
		return nil
	}
	out := make([]cached, 0, len(d.b)/(stampSize+sha256.Size+8))
	for len(d.b) > 0 {
		v := cached{name: d.str()}
		if b := d.raw(stampSize); b != nil {
			le := binary.LittleEndian
			v.stamp = keep.Stamp{Size: int64(le.Uint64(b)), Mtime: int64(le.Uint64(b[8:])), Ctime: int64(le.Uint64(b[16:])), Ino: le.Uint64(b[24:])}
		}
		v.sum = d.digest()
		if d.bad {
			return nil
		}
		out = append(out, v)
	}
	return out
}

// find returns the digest of a file with this stamp.
func find(list []cached, name string, want keep.Stamp) (digest, bool) {
	i := sort.Search(len(list), func(i int) bool { return list[i].name >= name })
	if i < len(list) && list[i].name == name && list[i].stamp == want {
		return list[i].sum, true
	}
	return digest{}, false
}

// note caches the files of a folder, sorted by name.
func (c *statCache) note(path string, list []cached) {
	if len(list) == 0 {
		return
	}
	e := encoder{b: make([]byte, 0, len(list)*(stampSize+sha256.Size+16))}
	for _, v := range list {
		e.str(v.name)
		for _, n := range []uint64{uint64(v.stamp.Size), uint64(v.stamp.Mtime), uint64(v.stamp.Ctime), v.stamp.Ino} {
			e.b = binary.LittleEndian.AppendUint64(e.b, n)
		}
		e.digest(v.sum)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if before := c.folders[path]; bytes.Equal(before, e.b) {
		c.fresh[path] = before // releases the copy
		c.same++
		return
	}
	c.fresh[path] = e.b
}

// saveCache writes the cache, unless it is unchanged. A failure only costs time.
func (s *Store) saveCache(c *statCache) {
	if c.same == len(c.fresh) && c.same == len(c.folders) {
		return
	}
	var e encoder
	e.b = append(e.b, cacheHead...)
	e.b = append(e.b, make([]byte, sha256.Size)...)
	for path, files := range c.fresh {
		e.str(path)
		e.str(string(files))
	}
	head := len(cacheHead)
	sum := sha256.Sum256(e.b[head+sha256.Size:])
	copy(e.b[head:], sum[:])
	_ = s.writeLoose(s.path(cacheName), e.b)
}
