package managed

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/view/words"
)

func memoryEndpoints() []endpoint {
	const memories, versions = "memory_stores/{store}/memories", "memory_stores/{store}/memory_versions"
	return []endpoint{
		post(memories, reading((*door).makeMemory), "view"),
		get(memories, (*door).listMemories, "limit", "page", "path_prefix", "depth", "view"),
		get(memories+"/{id}", (*door).memory, "view"),
		post(memories+"/{id}", reading((*door).updateMemory), "view"),
		del(memories+"/{id}", (*door).deleteMemory, "expected_content_sha256"),
		get(versions, (*door).listMemoryVersions, "limit", "page", "view", "memory_id", "session_id", "api_key_id", "service_account_id",
			"operation", "created_at[gte]", "created_at[lte]"),
		get(versions+"/{id}", (*door).memoryVersion, "view"),
		act(versions+"/{id}/redact", (*door).redactMemoryVersion),
	}
}

// memoryView is a memory as clients see it.
type memoryView struct {
	ID        string  `json:"id"`
	Type      string  `json:"type"`
	Store     string  `json:"memory_store_id"`
	Version   string  `json:"memory_version_id"`
	Path      string  `json:"path"`
	Digest    string  `json:"content_sha256"`
	Size      int64   `json:"content_size_bytes"`
	Content   *string `json:"content"`
	CreatedAt string  `json:"created_at"`
	UpdatedAt string  `json:"updated_at"`
}

// memoryPrefix stands in a list for all memories below a path.
type memoryPrefix struct {
	Type string `json:"type"`
	Path string `json:"path"`
}

// versionView is a version as clients see it.
type versionView struct {
	ID         string  `json:"id"`
	Type       string  `json:"type"`
	Memory     string  `json:"memory_id"`
	Store      string  `json:"memory_store_id"`
	Operation  string  `json:"operation"`
	Path       *string `json:"path"`
	Digest     *string `json:"content_sha256"`
	Size       *int64  `json:"content_size_bytes"`
	Content    *string `json:"content"`
	By         *actor  `json:"created_by,omitempty"`
	CreatedAt  string  `json:"created_at"`
	RedactedAt *string `json:"redacted_at"`
	RedactedBy *actor  `json:"redacted_by,omitempty"`
}

// memoriesOf returns the memories of the store that the request names.
func (d *door) memoriesOf() (memories, error) {
	id := d.r.PathValue("store")
	_, _, err := objectOf[keptMemoryStore](d.Object, ofMemoryStore, id)
	return memories{d.Visit, id, d.actor()}, err
}

// full reports whether the response should have contents.
func (d *door) full(usual bool) (bool, error) {
	view, err := d.choice("view", "basic", "full")
	return view == "full" || view == "" && usual, err
}

// asked returns the memories of the store that the request names, and whether the response should have
// contents.
func (d *door) asked(usual bool) (m memories, full bool, err error) {
	if full, err = d.full(usual); err == nil {
		m, err = d.memoriesOf()
	}
	return m, full, err
}

// shown returns a memory as clients see it.
func (m memories) shown(k memory, full bool) (memoryView, error) {
	v := memoryView{
		ID: k.ID, Type: "memory", Store: m.store, Version: k.Version, Path: k.Path, Digest: k.Digest, Size: k.Size,
		CreatedAt: stamp(k.Created), UpdatedAt: stamp(k.Updated),
	}
	if !full {
		return v, nil
	}
	_, text, err := m.text(k.ID)
	v.Content = &text
	return v, err
}

// answer returns the memory with an id.
func (m memories) answer(id string, full bool) (any, error) {
	o, err := m.Object(ofMemory(m.store), id)
	if err != nil {
		return nil, missing("memory", id)
	}
	k, err := readMemory(o)
	if err != nil {
		return nil, err
	}
	return m.shown(k, full)
}

