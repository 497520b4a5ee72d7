package managed

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/view/words"
)

const (
	mostMemory      = 102_400 // bytes of a memory
	mostMemories    = 2000    // of a store
	mostMemoryPath  = 1024    // bytes
	mostMemoryDepth = 20      // segments of a path
	mostShownInFull = 20      // memories or versions on a page with their contents

	createdMemory  = "created"
	modifiedMemory = "modified"
	deletedMemory  = "deleted"
)

// ofMemory is the kind of the memories of a store, and ofMemoryVersion that of their versions.
func ofMemory(store string) string        { return "managed.memory:" + store }
func ofMemoryVersion(store string) string { return "managed.memory_version:" + store }

// actor is the client or session that has changed a memory.
type actor struct {
	Type    string `json:"type"`
	Key     string `json:"api_key_id,omitempty"`
	Session string `json:"session_id,omitempty"`
}

func (d *door) actor() *actor { return &actor{Type: "api_actor", Key: d.Name()} }

// keptMemory is a memory in the book.
type keptMemory struct {
	Path    string `json:"path"`
	Version string `json:"version"` // current version
	Digest  string `json:"sha256"`
	Size    int64  `json:"size"`
}

// keptVersion is a version of a memory in the book, with the content.
type keptVersion struct {
	Memory     string    `json:"memory"`
	Operation  string    `json:"operation"`
	Path       string    `json:"path,omitempty"`
	Digest     string    `json:"sha256,omitempty"`
	By         *actor    `json:"by"`
	Redacted   time.Time `json:"redacted,omitzero"`
	RedactedBy *actor    `json:"redacted_by,omitempty"`
}

// memory is a memory with its object.
type memory struct {
	server.Object
	keptMemory
}

// memories are the memories of a store, for a visitor. The actor is recorded for changes.
type memories struct {
	*server.Visit
	store string
	by    *actor
}

// open fails if the store is missing, or, for changes, archived.
func (m memories) open(e *server.Edit) (server.Object, error) {
	o, k, err := objectOf[keptMemoryStore](e.Object, ofMemoryStore, m.store)
	if err == nil && k.isArchived() {
		err = conflict("memory store %s is archived", m.store)
	}
	return o, err
}

// readMemory decodes a memory from the book.
func readMemory(o server.Object) (memory, error) {
	k := memory{Object: o}
	return k, json.Unmarshal(o.Value, &k.keptMemory)
}

// readMemories returns the objects that can be decoded.
func readMemories(objects []server.Object) (out []memory) {
	for _, o := range objects {
		if k, err := readMemory(o); err == nil {
			out = append(out, k)
		}
	}
	return out
}

// at returns the memory at a path.
func at(all []memory, path string) (memory, bool) {
	i := slices.IndexFunc(all, func(m memory) bool { return m.Path == path })
	if i < 0 {
		return memory{}, false
	}
	return all[i], true
}

// put puts a memory and its new version, both or neither.
func (m memories) put(e *server.Edit, store server.Object, id, operation string, k keptMemory, content server.Content) error {
	k.Version = "memver_" + strings.ToLower(rand.Text())
	if err := e.Put(ofMemory(m.store), id, store.Tenant, k, server.Content{}); err != nil {
		return err
	}
	return e.Put(ofMemoryVersion(m.store), k.Version, store.Tenant, keptVersion{
		Memory: id, Operation: operation, Path: k.Path, Digest: k.Digest, By: m.by,
	}, content)
}

// createMemory makes a memory. Said is the whole request.
func (m memories) createMemory(path, content string, said any) (o server.Object, err error) {
	if err := errors.Join(checkMemoryPath(path), checkMemory(content)); err != nil {
		return o, err
	}
	return m.MakeStored(ofMemory(m.store), "mem_", said, []byte(content), func(e *server.Edit, id string, stored server.Content) error {
		store, err := m.open(e)
		if err != nil {
			return err
		}
		all := readMemories(e.Objects(ofMemory(m.store)))
		if _, there := at(all, path); there {
			return conflict("there is a memory at %s", path)
		}
		if len(all) >= mostMemories {
			return conflict("the store has %d memories, and can't have more", len(all))
		}
		return m.put(e, store, id, createdMemory, keptMemory{Path: path, Digest: keep.SHA256([]byte(content)), Size: stored.Size}, stored)
	})
}