func (d *door) makeMemory(in struct {
	Path    string      `json:"path"`
	Content opt[string] `json:"content"`
},
) (any, error) {
	full, err := d.full(false)
	if err != nil {
		return nil, err
	}
	if !in.Content.said {
		return nil, invalid("content", "it is missing", "a text")
	}
	m, err := d.memoriesOf()
	if err != nil {
		return nil, err
	}
	o, err := m.createMemory(in.Path, in.Content.value, []any{m.store, d.body()})
	if err != nil {
		return nil, err
	}
	return m.answer(o.ID, full)
}

func (d *door) memory() (any, error) {
	m, full, err := d.asked(true)
	if err != nil {
		return nil, err
	}
	return m.answer(d.r.PathValue("id"), full)
}

func (d *door) updateMemory(in struct {
	Path         *string `json:"path"`
	Content      *string `json:"content"`
	Precondition *struct {
		Type   string `json:"type"`
		Digest string `json:"content_sha256"`
	} `json:"precondition"`
},
) (any, error) {
	m, full, err := d.asked(false)
	if err != nil {
		return nil, err
	}
	expected := ""
	if p := in.Precondition; p != nil {
		if p.Type != "content_sha256" {
			return nil, invalid("precondition.type", fmt.Sprintf("it is %q", words.OneLine(p.Type, 40)), "content_sha256")
		}
		if expected = p.Digest; !keep.IsDigest(expected) {
			return nil, invalid("precondition.content_sha256", "it is not a digest", "64 lowercase hexadecimal digits")
		}
	}
	id := d.r.PathValue("id")
	if err := m.change(id, in.Content, in.Path, expected); err != nil {
		return nil, err
	}
	return m.answer(id, full)
}

func (d *door) deleteMemory() (any, error) {
	m, err := d.memoriesOf()
	if err != nil {
		return nil, err
	}
	expected := d.query.Get("expected_content_sha256")
	if expected != "" && !keep.IsDigest(expected) {
		return nil, invalid("expected_content_sha256", "it is not a digest", "64 lowercase hexadecimal digits")
	}
	id := d.r.PathValue("id")
	return map[string]any{"id": id, "type": "memory_deleted"}, m.remove(id, expected)
}

// mostOnPage returns the limit of a page's length.
func mostOnPage(full bool) int {
	if full {
		return mostShownInFull
	}
	return 100
}

// listMemories lists memories by their paths. Those deeper than the depth are summarized by one prefix.
func (d *door) listMemories() (any, error) {
	full, err := d.full(false)
	if err != nil {
		return nil, err
	}
	depth, err := d.number("depth", 0, 0, mostMemoryDepth)
	if err != nil {
		return nil, err
	}
	prefix := cmp.Or(d.query.Get("path_prefix"), "/")
	if !strings.HasPrefix(prefix, "/") || !strings.HasSuffix(prefix, "/") {
		return nil, invalid("path_prefix", "it does not begin and end with /", "a prefix such as /notes/")
	}
	m, err := d.memoriesOf()
	if err != nil {
		return nil, err
	}
	all := readMemories(d.Objects(ofMemory(m.store)))
	slices.SortStableFunc(all, func(a, b memory) int { return strings.Compare(a.Path, b.Path) })
	var found []memory // one without an id stands for all below its path
	for _, k := range all {
		rest, below := strings.CutPrefix(k.Path, prefix)
		if !below {
			continue
		}
		if parts := strings.Split(rest, "/"); depth > 0 && len(parts) > depth {
			k = memory{keptMemory: keptMemory{Path: prefix + strings.Join(parts[:depth], "/") + "/"}}
		}
		if n := len(found); n == 0 || k.ID != "" || found[n-1].Path != k.Path {
			found = append(found, k)
		}
	}
	list, err := pagedUpTo(d, found, 100, mostOnPage(full), func(k memory) string { return k.Path })
	if err != nil {
		return nil, err
	}
	return viewed(list, func(k memory) (any, error) {
		if k.ID == "" {
			return memoryPrefix{"memory_prefix", k.Path}, nil
		}
		return m.shown(k, full)
	})
}