// change changes a memory's text, path or both; nil means unchanged. Expected is its required digest; empty means
// any.
func (m memories) change(id string, content, path *string, expected string) error {
	if path != nil {
		if err := checkMemoryPath(*path); err != nil {
			return err
		}
	}
	if content != nil {
		if err := checkMemory(*content); err != nil {
			return err
		}
		return m.replace(id, *content, path, expected)
	}
	for { // each version has its own content, so that it can be redacted alone
		k, now, err := m.text(id)
		if err == nil {
			err = k.expect(expected)
		}
		if err != nil {
			return err
		}
		if err = m.replace(id, now, path, k.Digest); err == nil || !errors.Is(err, errChanged) {
			return err
		}
	}
}

// replace changes a memory to a text and a path.
func (m memories) replace(id, content string, path *string, expected string) error {
	return m.Store([]byte(content), func(stored server.Content) error {
		return m.Edit(func(e *server.Edit) error {
			store, err := m.open(e)
			if err != nil {
				return err
			}
			all := readMemories(e.Objects(ofMemory(m.store)))
			i := slices.IndexFunc(all, func(o memory) bool { return o.ID == id })
			if i < 0 {
				return missing("memory", id)
			}
			k := all[i].keptMemory
			if err := k.expect(expected); err != nil {
				return err
			}
			next := k
			if path != nil {
				if other, there := at(all, *path); there && other.ID != id {
					return conflict("there is a memory at %s", *path)
				}
				next.Path = *path
			}
			next.Digest, next.Size = keep.SHA256([]byte(content)), stored.Size
			if next == k {
				return nil // no new version without a change
			}
			return m.put(e, store, id, modifiedMemory, next, stored)
		})
	})
}

// remove removes a memory. Its versions stay. An archived store allows it.
func (m memories) remove(id, expected string) error {
	return m.Edit(func(e *server.Edit) error {
		o, err := e.Object(ofMemory(m.store), id)
		if err != nil {
			return missing("memory", id)
		}
		k, err := readMemory(o)
		if err == nil {
			err = k.expect(expected)
		}
		if err != nil {
			return err
		}
		version := keptVersion{Memory: id, Operation: deletedMemory, Path: k.Path, By: m.by}
		if err := e.Put(ofMemoryVersion(m.store), "memver_"+strings.ToLower(rand.Text()), o.Tenant, version, server.Content{}); err != nil {
			return err
		}
		e.Remove(ofMemory(m.store), id)
		return nil
	})
}

// text returns a memory and its content.
func (m memories) text(id string) (memory, string, error) {
	o, err := m.Object(ofMemory(m.store), id)
	if err != nil {
		return memory{}, "", missing("memory", id)
	}
	k, err := readMemory(o)
	if err != nil {
		return k, "", err
	}
	version, err := m.Object(ofMemoryVersion(m.store), k.Version)
	if err != nil {
		return k, "", err
	}
	data, err := m.Load(version.Content)
	return k, string(data), err
}

// expect returns an error if a memory differs from the client's expectation.
func (k keptMemory) expect(digest string) error {
	if digest == "" || digest == k.Digest {
		return nil
	}
	return fmt.Errorf("%w%w", errChanged,
		conflict("content_sha256: the memory has changed: it is %s, not %s; read it again", k.Digest, words.OneLine(digest, 80)))
}

// errChanged says that a memory has changed unexpectedly. It is joined with a problem.
var errChanged = errors.New("")

// checkMemory reports a text that a memory can't have.
func checkMemory(content string) error {
	if len(content) > mostMemory {
		return tooLarge("content", len(content), mostMemory)
	}
	return nil
}

// checkMemoryPath reports what is wrong with a path.
func checkMemoryPath(path string) error {
	const want = "a path such as /projects/notes.md"
	rest, absolute := strings.CutPrefix(path, "/")
	segments := strings.Split(rest, "/")
	switch {
	case !absolute:
		return invalid("path", "it does not begin with /", want)
	case len(path) > mostMemoryPath:
		return invalid("path", fmt.Sprintf("it has %d bytes", len(path)), fmt.Sprintf("at most %d", mostMemoryPath))
	case len(segments) > mostMemoryDepth:
		return invalid("path", fmt.Sprintf("it has %d segments", len(segments)), fmt.Sprintf("at most %d", mostMemoryDepth))
	case slices.ContainsFunc(segments, func(s string) bool { return s == "" || s == "." || s == ".." }):
		return invalid("path", "a segment is empty, . or ..", want)
	case text.Holds(path, text.Hidden):
		return invalid("path", "it has characters that can't be seen", want)
	}
	return nil
}