// version returns a version as clients see it.
func (m memories) version(o server.Object, full bool) (versionView, keptVersion, error) {
	var k keptVersion
	if err := json.Unmarshal(o.Value, &k); err != nil {
		return versionView{}, k, err
	}
	v := versionView{
		ID: o.ID, Type: "memory_version", Memory: k.Memory, Store: m.store, Operation: k.Operation, By: k.By, CreatedAt: stamp(o.Created),
		RedactedAt: when(k.Redacted), RedactedBy: k.RedactedBy,
	}
	if !k.Redacted.IsZero() {
		return v, k, nil
	}
	v.Path = &k.Path
	if k.Operation == deletedMemory {
		return v, k, nil
	}
	v.Digest, v.Size = &k.Digest, &o.Content.Size
	if !full {
		return v, k, nil
	}
	data, err := m.Load(o.Content)
	text := string(data)
	v.Content = &text
	return v, k, err
}

func (d *door) listMemoryVersions() (any, error) {
	full, err := d.full(false)
	if err != nil {
		return nil, err
	}
	within, err := d.within()
	if err != nil {
		return nil, err
	}
	operation, err := d.choice("operation", createdMemory, modifiedMemory, deletedMemory)
	if err != nil {
		return nil, err
	}
	m, err := d.memoriesOf()
	if err != nil {
		return nil, err
	}
	is := func(name, value string) bool { return !d.query.Has(name) || d.query.Get(name) == value }
	var found []server.Object
	for _, o := range slices.Backward(d.Objects(ofMemoryVersion(m.store))) {
		v, k, err := m.version(o, false)
		if err != nil {
			return nil, err
		}
		if within(o.Created) && is("memory_id", k.Memory) && is("session_id", k.By.Session) && is("api_key_id", k.By.Key) &&
			is("service_account_id", "") && (operation == "" || operation == v.Operation) {
			found = append(found, o)
		}
	}
	list, err := pagedUpTo(d, found, 100, mostOnPage(full), func(o server.Object) int64 { return -o.Turn })
	if err != nil {
		return nil, err
	}
	return viewed(list, func(o server.Object) (versionView, error) {
		v, _, err := m.version(o, full)
		return v, err
	})
}

func (d *door) memoryVersion() (any, error) {
	m, full, err := d.asked(true)
	if err != nil {
		return nil, err
	}
	return m.answerVersion(d.r.PathValue("id"), full)
}

func (m memories) answerVersion(id string, full bool) (any, error) {
	o, err := m.Object(ofMemoryVersion(m.store), id)
	if err != nil {
		return nil, missing("memory version", id)
	}
	v, _, err := m.version(o, full)
	return v, err
}

// redactMemoryVersion removes the content and the path of a version for good.
func (d *door) redactMemoryVersion() (any, error) {
	m, err := d.memoriesOf()
	if err != nil {
		return nil, err
	}
	id := d.r.PathValue("id")
	err = d.Edit(func(e *server.Edit) error {
		o, k, err := objectOf[keptVersion](e.Object, ofMemoryVersion(m.store), id)
		if err != nil || !k.Redacted.IsZero() {
			return err
		}
		if now, err := e.Object(ofMemory(m.store), k.Memory); err == nil {
			if memory, err := readMemory(now); err != nil || memory.Version == id {
				return cmp.Or(err, conflict("version %s is what the memory holds now; change or delete the memory first", id))
			}
		}
		k.Path, k.Digest, k.Redacted, k.RedactedBy = "", "", time.Now(), m.by
		return e.Put(ofMemoryVersion(m.store), id, o.Tenant, k, server.Content{})
	})
	if err != nil {
		return nil, err
	}
	return m.answerVersion(id, true)
}
